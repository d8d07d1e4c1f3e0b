"""How much of the exact answer an index finds: the measure behind its asset check."""

from __future__ import annotations

import numpy as np
import polars as pl

from kgrag_assets.indexing.hnsw_base import SLICE, VectorsOf
from kgrag_assets.indexing.index_rows import Strings, as_series
from kgrag_assets.indexing.port import VectorIndex

# Scores of the two searches differ in the last bits: a row that is as near as the k-th counts as found.
_TIE = 1e-5


def recall_at_k(
    index: VectorIndex,
    vectors: np.ndarray | VectorsOf,
    ids: Strings,
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
        vectors: all rows, unit vectors of shape (n, d), or a function from row numbers (int64) to theirs; all
            are read once, in slices.
        ids: their ids.
        queries: unit vectors, shape (m, d); without them ``sample`` of the rows, evenly spread, are asked for.
        k: neighbours asked for.
        sample: rows used as queries where none are given.

    Raises:
        ValueError: there is no query, or ids and vectors do not go together.
    """
    if isinstance(vectors, np.ndarray) and len(ids) != len(vectors):
        raise ValueError(f"{len(ids)} ids do not go with {len(vectors)} vectors")
    wanted = min(k, len(ids))
    if not wanted:
        return 1.0

    def read(rows: np.ndarray) -> np.ndarray:
        return vectors[rows] if isinstance(vectors, np.ndarray) else vectors(rows)

    if queries is None:
        queries = read(np.unique(np.linspace(0, len(ids) - 1, sample).astype(np.int64)))
    if not len(queries):
        raise ValueError("recall needs at least one query")
    best = np.full((len(queries), wanted), -np.inf, dtype=np.float32)
    for start in range(0, len(ids), SLICE):
        similarity = queries @ read(np.arange(start, min(start + SLICE, len(ids)))).T
        both = np.concatenate([best, similarity], axis=1)
        best = np.partition(both, -wanted, axis=1)[:, -wanted:]
    least = best.min(axis=1)
    found = _rows_found(index.search(queries, k).ids, ids)
    near = np.einsum("nd,nd->n", queries[found["query"].to_numpy()], read(found["row"].to_numpy()))
    good = np.bincount(
        found["query"].to_numpy(), weights=near >= least[found["query"].to_numpy()] - _TIE, minlength=len(queries)
    )
    return float(np.minimum(good, wanted).mean() / wanted)


def _rows_found(hits: list[list[str]], ids: Strings) -> pl.DataFrame:
    """Return the row of each different hit: columns ``query`` and ``row``, without hits that are no row."""
    pairs = pl.DataFrame(
        {
            "query": np.repeat(np.arange(len(hits)), [len(of_query) for of_query in hits]),
            "id": pl.Series([hit for of_query in hits for hit in of_query], dtype=pl.String),
        }
    ).unique(maintain_order=True)
    places = (
        pl.DataFrame({"id": as_series(ids)}).with_row_index("row").filter(pl.col("id").is_in(pairs["id"].implode()))
    )
    found = pairs.join(places, on="id", how="inner", maintain_order="left")
    return found.select(pl.col("query").cast(pl.Int64), pl.col("row").cast(pl.Int64))
