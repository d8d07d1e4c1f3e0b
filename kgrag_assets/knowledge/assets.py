"""The assets of the knowledge room: the graphs read and refreshed, their rows by bucket, and the adjacency."""

from collections.abc import Sequence
from typing import Any

import dagster as dg
import polars as pl

from kgrag_assets.automation.conditions import when_content_changed
from kgrag_assets.automation.inputs import BUCKET_ROWS, GRAPH_CHANGES, GRAPH_FILES, OWNERS, report_changes
from kgrag_assets.automation.metadata import markdown_table, table_metadata
from kgrag_assets.automation.partitions import bucket_names, bucket_partitions
from kgrag_assets.automation.progress import Progress
from kgrag_assets.automation.results import described, explained_failures
from kgrag_assets.knowledge.adjacency_update import bring_adjacency_up_to_date, open_graph
from kgrag_assets.knowledge.dump_taking import take_dump
from kgrag_assets.knowledge.errors import KnowledgeError
from kgrag_assets.knowledge.graph_folder import GraphFolder, list_graphs, load_graph_folder
from kgrag_assets.knowledge.lexicon_build import bring_lexicon_up_to_date
from kgrag_assets.knowledge.lexicon_files import lexicon_path
from kgrag_assets.knowledge.loading import LoadReport, load_graphs
from kgrag_assets.knowledge.refreshing import RefreshReport, refresh_graph
from kgrag_assets.lake.lake import Lake
from kgrag_assets.rows.keys import data_version_of
from kgrag_assets.rows.knowledge_graph import KG_ENTITIES, KG_TRIPLES, STAGED_ENTITIES, STAGED_TRIPLES
from kgrag_assets.rows.rejects import KG_REJECTS
from kgrag_assets.rows.table import Table
from kgrag_assets.settings import Settings

SHOWN = 15


