"""The jobs a person starts, and the order in which they bring a lake up to date."""

from __future__ import annotations

import dagster as dg

LOAD_GRAPH = "load_graph"
REFRESH_GRAPH = "refresh_graph"
TAKE_DUMPS = "take_dumps"
REFRESH_BUCKET = "refresh_bucket"
BUILD_INDEXES = "build_indexes"
MAP_TASK = "map_task"
PUBLISH = "publish"

# Assets of each job, upstream first.
JOB_ASSETS: dict[str, tuple[str, ...]] = {
    LOAD_GRAPH: ("kg_source_rows", "kg_refreshed_rows"),
    REFRESH_GRAPH: ("kg_refreshed_rows",),
    TAKE_DUMPS: ("knowledge_graph_dumps",),
    REFRESH_BUCKET: ("kg_entities", "kg_triples", "entity_embeddings", "triple_embeddings"),
    BUILD_INDEXES: ("kg_graph", "entity_index", "triple_index"),
    MAP_TASK: (
        "schema_attributes",
        "schema_rejects",
        "reference_correspondences",
        "attribute_embeddings",
        "candidate_pairs",
        "retrieved_subgraphs",
        "ranked_contexts",
        "llm_judgments",
        "attribute_mappings",
        "match_metrics",
        "match_misses",
    ),
    PUBLISH: ("analyst_database",),
}

_DESCRIPTIONS = {
    LOAD_GRAPH: "Read the knowledge graph files, and lay what changed at the source over their rows.",
    REFRESH_GRAPH: "Lay what changed at a graph's source over its rows.",
    TAKE_DUMPS: "Take the newest dump of each graph that asks for it.",
    REFRESH_BUCKET: "Bring one bucket of the graph and its embeddings up to date.",
    BUILD_INDEXES: "Bring the adjacency and the vector indexes up to date.",
    MAP_TASK: "Map one task: from its schema files to mapping and metrics.",
    PUBLISH: "Write the DuckDB file that analysts open.",
}


def build_jobs() -> list[dg.UnresolvedAssetJobDefinition]:
    """Make the jobs; each takes its partitions from its assets."""
    return [
        dg.define_asset_job(
            name,
            selection=dg.AssetSelection.assets(*assets),
            description=_DESCRIPTIONS[name],
            # Steps of one run share the loaded model, and cost 0.02 s instead of over a second each.
            executor_def=dg.in_process_executor,
        )
        for name, assets in JOB_ASSETS.items()
    ]
