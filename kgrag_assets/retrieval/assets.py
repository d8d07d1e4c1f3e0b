"""The assets of the retrieval room: what each method found in the graph for each pair, and what tasks can reach."""

import dagster as dg
import polars as pl

from kgrag_assets.automation.conditions import when_content_changed
from kgrag_assets.automation.inputs import OWNERS, TASK_OPTIONS
from kgrag_assets.automation.metadata import lineage, markdown_table, table_metadata
from kgrag_assets.automation.partitions import TASKS
from kgrag_assets.automation.progress import Progress
from kgrag_assets.automation.results import explained_failures, store
from kgrag_assets.lake.lake import Lake
from kgrag_assets.models.embedders import Embedder
from kgrag_assets.models.ledger import CallLedger
from kgrag_assets.retrieval.assemble import retrieve_task
from kgrag_assets.retrieval.fusion import METHOD as FUSION
from kgrag_assets.retrieval.opening import FAILURES, open_retrievers
from kgrag_assets.retrieval.reachable import reachable_from_tasks
from kgrag_assets.retrieval.spending import spent_on
from kgrag_assets.retrieval.versions import retrieval_version
from kgrag_assets.rows.candidate_pairs import CANDIDATE_PAIRS
from kgrag_assets.rows.embeddings import ATTRIBUTE_EMBEDDINGS
from kgrag_assets.rows.reachable_entities import REACHABLE_ENTITIES
from kgrag_assets.rows.retrieved_subgraphs import RETRIEVED_SUBGRAPHS
from kgrag_assets.rows.schema_attributes import SCHEMA_ATTRIBUTES
from kgrag_assets.schemas.errors import SchemaError
from kgrag_assets.schemas.options import task_settings
from kgrag_assets.settings import Settings, SettingsError


def build(settings: Settings) -> list[dg.AssetsDefinition]:
    """Make the assets of this room."""
    version = retrieval_version(settings)

    @dg.asset(
        deps=[
            "schema_attributes",
            "attribute_embeddings",
            "candidate_pairs",
            "entity_index",
            "triple_index",
            "kg_graph",
            "kg_lexicon",
            TASK_OPTIONS,
        ],
        partitions_def=TASKS,
        group_name="retrieval",
        code_version=version,
        owners=OWNERS,
        kinds={"polars", "parquet"},
        automation_condition=when_content_changed(),
        description="For each candidate pair and retrieval method, the facts that the graph has about both attributes: "
        "triples near to them, paths between the entities they speak of, what a language model named and the graph "
        "knows, or all of it fused. A pair for which nothing is found says why.",
        metadata=table_metadata(RETRIEVED_SUBGRAPHS),
        check_specs=[
            dg.AssetCheckSpec(
                "attributes_are_linked",
                asset="retrieved_subgraphs",
                description="At least half of the pairs have an entity or triple near enough to start from; else the "
                "graph does not speak about this task.",
            )
        ],
    )
    def retrieved_subgraphs(
        context: dg.AssetExecutionContext,
        lake: dg.ResourceParam[Lake],
        embedder: dg.ResourceParam[Embedder],
        progress: dg.ResourceParam[Progress],
    ) -> dg.MaterializeResult:
        task = context.partition_key
        failures = explained_failures(SchemaError, SettingsError, *FAILURES)
        with failures, lake.lock("retrieved_subgraphs", task), CallLedger(lake.paths.ledger) as ledger:
            options = task_settings(lake, settings, task)
            retrieved = retrieve_task(
                lake.read(SCHEMA_ATTRIBUTES, task),
                lake.read(CANDIDATE_PAIRS, task),
                open_retrievers(lake, options, task, embedder, ledger=ledger),
                lake.reusable(RETRIEVED_SUBGRAPHS, task),
                lambda total: progress.track(f"retrieving {task}", total),
                options.retrieval,
            )
            frame = retrieved.frame
            linked = ~pl.col("status").is_in(["no_seed", "no_answer"])
            by_pair = frame.group_by("pair_id").agg(linked.any().alias("linked"))
            spent = spent_on(frame, ledger)
            share = float(by_pair["linked"].cast(pl.Float64).sum()) / by_pair.height if by_pair.height else 1.0
            singles = frame.filter(pl.col("method") != FUSION)
            states = frame.group_by("method", "status").agg(
                pl.len().alias("pairs"),
                pl.col("facts").list.len().sum().alias("facts"),
                pl.col("facts_cut").sum(),
                pl.col("unverified").list.len().sum().alias("unverified"),
            )
            notes = singles.filter(pl.col("notes") != "").group_by("method", "notes").agg(pl.len().alias("pairs"))
            seeds = (
                frame.select("pair_id", "seeds")
                .explode("seeds")
                .drop_nulls("seeds")
                .select("pair_id", pl.col("seeds").struct.field("label"), pl.col("seeds").struct.field("entity_id"))
                .group_by("label", "entity_id")
                .agg(pl.col("pair_id").n_unique().alias("pairs"))
                .sort("pairs", "entity_id", descending=[True, False])
            )
            return store(
                lake,
                RETRIEVED_SUBGRAPHS,
                task,
                frame,
                states=markdown_table(states.sort("method", "status")),
                notes=markdown_table(notes.sort("pairs", "method", "notes", descending=[True, False, False])),
                unverified=int(singles["unverified"].list.len().sum()),
                calls=spent.calls,
                tokens_in=spent.tokens_in,
                tokens_out=spent.tokens_out,
                cost_usd=spent.cost_usd,
                most_used_entities=markdown_table(seeds),
                check_results=[
                    dg.AssetCheckResult(
                        check_name="attributes_are_linked",
                        passed=share >= 0.5,
                        severity=dg.AssetCheckSeverity.WARN,
                        metadata={"linked_share": share},
                    )
                ],
                column_lineage=lineage(
                    {"seeds": [("attribute_embeddings", "vector")], "facts": [("attribute_embeddings", "vector")]}
                ),
            )

    @dg.asset(
        name=REACHABLE_ENTITIES.name,
        deps=["schema_attributes", "attribute_embeddings", "entity_index", "kg_graph", "kg_lexicon"],
        group_name="retrieval",
        code_version=version,
        owners=OWNERS,
        kinds={"polars", "parquet"},
        automation_condition=when_content_changed(needs_all_upstream=False),
        description="Entities that the attributes of some task are linked to, and their neighbours: only triples about "
        "these are embedded (`graph.embed_triples: reachable`).",
        metadata=table_metadata(REACHABLE_ENTITIES),
    )
    def reachable_entities(
        context: dg.AssetExecutionContext, lake: dg.ResourceParam[Lake], embedder: dg.ResourceParam[Embedder]
    ) -> dg.MaterializeResult:
        failures = explained_failures(*FAILURES)
        with failures, lake.lock(REACHABLE_ENTITIES.name):
            known = set(context.instance.get_dynamic_partitions("tasks"))
            tasks = [task for task in lake.partitions(ATTRIBUTE_EMBEDDINGS) if task in known]
            frame = reachable_from_tasks(lake, settings, tasks, embedder)
            return store(
                lake,
                REACHABLE_ENTITIES,
                None,
                frame,
                tasks=len(tasks),
                linked=int(frame["linked"].sum()),
            )

    return [retrieved_subgraphs, *([reachable_entities] if settings.graph.embed_triples == "reachable" else [])]