def build(settings: Settings) -> list[dg.AssetsDefinition]:
    """Make the assets of this room for so many buckets as the settings say."""
    buckets = settings.graph.buckets
    partitions = bucket_partitions(buckets)
    names = bucket_names(buckets)

    @dg.asset(
        deps=[GRAPH_FILES],
        group_name="knowledge",
        code_version=f"kg-source-2/{buckets}",
        owners=OWNERS,
        kinds={"duckdb", "parquet"},
        automation_condition=when_content_changed(),
        description="Reads every knowledge graph once, in one pass, and sorts its entities and triples into buckets. "
        "Lines that cannot be taken go to `kg_rejects`. A killed run goes on where it was.",
        check_specs=[
            dg.AssetCheckSpec("no_line_rejected", asset="kg_source_rows", description="Every line was taken."),
        ],
    )
    def kg_source_rows(
        context: dg.AssetExecutionContext, lake: dg.ResourceParam[Lake], progress: dg.ResourceParam[Progress]
    ) -> dg.MaterializeResult:
        with explained_failures(KnowledgeError), lake.lock("kg_source_rows"):
            report = load_graphs(lake, _usable_graphs(lake), settings.graph, names, progress.track)
            rejects = lake.write(KG_REJECTS, None, report.rejects)
            versions: dict[str | None, str] = {name: report.buckets[n].data_version for n, name in enumerate(names)}
            changed = report_changes(context.instance, BUCKET_ROWS, versions)
            return dg.MaterializeResult(
                data_version=dg.DataVersion(data_version_of([*_texts(versions), rejects.data_version])),
                metadata={
                    **_loaded(lake, names, report),
                    "rejected_lines": report.rejects.height,
                    "rejected": markdown_table(report.rejects.select("file", "row", "reason")),
                    "buckets_changed": len(changed),
                },
                check_results=[
                    dg.AssetCheckResult(
                        check_name="no_line_rejected",
                        passed=report.rejects.is_empty(),
                        severity=dg.AssetCheckSeverity.WARN,
                        metadata={"rejected": report.rejects.height},
                    )
                ],
            )

    @dg.asset(
        deps=[GRAPH_CHANGES, "kg_source_rows"],
        group_name="knowledge",
        code_version=f"kg-refresh-1/{buckets}",
        owners=OWNERS,
        kinds={"duckdb", "parquet"},
        automation_condition=when_content_changed(),
        description="Lays what changed at the source over the rows of the graph's files: edited entities, deleted and "
        "merged ones, and the statements that show them. Costs in proportion to what changed.",
    )
    def kg_refreshed_rows(
        context: dg.AssetExecutionContext, lake: dg.ResourceParam[Lake], progress: dg.ResourceParam[Progress]
    ) -> dg.MaterializeResult:
        with explained_failures(KnowledgeError), lake.lock("kg_source_rows"):
            folders = _usable_graphs(lake)
            reports: dict[str, RefreshReport] = {}
            whole: LoadReport | None = None
            for folder in folders if any(folder.refresh for folder in folders) else ():
                refreshed = refresh_graph(lake, folder, settings.graph, names)
                if refreshed is None:
                    context.log.info(f"{folder.name}: classes moved, all rows are joined again")
                    whole = load_graphs(lake, folders, settings.graph, names, progress.track)
                    break
                reports[folder.name] = refreshed
            # All of them, whichever were written now: a run that was killed may have written and not reported.
            versions: dict[str | None, str] = {name: _bucket_version(lake, name) for name in names}
            changed = report_changes(context.instance, BUCKET_ROWS, versions)
            totals = {
                "rows_computed": sum(report.total(lambda one: one.added) for report in reports.values()),
                "rows_removed": sum(report.total(lambda one: one.removed) for report in reports.values()),
            }
            if whole is not None:
                totals = {"rows_computed": whole.total(lambda one: one.added)}
                totals["rows_removed"] = whole.total(lambda one: one.removed)
            return dg.MaterializeResult(
                data_version=dg.DataVersion(data_version_of(_texts(versions))),
                metadata={
                    **totals,
                    "entities_changed": sum(report.changed for report in reports.values()),
                    "entities_touched": sum(report.touched for report in reports.values()),
                    "joined_again": whole is not None,
                    "buckets_changed": len(changed),
                },
            )

    @dg.asset(
        group_name="knowledge",
        code_version="kg-dumps-1",
        owners=OWNERS,
        kinds={"file"},
        description="The newest dump of each graph whose `kg.yaml` has `refresh.dumps`, fetched into its folder. The "
        "schedule `weekly_dump` takes it; what differs from the lake is found when the file is read.",
    )
    def knowledge_graph_dumps(
        lake: dg.ResourceParam[Lake], progress: dg.ResourceParam[Progress]
    ) -> dg.MaterializeResult:
        with explained_failures(KnowledgeError), lake.lock("knowledge_graph_dumps"):
            wanted = [folder for folder in _usable_graphs(lake) if folder.refresh and folder.refresh.dumps]
            taken = [take_dump(lake, folder, progress.track) for folder in wanted]
            return dg.MaterializeResult(
                data_version=dg.DataVersion(data_version_of(f"{one.graph} {one.version}" for one in taken)),
                metadata={
                    "fetched": sum(one.fetched for one in taken),
                    "megabytes": sum(one.megabytes for one in taken if one.fetched),
                    "dumps": markdown_table(
                        pl.DataFrame(
                            [(one.graph, one.version, one.path.name) for one in taken],
                            schema=["graph", "version", "file"],
                            orient="row",
                        )
                    ),
                },
            )

    def bucket_asset(table: Table, staged: Table, description: str, preview: Sequence[str]) -> dg.AssetsDefinition:
        @dg.asset(
            name=table.name,
            deps=[BUCKET_ROWS],
            partitions_def=partitions,
            group_name="knowledge",
            code_version="kg-rows-2",
            owners=OWNERS,
            kinds={"parquet"},
            automation_condition=when_content_changed(),
            description=description,
            metadata=table_metadata(table),
        )
        def rows_of_bucket(context: dg.AssetExecutionContext, lake: dg.ResourceParam[Lake]) -> dg.MaterializeResult:
            bucket = context.partition_key
            # The stage's lock as well: its files are shared, not copied, and must not change meanwhile.
            with explained_failures(), lake.lock("kg_source_rows"), lake.lock(table.name, bucket):
                written = lake.adopt(table, bucket, staged)
                shown = lake.scan(table, bucket, preview).head(SHOWN).collect()
                return described(written, preview=markdown_table(shown))

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
        code_version="kg-graph-2",
        owners=OWNERS,
        kinds={"numpy"},
        automation_condition=when_content_changed(),
        description="The graph's adjacency, both directions, as memory-mapped arrays, and an overlay of the heads that "
        "changed since they were built.",
    )
    def kg_graph(lake: dg.ResourceParam[Lake]) -> dg.MaterializeResult:
        with explained_failures(KnowledgeError), lake.lock("kg_graph"):
            updated = bring_adjacency_up_to_date(lake, names)
            graph = open_graph(lake)
            return dg.MaterializeResult(
                data_version=dg.DataVersion(graph.data_version),
                metadata={
                    "nodes": graph.node_count,
                    "edges": graph.edge_count,
                    "file_written": updated.written,
                    "built_anew": updated.rebuilt,
                    "heads_in_overlay": updated.overlay_heads,
                    "path": dg.MetadataValue.path(str(lake.paths.arrays("kg_graph"))),
                    "hubs": markdown_table(updated.hubs),
                },
            )

    @dg.asset(
        deps=["kg_entities"],
        group_name="knowledge",
        code_version="kg-lexicon-1",
        owners=OWNERS,
        kinds={"sqlite"},
        automation_condition=when_content_changed(),
        description="Labels and aliases of the graph's entities, looked up by what they say: for entity linking by "
        "words. Changed entities alone are written anew.",
    )
    def kg_lexicon(lake: dg.ResourceParam[Lake]) -> dg.MaterializeResult:
        with explained_failures(KnowledgeError), lake.lock("kg_lexicon"):
            updated = bring_lexicon_up_to_date(lake, names)
            path = lexicon_path(lake)
            return dg.MaterializeResult(
                data_version=dg.DataVersion(data_version_of([lake.version(KG_ENTITIES, name) for name in names])),
                metadata={
                    "names": updated.names,
                    "rows_computed": updated.added,
                    "rows_removed": updated.removed,
                    "file_written": updated.written,
                    "built_anew": updated.rebuilt,
                    "megabytes": round(path.stat().st_size / 1e6, 1),
                    "path": dg.MetadataValue.path(str(path)),
                },
            )

    return [knowledge_graph_dumps, kg_source_rows, kg_refreshed_rows, kg_entities, kg_triples, kg_graph, kg_lexicon]


