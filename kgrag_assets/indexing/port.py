"""The port to a vector index: what retrieval asks of any index, embedded or served."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

import numpy as np


@dataclass(frozen=True)
class Hits:
    """Neighbours of several queries, best first.

    ``ids[i]`` has at most k ids: fewer where the index has fewer. ``scores`` has shape (queries, k); past the
    end of ``ids[i]`` it holds NaN.
    """

    ids: list[list[str]]
    scores: np.ndarray

    def of(self, query: int) -> list[tuple[str, float]]:
        """Return the neighbours of one query with their scores, best first."""
        return [(hit, float(score)) for hit, score in zip(self.ids[query], self.scores[query], strict=False)]


class VectorIndex(Protocol):
    """Nearest neighbours of unit vectors by cosine."""

    @property
    def model_id(self) -> str:
        """The embedder whose vectors it holds; queries must be of the same."""

    @property
    def dimension(self) -> int:
        """Length of its vectors."""

    @property
    def size(self) -> int:
        """Number of rows that a search can return."""

    @property
    def data_version(self) -> str:
        """Hash of its rows and parameters: equal versions answer alike."""

    def search(self, queries: np.ndarray, k: int) -> Hits:
        """Return the k nearest rows of each query.

        Args:
            queries: unit vectors, shape (m, dimension).
            k: neighbours wanted, at least 1.

        Raises:
            ValueError: the queries' shape does not fit, or k is below 1.
        """

    def restricted_to(self, ids: Iterable[str]) -> VectorIndex:
        """Return a view that finds only these ids; unknown ones are ignored."""
