"""What ``kg.yaml`` may say, and which changes a graph's fingerprint shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from kgrag_assets.knowledge.errors import KnowledgeError
from kgrag_assets.knowledge.filters import GraphFilter
from kgrag_assets.knowledge.fingerprint import Fingerprints
from kgrag_assets.knowledge.graph_folder import list_graphs, load_graph_folder
from kgrag_assets.knowledge.opening import data_files
from kgrag_assets.lake.lake import Lake
from kgrag_assets.lake.paths import LakePaths

CONFIG = "format: kgtk\n"


@pytest.fixture
def paths(tmp_path: Path) -> LakePaths:
    return LakePaths(tmp_path)


def add(paths: LakePaths, name: str, config: str | bytes | None = CONFIG) -> Path:
    folder = paths.knowledge_graphs / name
    folder.mkdir(parents=True)
    if config is not None:
        (folder / "kg.yaml").write_bytes(config if isinstance(config, bytes) else config.encode())
    return folder


def test_settings_and_their_defaults(paths: LakePaths) -> None:
    folder = add(paths, "plain")
    graph = load_graph_folder(paths, "plain")
    assert (graph.name, graph.path, graph.data_path, graph.format) == ("plain", folder, folder, "kgtk")
    assert (graph.namespace, graph.title, graph.read.literals) == ("wd", "plain", ())
    assert graph.read.languages == ("en", "mul")
    assert graph.filter == GraphFilter()
    assert graph.refresh is None


def test_settings_that_are_given(paths: LakePaths, tmp_path: Path) -> None:
    elsewhere = tmp_path / "dump.json"
    elsewhere.touch()
    text = f"format: wikidata_json\npath: {elsewhere}\nlanguages: [de, 'no']\nnamespace: my\ntitle: T\nlicence: CC0\n"
    add(paths, "full", text + "literals: true\n")
    graph = load_graph_folder(paths, "full")
    assert (graph.data_path, graph.read.languages, graph.namespace) == (elsewhere, ("de", "no", "mul"), "my")
    assert (graph.title, graph.read.literals) == ("T", ("all",))


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        (None, "is missing: it says format and path"),
        ("", "must hold settings"),
        ("- kgtk\n", "must hold settings"),
        ("format: [\n", "cannot be read"),
        (b"format: \xff\n", "cannot be read"),
        ("format: kgtk\ntitle: 2024-13-45\n", "cannot be read"),
        ("[" * 20_000, "cannot be read"),
        ("format: kgtk\nlanguage: en\n", "unknown setting 'language'"),
        ("format: kgtk\n1: x\nzzz: y\n", "unknown setting '1'"),
        ("path: .\n", "format must be one of kgtk, wikidata_json, .*not None"),
        ("format: rdf\n", "format must be one of kgtk, .*not 'rdf'"),
        ("format: [kgtk]\n", "format must be one of"),
        ("format: kgtk\npath: nowhere\n", "'nowhere' does not exist"),
        ("format: kgtk\npath: " + "x" * 5000 + "\n", "does not exist"),
        ("format: kgtk\nlanguages: en\n", "languages must be a list"),
        ("format: kgtk\nlanguages: []\n", "languages must name at least one"),
        ("format: kgtk\nlanguages: [no, en]\n", "quotes"),
        ("format: kgtk\nnamespace: 'a:b'\n", "namespace must be letters and digits"),
        ("format: kgtk\nnamespace: ''\n", "namespace must be letters and digits"),
        ("format: kgtk\nnamespace: é\n", "namespace must be letters and digits"),
        ("format: kgtk\nlanguages: ['en\"']\n", "languages"),
        ("format: kgtk\nliterals: 'no'\n", "literals must be true, false or a list of"),
        ("format: kgtk\nliterals: [time, colour]\n", "literals must be true, false or a list of"),
        ("format: kgtk\nranks: best\n", "unknown setting 'ranks' for the format kgtk"),
        ("format: wikidata_json\nranks: all\n", "ranks must be not_deprecated or best"),
        ("format: wikidata_json\nlexemes: 1\n", "lexemes must be true or false"),
        ("format: kgtk\nfilter: [Q5]\n", "filter must hold settings"),
        ("format: kgtk\nfilter: {class: [Q5]}\n", "unknown setting filter.class"),
        ("format: kgtk\nfilter: {classes: Q5}\n", "filter.classes must be a list of ids"),
        ("format: kgtk\nfilter: {classes: ['Q 5']}\n", "one printable word"),
        ("format: kgtk\nfilter: {min_statements: -1}\n", "must be a number of at least 0"),
        ("format: kgtk\nfilter: {min_sitelinks: 3}\n", "min_sitelinks is known of Wikidata"),
        ("format: kgtk\nfilter: {tails: some}\n", "filter.tails must be any or kept"),
        ("format: wikidata_json\nrefresh: {}\n", "refresh.contact is needed"),
        ("format: wikidata_json\nrefresh: {contact: a@b, feed: x}\n", "refresh.feed must be"),
        ("format: wikidata_json\nrefresh: {contact: a@b, api: ftp://x}\n", "refresh.api must be an http address"),
        ("format: wikidata_json\nrefresh: {contact: a@b, seconds: soon}\n", "refresh.seconds must be a number"),
        ("format: kgtk\nrefresh: {contact: a@b}\n", "unknown setting 'refresh' for the format kgtk"),
        ("format: sparql\n", "endpoint must be the address"),
        ("format: sparql\nendpoint: http://x/\nquery: ../q.rq\n", "query must be a file in"),
    ],
)
def test_what_is_not_understood_is_refused(paths: LakePaths, config: str | bytes | None, problem: str) -> None:
    folder = add(paths, "graph", config)
    with pytest.raises(KnowledgeError, match=problem) as caught:
        load_graph_folder(paths, "graph")
    assert str(folder / "kg.yaml") in str(caught.value)
    (listed,) = list_graphs(paths)
    assert (listed.name, listed.problem) == ("graph", str(caught.value))


@pytest.mark.parametrize("name", ["", ".hidden", "../up", "a/b", "a,b", "a...b", " a", "x" * 81, "a\nb"])
def test_names_that_are_none(paths: LakePaths, name: str) -> None:
    with pytest.raises(KnowledgeError, match="a name"):
        load_graph_folder(paths, name)


def test_a_list_by_name_without_hidden_folders_and_files(paths: LakePaths) -> None:
    assert list_graphs(paths) == []
    for name in ("b", "a", ".c"):
        add(paths, name)
    add(paths, "x,y")
    (paths.knowledge_graphs / "note.txt").touch()
    listed = list_graphs(paths)
    assert [graph.name for graph in listed] == ["a", "b", "x,y"]
    assert [graph.problem is None for graph in listed] == [True, True, False]


def test_files_of_the_format(paths: LakePaths) -> None:
    folder = add(paths, "kgtk")
    (folder / "sub").mkdir()
    for name in ("b.tsv", "sub/a.tsv.gz", "README.md", "x.json"):
        (folder / name).touch()
    found = data_files(load_graph_folder(paths, "kgtk"))
    assert [path.relative_to(folder).as_posix() for path in found] == ["b.tsv", "sub/a.tsv.gz"]
    other = add(paths, "json", "format: wikidata_json\n")
    for name in ("a.json", "b.ndjson", "c.jsonl.bz2", "d.json.gz", "e.tsv.gz"):
        (other / name).touch()
    names = [path.name for path in data_files(load_graph_folder(paths, "json"))]
    assert names == ["a.json", "b.ndjson", "c.jsonl.bz2", "d.json.gz"]


def fingerprint(paths: LakePaths) -> str:
    fingerprints = Fingerprints(Lake(paths))
    found = fingerprints.of(load_graph_folder(paths, "graph"))
    fingerprints.save()
    return found


def test_the_fingerprint_changes_with_content_and_settings_only(paths: LakePaths) -> None:
    folder = add(paths, "graph")
    data = folder / "a.tsv"
    data.write_text("node1\tlabel\tnode2\n", encoding="utf-8")
    before = fingerprint(paths)
    (folder / "README.md").write_text("not data", encoding="utf-8")
    data.write_bytes(data.read_bytes())
    assert fingerprint(paths) == before

    seen = {before}
    for change in (
        lambda: data.write_text("node1\tlabel\tnode3\n", encoding="utf-8"),
        lambda: data.rename(folder / "b.tsv"),
        (folder / "c.tsv").touch,
        lambda: (folder / "kg.yaml").write_text("format: kgtk\nlanguages: [de]\n", encoding="utf-8"),
        lambda: (folder / "kg.yaml").write_text("format: kgtk\nlanguages: [de]\nliterals: true\n", encoding="utf-8"),
        lambda: (folder / "kg.yaml").write_text("format: kgtk\nnamespace: my\n", encoding="utf-8"),
    ):
        change()
        now = fingerprint(paths)
        assert now not in seen
        seen.add(now)


def test_a_file_that_was_not_touched_is_not_read_again(paths: LakePaths, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = add(paths, "graph")
    data = folder / "a.tsv"
    data.write_text("node1\tlabel\tnode2\n", encoding="utf-8")
    before = fingerprint(paths)
    monkeypatch.setattr("kgrag_assets.knowledge.fingerprint._hash", lambda path: pytest.fail(f"{path} was read"))
    assert fingerprint(paths) == before
    monkeypatch.undo()
    (paths.root / "stages" / "kg_fingerprints" / "files.json").write_text("damaged", encoding="utf-8")
    assert fingerprint(paths) == before
