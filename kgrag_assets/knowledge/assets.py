"""The assets of the knowledge room: the graphs read once, their rows by bucket, and the adjacency."""

import dataclasses
from collections.abc import Callable
from pathlib import Path

import dagster as dg
import polars as pl

from kgrag_assets.automation.conditions import when_content_changed
from kgrag_assets.automation.inputs import BUCKET_ROWS, GRAPH_FILES, OWNERS, report_changes
from kgrag_assets.automation.metadata import markdown_table, table_metadata
from kgrag_assets.automation.partitions import bucket_names, bucket_number, bucket_partitions
from kgrag_assets.automation.results import explained_failures, store
from kgrag_assets.knowledge.adjacency import Adjacency, build_adjacency
from kgrag_assets.knowledge.errors import KnowledgeError
from kgrag_assets.knowledge.graph_folder import list_graphs, load_graph_folder
from kgrag_assets.knowledge.loading import load_graphs
from kgrag_assets.lake.files import replace_folder
from kgrag_assets.lake.lake import Lake
from kgrag_assets.rows.keys import data_version_of
from kgrag_assets.rows.knowledge_graph import KG_ENTITIES, KG_TRIPLES
from kgrag_assets.rows.rejects import KG_REJECTS
from kgrag_assets.rows.table import ROW_KEY, Table
from kgrag_assets.settings import Settings

STAGED_ENTITIES = dataclasses.replace(KG_ENTITIES, name="kg_staged_entities")
STAGED_TRIPLES = dataclasses.replace(KG_TRIPLES, name="kg_staged_triples")


