"""Opening the retrieval methods that a task asks for, over the lake's indexes, lexicon and adjacency."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kgrag_assets.indexing.manifest import IndexFileError
from kgrag_assets.indexing.qdrant_server import IndexServerError
from kgrag_assets.knowledge.adjacency import Adjacency
from kgrag_assets.knowledge.errors import KnowledgeError
from kgrag_assets.lake.lake import Lake
from kgrag_assets.models.chat import ChatModel
from kgrag_assets.models.chat_models import open_chat_model
from kgrag_assets.models.embedders import Embedder
from kgrag_assets.models.errors import EmbeddingError, ModelUnavailableError
from kgrag_assets.models.ledger import CallLedger
from kgrag_assets.retrieval.entity_paths import EntityPaths
from kgrag_assets.retrieval.graph_parts import GraphParts
from kgrag_assets.retrieval.lake_rows import triples_of
from kgrag_assets.retrieval.pair_links import PairLinking
from kgrag_assets.retrieval.protocol import RetrievalError, Retriever
from kgrag_assets.retrieval.question_links import QuestionLinking
from kgrag_assets.retrieval.seeds import EntityLinking
from kgrag_assets.retrieval.vector_triples import VectorTriples
from kgrag_assets.rows.keys import key_of
from kgrag_assets.rows.table import TableError
from kgrag_assets.settings import RetrievalMethod, Settings

# What opening the methods, and retrieving with them, may raise: each says what to do.
FAILURES: tuple[type[Exception], ...] = (
    KnowledgeError,
    IndexFileError,
    IndexServerError,
    RetrievalError,
    TableError,
    EmbeddingError,
    ModelUnavailableError,
)

# Methods that ask a language model.
LLM_METHODS: tuple[RetrievalMethod, ...] = ("search_code",)


def open_retrievers(
    lake: Lake,
    settings: Settings,
    task: str,
    embedder: Embedder | None = None,
    *,
    ledger: CallLedger | None = None,
    model: ChatModel | None = None,
) -> list[Retriever]:
    """Open the methods that ``settings.retrieval.methods`` names, over the graphs that the task uses.

    Nothing of the graph's size is read, unless the task names some of the lake's graphs: then the ids of their rows.
    A server of a language model is asked only where a method needs one.

    Args:
        lake: the lake; its graph stages must be up to date.
        settings: the task's settings.
        task: the task.
        embedder: the model of the attributes' vectors, which re-scores what a cheap first stage finds and embeds
            questions; None for the one that the settings name.
        ledger: where replies of a language model are kept; None for the lake's own.
        model: the language model, to ask another than the settings name (a replay); None for theirs.

    Returns:
        The methods, each once, in the order in which the settings name them.

    Raises:
        RetrievalError: an index is of another model than the task's vectors, the task names a graph that the lake
            does not have, or a method needs a language model and the settings name none.
        IndexFileError: an index's files do not agree.
        KnowledgeError: the lexicon's or the adjacency's files do not agree.
        ModelUnavailableError: the language model or the embedder cannot be used.
    """
    parts = GraphParts(lake, settings, task, embedder)
    asked = dict.fromkeys(settings.retrieval.methods)
    openers: dict[str, Callable[[], Retriever]] = {
        "vector_triples": lambda: _vector_triples(lake, settings, parts),
        "entity_paths": lambda: _entity_paths(settings, parts),
    }
    if any(method in LLM_METHODS for method in asked):
        kept = ledger if ledger is not None else CallLedger(lake.paths.ledger)
        openers.update(_llm_openers(settings, task, parts, kept, model))
    return [openers[method]() for method in asked]


def open_linking(
    lake: Lake, settings: Settings, task: str, embedder: Embedder | None = None
) -> tuple[EntityLinking, Adjacency]:
    """Open what links a task's attributes to entities, and the graph around those.

    Raises:
        RetrievalError: as of ``open_retrievers``; so are the other errors.
    """
    parts = GraphParts(lake, settings, task, embedder)
    return _concept_linking(settings, parts), parts.adjacency


def _vector_triples(lake: Lake, settings: Settings, parts: GraphParts) -> Retriever:
    options = settings.retrieval
    return VectorTriples(
        vectors=parts.questions if options.query_form == "question" else parts.vectors,
        triple_index=parts.triple_index,
        triples=triples_of(lake),
        settings=options,
    )


def _entity_paths(settings: Settings, parts: GraphParts) -> Retriever:
    options = settings.retrieval
    linking: PairLinking
    if options.query_form == "question":
        linking = QuestionLinking(
            questions=parts.questions, entity_index=parts.entity_index, names=parts.names, settings=options
        )
    else:
        linking = _concept_linking(settings, parts)
    return EntityPaths(
        linking=linking,
        search=parts.search,
        names=parts.names,
        settings=options,
        graph_version=key_of(parts.version, parts.entity_index.data_version),
    )


def _concept_linking(settings: Settings, parts: GraphParts) -> EntityLinking:
    return EntityLinking(
        vectors=parts.vectors,
        entity_index=parts.entity_index,
        linker=parts.linker,
        names=parts.names,
        settings=settings.retrieval,
    )


def _llm_openers(
    settings: Settings, task: str, parts: GraphParts, ledger: CallLedger, given: ChatModel | None
) -> Mapping[str, Callable[[], Retriever]]:
    """Return how the methods that ask a language model are opened; they share one, and one budget.

    Raises:
        RetrievalError: the settings name no language model.
        ModelUnavailableError: it cannot be used.
    """
    llm, options = settings.retrieval_llm, settings.retrieval
    if llm.provider == "none":
        first = next(method for method in options.methods if method in LLM_METHODS)
        raise RetrievalError(
            f"the retrieval method {first} asks a language model, and none is set: set KGRAG_RETRIEVAL_LLM__PROVIDER "
            "to openai or ollama, or leave the method out of retrieval.methods"
        )
    model = given
    if model is None:
        model = open_chat_model(llm, "retrieval", "KGRAG_RETRIEVAL_LLM__")

    # Each method brings prompts and an interpreter of its own; only those in use are imported.
    def search_code() -> Retriever:
        from kgrag_assets.retrieval.search_code import SearchCode
        from kgrag_assets.retrieval.search_code.similarity import EmbedderSimilarity

        return SearchCode(
            model=model,
            ledger=ledger,
            task=task,
            knowledge=parts.knowledge,
            names=parts.names,
            similarity=EmbedderSimilarity(parts.embedder),
            settings=options,
            llm=llm,
            graph_version=parts.version,
        )

    return {"search_code": search_code}
