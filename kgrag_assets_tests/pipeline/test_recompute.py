"""Only what changed is computed again: counted by the embedder, the judgments, the runs and the files."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import duckdb
import polars as pl
import pytest

from kgrag_assets.cli.listing import listed_tasks
from kgrag_assets.cli.place import Place
from kgrag_assets.cli.running import RunReport, bring_up_to_date
from kgrag_assets.lake.lake import Lake
from kgrag_assets.rows.attribute_mappings import ATTRIBUTE_MAPPINGS
from kgrag_assets.rows.catalog import TASK_TABLES
from kgrag_assets.rows.embeddings import ATTRIBUTE_EMBEDDINGS, ENTITY_EMBEDDINGS, TRIPLE_EMBEDDINGS
from kgrag_assets.rows.llm_judgments import LLM_JUDGMENTS
from kgrag_assets.rows.ranked_contexts import RANKED_CONTEXTS
from kgrag_assets.rows.retrieved_subgraphs import RETRIEVED_SUBGRAPHS
from kgrag_assets.rows.table import Table
from kgrag_assets.settings import RankingSettings
from kgrag_assets_tests.pipeline import workshop
from kgrag_assets_tests.pipeline.workshop import TASK, WordEmbedder


class Bench:
    """A lake, an instance and an embedder; ``run`` brings the task up to date and says what ran."""

    def __init__(self, root: Path, instance: dg.DagsterInstance) -> None:
        self.root = root
        self.instance = instance
        self.lake = Lake.at(root / "lake")
        self.embedder = WordEmbedder()
        self.sections: dict[str, object] = {}
        workshop.put_task(self.lake)
        workshop.put_graph(self.lake)

    def run(self) -> RunReport:
        self.embedder.seen.clear()
        settings = workshop.settings_for(self.root, **self.sections)
        place = Place(settings, self.lake, self.instance, {"embedder": self.embedder})
        return bring_up_to_date(place, TASK, lambda _job, _partition: None)

    def files(self) -> dict[str, int]:
        """Every file below the lake's outputs with the time it was written."""
        found = [path for path in (self.root / "lake").rglob("*") if path.is_file()]
        return {
            str(path): path.stat().st_mtime_ns
            for path in found
            if "input" not in path.parts and "locks" not in path.parts and "ledger" not in path.parts
        }


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    with dg.DagsterInstance.ephemeral() as instance:
        yield Bench(tmp_path, instance)


def ran(report: RunReport) -> set[str]:
    return {step.asset for step in report.steps}


def computed(report: RunReport, asset: str) -> int:
    return sum(step.computed for step in report.steps if step.asset == asset)


def test_the_first_run_fills_every_table_and_the_snapshot(bench: Bench) -> None:
    report = bench.run()
    for table in TASK_TABLES:
        assert bench.lake.has(table, TASK), table.name
    assert len(bench.lake.partitions(ENTITY_EMBEDDINGS)) == 3
    assert bench.lake.read_all(ENTITY_EMBEDDINGS).height == len(workshop.LABELS)
    assert bench.lake.read_all(TRIPLE_EMBEDDINGS).height == len(workshop.EDGES)
    assert "analyst_database" in ran(report)
    with duckdb.connect(str(bench.lake.paths.snapshot), read_only=True) as connection:
        for table in TASK_TABLES:
            count = connection.execute(f'SELECT count(*) FROM "{table.name}"').fetchone()
            assert count == (bench.lake.read(table, TASK).height,)
        decided = connection.execute(
            "SELECT count(DISTINCT source_column) FROM proposed_mapping WHERE task = ?", [TASK]
        ).fetchone()
    assert decided == (len(workshop.SOURCE),)


def test_a_second_run_computes_nothing_writes_nothing_and_starts_nothing(bench: Bench) -> None:
    bench.run()
    files = bench.files()
    runs = len(bench.instance.get_runs())
    report = bench.run()
    assert report.steps == []
    assert bench.embedder.seen == []
    assert bench.files() == files
    assert len(bench.instance.get_runs()) == runs


def test_one_edited_description_recomputes_its_own_rows_only(bench: Bench) -> None:
    bench.run()
    before = {table.name: bench.lake.read(table, TASK) for table in (LLM_JUDGMENTS, RANKED_CONTEXTS)}
    workshop.put_task(bench.lake, workshop.changed(workshop.SOURCE, "orders", "ord_dt", "when the purchase was made"))
    report = bench.run()
    # The views that show the description of that one attribute; the others did not change.
    assert bench.embedder.seen
    assert all("when the purchase was made" in text for text in bench.embedder.seen)
    assert computed(report, "attribute_embeddings") == len(bench.embedder.seen)
    for table in (LLM_JUDGMENTS, RANKED_CONTEXTS):
        after = bench.lake.read(table, TASK)
        fresh = after.join(before[table.name], on="row_key", how="anti")
        assert set(fresh["source_column"]) <= {"ord_dt"}, table.name
    judged = computed(report, "llm_judgments")
    assert 0 < judged <= len(workshop.TARGET)
    assert not ran(report) & {"kg_source_rows", "kg_entities", "entity_embeddings", "entity_index", "kg_graph"}


