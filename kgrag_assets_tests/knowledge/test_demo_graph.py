"""The demo's knowledge graph: real ids, whole, and made again by the script beside it."""

from __future__ import annotations

import csv
import importlib
import re
from pathlib import Path
from types import ModuleType

import pytest
import yaml

REPOSITORY = Path(__file__).parents[2]
GRAPH = REPOSITORY / "data_lake" / "input" / "knowledge_graphs" / "demo_wikidata"
SOURCE = REPOSITORY.parent / "shared" / "data" / "wikidata_arnold"
FILES = ("labels.en.tsv", "aliases.en.tsv", "descriptions.en.tsv", "claims.tsv")
ID = re.compile(r"[PQ][1-9][0-9]*")
ENGLISH = re.compile(r"'.*'@en")


def read(name: str) -> list[dict[str, str]]:
    with (GRAPH / name).open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))


@pytest.fixture(scope="module")
def labels() -> dict[str, str]:
    rows = read("labels.en.tsv")
    found = {row["node1"]: row["node2"] for row in rows}
    assert len(found) == len(rows)
    return found


@pytest.fixture(scope="module")
def claims() -> list[dict[str, str]]:
    return read("claims.tsv")


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(REPOSITORY / "scripts"))
    return importlib.import_module("select_demo_graph")


def test_size(labels: dict[str, str], claims: list[dict[str, str]]) -> None:
    assert 3000 <= len(labels) <= 4000
    assert 5000 <= len(claims) <= 9000
    assert sum((GRAPH / name).stat().st_size for name in FILES) < 1_500_000


@pytest.mark.parametrize("name", FILES)
def test_files_are_kgtk_edges_in_order(name: str) -> None:
    rows = read(name)
    assert list(rows[0]) == ["node1", "label", "node2", "id"]
    assert all(len(row) == 4 and all(row.values()) for row in rows)
    assert len({row["id"] for row in rows}) == len(rows)
    order = [(row["node1"][0], int(row["node1"][1:]), row["label"], row["node2"], row["id"]) for row in rows]
    assert order == sorted(order)


@pytest.mark.parametrize("name", FILES[:3])
def test_names_are_english_strings_of_labelled_entities(name: str, labels: dict[str, str]) -> None:
    for row in read(name):
        assert row["node1"] in labels
        assert ENGLISH.fullmatch(row["node2"]), row


def test_every_statement_is_between_labelled_entities(labels: dict[str, str], claims: list[dict[str, str]]) -> None:
    for row in claims:
        for part in (row["node1"], row["label"], row["node2"]):
            assert ID.fullmatch(part), row
            assert part in labels, row
        assert row["label"].startswith("P")
        assert row["node1"] != row["node2"]
    triples = {(row["node1"], row["label"], row["node2"]) for row in claims}
    assert len(triples) == len(claims)


def test_ids_are_wikidatas(labels: dict[str, str]) -> None:
    assert all(ID.fullmatch(node) for node in labels)
    known = {"P21": "sex or gender", "P569": "date of birth", "P494": "ICD-10", "Q12140": "medication"}
    assert {node: labels[node] for node in known} == {node: f"'{name}'@en" for node, name in known.items()}


def test_most_entities_hang_together(script: ModuleType, labels: dict[str, str], claims: list[dict[str, str]]) -> None:
    parts = script.components_of(labels, [script.Edge(**row) for row in claims])
    assert sum(len(part) for part in parts) == len(labels)
    assert len(parts[0]) > 0.95 * len(labels)


def test_the_folder_says_what_it_is() -> None:
    described = yaml.safe_load((GRAPH / "kg.yaml").read_text(encoding="utf-8"))
    assert described["format"] == "kgtk"
    assert described["path"] == "."
    assert described["languages"] == ["en"]
    assert described["namespace"] == "wd"
    assert described["licence"].startswith("CC0")


def test_numbers_in_the_readme(labels: dict[str, str], claims: list[dict[str, str]]) -> None:
    text = (GRAPH / "README.md").read_text(encoding="utf-8")
    properties = sum(1 for node in labels if node.startswith("P"))
    assert f"{len(labels):,} entities ({properties:,} properties, {len(labels) - properties:,} items)" in text
    assert f"{len(claims):,} statements" in text


def test_bounds_in_the_readme_are_the_scripts(script: ModuleType) -> None:
    subjects = importlib.import_module("demo_graph_subjects")
    text = " ".join((GRAPH / "README.md").read_text(encoding="utf-8").split())
    health, *others = (depth for _, depth in subjects.DOWN)
    assert f"start from {sum(len(seeds) for seeds, _ in subjects.DOWN)} seeds" in text
    assert len(set(others)) == 1
    assert f"{subjects.UP} steps up, subclasses {others[0]} down (health: {health})" in text
    assert f"more than {script.HUB} children" in text


def test_the_script_makes_the_same_files_again(script: ModuleType, tmp_path: Path) -> None:
    if not SOURCE.is_dir():
        pytest.skip("the extract of Wikidata is not on this machine")
    assert script.main(["--source", str(SOURCE), "--out", str(tmp_path / "graph")]) == 0
    for name in FILES:
        assert (tmp_path / "graph" / name).read_bytes() == (GRAPH / name).read_bytes(), name


def test_the_script_says_what_is_missing(
    script: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert script.main(["--source", str(tmp_path), "--out", str(tmp_path / "out")]) == 2
    assert "aliases.en.tsv.gz is not there" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_kgtk_strings_are_unescaped(script: ModuleType) -> None:
    edge = script.Edge("Q1", "label", r"'nurse\'s \"aide\"'@en", "Q1-label-en")
    assert script.text_of(edge) == 'nurse\'s "aide"'
    with pytest.raises(script.SelectionError, match="Q2-label"):
        script.text_of(script.Edge("Q2", "label", "plain", "Q2-label"))