def build(settings: Settings) -> list[dg.AssetsDefinition]:
    """Make the assets of this room for so many buckets as the settings say."""
    buckets = settings.graph.buckets
    partitions = bucket_partitions(buckets)

    @dg.asset(
        deps=[GRAPH_FILES],
        group_name="knowledge",
        code_version=f"kg-source-1/{buckets}",
        owners=OWNERS,
        kinds={"polars", "parquet"},
        automation_condition=when_content_changed(),
        description="Reads every knowledge graph once, in one pass, and sorts its entities and triples into buckets. "
        "Lines that cannot be taken go to `kg_rejects`.",
        check_specs=[
            dg.AssetCheckSpec("no_line_rejected", asset="kg_source_rows", description="Every line was taken."),
        ],
    )
    def kg_source_rows(context: dg.AssetExecutionContext, lake: dg.ResourceParam[Lake]) -> dg.MaterializeResult:
        with explained_failures(KnowledgeError), lake.lock("kg_source_rows"):
            listed = list_graphs(lake.paths)
            for graph in listed:
                if graph.problem is not None:
                    # Going on without it would remove all its rows, of a disk that is not mounted, say.
                    raise KnowledgeError(f"knowledge graph {graph.name!r}: {graph.problem}; mend or remove its folder")
            folders = [load_graph_folder(lake.paths, graph.name) for graph in listed]
            loaded = load_graphs(folders, buckets)
            versions: dict[str | None, str] = {}
            for name in bucket_names(buckets):
                here = pl.col("bucket") == bucket_number(name)
                entities = lake.write(STAGED_ENTITIES, name, loaded.entities.filter(here))
                triples = lake.write(STAGED_TRIPLES, name, loaded.triples.filter(here))
                versions[name] = data_version_of([entities.data_version, triples.data_version])
            rejects = lake.write(KG_REJECTS, None, loaded.rejects)
            changed = report_changes(context.instance, BUCKET_ROWS, versions)
            by_graph = loaded.entities.group_by("graph", "kind").len("rows").sort("graph", "kind")
            return dg.MaterializeResult(
                data_version=dg.DataVersion(data_version_of([*versions.values(), rejects.data_version])),
                metadata={
                    "dagster/row_count": loaded.entities.height + loaded.triples.height,
                    "entities": loaded.entities.height,
                    "triples": loaded.triples.height,
                    "rejected_lines": loaded.rejects.height,
                    "buckets_changed": len(changed),
                    "by_graph": markdown_table(by_graph),
                    "rejected": markdown_table(loaded.rejects.select("file", "row", "reason")),
                    "relations": markdown_table(
                        loaded.triples.group_by("relation", "relation_label")
                        .len("triples")
                        .sort("triples", "relation", descending=[True, False])
                    ),
                },
                check_results=[
                    dg.AssetCheckResult(
                        check_name="no_line_rejected",
                        passed=loaded.rejects.is_empty(),
                        severity=dg.AssetCheckSeverity.WARN,
                        metadata={"rejected": loaded.rejects.height},
                    )
                ],
            )

    def bucket_asset(table: Table, staged: Table, description: str, preview: tuple[str, ...]) -> dg.AssetsDefinition:
        @dg.asset(
            name=table.name,
            deps=[BUCKET_ROWS],
            partitions_def=partitions,
            group_name="knowledge",
            code_version="kg-rows-1",
            owners=OWNERS,
            kinds={"polars", "parquet"},
            automation_condition=when_content_changed(),
            description=description,
            metadata=table_metadata(table),
        )
        def rows_of_bucket(context: dg.AssetExecutionContext, lake: dg.ResourceParam[Lake]) -> dg.MaterializeResult:
            bucket = context.partition_key
            with explained_failures(), lake.lock(table.name, bucket):
                frame = lake.read(staged, bucket)
                return store(lake, table, bucket, frame, preview=markdown_table(frame.select(preview)))

        return rows_of_bucket

    kg_entities = bucket_asset(
        KG_ENTITIES,
        STAGED_ENTITIES,
        "Entities and relations of the graph whose id falls into this bucket.",
        ("entity_id", "kind", "label", "description"),
    )
    kg_triples = bucket_asset(
        KG_TRIPLES,
        STAGED_TRIPLES,
        "Statements whose head falls into this bucket, in their true direction.",
        ("head_label", "relation_label", "tail_label"),
    )

    @dg.asset(
        deps=["kg_entities", "kg_triples"],
        group_name="knowledge",
        code_version="kg-graph-1",
        owners=OWNERS,
        kinds={"numpy"},
        automation_condition=when_content_changed(),
        description="The graph's adjacency, both directions, as memory-mapped arrays.",
    )
    def kg_graph(lake: dg.ResourceParam[Lake]) -> dg.MaterializeResult:
        with explained_failures(KnowledgeError), lake.lock("kg_graph"):
            names = bucket_names(buckets)
            entities = lake.read_all(KG_ENTITIES, names)
            triples = lake.read_all(KG_TRIPLES, names)
            version = data_version_of([*entities[ROW_KEY].to_list(), *triples[ROW_KEY].to_list()])
            folder = lake.paths.arrays("kg_graph")
            written = _version_of(lambda: Adjacency.open(folder).data_version) != version
            if written:
                replace_folder(folder, lambda fresh: _build(entities, triples, fresh, version))
            graph = Adjacency.open(folder)
            hubs = (
                pl.concat([triples["head"].alias("id"), triples["tail"].drop_nulls().alias("id")])
                .value_counts(sort=True)
                .head(15)
                .join(entities.select(pl.col("entity_id").alias("id"), "label"), on="id", how="left")
            )
            return dg.MaterializeResult(
                data_version=dg.DataVersion(version),
                metadata={
                    "nodes": graph.node_count,
                    "edges": graph.edge_count,
                    "file_written": written,
                    "path": dg.MetadataValue.path(str(folder)),
                    "hubs": markdown_table(hubs),
                },
            )

    return [kg_source_rows, kg_entities, kg_triples, kg_graph]


def _build(entities: pl.DataFrame, triples: pl.DataFrame, folder: Path, version: str) -> None:
    build_adjacency(entities, triples, folder, version)


def _version_of(read: Callable[[], str]) -> str | None:
    """Return the data version of files on disk, or None where they are missing or damaged: then they are rebuilt."""
    try:
        return read()
    except KnowledgeError:
        return None
