"""Recall of an index against its own rows, for a look that reads no vectors from the lake."""

from __future__ import annotations

import numpy as np

from kgrag_assets.indexing.hnsw import HnswIndex

# Scores of the two searches differ in the last bits: a row that is as near as the k-th counts as found.
_TIE = 1e-5


def recall_against_scan(index: HnswIndex, queries: np.ndarray, k: int = 10) -> float:
    """Share of the k nearest rows, as the index keeps them, that a search finds, averaged over the queries.

    What quantised storage loses is not in it: ``recall.recall_at_k`` measures that, with all vectors at hand.

    Args:
        index: the index.
        queries: unit vectors, shape (m, dimension).
        k: neighbours asked for.
    """
    wanted = min(k, index.size)
    if not wanted or not len(queries):
        return 1.0
    exact, found = index.search_exact(queries, wanted), index.search(queries, wanted)
    least = exact.scores[:, wanted - 1 : wanted]
    return float((found.scores >= least - _TIE).mean())
