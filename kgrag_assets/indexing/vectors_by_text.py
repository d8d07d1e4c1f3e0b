"""Vectors of one model by their text, and computing those of texts that have none, in checkpoints."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import polars as pl

from kgrag_assets.models.embedders import Embedder
from kgrag_assets.models.errors import EmbeddingError
from kgrag_assets.rows.embeddings import vectors_of

# How far from 1 the length of a vector may be; float32 and bfloat16 round.
UNIT_TOLERANCE = 0.02

# Called with the number of texts to embed; what it returns is called with the texts done since.
StartProgress = Callable[[int], Callable[[int], None]]


class VectorsByText:
    """Vectors of one model by their text."""

    def __init__(self, rows: pl.DataFrame, embedder: Embedder) -> None:
        """Take rows with ``text``, ``model_id`` and ``vector``, all of the embedder's model.

        Raises:
            EmbeddingError: the vectors have another dimension than the embedder makes.
        """
        self.dimension = embedder.dimension
        rows = rows.unique("text", keep="first", maintain_order=True)
        if not rows.is_empty():
            lengths = rows["vector"].list.len().unique().sort().to_list()
            if lengths != [embedder.dimension]:
                raise EmbeddingError(
                    f"stored vectors of {embedder.model_id} have {lengths} dimensions, the embedder makes "
                    f"{embedder.dimension}: give the model another name or revision, or delete the stored vectors"
                )
        self._place = {text: place for place, text in enumerate(rows["text"])}
        self._array = vectors_of(rows) if not rows.is_empty() else np.zeros((0, self.dimension), dtype=np.float32)

    def __contains__(self, text: str) -> bool:
        return text in self._place

    def reserve(self, texts: int) -> None:
        """Make room for so many more texts, in one copy for all of them."""
        room = np.zeros((texts, self.dimension), dtype=np.float32)
        self._array = np.concatenate([self._array, room]) if texts else self._array

    def add(self, texts: list[str], vectors: np.ndarray) -> None:
        """Take the vectors of texts, shape (texts, dimension)."""
        start = len(self._place)
        self._array[start : start + len(texts)] = vectors
        self._place.update({text: start + offset for offset, text in enumerate(texts)})

    def laid_on(self, rows: pl.DataFrame, columns: list[str]) -> pl.DataFrame:
        """Return rows with a ``text`` each with its vector, in these columns."""
        places = np.array([self._place[text] for text in rows["text"]], dtype=np.int64)
        vector = pl.Series("vector", self._array[places], dtype=pl.Array(pl.Float32, self.dimension))
        return rows.with_columns(vector.arr.to_list()).select(columns)


def embed_texts(
    texts: pl.Series,
    vectors: VectorsByText,
    embedder: Embedder,
    checkpoint: int,
    keep: Callable[[list[str]], None],
    start_progress: StartProgress | None,
) -> int:
    """Compute the vectors of texts that have none, each different text once.

    Args:
        texts: texts, some of which may have a vector already.
        vectors: where vectors are looked up and put.
        embedder: makes them.
        checkpoint: after this many texts the finished ones are handed to ``keep``, so that a kill loses little.
        keep: keeps finished texts; not called for the last ones.
        start_progress: called with the number of texts to embed; its result with the texts done since.

    Returns:
        the number of texts that went to the embedder.

    Raises:
        EmbeddingError: the embedder returned a wrong number of vectors, a wrong dimension, NaN or vectors
            that are not of unit length.
    """
    unknown = [text for text in texts.unique(maintain_order=True) if text not in vectors]
    vectors.reserve(len(unknown))
    tell = start_progress(len(unknown)) if start_progress is not None else None
    # Texts of like length together: less padding in each batch. Sorted, so that the order of rows decides nothing.
    unknown.sort(key=lambda text: (len(text), text))
    for start in range(0, len(unknown), checkpoint):
        batch = unknown[start : start + checkpoint]
        vectors.add(batch, checked_vectors(embedder, batch, np.asarray(embedder.embed(batch, tell), dtype=np.float32)))
        if start + len(batch) < len(unknown):
            keep(batch)
    return len(unknown)


def checked_vectors(embedder: Embedder, texts: list[str], vectors: np.ndarray) -> np.ndarray:
    """Return vectors that are as they must be.

    Raises:
        EmbeddingError: a wrong number, a wrong dimension, NaN, or not of unit length.
    """
    shape = (len(texts), embedder.dimension)
    if vectors.shape != shape:
        raise EmbeddingError(f"{embedder.model_id} returned vectors of shape {vectors.shape} where {shape} was asked")
    norms = np.linalg.norm(vectors, axis=1)
    # Written so that NaN, which compares false with everything, is caught.
    bad = np.flatnonzero(~(np.abs(norms - 1.0) <= UNIT_TOLERANCE))
    if bad.size:
        raise EmbeddingError(
            f"{embedder.model_id} returned a vector of length {norms[bad[0]]} for the text {texts[bad[0]][:80]!r}: "
            "vectors must be finite and of unit length; nothing of this batch was kept"
        )
    return vectors
