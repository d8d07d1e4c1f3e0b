"""The asset of the blocking room: the pairs worth judging."""

import dagster as dg
import polars as pl

from kgrag_assets.automation.conditions import when_content_changed
from kgrag_assets.automation.inputs import OWNERS, TASK_OPTIONS
from kgrag_assets.automation.metadata import histogram, markdown_table, table_metadata
from kgrag_assets.automation.partitions import TASKS
from kgrag_assets.automation.results import explained_failures, store
from kgrag_assets.blocking.block import BLOCKING_VERSION, block_pairs
from kgrag_assets.lake.lake import Lake
from kgrag_assets.rows.candidate_pairs import CANDIDATE_PAIRS
from kgrag_assets.rows.embeddings import ATTRIBUTE_EMBEDDINGS
from kgrag_assets.rows.schema_attributes import SCHEMA_ATTRIBUTES
from kgrag_assets.rows.table import TableError
from kgrag_assets.schemas.errors import SchemaError
from kgrag_assets.schemas.options import task_settings
from kgrag_assets.settings import Settings, SettingsError


def build(settings: Settings) -> list[dg.AssetsDefinition]:
    """Make the asset of this room."""

    @dg.asset(
        deps=["schema_attributes", "attribute_embeddings", TASK_OPTIONS],
        partitions_def=TASKS,
        group_name="blocking",
        code_version=f"{BLOCKING_VERSION}/{settings.blocking.model_dump_json()}",
        owners=OWNERS,
        kinds={"polars", "parquet"},
        automation_condition=when_content_changed(),
        description="The union of each attribute's best partners by vector and by words, from both sides, within "
        "the budget. Every signal is kept; dropped pairs are counted.",
        metadata=table_metadata(CANDIDATE_PAIRS),
        check_specs=[
            dg.AssetCheckSpec(
                "every_source_has_a_candidate",
                asset="candidate_pairs",
                description="Each source attribute keeps at least one candidate within the budget.",
            )
        ],
    )
    def candidate_pairs(context: dg.AssetExecutionContext, lake: dg.ResourceParam[Lake]) -> dg.MaterializeResult:
        task = context.partition_key
        with explained_failures(SchemaError, SettingsError, TableError), lake.lock("candidate_pairs", task):
            attributes = lake.read(SCHEMA_ATTRIBUTES, task)
            options = task_settings(lake, settings, task)
            blocking = block_pairs(attributes, lake.read(ATTRIBUTE_EMBEDDINGS, task), options.blocking)
            report = blocking.report
            sources = attributes.filter(pl.col("side") == "source")
            alone = sources.join(
                blocking.pairs, left_on="attribute_id", right_on="source_attribute_id", how="anti"
            ).select("table_name", "column_name")
            return store(
                lake,
                CANDIDATE_PAIRS,
                task,
                blocking.pairs,
                all_pairs=report.total_pairs,
                pairs_kept=report.kept,
                dropped_not_near=report.dropped_not_in_top_k,
                dropped_by_budget=report.dropped_by_budget,
                budget=report.budget,
                reduction_ratio=report.reduction_ratio,
                top_pairs=markdown_table(
                    blocking.pairs.sort("blocking_rank").select(
                        "source_table", "source_column", "target_table", "target_column", "blocking_score"
                    )
                ),
                score_histogram=histogram(blocking.pairs["blocking_score"]),
                check_results=[
                    dg.AssetCheckResult(
                        check_name="every_source_has_a_candidate",
                        passed=alone.is_empty(),
                        severity=dg.AssetCheckSeverity.WARN,
                        metadata={"without": alone.height, "which": markdown_table(alone)},
                    )
                ],
            )

    return [candidate_pairs]
