"""The jobs a person starts, and the order in which they bring a lake up to date."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import dagster as dg

from kgrag_assets.settings import Settings

LOAD_GRAPH = "load_graph"
REFRESH_GRAPH = "refresh_graph"
TAKE_DUMPS = "take_dumps"
REFRESH_BUCKET = "refresh_bucket"
FIT_FIRST_STAGE = "fit_first_stage"
EMBED_BUCKET = "embed_bucket"
BUILD_INDEXES = "build_indexes"
READ_TASK = "read_task"
FIND_REACHABLE = "find_reachable"
EMBED_TRIPLES = "embed_triples"
INDEX_TRIPLES = "index_triples"
MAP_TASK = "map_task"
PUBLISH = "publish"
ABLATE = "ablate"

_READING = (
    "schema_attributes",
    "schema_rejects",
    "reference_correspondences",
    "reference_entity_links",
    "attribute_embeddings",
)
_MAPPING = (
    "attribute_groups",
    "candidate_pairs",
    "retrieved_subgraphs",
    "ranked_contexts",
    "llm_judgments",
    "attribute_mappings",
    "match_metrics",
    "match_misses",
    "blocking_curve",
    "retrieval_diagnostics",
)


@dataclass(frozen=True)
class Job:
    """A job: its assets, upstream first, and whether it runs once, for each bucket or for each task."""

    name: str
    assets: tuple[str, ...]
    per: Literal["once", "bucket", "task"]
    description: str


def jobs_in_order(settings: Settings) -> tuple[Job, ...]:
    """Return the jobs that bring a task up to date, in their order, as the settings need them."""
    first_stage = settings.embedder.first_stage == "static"
    reachable = settings.graph.embed_triples == "reachable"
    rows, embedded = ("kg_entities", "kg_triples"), ("entity_embeddings", "triple_embeddings")
    jobs = [
        Job(
            LOAD_GRAPH,
            ("kg_source_rows", "kg_refreshed_rows"),
            "once",
            "Read the knowledge graph files, and lay what changed at the source over their rows.",
        )
    ]
    early = embedded[:1] if reachable else embedded
    together = () if first_stage else early
    jobs.append(
        Job(REFRESH_BUCKET, (*rows, *together), "bucket", "Bring one bucket of the graph up to date, with its vectors.")
    )
    if first_stage:
        jobs.append(
            Job(
                FIT_FIRST_STAGE,
                ("first_stage_model",),
                "once",
                "Fit the cheap vectors of the graph to the full model's.",
            )
        )
        jobs.append(Job(EMBED_BUCKET, early, "bucket", "Bring the vectors of one bucket up to date."))
    indexes = ("kg_graph", "kg_lexicon", "entity_index", *(() if reachable else ("triple_index",)))
    jobs.append(
        Job(BUILD_INDEXES, indexes, "once", "Bring the adjacency, the lexicon and the vector indexes up to date.")
    )
    if reachable:
        jobs += [
            Job(READ_TASK, _READING, "task", "Read and embed the schemas of a task."),
            Job(FIND_REACHABLE, ("reachable_entities",), "once", "Find the entities that any task can reach."),
            Job(EMBED_TRIPLES, embedded[1:], "bucket", "Embed the triples of one bucket that any task can reach."),
            Job(INDEX_TRIPLES, ("triple_index",), "once", "Bring the index of triples up to date."),
        ]
    mapping = _MAPPING if reachable else (*_READING, *_MAPPING)
    jobs.append(Job(MAP_TASK, mapping, "task", "Map one task: from its schema files to mapping and metrics."))
    jobs.append(Job(PUBLISH, ("analyst_database",), "once", "Write the DuckDB file that analysts open."))
    return tuple(jobs)


# What is started by a sensor, a schedule or a person, and is no part of the order above.
_ON_DEMAND = (
    Job(REFRESH_GRAPH, ("kg_refreshed_rows",), "once", "Lay what changed at a graph's source over its rows."),
    Job(ABLATE, ("ablation_report",), "task", "Measure what each part of the method is worth on a task."),
    Job(TAKE_DUMPS, ("knowledge_graph_dumps",), "once", "Take the newest dump of each graph that asks for it."),
)


def build_jobs(settings: Settings) -> Sequence[dg.UnresolvedAssetJobDefinition]:
    """Make the jobs; each takes its partitions from its assets."""
    return [
        dg.define_asset_job(
            job.name,
            selection=dg.AssetSelection.assets(*job.assets),
            description=job.description,
            # Steps of one run share the loaded model, and cost 0.02 s instead of over a second each.
            executor_def=dg.in_process_executor,
        )
        for job in (*jobs_in_order(settings), *_ON_DEMAND)
    ]
