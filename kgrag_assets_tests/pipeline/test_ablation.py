"""The ablation report through the pipeline: its cells, what they share, and going on after an interruption."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import duckdb
import polars as pl
import pytest

from kgrag_assets.cli.place import Place
from kgrag_assets.cli.running import RunError, RunReport, ablate
from kgrag_assets.evaluation import ablation_run
from kgrag_assets.evaluation.ablation_run import metrics_table
from kgrag_assets.lake.lake import Lake
from kgrag_assets.rows.ablation_report import ABLATION_REPORT, CELL_METRICS
from kgrag_assets.rows.match_metrics import MATCH_METRICS
from kgrag_assets.settings import AblationSettings
from kgrag_assets_tests.pipeline import workshop
from kgrag_assets_tests.pipeline.workshop import TASK, WordEmbedder

FEW = AblationSettings(
    query_forms=("concept",),
    retrieval=("none", "vector_triples+entity_paths", "fusion(vector_triples+entity_paths)"),
    rankings=("frequency", "none"),
    top_n=(2,),
    max_hops=(1, 3),
    top_k=(3,),
)


class Ablating:
    def __init__(self, root: Path, instance: dg.DagsterInstance) -> None:
        self.root, self.instance = root, instance
        self.lake = Lake.at(root / "lake")
        workshop.put_task(self.lake)
        workshop.put_graph(self.lake)

    def run(self, ablation: AblationSettings = FEW) -> RunReport:
        settings = workshop.settings_for(self.root, ablation=ablation)
        place = Place(settings, self.lake, self.instance, {"embedder": WordEmbedder()})
        return ablate(place, TASK, lambda _job, _partition: None)

    def report(self) -> pl.DataFrame:
        return self.lake.read(ABLATION_REPORT, TASK)


@pytest.fixture
def ablating(tmp_path: Path) -> Iterator[Ablating]:
    with dg.DagsterInstance.ephemeral() as instance:
        yield Ablating(tmp_path, instance)


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Note the pairs that each cell judges anew."""
    counts: list[int] = []
    original = ablation_run.judge_task

    def noted(**arguments: Any) -> Any:
        result = original(**arguments)
        counts.append(result.computed)
        return result

    monkeypatch.setattr(ablation_run, "judge_task", noted)
    return counts


def test_each_combination_is_a_cell_and_the_tasks_own_one_has_the_tasks_metrics(
    ablating: Ablating, judged: list[int]
) -> None:
    ablating.run()
    report = ablating.report()
    matrix = report.filter(pl.col("study") == "matrix")
    assert matrix["retrieval"].to_list().count("none") == 1
    assert matrix.height == 1 + 2 * 2
    assert report.filter(pl.col("study") == "depth")["max_hops"].to_list() == [1, 3]
    own = report.filter(
        (pl.col("study") == "matrix")
        & (pl.col("retrieval") == "vector_triples+entity_paths")
        & (pl.col("ranking") == "frequency")
    )
    table = metrics_table(own)
    stored = dict(ablating.lake.read(MATCH_METRICS, TASK).select("metric", "value").iter_rows())
    assert {name: table[name].item() for name in CELL_METRICS} == {name: stored[name] for name in CELL_METRICS}
    # The task's own judgments serve that cell, and cells that show the same facts share theirs.
    assert judged[[row["cell"] for row in report.iter_rows(named=True)].index(own["cell"].item())] == 0
    with duckdb.connect(str(ablating.lake.paths.snapshot), read_only=True) as connection:
        assert connection.execute("SELECT count(*) FROM ablation_report").fetchone() == (report.height,)
    assert report["calls"].to_list() == [0] * report.height
    assert report["cost_usd"].to_list() == [0.0] * report.height


def test_nothing_is_computed_again_and_a_change_of_one_part_adds_its_cells(
    ablating: Ablating, judged: list[int]
) -> None:
    ablating.run()
    first = ablating.report()
    judged.clear()
    ablating.run()
    assert judged == []
    assert ablating.report().equals(first)
    ablating.run(FEW.model_copy(update={"top_n": (1, 2)}))
    assert len(judged) == ablating.report().height - first.height > 0


def test_an_interrupted_report_goes_on_where_it_was(
    ablating: Ablating, judged: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = ablation_run.evaluate
    calls = 0

    def interrupted(*arguments: Any) -> pl.DataFrame:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise RuntimeError("the machine went down")
        return whole(*arguments)

    monkeypatch.setattr(ablation_run, "evaluate", interrupted)
    with pytest.raises(RunError, match="went down"):
        ablating.run()
    assert ablating.report().height == 2
    monkeypatch.setattr(ablation_run, "evaluate", whole)
    judged.clear()
    ablating.run()
    assert len(judged) == ablating.report().height - 2


def test_without_a_reference_nothing_can_be_measured(ablating: Ablating) -> None:
    workshop.put_task(ablating.lake, reference=[])
    with pytest.raises(RunError, match=r"no reference.*reference\.csv"):
        ablating.run()
