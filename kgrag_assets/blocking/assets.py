"""The assets of the blocking room: groups of attributes, and the pairs worth judging."""

from collections.abc import Iterator

import dagster as dg
import polars as pl

from kgrag_assets.automation.inputs import TASK_OPTIONS
from kgrag_assets.automation.metadata import histogram, markdown_table
from kgrag_assets.automation.results import explained_failures, store
from kgrag_assets.automation.specs import task_table
from kgrag_assets.blocking.block import BLOCKING_VERSION, block_pairs
from kgrag_assets.lake.lake import Lake
from kgrag_assets.rows.attribute_groups import ATTRIBUTE_GROUPS
from kgrag_assets.rows.candidate_pairs import CANDIDATE_PAIRS
from kgrag_assets.rows.embeddings import ATTRIBUTE_EMBEDDINGS
from kgrag_assets.rows.schema_attributes import SCHEMA_ATTRIBUTES
from kgrag_assets.rows.table import Table, TableError
from kgrag_assets.schemas.errors import SchemaError
from kgrag_assets.schemas.options import task_settings
from kgrag_assets.settings import Settings, SettingsError


def build(settings: Settings) -> list[dg.AssetsDefinition]:
    """Make the assets of this room."""

    def spec(table: Table, description: str) -> dg.AssetSpec:
        return task_table(
            table,
            description,
            group="blocking",
            deps=["schema_attributes", "attribute_embeddings", TASK_OPTIONS],
            code_version=f"{BLOCKING_VERSION}/{settings.blocking.model_dump_json()}",
        )

    @dg.multi_asset(
        name="block_pairs",
        specs=[
            spec(ATTRIBUTE_GROUPS, "Attributes of one side that mean the same form a group, which is judged once."),
            spec(
                CANDIDATE_PAIRS,
                "The best partners of each group by vector and by words, from both sides, within the budget. Every "
                "signal is kept; dropped pairs are counted.",
            ),
        ],
        check_specs=[
            dg.AssetCheckSpec(
                "every_source_has_a_candidate",
                asset="candidate_pairs",
                description="Each source attribute keeps at least one candidate within the budget.",
            )
        ],
    )
    def block(context: dg.AssetExecutionContext, lake: dg.ResourceParam[Lake]) -> Iterator[dg.MaterializeResult]:
        task = context.partition_key
        with explained_failures(SchemaError, SettingsError, TableError), lake.lock("candidate_pairs", task):
            attributes = lake.read(SCHEMA_ATTRIBUTES, task)
            options = task_settings(lake, settings, task)
            blocking = block_pairs(attributes, lake.read(ATTRIBUTE_EMBEDDINGS, task), options.blocking)
            report = blocking.report
            groups = blocking.groups
            several = groups.filter(pl.col("group_size") > 1).select(
                "side", "column_name", "table_name", "group_size", "reason"
            )
            yield store(
                lake,
                ATTRIBUTE_GROUPS,
                task,
                groups,
                asset_key="attribute_groups",
                groups=groups["representative_id"].n_unique(),
                grouped=markdown_table(several.sort("side", "column_name", "table_name"), limit=60),
            )
            covered = blocking.pairs.join(groups, left_on="source_attribute_id", right_on="representative_id")
            alone = groups.filter(
                (pl.col("side") == "source") & ~pl.col("attribute_id").is_in(covered["attribute_id"].to_list())
            ).select("table_name", "column_name")
            yield store(
                lake,
                CANDIDATE_PAIRS,
                task,
                blocking.pairs,
                asset_key="candidate_pairs",
                all_pairs=report.total_pairs,
                group_pairs=report.group_pairs,
                pairs_kept=report.kept,
                pairs_covered=report.pairs_covered,
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
                        asset_key="candidate_pairs",
                        passed=alone.is_empty(),
                        severity=dg.AssetCheckSeverity.WARN,
                        metadata={"without": alone.height, "which": markdown_table(alone)},
                    )
                ],
            )

    return [block]
