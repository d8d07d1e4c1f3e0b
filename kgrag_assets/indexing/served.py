"""Which vector index the settings choose: files in the lake, or collections of a server."""

from __future__ import annotations

from kgrag_assets.indexing.hnsw import HnswIndex
from kgrag_assets.indexing.port import VectorIndex
from kgrag_assets.indexing.qdrant_index import QdrantIndex
from kgrag_assets.indexing.qdrant_server import IndexServerError, QdrantPlace
from kgrag_assets.indexing.stored_vectors import StoredVectors
from kgrag_assets.indexing.update import UpdateReport
from kgrag_assets.lake.lake import Lake
from kgrag_assets.models.embedders import Embedder
from kgrag_assets.settings import IndexSettings


def open_index(lake: Lake, settings: IndexSettings, name: str, model_id: str) -> VectorIndex:
    """Open an index for searching.

    Args:
        lake: where the files of an embedded index lie.
        settings: which kind.
        name: ``entity_index`` or ``triple_index``.
        model_id: the embedder of its rows, which a server is asked for; files say theirs themselves.

    Raises:
        IndexFileError: an index's files do not agree.
        IndexServerError: the server cannot be reached, or has vectors of another model.
    """
    if settings.kind == "faiss":
        return HnswIndex.open(lake.paths.arrays(name))
    return QdrantIndex.open(
        place_of(settings), collection_of(name), model_id=model_id, search_effort=settings.ef_search
    )


def bring_served_index_up_to_date(
    settings: IndexSettings, name: str, stored: StoredVectors, embedder: Embedder
) -> tuple[QdrantIndex, UpdateReport]:
    """Send a server what it does not have of an index's rows, and delete what is gone.

    Raises:
        IndexServerError: the server cannot be reached or refuses, or has vectors of another model.
    """
    index = QdrantIndex.prepare(
        place_of(settings),
        collection_of(name),
        model_id=embedder.model_id,
        dimension=embedder.dimension,
        search_effort=settings.ef_search,
    )
    return index.bring_up_to_date(stored.ids, stored.row_keys, stored)


def place_of(settings: IndexSettings) -> QdrantPlace:
    """Return the server that the settings name.

    Raises:
        IndexServerError: they name none.
    """
    if settings.url is None:
        raise IndexServerError("index.kind is qdrant: set index.url (KGRAG_INDEX__URL) to the server's address")
    return QdrantPlace(settings.url, settings.api_key_env)


def collection_of(name: str) -> str:
    """Return the name of an index's collection."""
    return f"kgrag_{name}"
