"""A graph followed at its source: edits, deletions and merges reach the rows of their buckets, and nothing else."""

from __future__ import annotations

import bz2
import json
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import polars as pl
import pytest

from kgrag_assets.automation.inputs import GRAPH_CHANGES
from kgrag_assets.automation.jobs import REFRESH_GRAPH, TAKE_DUMPS
from kgrag_assets.cli.entities import looked_up
from kgrag_assets.cli.graphs import listed_graphs, take_changes
from kgrag_assets.cli.place import Place
from kgrag_assets.cli.running import RunError, RunReport, bring_graph_up_to_date
from kgrag_assets.knowledge.adjacency_update import open_graph
from kgrag_assets.knowledge.dump_taking import take_dump
from kgrag_assets.knowledge.errors import KnowledgeError
from kgrag_assets.knowledge.graph_folder import load_graph_folder
from kgrag_assets.lake.lake import Lake
from kgrag_assets.rows.embeddings import ENTITY_EMBEDDINGS
from kgrag_assets.rows.knowledge_graph import KG_ENTITIES, KG_TRIPLES
from kgrag_assets_tests.pipeline.workshop import WordEmbedder, settings_for
from kgrag_assets_tests.servers.mediawiki_server import MediaWikiServer
from kgrag_assets_tests.servers.wiki_world import World, item

GRAPH = "followed"


@pytest.fixture
def server() -> Iterator[MediaWikiServer]:
    with MediaWikiServer(World()) as started:
        yield started


@pytest.fixture
def place(tmp_path: Path, server: MediaWikiServer) -> Iterator[Place]:
    first = [item("Q1", "patient", P31="Q3"), item("Q2", "nurse", P31="Q3"), item("Q3", "human")]
    folder = tmp_path / "lake" / "input" / "knowledge_graphs" / GRAPH
    folder.mkdir(parents=True)
    for entity in first:
        server.world.load(entity)
    (folder / "dump.json").write_text("\n".join(json.dumps(entity) for entity in first), encoding="utf-8")
    (folder / "kg.yaml").write_text(
        f"format: wikidata_json\nrefresh:\n  contact: team@example.org\n  api: {server.url}\n"
        f"  stream: {server.stream_url}\n  min_interval_s: 0\n",
        encoding="utf-8",
    )
    with dg.DagsterInstance.ephemeral() as instance:
        yield Place(settings_for(tmp_path), Lake.at(tmp_path / "lake"), instance, {"embedder": WordEmbedder()})


def bring(place: Place) -> RunReport:
    return bring_graph_up_to_date(place, lambda _job, _partition: None)


def labels(place: Place) -> dict[str, str]:
    return dict(place.lake.read_all(KG_ENTITIES).select("entity_id", "label").iter_rows())


def statements(place: Place) -> set[tuple[str, str, str]]:
    return set(place.lake.read_all(KG_TRIPLES).select("head_label", "relation", "tail_label").iter_rows())


def test_what_changed_at_the_source_reaches_the_graph(place: Place, server: MediaWikiServer) -> None:
    bring(place)
    take_changes(place, None)
    assert statements(place) == {("patient", "wd:P31", "human"), ("nurse", "wd:P31", "human")}

    server.world.edit("Q1", item("Q1", "inpatient", P31="Q3"))
    server.world.merge("Q2", "Q1")
    looks = take_changes(place, GRAPH)
    assert [look.staged for look in looks] == [2]
    report = bring(place)
    assert labels(place) == {"wd:Q1": "inpatient", "wd:Q3": "human"}
    assert statements(place) == {("inpatient", "wd:P31", "human")}
    graph = open_graph(place.lake)
    node = graph.node("wd:Q1")
    assert node is not None
    assert graph.label(node) == "inpatient"
    texts = place.lake.read_all(ENTITY_EMBEDDINGS)["text"].to_list()
    assert sorted(texts) == ["human", "inpatient"]
    ran = {step.partition for step in report.steps if step.asset == "entity_embeddings"}
    assert ran, "the buckets of the changed entities ran"

    server.world.edit("Q2", item("Q2", "nurse", P31="Q3"))
    take_changes(place, GRAPH)
    bring(place)
    assert labels(place)["wd:Q2"] == "nurse"
    assert bring(place).steps == [], "nothing is left to do"

    server.world.delete("Q2")
    take_changes(place, None)
    bring(place)
    assert "wd:Q2" not in labels(place)
    server.world.restore("Q2")
    take_changes(place, None)
    bring(place)
    assert labels(place)["wd:Q2"] == "nurse"