def _usable_graphs(lake: Lake) -> list[GraphFolder]:
    listed = list_graphs(lake.paths)
    for graph in listed:
        if graph.problem is not None:
            # Going on without it would remove all its rows, of a disk that is not mounted, say.
            raise KnowledgeError(f"knowledge graph {graph.name!r}: {graph.problem}; mend or remove its folder")
    return [load_graph_folder(lake.paths, graph.name) for graph in listed]


def _texts(versions: dict[str | None, str]) -> list[str]:
    return list(versions.values())


def _loaded(lake: Lake, names: Sequence[str], report: LoadReport) -> dict[str, Any]:
    """Say what a load found, from the files it wrote."""
    entities = pl.concat([lake.scan(STAGED_ENTITIES, name, ["graph", "kind"]) for name in names])
    triples = pl.concat([lake.scan(STAGED_TRIPLES, name, ["graph", "relation", "relation_label"]) for name in names])
    by_graph = entities.group_by("graph", "kind").len("rows").sort("graph", "kind").collect()
    relations = triples.group_by("relation", "relation_label").len("triples").collect()
    staged = report.buckets.values()
    return {
        "dagster/row_count": report.total(lambda written: written.rows),
        "entities": sum(bucket.entities.rows for bucket in staged),
        "triples": sum(bucket.triples.rows for bucket in staged),
        "rows_computed": report.total(lambda written: written.added),
        "rows_removed": report.total(lambda written: written.removed),
        "units_read": report.units_read,
        "units_kept": report.units_kept,
        "megabytes": round(report.bytes_read / 1e6, 1),
        "by_graph": markdown_table(by_graph),
        "relations": markdown_table(relations.sort("triples", "relation", descending=[True, False])),
    }


def _bucket_version(lake: Lake, name: str) -> str:
    return data_version_of([lake.version(STAGED_ENTITIES, name), lake.version(STAGED_TRIPLES, name)])
