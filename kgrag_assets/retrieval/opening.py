"""Opening the retrieval methods that a task asks for, over the lake's indexes, lexicon and adjacency."""

from __future__ import annotations

from pathlib import Path

from kgrag_assets.indexing.port import VectorIndex
from kgrag_assets.indexing.rescoring import FullVectors, TwoStageIndex
from kgrag_assets.indexing.served import open_index
from kgrag_assets.knowledge.adjacency import Adjacency
from kgrag_assets.knowledge.adjacency_update import open_graph
from kgrag_assets.knowledge.lexicon import Lexicon
from kgrag_assets.knowledge.linking import LexicalLinker
from kgrag_assets.lake.lake import Lake
from kgrag_assets.models.distilling import fitted_folder
from kgrag_assets.models.embedders import Embedder, make_embedder
from kgrag_assets.retrieval.entity_paths import EntityPaths
from kgrag_assets.retrieval.lake_rows import ids_of_graphs, texts_of, triples_of
from kgrag_assets.retrieval.local_search import LocalSearch
from kgrag_assets.retrieval.names import GraphNames
from kgrag_assets.retrieval.protocol import RetrievalError, Retriever
from kgrag_assets.retrieval.seeds import EntityLinking
from kgrag_assets.retrieval.vector_triples import VectorTriples
from kgrag_assets.retrieval.vectors import AttributeVectors
from kgrag_assets.rows.embeddings import ATTRIBUTE_EMBEDDINGS, ENTITY_EMBEDDINGS, TRIPLE_EMBEDDINGS
from kgrag_assets.rows.keys import key_of
from kgrag_assets.rows.knowledge_graph import KG_ENTITIES, KG_TRIPLES
from kgrag_assets.rows.table import Table
from kgrag_assets.settings import Settings


def open_retrievers(lake: Lake, settings: Settings, task: str, embedder: Embedder | None = None) -> list[Retriever]:
    """Open the methods that ``settings.retrieval.methods`` names, over the graphs that the task uses.

    Nothing of the graph's size is read, unless the task names some of the lake's graphs: then the ids of their rows.

    Args:
        lake: the lake; its graph stages must be up to date.
        settings: the task's settings.
        task: the task.
        embedder: the model of the attributes' vectors, which re-scores what a cheap first stage finds; None for the
            one that the settings name.

    Raises:
        RetrievalError: an index is of another model than the task's vectors, or the task names a graph that
            the lake does not have.
        IndexFileError: an index's files do not agree.
        KnowledgeError: the lexicon's or the adjacency's files do not agree.
    """
    options = settings.retrieval
    lexicon = Lexicon.of_lake(lake)
    chosen = _chosen(lexicon, settings.graph.graphs, task)
    names_seen = lexicon if chosen is None else lexicon.restricted_to(chosen)
    # All graphs are no restriction: the ids need not be read.
    restricted = None if chosen is None or set(chosen) == set(lexicon.graphs) else chosen
    indexes = _Indexes(lake, restricted, settings, embedder)
    vectors = AttributeVectors(lake.read(ATTRIBUTE_EMBEDDINGS, task))
    retrievers: list[Retriever] = []
    if "vector_triples" in options.methods:
        index = indexes.open("triple_index", TRIPLE_EMBEDDINGS, KG_TRIPLES, "triple_id")
        retrievers.append(
            VectorTriples(vectors=vectors, triple_index=index, triples=triples_of(lake), settings=options)
        )
    if "entity_paths" in options.methods:
        adjacency = open_graph(lake)
        index = indexes.open("entity_index", ENTITY_EMBEDDINGS, KG_ENTITIES, "entity_id")
        names = GraphNames(names_seen, adjacency)
        # A graph without statements is none of the adjacency's.
        walked = None if chosen is None else [graph for graph in chosen if graph in adjacency.graphs]
        retrievers.append(
            EntityPaths(
                linking=EntityLinking(
                    vectors=vectors,
                    entity_index=index,
                    linker=LexicalLinker(names_seen),
                    names=names,
                    settings=options,
                ),
                search=LocalSearch(adjacency, options, walked),
                names=names,
                settings=options,
                graph_version=key_of(
                    adjacency.data_version, lexicon.data_version, index.data_version, list(chosen or ())
                ),
            )
        )
    return retrievers


def open_linking(
    lake: Lake, settings: Settings, task: str, embedder: Embedder | None = None
) -> tuple[EntityLinking, Adjacency]:
    """Open what links a task's attributes to entities, and the graph around those.

    Raises:
        RetrievalError: as of ``open_retrievers``; so are the other errors.
    """
    lexicon = Lexicon.of_lake(lake)
    chosen = _chosen(lexicon, settings.graph.graphs, task)
    seen = lexicon if chosen is None else lexicon.restricted_to(chosen)
    indexes = _Indexes(lake, chosen, settings, embedder)
    adjacency = open_graph(lake)
    linking = EntityLinking(
        vectors=AttributeVectors(lake.read(ATTRIBUTE_EMBEDDINGS, task)),
        entity_index=indexes.open("entity_index", ENTITY_EMBEDDINGS, KG_ENTITIES, "entity_id"),
        linker=LexicalLinker(seen),
        names=GraphNames(seen, adjacency),
        settings=settings.retrieval,
    )
    return linking, adjacency


def _chosen(lexicon: Lexicon, graphs: tuple[str, ...] | None, task: str) -> tuple[str, ...] | None:
    """Return the graphs that the task uses, sorted; None for all of the lake's."""
    if graphs is None:
        return None
    unknown = sorted(set(graphs) - set(lexicon.graphs))
    if unknown:
        raise RetrievalError(
            f"task {task!r} asks for the graph {unknown[0]!r}, which the lake does not have; "
            f"it has {', '.join(lexicon.graphs) or 'none'}"
        )
    return tuple(sorted(set(graphs)))


class _Indexes:
    """Opens the indexes, each as the task and the embedder's settings want it."""

    def __init__(self, lake: Lake, graphs: tuple[str, ...] | None, chosen: Settings, embedder: Embedder | None) -> None:
        settings = chosen.embedder
        self._lake = lake
        self._index = chosen.index
        self._graphs = graphs
        self._settings = settings
        self._full: FullVectors | None = None
        if settings.first_stage == "static":
            self._full = FullVectors(embedder or make_embedder(settings), settings.rescoring_cache)

    def _model_id(self, embedded: Table) -> str:
        """Return the model of an embeddings table's rows, empty for a table without rows."""
        for name in self._lake.partitions(embedded):
            first = self._lake.scan(embedded, name, ["model_id"]).head(1).collect()
            if first.height:
                return str(first.item())
        return ""

    def open(self, name: str, embedded: Table, rows: Table, id_column: str) -> VectorIndex:
        """Open an index, restricted to the graphs; one of cheap vectors is re-scored with the full model."""
        index = open_index(self._lake, self._index, name, self._model_id(embedded))
        if self._graphs is not None:
            index = index.restricted_to(ids_of_graphs(self._lake, rows, id_column, self._graphs))
        if self._full is None or not index.size:
            return index
        # The name of a fitted model says to which model's vectors it was fitted.
        fitted = fitted_folder(Path(), self._full.model_id, self._settings.first_stage_texts).name
        imitates = self._full.model_id if index.model_id.startswith(f"static/{fitted}@") else None
        try:
            return TwoStageIndex(
                index, self._full, texts_of(self._lake, embedded, id_column), imitates, self._settings.rescored
            )
        except ValueError as error:
            raise RetrievalError(f"{name}: {error}") from error
