"""The asset of the mapping room: the ranked lists and the proposed mapping."""

import dagster as dg
import polars as pl

from kgrag_assets.automation.conditions import when_content_changed
from kgrag_assets.automation.inputs import OWNERS, TASK_OPTIONS
from kgrag_assets.automation.metadata import histogram, lineage, markdown_table, table_metadata
from kgrag_assets.automation.partitions import TASKS
from kgrag_assets.automation.results import explained_failures, store
from kgrag_assets.lake.lake import Lake
from kgrag_assets.mapping.assemble import MAPPING_VERSION, map_task
from kgrag_assets.rows.attribute_groups import ATTRIBUTE_GROUPS
from kgrag_assets.rows.attribute_mappings import ATTRIBUTE_MAPPINGS
from kgrag_assets.rows.candidate_pairs import CANDIDATE_PAIRS
from kgrag_assets.rows.llm_judgments import LLM_JUDGMENTS
from kgrag_assets.rows.ranked_contexts import RANKED_CONTEXTS
from kgrag_assets.rows.schema_attributes import SCHEMA_ATTRIBUTES
from kgrag_assets.schemas.errors import SchemaError
from kgrag_assets.schemas.options import task_settings
from kgrag_assets.settings import Settings, SettingsError


def build(settings: Settings) -> list[dg.AssetsDefinition]:
    """Make the asset of this room."""

    @dg.asset(
        deps=[
            "schema_attributes",
            "attribute_groups",
            "candidate_pairs",
            "ranked_contexts",
            "llm_judgments",
            TASK_OPTIONS,
        ],
        partitions_def=TASKS,
        group_name="mapping",
        code_version=f"{MAPPING_VERSION}/{settings.mapping.model_dump_json()}",
        owners=OWNERS,
        kinds={"scipy", "parquet"},
        automation_condition=when_content_changed(),
        description="One ranked list of targets per source attribute, and one proposed mapping under the task's "
        "cardinality. A source attribute for which nothing is proposed says so in a row of its own.",
        metadata=table_metadata(ATTRIBUTE_MAPPINGS),
        check_specs=[
            dg.AssetCheckSpec(
                "every_source_decided",
                asset="attribute_mappings",
                description="Each source attribute has a proposal or an explicit no_match, never both or neither.",
            )
        ],
    )
    def attribute_mappings(context: dg.AssetExecutionContext, lake: dg.ResourceParam[Lake]) -> dg.MaterializeResult:
        task = context.partition_key
        with explained_failures(SchemaError, SettingsError), lake.lock("attribute_mappings", task):
            attributes = lake.read(SCHEMA_ATTRIBUTES, task)
            options = task_settings(lake, settings, task)
            frame = map_task(
                attributes,
                lake.read(ATTRIBUTE_GROUPS, task),
                lake.read(CANDIDATE_PAIRS, task),
                lake.read(LLM_JUDGMENTS, task),
                lake.read(RANKED_CONTEXTS, task),
                options.mapping,
            )
            proposed = frame.filter(pl.col("decision") == "proposed")
            unmatched = frame.filter(pl.col("decision") == "no_match")
            undecided = _undecided(attributes, frame)
            return store(
                lake,
                ATTRIBUTE_MAPPINGS,
                task,
                frame,
                proposed=proposed.height,
                no_match=unmatched.height,
                cardinality=options.mapping.cardinality,
                mapping=markdown_table(
                    proposed.sort("score", descending=True).select(
                        "source_table", "source_column", "target_table", "target_column", "score", "top_fact"
                    ),
                    limit=40,
                ),
                without_match=markdown_table(unmatched.select("source_table", "source_column", "reason"), limit=40),
                score_histogram=histogram(proposed["score"]),
                check_results=[
                    dg.AssetCheckResult(
                        check_name="every_source_decided",
                        passed=undecided.is_empty(),
                        metadata={"undecided": markdown_table(undecided)},
                    )
                ],
                column_lineage=lineage(
                    {
                        "judge_score": [("llm_judgments", "score")],
                        "blocking_score": [("candidate_pairs", "blocking_score")],
                        "top_fact": [("ranked_contexts", "facts")],
                        "score": [("llm_judgments", "score"), ("candidate_pairs", "blocking_score")],
                    }
                ),
            )

    return [attribute_mappings]


def _undecided(attributes: pl.DataFrame, mappings: pl.DataFrame) -> pl.DataFrame:
    """Source attributes that have neither a proposal nor a no_match row, or both."""
    decisions = mappings.group_by("source_attribute_id").agg(
        (pl.col("decision") == "proposed").any().alias("has_proposal"),
        (pl.col("decision") == "no_match").any().alias("has_no_match"),
    )
    return (
        attributes.filter(pl.col("side") == "source")
        .join(decisions, left_on="attribute_id", right_on="source_attribute_id", how="left")
        .filter(pl.col("has_proposal").fill_null(value=False) == pl.col("has_no_match").fill_null(value=False))
        .select("table_name", "column_name")
    )
