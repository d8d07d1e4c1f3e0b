"""The asset that says what each part of the method is worth on a task; it runs when somebody asks for it."""

import dagster as dg
import polars as pl

from kgrag_assets.automation.inputs import OWNERS, TASK_OPTIONS
from kgrag_assets.automation.metadata import markdown_table, picture, table_metadata
from kgrag_assets.automation.partitions import TASKS
from kgrag_assets.automation.progress import Progress
from kgrag_assets.automation.results import explained_failures, store
from kgrag_assets.evaluation.ablation_cells import cells_of
from kgrag_assets.evaluation.ablation_run import ABLATION_VERSION, AblationRun, metrics_table
from kgrag_assets.evaluation.plots import Bar, bar_chart
from kgrag_assets.lake.lake import Lake
from kgrag_assets.models.embedders import Embedder
from kgrag_assets.models.ledger import CallLedger
from kgrag_assets.retrieval.opening import FAILURES
from kgrag_assets.rows.ablation_report import ABLATION_REPORT
from kgrag_assets.rows.reference_correspondences import REFERENCE_CORRESPONDENCES
from kgrag_assets.schemas.errors import SchemaError
from kgrag_assets.schemas.options import task_settings
from kgrag_assets.settings import Settings, SettingsError

# What the picture in the UI shows of each cell.
_SHOWN = "hit@1"
_MOST_BARS = 60


def build(settings: Settings) -> list[dg.AssetsDefinition]:
    """Make the asset."""

    @dg.asset(
        name=ABLATION_REPORT.name,
        deps=[
            "schema_attributes",
            "attribute_embeddings",
            "attribute_groups",
            "candidate_pairs",
            "retrieved_subgraphs",
            "reference_correspondences",
            TASK_OPTIONS,
        ],
        partitions_def=TASKS,
        group_name="evaluation",
        code_version=f"{ABLATION_VERSION}/{settings.ablation.model_dump_json()}",
        owners=OWNERS,
        kinds={"polars", "parquet"},
        description="The task judged and mapped with each combination of query form, retrieval, ranking, top-n, gate "
        "and judge, with metrics, intervals, tokens, cost and latency; and the sensitivity to depth, top-k and "
        "threshold. Cells that stand are kept, and an interrupted report goes on where it was. Not part of a usual "
        "run: `kgrag ablate TASK`.",
        metadata=table_metadata(ABLATION_REPORT),
    )
    def ablation_report(
        context: dg.AssetExecutionContext,
        lake: dg.ResourceParam[Lake],
        embedder: dg.ResourceParam[Embedder],
        progress: dg.ResourceParam[Progress],
    ) -> dg.MaterializeResult:
        task = context.partition_key
        failures = explained_failures(SchemaError, SettingsError, *FAILURES)
        with failures, lake.lock(ABLATION_REPORT.name, task), CallLedger(lake.paths.ledger) as ledger:
            if lake.read(REFERENCE_CORRESPONDENCES, task).is_empty():
                raise SchemaError(
                    f"task {task!r} has no reference: without true pairs no part of the method can be measured; put a "
                    "reference.csv into its folder"
                )
            options = task_settings(lake, settings, task)
            cells = cells_of(options)
            run = AblationRun(lake, options, task, embedder, ledger)
            done = progress.track(f"ablation of {task}", len(cells))

            def keep(frame: pl.DataFrame) -> None:
                # Cells of the report before stay beside the new ones until all are there.
                lake.write(ABLATION_REPORT, task, run.beside(frame))
                done(1)

            frame = run.run(cells, lake.reusable(ABLATION_REPORT, task), keep)
            table = metrics_table(frame)
            return store(
                lake,
                ABLATION_REPORT,
                task,
                frame,
                cells=frame.height,
                report=markdown_table(table.sort("study", _SHOWN, descending=[False, True]), limit=100),
                plot=picture(bar_chart(f"{_SHOWN} of each cell, 95% interval", bars_of(frame), _SHOWN), "ablation"),
            )

    return [ablation_report]


def bars_of(report: pl.DataFrame, metric: str = _SHOWN) -> list[Bar]:
    """Return a bar for each cell of the matrix, the best first, and those of the other studies below."""
    bars: list[tuple[bool, Bar]] = []
    for study, cell, metrics in report.select("study", "cell", "metrics").iter_rows():
        found = next((one for one in metrics if one["metric"] == metric and one["value"] is not None), None)
        if found is not None:
            name = cell if study == "matrix" else f"{study}: {cell}"
            bars.append((study != "matrix", Bar(name, found["value"], found["ci_low"], found["ci_high"])))
    ordered = sorted(bars, key=lambda entry: (entry[0], -entry[1].value, entry[1].name))
    return [bar for _, bar in ordered[:_MOST_BARS]]
