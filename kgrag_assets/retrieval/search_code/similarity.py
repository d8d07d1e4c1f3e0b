"""How like two texts are: by their words, or by an embedder's vectors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

import numpy as np

from kgrag_assets.models.embedders import Embedder
from kgrag_assets.retrieval.support import content_words

# Texts whose vectors are remembered.
KEPT = 20_000


class TextSimilarity(Protocol):
    """Cosines of a text with each of several, at most 1; a ``knowledge.questions.Similarity`` with a version."""

    @property
    def version(self) -> str:
        """Names everything that decides the cosines."""

    def __call__(self, text: str, others: Sequence[str], /) -> list[float]:
        """Return the cosines of a text with each of the others."""


class WordSimilarity:
    """The cosine of two texts as sets of word stems: 1 where they have the same, 0 where none in common."""

    version = "words-1"

    def __call__(self, text: str, others: Sequence[str], /) -> list[float]:
        """Return the cosines of a text with each of the others."""
        words = content_words(text)
        return [_cosine(words, content_words(other)) for other in others]


class EmbedderSimilarity:
    """The cosine of two texts' vectors; each distinct text is embedded once while it is kept."""

    def __init__(self, embedder: Embedder) -> None:
        """Take the model; nothing is loaded yet."""
        self._embedder = embedder
        self._known: dict[str, np.ndarray] = {}

    @property
    def version(self) -> str:
        """The model's id."""
        return f"embedder/{self._embedder.model_id}"

    def __call__(self, text: str, others: Sequence[str], /) -> list[float]:
        """Return the cosines of a text with each of the others; an empty text has none with any.

        Raises:
            EmbeddingError: the model gave something that is not one vector per text.
            ModelUnavailableError: the model cannot be used.
        """
        wanted = dict.fromkeys(one for one in (text, *others) if one.strip())
        new = [one for one in wanted if one not in self._known]
        if new:
            if len(self._known) + len(new) > KEPT:
                self._known = {one: vector for one, vector in self._known.items() if one in wanted}
            self._known.update(zip(new, self._embedder.embed(new), strict=True))
        mine = self._known.get(text)
        return [
            float(mine @ self._known[other]) if mine is not None and other in self._known else 0.0 for other in others
        ]


def _cosine(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / math.sqrt(len(one) * len(other)) if one and other else 0.0
