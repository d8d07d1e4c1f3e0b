"""What ``kg.yaml`` may say, and which changes a graph's fingerprint shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from kgrag_assets.knowledge.errors import KnowledgeError
from kgrag_assets.knowledge.fingerprint import data_files, graph_fingerprint
from kgrag_assets.knowledge.graph_folder import list_graphs, load_graph_folder
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
    assert (graph.languages, graph.namespace, graph.title, graph.literals) == (("en",), "wd", "plain", False)


def test_settings_that_are_given(paths: LakePaths, tmp_path: Path) -> None:
    elsewhere = tmp_path / "dump.json"
    elsewhere.touch()
    text = f"format: wikidata_json\npath: {elsewhere}\nlanguages: [de, 'no']\nnamespace: my\ntitle: T\nlicence: CC0\n"
    add(paths, "full", text + "literals: true\n")
    graph = load_graph_folder(paths, "full")
    assert (graph.data_path, graph.languages, graph.namespace) == (elsewhere, ("de", "no"), "my")
    assert (graph.title, graph.literals) == ("T", True)


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
        ("path: .\n", "format must be one of kgtk, wikidata_json, not None"),
        ("format: rdf\n", "format must be one of kgtk, wikidata_json, not 'rdf'"),
        ("format: [kgtk]\n", "format must be one of"),
        ("format: kgtk\npath: nowhere\n", "'nowhere' does not exist"),
        ("format: kgtk\npath: " + "x" * 5000 + "\n", "does not exist"),
        ("format: kgtk\nlanguages: en\n", "languages must be a list"),
        ("format: kgtk\nlanguages: []\n", "languages must be a list"),
        ("format: kgtk\nlanguages: [no, en]\n", "quotes"),
        ("format: kgtk\nnamespace: 'a:b'\n", "namespace must be letters and digits"),
        ("format: kgtk\nnamespace: ''\n", "namespace must be letters and digits"),
        ("format: kgtk\nnamespace: é\n", "namespace must be letters and digits"),
        ("format: kgtk\nliterals: 'no'\n", "literals must be true or false, not 'no'"),
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
    return graph_fingerprint(load_graph_folder(paths, "graph"))


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
