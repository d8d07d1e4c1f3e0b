"""Refreshing a graph gives the rows of a full load, whatever was edited, deleted, merged or restored."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from kgrag_assets.automation.partitions import bucket_names
from kgrag_assets.knowledge.adjacency import Adjacency
from kgrag_assets.knowledge.adjacency_update import bring_adjacency_up_to_date, open_graph
from kgrag_assets.knowledge.errors import KnowledgeError
from kgrag_assets.knowledge.following import drop_changes_before
from kgrag_assets.knowledge.graph_folder import load_graph_folder
from kgrag_assets.knowledge.refreshing import RefreshReport, refresh_graph
from kgrag_assets.lake.lake import Lake
from kgrag_assets.rows.graph_changes import KG_CHANGES, change_key_of
from kgrag_assets.rows.knowledge_graph import KG_ENTITIES, KG_TRIPLES, STAGED_ENTITIES, STAGED_TRIPLES
from kgrag_assets.settings import GraphSettings
from kgrag_assets_tests.knowledge.loaded import add_graph, load_all, staged

BUCKETS = 3
SETTINGS = GraphSettings(buckets=BUCKETS, workers=1)
CONFIG = "format: wikidata_json\nrefresh: {contact: team@example.org}\n"
FILTERS = {
    "all": "",
    "classes": "filter: {classes: [Q1]}\n",
    "kept tails": "filter: {tails: kept}\n",
    "statements": "filter: {min_statements: 2}\n",
    "relations": "filter: {relations: [P31]}\n",
}
Change = tuple[str, str, str, str | None, int, str, str]


def entity(number: int, labels: int, tails: dict[str, list[int]], revision: int) -> dict[str, Any]:
    """Write an item as Wikidata does: ``tails`` holds item numbers by property."""
    claims = {
        relation: [
            {
                "mainsnak": {
                    "snaktype": "value",
                    "property": relation,
                    "datatype": "wikibase-item",
                    "datavalue": {
                        "value": {"entity-type": "item", "id": f"Q{tail}"},
                        "type": "wikibase-entityid",
                    },
                },
                "type": "statement",
                "rank": "normal",
            }
            for tail in numbers
        ]
        for relation, numbers in tails.items()
        if numbers
    }
    named = {"en": {"language": "en", "value": f"name {number}-{labels}"}} if labels else {}
    return {
        "type": "item",
        "id": f"Q{number}",
        "lastrevid": revision,
        "labels": named,
        "descriptions": {},
        "aliases": {},
        "claims": claims,
        "sitelinks": {},
    }


def random_entity(number: int, rng: random.Random, revision: int) -> dict[str, Any]:
    tails = {name: [rng.randint(1, 20) for _ in range(rng.randint(0, 2))] for name in ("P31", "P279", "P50")}
    return entity(number, rng.randint(0, 3), tails, revision)


def change(action: str, number: int, revision: int, document: dict[str, Any] | None = None, to: int = 0) -> Change:
    target = f"Q{to}" if action == "redirected" else None
    text = json.dumps(document) if document is not None else ""
    return ("w", f"Q{number}", action, target, revision, "2026-11-30T00:00:00Z", text)


def stage(lake: Lake, changes: dict[int, Change]) -> pl.DataFrame:
    rows = [(*row, change_key_of(*row[:5])) for row in changes.values()]
    frame = pl.DataFrame(rows, schema=KG_CHANGES.schema, orient="row")
    lake.write(KG_CHANGES, "w", frame)
    return frame


def world(place: Path, chosen: str, entities: list[dict[str, Any]]) -> Lake:
    text = "\n".join(json.dumps(one) for one in entities)
    load_all(place, [add_graph(place, "w", CONFIG + FILTERS[chosen], {"dump.json": text})], BUCKETS)
    return Lake.at(place)


def refresh(place: Path) -> RefreshReport | None:
    lake = Lake.at(place)
    return refresh_graph(lake, load_graph_folder(lake.paths, "w"), SETTINGS, bucket_names(BUCKETS))


def reload(place: Path) -> None:
    lake = Lake.at(place)
    load_all(place, [load_graph_folder(lake.paths, "w")], BUCKETS)


def adopt(lake: Lake) -> None:
    for name in bucket_names(BUCKETS):
        lake.adopt(KG_ENTITIES, name, STAGED_ENTITIES)
        lake.adopt(KG_TRIPLES, name, STAGED_TRIPLES)


def edges(graph: Adjacency, ids: list[str]) -> set[tuple[str, str, str]]:
    found = set()
    for one in ids:
        node = graph.node(one)
        for other, relation, forward in graph.around(node) if node is not None else ():
            ends = (one, graph.entity_id(other)) if forward else (graph.entity_id(other), one)
            found.add((ends[0], graph.relation_id(relation), ends[1]))
    return found


@pytest.mark.parametrize("chosen", list(FILTERS))
@pytest.mark.parametrize("seed", range(3))
def test_a_refresh_gives_the_rows_of_a_full_load(tmp_path: Path, chosen: str, seed: int) -> None:
    rng = random.Random(f"{chosen} {seed}")
    entities = [random_entity(number, rng, 100) for number in range(1, 21)]
    lake = world(tmp_path / "a", chosen, entities)
    adopt(lake)
    bring_adjacency_up_to_date(lake, bucket_names(BUCKETS))
    changes: dict[int, Change] = {}
    for step in range(3):
        for number in rng.sample(range(1, 23), rng.randint(1, 3)):
            action = rng.choice(["edited", "edited", "deleted", "redirected"])
            other = rng.choice([one for one in range(1, 21) if one != number])
            document = random_entity(number, rng, 101 + step) if action == "edited" else None
            changes[number] = change(action, number, 101 + step, document, other)
        stage(lake, changes)
        report = refresh(tmp_path / "a")
        if report is None:
            reload(tmp_path / "a")
        shutil.rmtree(tmp_path / "b", ignore_errors=True)
        (tmp_path / "b").mkdir()
        full = Lake.at(tmp_path / "b")
        stage(full, changes)
        world(tmp_path / "b", chosen, entities)
        for ours, theirs in zip(staged(lake), staged(full), strict=True):
            assert ours.equals(theirs)

        adopt(lake)
        bring_adjacency_up_to_date(lake, bucket_names(BUCKETS))
        adopt(full)
        bring_adjacency_up_to_date(full, bucket_names(BUCKETS))
        ids = [f"wd:Q{number}" for number in range(1, 23)]
        assert edges(open_graph(lake), ids) == edges(open_graph(full), ids)
        assert open_graph(lake).data_version == open_graph(full).data_version


def small_world(place: Path) -> Lake:
    tails = {"P31": [2]}
    return world(place, "all", [entity(1, 1, tails, 10), entity(2, 1, {}, 10), entity(3, 1, {"P50": [1]}, 10)])


def shown(lake: Lake) -> set[tuple[str, str, str]]:
    return set(lake.read_all(STAGED_TRIPLES).select("head_label", "relation", "tail_label").iter_rows())


def test_deleted_merged_and_restored(tmp_path: Path) -> None:
    lake = small_world(tmp_path)
    assert shown(lake) == {("name 1-1", "wd:P31", "name 2-1"), ("name 3-1", "wd:P50", "name 1-1")}
    stage(lake, {1: change("deleted", 1, 11)})
    refresh(tmp_path)
    assert shown(lake) == {("name 3-1", "wd:P50", "Q1")}
    stage(lake, {1: change("redirected", 1, 12, to=2)})
    refresh(tmp_path)
    assert shown(lake) == {("name 3-1", "wd:P50", "name 2-1")}
    stage(lake, {1: change("edited", 1, 13, entity(1, 2, {"P31": [3]}, 13))})
    report = refresh(tmp_path)
    assert shown(lake) == {("name 1-2", "wd:P31", "name 3-1"), ("name 3-1", "wd:P50", "name 1-2")}
    assert report is not None
    assert (report.changed, report.touched) == (1, 1)


def test_what_the_files_know_better_is_left(tmp_path: Path) -> None:
    lake = small_world(tmp_path)
    stage(lake, {1: change("edited", 1, 9, entity(1, 3, {}, 9))})
    refresh(tmp_path)
    assert ("name 1-1", "wd:P31", "name 2-1") in shown(lake)


def test_a_deletion_holds_without_a_revision_of_its_own(tmp_path: Path) -> None:
    lake = small_world(tmp_path)
    stage(lake, {1: change("deleted", 1, 0)})
    refresh(tmp_path)
    assert shown(lake) == {("name 3-1", "wd:P50", "Q1")}
    reload(tmp_path)
    assert shown(lake) == {("name 3-1", "wd:P50", "Q1")}


def test_changes_from_before_a_dump_are_dropped(tmp_path: Path) -> None:
    lake = small_world(tmp_path)
    stage(lake, {1: change("deleted", 1, 0), 2: change("edited", 2, 11, entity(2, 3, {}, 11))})
    refresh(tmp_path)
    assert drop_changes_before(lake, "w", "2026-11-30") == 0
    assert drop_changes_before(lake, "w", "2026-12-01") == 2
    refresh(tmp_path)
    assert shown(lake) == {("name 1-1", "wd:P31", "name 2-1"), ("name 3-1", "wd:P50", "name 1-1")}


def test_nothing_new_writes_nothing(tmp_path: Path) -> None:
    lake = small_world(tmp_path)
    stage(lake, {1: change("edited", 1, 11, entity(1, 2, {}, 11))})
    first = refresh(tmp_path)
    assert first is not None
    assert first.written
    again = refresh(tmp_path)
    assert again == RefreshReport(0, 0, {})


def test_a_graph_that_was_never_loaded(tmp_path: Path) -> None:
    add_graph(tmp_path, "w", CONFIG, {"dump.json": ""})
    with pytest.raises(KnowledgeError, match="was not loaded yet"):
        refresh(tmp_path)