def test_an_edit_that_changes_no_row_wakes_nothing_below(bench: Bench) -> None:
    bench.run()
    source = bench.lake.paths.tasks / TASK / "source.csv"
    # Other line ends: the file's bytes change, its rows do not.
    source.write_bytes(source.read_bytes().replace(b"\r\n", b"\n"))
    files = bench.files()
    report = bench.run()
    assert "schema_attributes" in ran(report)
    assert bench.embedder.seen == []
    assert all(step.computed == 0 and step.removed == 0 for step in report.steps)
    assert bench.files() == files


def test_one_changed_entity_touches_one_bucket_and_the_index(bench: Bench) -> None:
    bench.run()
    workshop.put_graph(bench.lake, descriptions={**workshop.DESCRIPTIONS, "Q5": "acquiring goods for money"})
    report = bench.run()
    touched = {step.partition for step in report.steps if step.asset == "kg_entities"}
    assert len(touched) == 1
    assert computed(report, "kg_entities") == 1
    assert bench.embedder.seen == ["purchase: acquiring goods for money"]
    assert computed(report, "entity_index") == 1
    assert "attribute_embeddings" not in ran(report)
    assert "triple_index" not in ran(report)


def test_a_changed_label_reaches_the_triples_that_show_it(bench: Bench) -> None:
    bench.run()
    workshop.put_graph(bench.lake, labels={**workshop.LABELS, "Q4": "moment"})
    bench.run()
    assert sorted(text for text in bench.embedder.seen if "moment" in text) == [
        "birth subclass of moment",
        "date subclass of moment",
        "moment",
        "purchase instance of moment",
    ]
    assert len(bench.embedder.seen) == 4


def test_a_removed_column_disappears_everywhere(bench: Bench) -> None:
    bench.run()
    workshop.put_task(bench.lake, [row for row in workshop.SOURCE if row[1] != "sex"])
    report = bench.run()
    assert bench.embedder.seen == []
    for table in (*TASK_TABLES, ATTRIBUTE_EMBEDDINGS):
        frame = bench.lake.read(table, TASK)
        text = frame.select(pl.col(pl.String)).to_dicts()
        rejected = table.name == "schema_rejects"  # the reference still names it, and that is said there
        assert rejected or not any("sex" in (row.get("source_column"), row.get("column_name")) for row in text), table
    removed = sum(step.removed for step in report.steps if step.asset == "attribute_embeddings")
    assert removed == bench.lake.read(ATTRIBUTE_EMBEDDINGS, TASK)["view"].n_unique()
    with duckdb.connect(str(bench.lake.paths.snapshot), read_only=True) as connection:
        left = connection.execute("SELECT count(*) FROM attribute_mappings WHERE source_column = 'sex'").fetchone()
    assert left == (0,)
    assert computed(report, "llm_judgments") == 0


def test_a_removed_entity_is_found_no_more(bench: Bench) -> None:
    bench.run()
    workshop.put_graph(bench.lake, labels={key: label for key, label in workshop.LABELS.items() if key != "P2"})
    bench.run()
    assert bench.embedder.seen == []
    assert "wd:P2" not in bench.lake.read_all(ENTITY_EMBEDDINGS)["entity_id"].to_list()
    contexts = bench.lake.read(RANKED_CONTEXTS, TASK).explode("facts").drop_nulls("facts").unnest("facts")
    assert not [nodes for nodes in contexts["nodes"] if "wd:P2" in nodes.to_list()]


def test_another_number_of_facts_judges_again_and_embeds_nothing(bench: Bench) -> None:
    bench.run()
    bench.sections = {"ranking": RankingSettings(top_n=0)}
    report = bench.run()
    assert bench.embedder.seen == []
    assert "ranked_contexts" in ran(report)
    assert computed(report, "llm_judgments") > 0
    assert not ran(report) & {"attribute_embeddings", "entity_embeddings", "entity_index", "retrieved_subgraphs"}


def test_another_embedder_embeds_everything_and_never_mixes(bench: Bench) -> None:
    bench.run()
    bench.embedder = WordEmbedder("words-2")
    bench.run()
    attributes = set(bench.lake.read(ATTRIBUTE_EMBEDDINGS, TASK)["text"])
    assert len(bench.embedder.seen) == len(workshop.LABELS) + len(workshop.EDGES) + len(attributes)
    for table in (ENTITY_EMBEDDINGS, TRIPLE_EMBEDDINGS, ATTRIBUTE_EMBEDDINGS):
        models = bench.lake.read_all(table)["model_id"].unique().to_list()
        assert models == ["words-2"]


