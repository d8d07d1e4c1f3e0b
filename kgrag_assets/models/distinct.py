"""Embedding each different text once, in batches: what all embedders do around their model."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from kgrag_assets.models.embedders import EmbedProgress, check_vectors, unit_vectors
from kgrag_assets.models.endpoints import storable


def embed_distinct(
    texts: Sequence[str],
    embed_batch: Callable[[list[str]], np.ndarray],
    *,
    batch_size: int,
    dimension: int,
    who: str,
    progress: EmbedProgress | None = None,
) -> np.ndarray:
    """Embed the distinct texts in batches of like length, and give each text its vector.

    Batches are formed from the distinct texts sorted by length and text, so the result does not depend on
    the order of the texts or on how often one stands there.

    Args:
        texts: any texts; a lone surrogate is read as ``?``.
        embed_batch: called with at most ``batch_size`` texts, returns one vector each, of any length.
        batch_size: texts per call.
        dimension: length of the vectors.
        who: the model, for error messages.
        progress: called after each batch with the number of texts that now have their vector.

    Returns:
        float32, shape (texts, dimension), unit rows in the order of the texts.

    Raises:
        EmbeddingError: see ``check_vectors``; positions are those in ``texts``.
    """
    readable = [storable(text) for text in texts]
    first: dict[str, int] = {}
    repeats: dict[str, int] = {}
    for position, text in enumerate(readable):
        first.setdefault(text, position)
        repeats[text] = repeats.get(text, 0) + 1
    ordered = sorted(first, key=lambda text: (len(text), text))
    found = np.empty((len(ordered), dimension), dtype=np.float32)
    for start in range(0, len(ordered), batch_size):
        batch = ordered[start : start + batch_size]
        vectors = embed_batch(batch)
        check_vectors(vectors, len(batch), dimension, [first[text] for text in batch], who)
        found[start : start + len(batch)] = unit_vectors(vectors)
        if progress is not None:
            progress(sum(repeats[text] for text in batch))
    place = {text: row for row, text in enumerate(ordered)}
    return found[np.array([place[text] for text in readable], dtype=np.int64)]
