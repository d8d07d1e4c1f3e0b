"""How much of the exact answer an index finds: the measure behind its asset check."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kgrag_assets.indexing.port import VectorIndex

# Queries compared at once: bounds the memory of the exact answer to this many rows of similarities.
_BLOCK = 64
# Scores of the two searches differ in the last bits: a row that is as near as the k-th counts as found.
_TIE = 1e-5


def recall_at_k(
    index: VectorIndex,
    vectors: np.ndarray,
    ids: Sequence[str],
    queries: np.ndarray | None = None,
    *,
    k: int = 10,
    sample: int = 200,
) -> float:
    """Share of the exact k nearest rows that the index returns, averaged over the queries.

    Rows as near as the k-th are interchangeable: an equal text twice is no miss. An empty index has found
    all there is.

    Args:
        index: the index to be measured.
        vectors: all rows, unit vectors of shape (n, d).
        ids: their ids.
        queries: unit vectors, shape (m, d); without them ``sample`` of the rows, evenly spread, are asked for.
        k: neighbours asked for.
        sample: rows used as queries where none are given.

    Raises:
        ValueError: there is no query, or ids and vectors do not go together.
    """
    if len(ids) != len(vectors):
        raise ValueError(f"{len(ids)} ids do not go with {len(vectors)} vectors")
    wanted = min(k, len(ids))
    if not wanted:
        return 1.0
    if queries is None:
        queries = vectors[np.unique(np.linspace(0, len(vectors) - 1, sample).astype(np.int64))]
    if not len(queries):
        raise ValueError("recall needs at least one query")
    place = {entry: row for row, entry in enumerate(ids)}
    total = 0.0
    for start in range(0, len(queries), _BLOCK):
        block = queries[start : start + _BLOCK]
        similarity = block @ vectors.T
        least = np.partition(similarity, -wanted, axis=1)[:, -wanted]
        for row, found in enumerate(index.search(block, k).ids):
            good = sum(1 for hit in set(found) if hit in place and similarity[row, place[hit]] >= least[row] - _TIE)
            total += min(good, wanted) / wanted
    return total / len(queries)