def test_a_deleted_file_is_computed_again(bench: Bench) -> None:
    bench.run()
    bench.lake.paths.rows("ranked_contexts", TASK).unlink()
    bench.lake.paths.snapshot.unlink()
    report = bench.run()
    assert "ranked_contexts" in ran(report)
    assert bench.lake.has(RANKED_CONTEXTS, TASK)
    assert bench.lake.paths.snapshot.exists()


def test_options_of_the_task_reach_the_mapping(bench: Bench) -> None:
    bench.run()
    (bench.lake.paths.tasks / TASK / "task.yaml").write_text("options: {mapping: {min_score: 1.0}}\n")
    report = bench.run()
    assert bench.embedder.seen == []
    assert computed(report, "llm_judgments") == 0
    mappings = bench.lake.read(ATTRIBUTE_MAPPINGS, TASK)
    assert set(mappings["decision"]) == {"alternative", "no_match"}


def test_counts_stand_on_every_materialization(bench: Bench) -> None:
    bench.run()
    for table in (*TASK_TABLES, ATTRIBUTE_EMBEDDINGS):
        event = bench.instance.get_latest_materialization_event(dg.AssetKey(table.name))
        assert event is not None, table.name
        assert event.asset_materialization is not None
        metadata = event.asset_materialization.metadata
        for name in ("rows_kept", "rows_computed", "rows_removed", "dagster/row_count"):
            assert name in metadata, (table.name, name)


def test_without_any_graph_every_pair_is_judged_without_facts(bench: Bench) -> None:
    shutil.rmtree(bench.lake.paths.knowledge_graphs)
    bench.run()
    assert set(bench.lake.read(RANKED_CONTEXTS, TASK)["status"]) == {"no_subgraph"}
    assert bench.lake.read(LLM_JUDGMENTS, TASK).height == len(workshop.SOURCE) * len(workshop.TARGET)
    # A graph that comes later is taken up.
    workshop.put_graph(bench.lake)
    bench.run()
    assert "context" in set(bench.lake.read(RANKED_CONTEXTS, TASK)["status"])


def as_an_earlier_version_wrote(lake: Lake, task: str, *dropped: tuple[Table, str]) -> None:
    """Take a column out of a stage's file."""
    for table, column in dropped:
        path = lake.files(table, task).rows
        pl.read_parquet(path).drop(column).write_parquet(path)


def test_rows_of_an_earlier_version_are_computed_again(bench: Bench) -> None:
    bench.run()
    as_an_earlier_version_wrote(
        bench.lake,
        TASK,
        (RETRIEVED_SUBGRAPHS, "notes"),
        (RANKED_CONTEXTS, "ranking"),
        (LLM_JUDGMENTS, "gate"),
        (ATTRIBUTE_MAPPINGS, "judged_pair_id"),
    )
    workshop.put_task(bench.lake, source=workshop.changed(workshop.SOURCE, "clients", "dob", "day of birth"))
    report = bench.run()
    pairs = len(workshop.SOURCE) * len(workshop.TARGET)
    assert computed(report, "llm_judgments") == pairs
    assert bench.lake.read(LLM_JUDGMENTS, TASK).height == pairs
    assert bench.lake.read(RETRIEVED_SUBGRAPHS, TASK).height == 2 * pairs


def test_a_task_of_an_earlier_version_is_listed_and_left_out_of_what_is_published(bench: Bench) -> None:
    bench.run()
    before = bench.lake.read(ATTRIBUTE_MAPPINGS, TASK)
    workshop.put_task(bench.lake, name="older")
    bench.instance.add_dynamic_partitions("tasks", ["older"])
    bench.lake.write(ATTRIBUTE_MAPPINGS, "older", before.with_columns(task=pl.lit("older")))
    as_an_earlier_version_wrote(bench.lake, "older", (ATTRIBUTE_MAPPINGS, "judged_pair_id"))
    workshop.put_task(bench.lake, source=workshop.changed(workshop.SOURCE, "clients", "dob", "day of birth"))
    bench.run()
    with duckdb.connect(str(bench.lake.paths.snapshot), read_only=True) as connection:
        assert connection.execute("SELECT DISTINCT task FROM attribute_mappings").fetchall() == [(TASK,)]
    notes = {row["task"]: row["note"] for row in listed_tasks(bench.lake)}
    assert notes == {TASK: "", "older": "mapped by an earlier version: run it again"}
