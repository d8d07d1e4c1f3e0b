"""Opening the retrieval methods that a task asks for, over the lake's indexes and adjacency."""

from __future__ import annotations

import polars as pl

from kgrag_assets.indexing.hnsw import HnswIndex
from kgrag_assets.knowledge.adjacency import Adjacency
from kgrag_assets.knowledge.linking import LexicalLinker
from kgrag_assets.lake.lake import Lake
from kgrag_assets.retrieval.entity_paths import EntityPaths
from kgrag_assets.retrieval.local_search import LocalSearch
from kgrag_assets.retrieval.names import GraphNames
from kgrag_assets.retrieval.protocol import RetrievalError, Retriever
from kgrag_assets.retrieval.seeds import EntityLinking
from kgrag_assets.retrieval.vector_triples import VectorTriples
from kgrag_assets.retrieval.vectors import AttributeVectors
from kgrag_assets.rows.embeddings import ATTRIBUTE_EMBEDDINGS
from kgrag_assets.rows.keys import key_of
from kgrag_assets.rows.knowledge_graph import KG_ENTITIES, KG_TRIPLES
from kgrag_assets.settings import Settings


def open_retrievers(lake: Lake, settings: Settings, task: str) -> list[Retriever]:
    """Open the methods that ``settings.retrieval.methods`` names, over the graphs that the task uses.

    Args:
        lake: the lake; its graph stages must be up to date.
        settings: the task's settings.
        task: the task.

    Raises:
        RetrievalError: an index is of another model than the task's vectors, or the task names a graph that
            the lake does not have.
        IndexFileError: an index's files do not agree.
        KnowledgeError: the adjacency's files do not agree.
    """
    options = settings.retrieval
    entities, triples = lake.read_all(KG_ENTITIES), lake.read_all(KG_TRIPLES)
    chosen = settings.graph.graphs
    if chosen is not None:
        known = set(entities["graph"].unique())
        unknown = sorted(set(chosen) - known)
        if unknown:
            raise RetrievalError(
                f"task {task!r} asks for the graph {unknown[0]!r}, which the lake does not have; "
                f"it has {', '.join(sorted(known)) or 'none'}"
            )
        entities = entities.filter(pl.col("graph").is_in(chosen))
        triples = triples.filter(pl.col("graph").is_in(chosen))
    vectors = AttributeVectors(lake.read(ATTRIBUTE_EMBEDDINGS, task))
    retrievers: list[Retriever] = []
    if "vector_triples" in options.methods:
        index = HnswIndex.open(lake.paths.arrays("triple_index"))
        restricted = index if chosen is None else index.restricted_to(triples["triple_id"])
        retrievers.append(VectorTriples(vectors=vectors, triple_index=restricted, triples=triples, settings=options))
    if "entity_paths" in options.methods:
        adjacency = Adjacency.open(lake.paths.arrays("kg_graph"))
        index = HnswIndex.open(lake.paths.arrays("entity_index"))
        restricted = index if chosen is None else index.restricted_to(entities["entity_id"])
        names = GraphNames(entities, triples)
        retrievers.append(
            EntityPaths(
                linking=EntityLinking(
                    vectors=vectors,
                    entity_index=restricted,
                    linker=LexicalLinker.from_entities(entities),
                    names=names,
                    settings=options,
                ),
                search=LocalSearch(adjacency, options),
                names=names,
                settings=options,
                graph_version=key_of(adjacency.data_version, restricted.data_version, sorted(chosen or ())),
            )
        )
    return retrievers
