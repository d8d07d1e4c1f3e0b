"""The assets of the evaluation room: metrics, misses, and the published snapshot."""

from collections.abc import Iterator

import dagster as dg
import polars as pl

from kgrag_assets.automation.conditions import when_content_changed
from kgrag_assets.automation.inputs import OWNERS, TASK_OPTIONS
from kgrag_assets.automation.metadata import markdown_table, picture, table_metadata
from kgrag_assets.automation.partitions import TASKS
from kgrag_assets.automation.results import explained_failures, store
from kgrag_assets.automation.specs import task_table
from kgrag_assets.blocking.block import BLOCKING_VERSION, score_all_pairs
from kgrag_assets.evaluation.blocking_curve import CURVE_VERSION, blocking_curve, lost_reasons
from kgrag_assets.evaluation.metrics import METRICS_VERSION, evaluate
from kgrag_assets.evaluation.misses import find_misses
from kgrag_assets.evaluation.plots import line_chart
from kgrag_assets.evaluation.publication import VIEWS
from kgrag_assets.evaluation.retrieval_diagnostics import DIAGNOSTICS_VERSION, diagnose
from kgrag_assets.lake.lake import Lake
from kgrag_assets.lake.snapshot import publish, published_version, snapshot_version
from kgrag_assets.models.ledger import CallLedger
from kgrag_assets.rows.attribute_mappings import ATTRIBUTE_MAPPINGS
from kgrag_assets.rows.blocking_curve import BLOCKING_CURVE
from kgrag_assets.rows.candidate_pairs import CANDIDATE_PAIRS
from kgrag_assets.rows.catalog import ON_DEMAND_TABLES, TASK_TABLES
from kgrag_assets.rows.embeddings import ATTRIBUTE_EMBEDDINGS
from kgrag_assets.rows.keys import data_version_of
from kgrag_assets.rows.llm_calls import LLM_CALLS
from kgrag_assets.rows.match_metrics import MATCH_METRICS, MATCH_MISSES
from kgrag_assets.rows.ranked_contexts import RANKED_CONTEXTS
from kgrag_assets.rows.reference_correspondences import REFERENCE_CORRESPONDENCES
from kgrag_assets.rows.reference_entity_links import REFERENCE_ENTITY_LINKS
from kgrag_assets.rows.rejects import KG_REJECTS
from kgrag_assets.rows.retrieval_diagnostics import RETRIEVAL_DIAGNOSTICS
from kgrag_assets.rows.retrieved_subgraphs import RETRIEVED_SUBGRAPHS
from kgrag_assets.rows.schema_attributes import SCHEMA_ATTRIBUTES
from kgrag_assets.rows.table import Table, TableError, data_version
from kgrag_assets.schemas.errors import SchemaError
from kgrag_assets.schemas.options import task_settings
from kgrag_assets.settings import Settings, SettingsError

SNAPSHOT_VERSION = "snapshot-2"


