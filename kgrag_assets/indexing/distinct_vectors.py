"""Finding equal vectors among millions, in slices."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kgrag_assets.indexing.hnsw_base import SLICE, VectorsOf


@dataclass(frozen=True)
class Distinct:
    """The different vectors of some rows.

    ``first`` has the first row of each, in rising order; ``nodes`` says for each row which of these it is;
    ``bounds``, shape (2, d), has the least and the greatest value of each dimension.
    """

    first: np.ndarray
    nodes: np.ndarray
    bounds: np.ndarray


def distinct(vectors_of: VectorsOf, rows: int) -> Distinct:
    """Find the different vectors of rows 0 to ``rows`` - 1, reading them in slices.

    Two rows are equal where all bits are. A 64-bit hash finds the candidates and the vectors themselves decide,
    so that a collision costs a node and never gives a wrong one.

    Args:
        vectors_of: gives the vectors of row numbers.
        rows: how many there are, at least one.
    """
    hashes = np.empty(rows, dtype=np.uint64)
    bounds: np.ndarray | None = None
    for start in range(0, rows, SLICE):
        vectors = vectors_of(np.arange(start, min(start + SLICE, rows)))
        hashes[start : start + len(vectors)] = _hashed(vectors)
        ends = np.stack([vectors.min(axis=0), vectors.max(axis=0)])
        bounds = ends if bounds is None else np.stack([np.minimum(bounds[0], ends[0]), np.maximum(bounds[1], ends[1])])
    if bounds is None:
        raise ValueError("there is no row")
    _, first, group = np.unique(hashes, return_index=True, return_inverse=True)
    leader = first[group]
    later = np.flatnonzero(leader != np.arange(rows))
    for start in range(0, len(later), SLICE):
        part = later[start : start + SLICE]
        own, others = vectors_of(part).view(np.uint32), vectors_of(leader[part]).view(np.uint32)
        alone = part[(own != others).any(axis=1)]
        leader[alone] = alone
    leaders, nodes = np.unique(leader, return_inverse=True)
    return Distinct(first=leaders, nodes=nodes.astype(np.int64), bounds=bounds)


def _hashed(vectors: np.ndarray) -> np.ndarray:
    """Hash each row's bits into 64: a sum, modulo 2**64, of its words times fixed odd numbers."""
    bits = np.ascontiguousarray(vectors)
    words = bits.view(np.uint64) if bits.shape[1] % 2 == 0 else bits.view(np.uint32).astype(np.uint64)
    factors = np.random.default_rng(1).integers(0, 2**63, words.shape[1], dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    total = words @ factors
    # High bits know more than low ones of such a sum: fold them together.
    return total ^ (total >> np.uint64(32))
