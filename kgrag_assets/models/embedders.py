"""What every embedder can do, the check of what it returns, and the choice of one by the settings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from kgrag_assets.models.errors import EmbeddingError, ModelUnavailableError
from kgrag_assets.settings import EmbedderSettings

# Called with the number of texts finished since the last call.
EmbedProgress = Callable[[int], None]

# Below this length a vector has no direction to speak of.
_SMALLEST_NORM = 1e-12

__all__ = ["EmbedProgress", "Embedder", "EmbeddingError", "check_vectors", "make_embedder", "to_array", "unit_vectors"]


class Embedder(Protocol):
    """Turns texts into vectors of unit length."""

    @property
    def model_id(self) -> str:
        """Kind, name and revision; vectors of equal ids may be compared, others must not."""

    @property
    def dimension(self) -> int:
        """Length of the vectors."""

    def embed(self, texts: Sequence[str], progress: EmbedProgress | None = None) -> np.ndarray:
        """Embed texts.

        Args:
            texts: any number, in any order, repeated ones included.
            progress: called with the number of texts finished since the last call.

        Returns:
            float32, shape (texts, dimension), rows of unit length in the order of the texts.

        Raises:
            EmbeddingError: the model gave something that is not one usable vector per text.
            ModelUnavailableError: the model cannot be used at all until somebody changes something.
        """


def check_vectors(
    vectors: np.ndarray, n: int, dimension: int, positions: Sequence[int] | None = None, who: str = "the embedder"
) -> None:
    """Refuse what is not one finite vector with a direction per text.

    Args:
        vectors: what the model gave; not yet of unit length.
        n: number of texts.
        dimension: expected length of a vector.
        positions: where the texts stand among those of the caller, for the message; 0..n-1 by default.
        who: who gave them, for the message.

    Raises:
        EmbeddingError: a wrong number of vectors, a wrong dimension, NaN, infinity or a zero vector; names
            the position of the first bad text.
    """
    if vectors.ndim != 2 or vectors.shape[0] != n:
        count = vectors.shape[0] if vectors.ndim else 0
        raise EmbeddingError(f"{who} gave {count} vectors for {n} texts; nothing of this batch was kept")
    if n == 0:
        return
    if vectors.shape[1] != dimension:
        raise EmbeddingError(
            f"{who} gave vectors of {vectors.shape[1]} dimensions where {dimension} were expected: "
            f"another model answers under this name; nothing of this batch was kept"
        )
    places = range(n) if positions is None else positions
    with np.errstate(over="ignore", invalid="ignore"):
        norms = np.linalg.norm(vectors.astype(np.float64), axis=1)
    finite = np.isfinite(vectors).all(axis=1) & np.isfinite(norms)
    if not finite.all():
        first = places[int(np.flatnonzero(~finite)[0])]
        raise EmbeddingError(f"{who} gave NaN or infinity for the text at position {first}; nothing was kept")
    zero = norms < _SMALLEST_NORM
    if zero.any():
        first = places[int(np.flatnonzero(zero)[0])]
        raise EmbeddingError(f"{who} gave a zero vector for the text at position {first}; nothing was kept")


def unit_vectors(vectors: np.ndarray) -> np.ndarray:
    """Scale checked vectors, shape (n, dimension), to unit length, as float32."""
    wide = vectors.astype(np.float64)
    return np.ascontiguousarray(wide / np.linalg.norm(wide, axis=1, keepdims=True), dtype=np.float32)


def to_array(rows: Sequence[Any], model: str) -> np.ndarray:
    """Turn a server's lists of numbers into a float32 array of shape (rows, dimension).

    Raises:
        EmbeddingError: a row is not a list of numbers, or the rows differ in length.
    """
    try:
        return np.asarray(rows, dtype=np.float32).reshape(len(rows), -1)
    except (ValueError, TypeError):
        raise EmbeddingError(f"{model} gave vectors that differ in length or hold what is no number") from None


def make_embedder(settings: EmbedderSettings) -> Embedder:
    """Make the embedder that the settings name; no model is loaded and no server is asked yet.

    Raises:
        ModelUnavailableError: the model's folder is not there, a key is missing, or a URL is not one.
    """
    if settings.kind in ("openai", "ollama") and settings.model.startswith("packaged:"):
        raise ModelUnavailableError(
            f"no {settings.kind} server has {settings.model}: set KGRAG_EMBEDDER__MODEL to one of the server's models"
        )
    # Each adapter imports its client; only the one in use is paid for.
    if settings.kind == "openai":
        from kgrag_assets.models.openai_embedder import OpenAIEmbedder

        return OpenAIEmbedder(settings)
    if settings.kind == "ollama":
        from kgrag_assets.models.ollama_embedder import OllamaEmbedder

        return OllamaEmbedder(settings)
    if settings.kind == "static":
        from kgrag_assets.models.static_embedder import StaticEmbedder

        return StaticEmbedder(settings.model, settings.static_cache)
    from kgrag_assets.models.sentence_transformers_embedder import (
        SentenceTransformersEmbedder,
    )

    return SentenceTransformersEmbedder(settings.model, settings.batch_size, settings.precision)