def build(settings: Settings) -> list[dg.AssetsDefinition]:
    """Make the assets of this room."""

    def spec(table: Table, description: str) -> dg.AssetSpec:
        return task_table(
            table,
            description,
            group="evaluation",
            deps=[
                "schema_attributes",
                "attribute_embeddings",
                "attribute_mappings",
                "reference_correspondences",
                "candidate_pairs",
                TASK_OPTIONS,
            ],
            code_version=f"{METRICS_VERSION}/{CURVE_VERSION}/{BLOCKING_VERSION}/{settings.evaluation.model_dump_json()}",
        )

    @dg.multi_asset(
        name="evaluate_mapping",
        specs=[
            spec(MATCH_METRICS, "How good the mapping is where a reference exists, with bootstrap intervals."),
            spec(MATCH_MISSES, "Each true pair and the stage at which it was found or lost."),
            spec(BLOCKING_CURVE, "How many true pairs each budget of blocking would keep, beside plain cosine."),
        ],
    )
    def evaluate_mapping(
        context: dg.AssetExecutionContext, lake: dg.ResourceParam[Lake]
    ) -> Iterator[dg.MaterializeResult]:
        task = context.partition_key
        failures = explained_failures(SchemaError, SettingsError, TableError)
        with failures, lake.lock("match_metrics", task):
            attributes = lake.read(SCHEMA_ATTRIBUTES, task)
            reference = lake.read(REFERENCE_CORRESPONDENCES, task)
            mappings = lake.read(ATTRIBUTE_MAPPINGS, task)
            candidates = lake.read(CANDIDATE_PAIRS, task)
            blocking = task_settings(lake, settings, task).blocking
            metrics = evaluate(mappings, candidates, attributes, reference, settings.evaluation)
            scored = (
                score_all_pairs(attributes, lake.read(ATTRIBUTE_EMBEDDINGS, task), blocking)
                if reference.height
                else None
            )
            curve = BLOCKING_CURVE.empty() if scored is None else blocking_curve(scored, reference)
            reasons = {} if scored is None else lost_reasons(scored, reference)
            misses = find_misses(mappings, reference, reasons)
            yield store(
                lake,
                MATCH_METRICS,
                task,
                metrics,
                asset_key="match_metrics",
                metrics=markdown_table(metrics.drop("task", "row_key"), limit=40),
            )
            yield store(
                lake,
                MATCH_MISSES,
                task,
                misses,
                asset_key="match_misses",
                outcomes=markdown_table(misses.group_by("outcome").len("true pairs").sort("outcome")),
                lost=markdown_table(
                    misses.filter(misses["outcome"] != "found").drop("task", "pair_id", "row_key"), limit=40
                ),
            )
            yield store(
                lake,
                BLOCKING_CURVE,
                task,
                curve,
                asset_key="blocking_curve",
                curve=_curve_plot(curve),
                points=markdown_table(curve.drop("task", "row_key"), limit=40),
            )

    @dg.asset(
        deps=[
            "retrieved_subgraphs",
            "ranked_contexts",
            "candidate_pairs",
            "reference_entity_links",
        ],
        partitions_def=TASKS,
        group_name="evaluation",
        code_version=f"{DIAGNOSTICS_VERSION}/{settings.evaluation.model_dump_json()}",
        owners=OWNERS,
        kinds={"polars", "parquet"},
        automation_condition=when_content_changed(),
        description="Coverage of each retrieval method and, where entity links are known, how much is on topic and how "
        "well attributes are linked.",
        metadata=table_metadata(RETRIEVAL_DIAGNOSTICS),
    )
    def retrieval_diagnostics(context: dg.AssetExecutionContext, lake: dg.ResourceParam[Lake]) -> dg.MaterializeResult:
        task = context.partition_key
        with explained_failures(), lake.lock("retrieval_diagnostics", task):
            frame = diagnose(
                lake.read(RETRIEVED_SUBGRAPHS, task),
                lake.read(RANKED_CONTEXTS, task),
                lake.read(CANDIDATE_PAIRS, task),
                lake.read(REFERENCE_ENTITY_LINKS, task),
                settings.evaluation,
            )
            return store(
                lake,
                RETRIEVAL_DIAGNOSTICS,
                task,
                frame,
                diagnostics=markdown_table(frame.drop("task", "row_key"), limit=60),
            )

    @dg.asset(
        deps=[table.name for table in (*TASK_TABLES, *ON_DEMAND_TABLES)],
        group_name="evaluation",
        code_version=SNAPSHOT_VERSION,
        owners=OWNERS,
        kinds={"duckdb"},
        automation_condition=when_content_changed(needs_all_upstream=False),
        description="The DuckDB file that analysts open: all stages of all tasks, written beside and moved into place "
        "in one rename, so that a reader is never blocked and never sees half a run.",
    )
    def analyst_database(context: dg.AssetExecutionContext, lake: dg.ResourceParam[Lake]) -> dg.MaterializeResult:
        with explained_failures(), lake.lock("analyst_database"):
            known = sorted(context.instance.get_dynamic_partitions("tasks"))
            published = (*TASK_TABLES, *ON_DEMAND_TABLES)
            # After an update, until they are run again.
            outdated = [task for task in known if any(lake.outdated(table, task) for table in published)]
            tasks = [task for task in known if task not in outdated]
            tables = [(table, lake.read_all(table, tasks)) for table in published]
            tables.append((KG_REJECTS, lake.read(KG_REJECTS, None)))
            versions = {table.name: data_version(frame) for table, frame in tables}
            with CallLedger(lake.paths.ledger) as ledger:
                calls = ledger.frame()
            versions[LLM_CALLS.name] = data_version_of(str(number) for number in calls["call_id"])
            versions["layout"] = SNAPSHOT_VERSION
            version = snapshot_version(versions)
            path = lake.paths.snapshot
            written = published_version(path) != version
            if written:
                publish(path, [*tables, (LLM_CALLS, calls)], version, VIEWS)
            counts = {table.name: frame.height for table, frame in tables} | {LLM_CALLS.name: calls.height}
            lines = ["| table | rows |", "| --- | --- |", *(f"| {name} | {rows:,} |" for name, rows in counts.items())]
            return dg.MaterializeResult(
                data_version=dg.DataVersion(version),
                metadata={
                    "dagster/row_count": sum(counts.values()),
                    "tasks": len(tasks),
                    "tasks_of_an_earlier_version": ", ".join(outdated) or "none",
                    "file_written": written,
                    "path": dg.MetadataValue.path(str(path)),
                    "tables": dg.MetadataValue.md("\n".join(lines)),
                },
            )

    return [evaluate_mapping, retrieval_diagnostics, analyst_database]


def _curve_plot(curve: pl.DataFrame) -> dg.MarkdownMetadataValue:
    if curve.is_empty():
        return dg.MetadataValue.md("no reference")
    points = ("budget_share", "pair_completeness")
    lines = {
        str(method): [(float(share), float(kept)) for share, kept in mine.select(points).iter_rows()]
        for (method,), mine in curve.sort("budget_share").group_by("method", maintain_order=True)
    }
    plot = line_chart("True pairs kept", lines, "share of all pairs that is judged", "pair completeness", log_x=True)
    return picture(plot, "pair completeness at each budget")
