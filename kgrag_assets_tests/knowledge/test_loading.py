"""Rows of a graph: contracts, and which rows a change of the files changes."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from kgrag_assets.knowledge.graph_folder import GraphFolder
from kgrag_assets.rows.knowledge_graph import KG_ENTITIES, KG_TRIPLES, bucket_of
from kgrag_assets.rows.rejects import KG_REJECTS
from kgrag_assets_tests.knowledge.loaded import Loaded, add_graph, load_all

NAMES = [
    "Q1\tlabel\t'patient'@en",
    "Q1\talias\t'case'@en",
    "Q1\talias\t'patient'@en",
    "Q1\tdescription\t'one who is cared for'@en",
    "Q2\tlabel\t'person'@en",
    "P31\tlabel\t'instance of'@en",
    "P569\tlabel\t'date of birth'@en",
]
STATEMENTS = ["Q1\tP31\tQ2", "Q1\tP31\tQ99", "Q2\tP31\tQ2", "Q1\tP569\t^1952-03-11T00:00:00Z/11"]


def folder_of(
    place: Path, lines: list[str], name: str = "test", *, literals: bool = False, namespace: str = "wd"
) -> GraphFolder:
    config = f"format: kgtk\nnamespace: {namespace}\nliterals: {str(literals).lower()}\n"
    return add_graph(place, name, config, {"edges.tsv": "\n".join(["node1\tlabel\tnode2", *lines]) + "\n"})


def load(place: Path, lines: list[str], buckets: int = 8, *, literals: bool = False) -> Loaded:
    return load_all(place, [folder_of(place, lines, literals=literals)], buckets)


def changed(before: pl.DataFrame, after: pl.DataFrame) -> pl.DataFrame:
    """Return the rows after that were not there before."""
    return after.filter(~pl.col("row_key").is_in(before["row_key"].to_list()))


def test_rows_are_what_the_tables_say(tmp_path: Path) -> None:
    loaded = load(tmp_path, NAMES + STATEMENTS + ["a bad line"], literals=True)
    entities = KG_ENTITIES.conform(loaded.entities)
    KG_TRIPLES.conform(loaded.triples)
    KG_REJECTS.conform(loaded.rejects)
    rows = {row["entity_id"]: row for row in entities.iter_rows(named=True)}
    assert set(rows) == {"wd:Q1", "wd:Q2", "wd:P31", "wd:P569"}
    patient = rows["wd:Q1"]
    assert (patient["label"], patient["aliases"], patient["description"]) == (
        "patient",
        ["case"],
        "one who is cared for",
    )
    assert {entity_id: row["kind"] for entity_id, row in rows.items()} == {
        "wd:Q1": "entity",
        "wd:Q2": "entity",
        "wd:P31": "relation",
        "wd:P569": "relation",
    }
    assert loaded.rejects["row"].to_list() == [len(NAMES) + len(STATEMENTS) + 2]


def test_statements_show_labels_or_ids(tmp_path: Path) -> None:
    triples = load(tmp_path, NAMES + STATEMENTS, literals=True).triples
    shown = triples.select("head_label", "relation_label", "tail_label", "tail", "tail_value").rows()
    assert set(shown) == {
        ("patient", "instance of", "person", "wd:Q2", None),
        ("patient", "instance of", "Q99", "wd:Q99", None),
        ("person", "instance of", "person", "wd:Q2", None),
        ("patient", "date of birth", "11 March 1952", None, "11 March 1952"),
    }
    assert load(tmp_path, NAMES + STATEMENTS).triples["tail"].null_count() == 0


def test_an_entity_without_a_label_is_called_by_its_id(tmp_path: Path) -> None:
    entities = load(tmp_path, ["Q7\tP31\tQ8"]).entities
    assert entities.select("entity_id", "label").rows() == [("wd:Q7", "Q7")]


def test_a_changed_description_changes_one_entity_and_no_statement(tmp_path: Path) -> None:
    before = load(tmp_path, NAMES + STATEMENTS)
    after = load(tmp_path, [line.replace("cared for", "treated") for line in NAMES] + STATEMENTS)
    assert changed(before.entities, after.entities)["entity_id"].to_list() == ["wd:Q1"]
    assert set(after.triples["row_key"]) == set(before.triples["row_key"])


def test_a_changed_label_changes_the_statements_that_show_it(tmp_path: Path) -> None:
    before = load(tmp_path, NAMES + STATEMENTS)
    after = load(tmp_path, [line.replace("'person'", "'human'") for line in NAMES] + STATEMENTS)
    assert changed(before.entities, after.entities)["entity_id"].to_list() == ["wd:Q2"]
    statements = changed(before.triples, after.triples).select("head", "tail").rows()
    assert set(statements) == {("wd:Q1", "wd:Q2"), ("wd:Q2", "wd:Q2")}
    assert set(after.triples["triple_id"]) == set(before.triples["triple_id"])


def test_the_order_of_lines_does_not_change_rows(tmp_path: Path) -> None:
    before, after = load(tmp_path, NAMES + STATEMENTS), load(tmp_path, STATEMENTS[::-1] + NAMES)
    assert set(before.entities["row_key"]) == set(after.entities["row_key"])
    assert set(before.triples["row_key"]) == set(after.triples["row_key"])


@pytest.mark.parametrize("buckets", [1, 3, 64])
def test_rows_lie_in_the_bucket_of_their_entity(tmp_path: Path, buckets: int) -> None:
    loaded = load(tmp_path, [f"Q{number}\tP31\tQ{number % 7}" for number in range(200)], buckets)
    for frame, column in ((loaded.entities, "entity_id"), (loaded.triples, "head")):
        assert frame["bucket"].to_list() == [bucket_of(entity_id, buckets) for entity_id in frame[column]]
        assert set(frame["bucket"]) <= set(range(buckets))
    assert buckets == 1 or loaded.entities["bucket"].n_unique() > 1


def test_two_graphs_keep_apart(tmp_path: Path) -> None:
    folders = [
        folder_of(tmp_path, NAMES + STATEMENTS, "one"),
        folder_of(tmp_path, NAMES + STATEMENTS + ["broken"], "two"),
        folder_of(tmp_path, NAMES + STATEMENTS, "three", namespace="my"),
    ]
    loaded = load_all(tmp_path, folders, 4)
    KG_ENTITIES.conform(loaded.entities)
    KG_TRIPLES.conform(loaded.triples)
    assert loaded.entities["graph"].value_counts(sort=True)["count"].to_list() == [4, 4, 4]
    assert set(loaded.entities.filter(pl.col("graph") == "three")["entity_id"].str.slice(0, 3)) == {"my:"}
    assert loaded.triples["triple_id"].n_unique() == loaded.triples.height == 9
    assert loaded.entities["row_key"].n_unique() == 12
    assert loaded.rejects.select("graph", "row").rows() == [("two", len(NAMES) + len(STATEMENTS) + 2)]


def test_no_graph_gives_empty_tables(tmp_path: Path) -> None:
    loaded = load_all(tmp_path, [], 4)
    assert (loaded.entities.schema, loaded.entities.height) == (KG_ENTITIES.schema, 0)
    assert (loaded.triples.schema, loaded.rejects.schema) == (KG_TRIPLES.schema, KG_REJECTS.schema)


def test_a_folder_without_data_is_said(tmp_path: Path) -> None:
    graph = folder_of(tmp_path, [])
    (graph.path / "edges.tsv").unlink()
    (reason,) = load_all(tmp_path, [graph], 4).rejects["reason"]
    assert reason.startswith("no file of the format kgtk lies here")


def test_a_name_for_all_languages_is_the_last_resort(tmp_path: Path) -> None:
    lines = ["Q1\tlabel\t'Ada'@mul", "Q2\tlabel\t'everyone'@mul", "Q2\tlabel\t'all'@en"]
    entities = load(tmp_path, lines).entities
    assert dict(entities.select("entity_id", "label").iter_rows()) == {"wd:Q1": "Ada", "wd:Q2": "all"}
