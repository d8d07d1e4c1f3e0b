"""The asset of the ranking room: the few facts of each pair that the judge will see."""

import dagster as dg
import polars as pl

from kgrag_assets.automation.conditions import when_content_changed
from kgrag_assets.automation.inputs import OWNERS, TASK_OPTIONS
from kgrag_assets.automation.metadata import lineage, markdown_table, table_metadata
from kgrag_assets.automation.partitions import TASKS
from kgrag_assets.automation.results import explained_failures, store
from kgrag_assets.lake.lake import Lake
from kgrag_assets.models.embedders import Embedder, EmbeddingError
from kgrag_assets.models.errors import ModelUnavailableError
from kgrag_assets.ranking.rank import RANKER_VERSION, rank_contexts
from kgrag_assets.ranking.scorers import make_scorer
from kgrag_assets.rows.candidate_pairs import CANDIDATE_PAIRS
from kgrag_assets.rows.ranked_contexts import RANKED_CONTEXTS
from kgrag_assets.rows.retrieved_subgraphs import RETRIEVED_SUBGRAPHS
from kgrag_assets.rows.schema_attributes import SCHEMA_ATTRIBUTES
from kgrag_assets.schemas.errors import SchemaError
from kgrag_assets.schemas.options import task_settings
from kgrag_assets.settings import Settings, SettingsError


def build(settings: Settings) -> list[dg.AssetsDefinition]:
    """Make the asset of this room."""

    @dg.asset(
        deps=["schema_attributes", "candidate_pairs", "retrieved_subgraphs", TASK_OPTIONS],
        partitions_def=TASKS,
        group_name="ranking",
        code_version=f"{RANKER_VERSION}/{settings.ranking.model_dump_json()}",
        owners=OWNERS,
        kinds={"polars", "parquet"},
        automation_condition=when_content_changed(),
        description="The best few facts of each pair, ranked by the frequency of relations, by cosine, by a "
        "cross-encoder or not at all, near-duplicates once. A pair without any fact says so.",
        metadata=table_metadata(RANKED_CONTEXTS),
        check_specs=[
            dg.AssetCheckSpec(
                "some_pairs_have_facts",
                asset="ranked_contexts",
                description="The graph speaks about at least one pair; else it is the wrong graph for this task.",
            )
        ],
    )
    def ranked_contexts(
        context: dg.AssetExecutionContext, lake: dg.ResourceParam[Lake], embedder: dg.ResourceParam[Embedder]
    ) -> dg.MaterializeResult:
        task = context.partition_key
        failures = explained_failures(SchemaError, SettingsError, EmbeddingError, ModelUnavailableError)
        with failures, lake.lock("ranked_contexts", task):
            options = task_settings(lake, settings, task)
            ranked = rank_contexts(
                lake.read(SCHEMA_ATTRIBUTES, task),
                lake.read(RETRIEVED_SUBGRAPHS, task),
                lake.read(CANDIDATE_PAIRS, task),
                options.ranking,
                make_scorer(options.ranking, embedder),
                lake.reusable(RANKED_CONTEXTS, task),
            )
            frame = ranked.frame
            told = frame.filter(pl.col("status") == "context")
            first = told.select(
                "source_column", "target_column", pl.col("facts").list.first().struct.field("text").alias("first_fact")
            )
            return store(
                lake,
                RANKED_CONTEXTS,
                task,
                frame,
                method=options.ranking.method,
                pairs_with_facts=told.height,
                pairs_without_facts=frame.height - told.height,
                first_facts=markdown_table(first),
                check_results=[
                    dg.AssetCheckResult(
                        check_name="some_pairs_have_facts",
                        passed=told.height > 0,
                        severity=dg.AssetCheckSeverity.WARN,
                        metadata={"pairs_with_facts": told.height, "pairs": frame.height},
                    )
                ],
                column_lineage=lineage({"facts": [("retrieved_subgraphs", "facts")]}),
            )

    return [ranked_contexts]
