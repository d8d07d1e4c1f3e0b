"""Settings for large graphs: cheap vectors that the model re-scores, and only the triples that tasks can reach."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import polars as pl

from kgrag_assets.automation.jobs import jobs_in_order
from kgrag_assets.cli.place import Place
from kgrag_assets.cli.running import RunReport, bring_up_to_date
from kgrag_assets.lake.lake import Lake
from kgrag_assets.rows.embeddings import TRIPLE_EMBEDDINGS
from kgrag_assets.rows.knowledge_graph import KG_TRIPLES
from kgrag_assets.rows.reachable_entities import REACHABLE_ENTITIES
from kgrag_assets.rows.retrieved_subgraphs import RETRIEVED_SUBGRAPHS
from kgrag_assets.settings import EmbedderSettings, GraphSettings, IndexSettings, Settings
from kgrag_assets_tests.indexing.qdrant_over_http import serving
from kgrag_assets_tests.pipeline.workshop import TASK, WordEmbedder, put_graph, put_task, settings_for


def silent(_job: str, _partition: str | None) -> None:
    """Say nothing."""


def ran(report: RunReport) -> list[str]:
    return list(dict.fromkeys(step.asset for step in report.steps))


def with_lake(tmp_path: Path) -> Lake:
    lake = Lake.at(tmp_path / "lake")
    put_task(lake)
    put_graph(lake)
    return lake


def test_every_asset_of_a_run_is_in_one_job_after_what_it_needs(tmp_path: Path) -> None:
    for first_stage in ("none", "static"):
        for triples in ("all", "reachable"):
            settings = Settings(
                _env_file=None,
                lake=tmp_path / "lake",
                graph=GraphSettings(buckets=2, embed_triples=triples),
                embedder=EmbedderSettings(first_stage=first_stage),
            )
            with dg.DagsterInstance.ephemeral() as instance:
                place = Place(settings, Lake.at(settings.lake), instance, {})
                order = [asset for job in jobs_in_order(settings) for asset in job.assets]
                assert len(order) == len(set(order))
                before: set[str] = set()
                for asset in order:
                    parents = {key.to_user_string() for key in place.graph.get(dg.AssetKey(asset)).parent_keys}
                    assert parents & set(order) <= before, asset
                    before.add(asset)


def test_only_triples_that_tasks_reach_are_embedded(tmp_path: Path) -> None:
    lake = with_lake(tmp_path)
    folder = lake.paths.knowledge_graphs / "far"
    folder.mkdir()
    (folder / "kg.yaml").write_text("format: triples\nnamespace: far\n", encoding="utf-8")
    far = [f"galaxy{n},orbits,star{n}" for n in range(20)]
    (folder / "far.csv").write_text("\n".join(["head,relation,tail", *far]) + "\n", encoding="utf-8")
    settings = settings_for(tmp_path).model_copy(update={"graph": GraphSettings(buckets=3, embed_triples="reachable")})
    with dg.DagsterInstance.ephemeral() as instance:
        place = Place(settings, lake, instance, {"embedder": WordEmbedder()})
        first = bring_up_to_date(place, TASK, silent)
        assert ran(first).index("reachable_entities") < ran(first).index("triple_embeddings")
        embedded, triples = lake.read_all(TRIPLE_EMBEDDINGS), lake.read_all(KG_TRIPLES)
        assert 0 < embedded.height < triples.height
        reached = lake.read(REACHABLE_ENTITIES, None)
        linked = set(reached.filter("linked")["entity_id"])
        about = triples.filter(
            pl.col("head").is_in(reached["entity_id"].implode())
            | pl.col("tail").is_in(linked)
            | pl.col("relation").is_in(linked)
        )
        assert set(embedded["triple_id"]) == set(about["triple_id"])
        assert bring_up_to_date(place, TASK, silent).steps == []


def test_cheap_vectors_are_fitted_once_and_re_scored(tmp_path: Path) -> None:
    lake = with_lake(tmp_path)
    embedder = EmbedderSettings(first_stage="static", first_stage_texts=100, rescored=50)
    settings = settings_for(tmp_path).model_copy(update={"embedder": embedder})
    with dg.DagsterInstance.ephemeral() as instance:
        place = Place(settings, lake, instance, {})
        first = bring_up_to_date(place, TASK, silent)
        assert ran(first).index("first_stage_model") < ran(first).index("entity_embeddings")
        (model,) = lake.read_all(TRIPLE_EMBEDDINGS)["model_id"].unique()
        assert model.startswith("static/")
        found = lake.read(RETRIEVED_SUBGRAPHS, TASK)
        assert found.filter(pl.col("facts").list.len() > 0).height > 0
        assert bring_up_to_date(place, TASK, silent).steps == []
        put_graph(lake, {"Q1": "human being", "P1": "date of birth", "P31": "instance of"})
        again = bring_up_to_date(place, TASK, silent)
        fits = [step for step in again.steps if step.asset == "first_stage_model"]
        assert not any(step.written for step in fits), "the fitted model stays when the graph changes"
        assert set(lake.read_all(TRIPLE_EMBEDDINGS)["model_id"]) <= {model}


def facts_of(lake: Lake) -> list[list[str]]:
    rows = lake.read(RETRIEVED_SUBGRAPHS, TASK).sort("pair_id", "method")
    return [sorted(fact["fact_id"] for fact in facts) for facts in rows["facts"]]


def test_the_indexes_may_be_served(tmp_path: Path) -> None:
    lake = with_lake(tmp_path)
    embedded = settings_for(tmp_path)
    with dg.DagsterInstance.ephemeral() as instance:
        place = Place(embedded, lake, instance, {"embedder": WordEmbedder()})
        bring_up_to_date(place, TASK, silent)
    facts = facts_of(lake)
    with serving() as server, dg.DagsterInstance.ephemeral() as instance:
        served = embedded.model_copy(update={"index": IndexSettings(kind="qdrant", url=server.url)})
        place = Place(served, lake, instance, {"embedder": WordEmbedder()})
        report = bring_up_to_date(place, TASK, silent)
        assert {step.computed for step in report.steps if step.asset == "triple_index"} == {
            lake.read_all(KG_TRIPLES).height
        }
        assert facts_of(lake) == facts
        assert bring_up_to_date(place, TASK, silent).steps == []
