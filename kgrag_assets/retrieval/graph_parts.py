"""The parts of the lake's graph that retrieval searches, each opened when it is first asked for and then shared."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

from kgrag_assets.indexing.port import VectorIndex
from kgrag_assets.indexing.rescoring import FullVectors, TwoStageIndex
from kgrag_assets.indexing.served import open_index
from kgrag_assets.knowledge.adjacency import Adjacency
from kgrag_assets.knowledge.adjacency_update import open_graph
from kgrag_assets.knowledge.lake_base import LakeKnowledgeBase
from kgrag_assets.knowledge.lexicon import Lexicon
from kgrag_assets.knowledge.linking import LexicalLinker
from kgrag_assets.lake.lake import Lake
from kgrag_assets.models.distilling import fitted_folder
from kgrag_assets.models.embedders import Embedder, make_embedder
from kgrag_assets.retrieval.lake_rows import ids_of_graphs, texts_of
from kgrag_assets.retrieval.local_search import LocalSearch
from kgrag_assets.retrieval.names import GraphNames
from kgrag_assets.retrieval.protocol import RetrievalError
from kgrag_assets.retrieval.queries import QuestionVectors
from kgrag_assets.retrieval.vectors import AttributeVectors
from kgrag_assets.rows.embeddings import ATTRIBUTE_EMBEDDINGS, ENTITY_EMBEDDINGS, TRIPLE_EMBEDDINGS
from kgrag_assets.rows.keys import key_of
from kgrag_assets.rows.knowledge_graph import KG_ENTITIES, KG_TRIPLES
from kgrag_assets.rows.table import Table
from kgrag_assets.settings import Settings


class GraphParts:
    """What a task's methods search: names, statements and indexes, of the graphs that the task uses."""

    def __init__(self, lake: Lake, settings: Settings, task: str, embedder: Embedder | None) -> None:
        """Open the lexicon, and see which graphs the task uses.

        Raises:
            KnowledgeError: the lexicon's files do not agree.
            RetrievalError: the task names a graph that the lake does not have.
        """
        self._lake = lake
        self._settings = settings
        self._task = task
        self._given = embedder
        self._lexicon = Lexicon.of_lake(lake)
        self.graphs = _chosen(self._lexicon, settings.graph.graphs, task)

    @cached_property
    def seen(self) -> Lexicon:
        """The names of the task's graphs."""
        return self._lexicon if self.graphs is None else self._lexicon.restricted_to(self.graphs)

    @cached_property
    def linker(self) -> LexicalLinker:
        """Links words to entities of the task's graphs."""
        return LexicalLinker(self.seen)

    @cached_property
    def adjacency(self) -> Adjacency:
        """The statements of all graphs.

        Raises:
            KnowledgeError: the adjacency's files do not agree.
        """
        return open_graph(self._lake)

    @cached_property
    def names(self) -> GraphNames:
        """What the task's graphs call entities and relations."""
        return GraphNames(self.seen, self.adjacency)

    @cached_property
    def search(self) -> LocalSearch:
        """Walks over the statements of the task's graphs."""
        # A graph without statements is none of the adjacency's.
        walked = None if self.graphs is None else [graph for graph in self.graphs if graph in self.adjacency.graphs]
        return LocalSearch(self.adjacency, self._settings.retrieval, walked)

    @cached_property
    def knowledge(self) -> LakeKnowledgeBase:
        """The task's graphs as a knowledge base."""
        return LakeKnowledgeBase(self._lake, self.graphs)

    @cached_property
    def version(self) -> str:
        """Hash of all names and statements, and of which graphs are used."""
        return key_of(self.adjacency.data_version, self._lexicon.data_version, list(self.graphs or ()))

    @cached_property
    def vectors(self) -> AttributeVectors:
        """The vectors of the task's attributes."""
        return AttributeVectors(self._lake.read(ATTRIBUTE_EMBEDDINGS, self._task))

    @cached_property
    def questions(self) -> QuestionVectors:
        """The vectors of the questions about pairs, embedded when they are asked for."""
        return QuestionVectors(self.embedder)

    @cached_property
    def entity_index(self) -> VectorIndex:
        """The index of the entities.

        Raises:
            IndexFileError: its files do not agree.
            RetrievalError: it is of another model than the task's vectors.
        """
        return self._index("entity_index", ENTITY_EMBEDDINGS, KG_ENTITIES, "entity_id")

    @cached_property
    def triple_index(self) -> VectorIndex:
        """The index of the triples; raises what ``entity_index`` does."""
        return self._index("triple_index", TRIPLE_EMBEDDINGS, KG_TRIPLES, "triple_id")

    @cached_property
    def embedder(self) -> Embedder:
        """The model of the attributes' vectors; nothing is loaded before a text is embedded."""
        return self._given or make_embedder(self._settings.embedder)

    @cached_property
    def _full(self) -> FullVectors | None:
        """The model that re-scores what cheap vectors find; None where the vectors are the model's own."""
        options = self._settings.embedder
        return FullVectors(self.embedder, options.rescoring_cache) if options.first_stage == "static" else None

    def _model_id(self, embedded: Table) -> str:
        """Return the model of an embeddings table's rows, empty for a table without rows."""
        for name in self._lake.partitions(embedded):
            first = self._lake.scan(embedded, name, ["model_id"]).head(1).collect()
            if first.height:
                return str(first.item())
        return ""

    def _index(self, name: str, embedded: Table, rows: Table, id_column: str) -> VectorIndex:
        """Open an index, restricted to the graphs; one of cheap vectors is re-scored with the full model."""
        index = open_index(self._lake, self._settings.index, name, self._model_id(embedded))
        # All graphs are no restriction: the ids need not be read.
        if self.graphs is not None and set(self.graphs) != set(self._lexicon.graphs):
            index = index.restricted_to(ids_of_graphs(self._lake, rows, id_column, self.graphs))
        if self._full is None or not index.size:
            return index
        options = self._settings.embedder
        # The name of a fitted model says to which model's vectors it was fitted.
        fitted = fitted_folder(Path(), self._full.model_id, options.first_stage_texts).name
        imitates = self._full.model_id if index.model_id.startswith(f"static/{fitted}@") else None
        texts = texts_of(self._lake, embedded, id_column)
        try:
            return TwoStageIndex(index, self._full, texts, imitates, options.rescored)
        except ValueError as error:
            raise RetrievalError(f"{name}: {error}") from error


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