def test_only_buckets_that_changed_run(place: Place, server: MediaWikiServer) -> None:
    bring(place)
    take_changes(place, None)
    server.world.edit("Q2", item("Q2", "ward nurse", P31="Q3"))
    take_changes(place, None)
    report = bring(place)
    (bucket,) = place.lake.read_all(KG_ENTITIES).filter(pl.col("entity_id") == "wd:Q2")["bucket"]
    partitions = {step.partition for step in report.steps if step.asset in ("kg_entities", "kg_triples")}
    assert partitions == {f"bucket-{bucket:02d}"}
    refreshed = next(step for step in report.steps if step.asset == "kg_refreshed_rows")
    assert (refreshed.computed, refreshed.removed) == (2, 2)


def test_a_refresh_that_was_killed_before_it_was_reported_is_not_lost(
    place: Place, server: MediaWikiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    bring(place)
    take_changes(place, None)
    server.world.edit("Q1", item("Q1", "client", P31="Q3"))
    take_changes(place, None)

    def killed(*_arguments: object) -> None:
        raise OSError("the process ends here")

    monkeypatch.setattr("kgrag_assets.knowledge.assets.report_changes", killed)
    with pytest.raises(RunError):
        bring(place)
    monkeypatch.undo()
    bring(place)
    assert labels(place)["wd:Q1"] == "client"


def test_the_sensor_asks_for_one_run_and_shows_how_fresh_the_graph_is(place: Place, server: MediaWikiServer) -> None:
    bring(place)
    sensor = place.definitions.resolve_sensor_def("knowledge_graph_changes")

    def tick() -> dg.SensorResult:
        resources = {"lake": place.lake}
        with dg.build_sensor_context(instance=place.instance, resources=resources) as context:
            result = sensor(context)
        assert isinstance(result, dg.SensorResult)
        return result

    tick()
    server.world.edit("Q1", item("Q1", "client", P31="Q3"))
    result = tick()
    assert len(result.run_requests or []) == 1
    shown = [event for event in result.asset_events if isinstance(event, dg.AssetMaterialization)]
    assert [event.asset_key for event in shown] == [GRAPH_CHANGES]
    assert shown[0].metadata["entities_changed"].value == 1
    assert isinstance(shown[0].metadata["behind_s"].value, int)
    for event in result.asset_events:
        place.instance.report_runless_asset_event(event)
    job = place.definitions.resolve_job_def(REFRESH_GRAPH)
    assert job.execute_in_process(instance=place.instance).success
    again = tick()
    assert not again.run_requests, "nothing new, nothing asked"
    (row,) = listed_graphs(place.lake)
    assert (row["followed"], row["changes"]) == (True, 1)


def test_a_name_is_looked_up_in_the_graph(place: Place) -> None:
    bring(place)
    found = looked_up(place.lake, "Patient", None, 5, 5)
    assert [one["entity_id"] for one in found["candidates"]] == ["wd:Q1"]
    assert found["entity"]["label"] == "patient"
    assert [(one["head_label"], one["tail_label"]) for one in found["statements"]] == [("patient", "human")]
    assert looked_up(place.lake, "wd:Q3", GRAPH, 5, 1)["entity"]["label"] == "human"
    nothing = looked_up(place.lake, "spaceship", None, 5, 5)
    assert nothing == {"candidates": [], "entity": None, "statements": []}
    with pytest.raises(KnowledgeError, match="other"):
        looked_up(place.lake, "patient", "other", 5, 5)


def test_a_source_that_does_not_answer_is_said_and_nothing_is_lost(place: Place, server: MediaWikiServer) -> None:
    bring(place)
    take_changes(place, None)
    server.world.edit("Q1", item("Q1", "client", P31="Q3"))
    server.refuse(1, 429, retry_after=3600)
    (look,) = take_changes(place, None)
    assert look.staged == 0
    assert "429" in str(look.summary()["problem"]) or look.summary()["ended_by"] == "unavailable"
    (look,) = take_changes(place, None)
    assert look.staged == 1


def test_a_gap_that_is_too_long_asks_for_the_next_dump(place: Place, server: MediaWikiServer) -> None:
    folder = place.lake.paths.knowledge_graphs / GRAPH
    config = (folder / "kg.yaml").read_text(encoding="utf-8")
    (folder / "kg.yaml").write_text(f"{config}  dumps: {server.dumps_url}\n  since: 2020-01-01\n", encoding="utf-8")
    sensor = place.definitions.resolve_sensor_def("knowledge_graph_changes")
    with dg.build_sensor_context(
        instance=place.instance, resources={"lake": place.lake}, definitions=place.definitions
    ) as context:
        result = sensor(context)
    assert isinstance(result, dg.SensorResult)
    assert TAKE_DUMPS in [request.job_name for request in result.run_requests or []]
    observed = [event for event in result.asset_events if isinstance(event, dg.AssetObservation)]
    assert "dump" in str(observed[0].metadata["problem"].value)


def with_dumps(place: Place, server: MediaWikiServer, path: str | None = None) -> Path:
    folder = place.lake.paths.knowledge_graphs / GRAPH
    config = (folder / "kg.yaml").read_text(encoding="utf-8")
    more = f"  dumps: {server.dumps_url}\n" + (f"path: {path}\n" if path else "")
    (folder / "kg.yaml").write_text(config + more, encoding="utf-8")
    server.publish_dump("20260427")
    return folder


def test_a_dump_takes_the_place_of_the_file(place: Place, server: MediaWikiServer) -> None:
    bring(place)
    server.world.edit("Q1", item("Q1", "client", P31="Q3"))
    server.world.delete("Q2")
    folder = with_dumps(place, server)
    job = place.definitions.resolve_job_def("take_dumps")
    assert job.execute_in_process(instance=place.instance).success
    assert {path.name for path in folder.iterdir()} == {"kg.yaml", "dump.json.gz"}
    bring(place)
    assert labels(place) == {"wd:Q1": "client", "wd:Q3": "human"}, "what the dump has no more is gone"
    result = job.execute_in_process(instance=place.instance)
    (event,) = result.get_asset_materialization_events()
    assert event.materialization.metadata["fetched"].value == 0


def test_a_dump_is_packed_as_the_file_that_is_named(place: Place, server: MediaWikiServer) -> None:
    folder = with_dumps(place, server, "latest.json.bz2")
    (folder / "latest.json.bz2").write_bytes(bz2.compress((folder / "dump.json").read_bytes()))
    taken = take_dump(place.lake, load_graph_folder(place.lake.paths, GRAPH))
    assert (taken.path, taken.fetched) == (folder / "latest.json.bz2", True)
    assert b'"Q1"' in bz2.decompress(taken.path.read_bytes())


@pytest.mark.parametrize(("path", "problem"), [(None, "has 2 files"), ("dump.json", "not packed as dumps are")])
def test_a_dump_that_would_lie_beside_another_file_is_refused(
    place: Place, server: MediaWikiServer, path: str | None, problem: str
) -> None:
    folder = with_dumps(place, server, path)
    (folder / "more.json").write_text("", encoding="utf-8")
    with pytest.raises(KnowledgeError, match=problem):
        take_dump(place.lake, load_graph_folder(place.lake.paths, GRAPH))
    assert {path.name for path in folder.iterdir()} == {"kg.yaml", "dump.json", "more.json"}
