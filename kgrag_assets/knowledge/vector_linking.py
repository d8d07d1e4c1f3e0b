"""Entity linking by vector: from a text to the entities whose own text lies nearest to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np

from kgrag_assets.knowledge.lexicon import Lexicon
from kgrag_assets.knowledge.linking import LinkCandidate, order_of


class Neighbours(Protocol):
    """What a search of an index returns: the ids of each query's neighbours, best first, and their cosines."""

    @property
    def ids(self) -> list[list[str]]:
        """The neighbours of each query."""

    @property
    def scores(self) -> np.ndarray:
        """Their cosines, of shape (queries, k)."""


class EntityIndex(Protocol):
    """An index over entity ids; those of ``indexing`` are ones."""

    @property
    def size(self) -> int:
        """Number of entities."""

    def search(self, queries: np.ndarray, k: int) -> Neighbours:
        """Return the k nearest entities of each unit vector."""


class VectorLinker:
    """Links texts to entities by the cosine of their vectors; the names are taken from the lexicon."""

    def __init__(self, index: EntityIndex, embed: Callable[[str], np.ndarray], lexicon: Lexicon) -> None:
        """Take what is searched.

        Args:
            index: vectors of the entities.
            embed: turns a text into a unit vector of the index's model.
            lexicon: the graph's names; only entities that it sees are found, and where it sees some graphs only, the
                index should be restricted to theirs.
        """
        self._index = index
        self._embed = embed
        self._lexicon = lexicon

    def link(self, text: str, k: int) -> list[LinkCandidate]:
        """Return at most ``k`` entities whose vectors are nearest to the text's, best first; ``score`` is the cosine.

        A cosine below 0 counts as 0. A text without a letter or digit is linked to nothing.
        """
        if k < 1 or not self._index.size or not any(char.isalnum() for char in text):
            return []
        query = np.asarray(self._embed(text), dtype=np.float32).reshape(1, -1)
        found = self._index.search(query, min(k, self._index.size))
        near = list(zip(found.ids[0], found.scores[0].tolist(), strict=False))
        known = self._lexicon.entities([entity for entity, _cosine in near])
        candidates = [
            LinkCandidate(entity, known[entity][0].label, min(max(cosine, 0.0), 1.0), known[entity][0].label, "vector")
            for entity, cosine in near
            if entity in known
        ]
        return sorted(candidates, key=order_of)
