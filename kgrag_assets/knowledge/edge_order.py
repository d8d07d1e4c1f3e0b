"""Sorting the edges of a graph, and uniting those that several graphs state."""

from __future__ import annotations

import numpy as np

from kgrag_assets.knowledge.adjacency_files import smallest_unsigned
from kgrag_assets.knowledge.numbering import Edges

# An edge is sorted as one number where its three parts fit into the bits of an int64.
_PACKED_BITS = 63


class EdgeOrder:
    """Sorting edges by two nodes and a relation."""

    def __init__(self, nodes: int, relations: int, graphs: int) -> None:
        self._node_bits = max(1, int(nodes - 1).bit_length())
        self._relation_bits = max(1, int(relations - 1).bit_length())
        self._packed = 2 * self._node_bits + self._relation_bits <= _PACKED_BITS
        self.mask_type = smallest_unsigned(graphs)
        self.several = graphs > 1

    def distinct(self, edges: Edges) -> Edges:
        """Return all edges once, sorted by head, tail and relation; ``graphs`` holds their masks."""
        heads, relations, tails = edges.heads, edges.relations, edges.tails
        if self._packed and not self.several:
            # The way of the large graphs: 8 bytes an edge, sorted in place.
            keys = self._pack(heads, tails, relations)
            keys.sort()
            heads, relations, tails = self._unpack(keys[_firsts(keys)])
            return Edges(heads, relations, tails, np.empty(0, dtype=self.mask_type))
        order = self.argsort(heads, tails, relations)
        heads, relations, tails = heads[order], relations[order], tails[order]
        firsts = _firsts(heads, tails, relations)
        masks = np.empty(0, dtype=self.mask_type)
        if self.several:
            graphs = edges.graphs[order].astype(np.uint64)
            bits = np.left_shift(np.ones(len(graphs), dtype=np.uint64), graphs)
            masks = _united(bits, firsts).astype(self.mask_type)
        return Edges(heads[firsts], relations[firsts], tails[firsts], masks)

    def argsort(self, first: np.ndarray, second: np.ndarray, relations: np.ndarray) -> np.ndarray:
        """Return the order by first node, second node and relation."""
        if self._packed:
            return np.argsort(self._pack(first, second, relations), kind="stable")
        return np.lexsort((relations, second, first))

    def sorted(self, first: np.ndarray, second: np.ndarray, edges: Edges) -> tuple[np.ndarray, ...]:
        """Return second nodes, relations and masks in the order of first node, second node and relation."""
        if self._packed and not self.several:
            keys = self._pack(first, second, edges.relations)
            keys.sort()
            _first, relations, others = self._unpack(keys)
            return others, relations, edges.graphs
        order = self.argsort(first, second, edges.relations)
        return second[order], edges.relations[order], edges.graphs[order] if self.several else edges.graphs

    def _pack(self, first: np.ndarray, second: np.ndarray, relations: np.ndarray) -> np.ndarray:
        keys = first.astype(np.int64)
        keys <<= self._node_bits
        keys |= second
        keys <<= self._relation_bits
        keys |= relations
        return keys

    def _unpack(self, keys: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return first nodes, relations and second nodes."""
        relations = (keys & ((1 << self._relation_bits) - 1)).astype(np.int32)
        second = ((keys >> self._relation_bits) & ((1 << self._node_bits) - 1)).astype(np.int32)
        return (keys >> (self._relation_bits + self._node_bits)).astype(np.int32), relations, second


def _firsts(*columns: np.ndarray) -> np.ndarray:
    """Return where a row differs from the one before it."""
    if not len(columns[0]):
        return np.empty(0, dtype=np.bool_)
    differs = np.zeros(len(columns[0]), dtype=np.bool_)
    differs[0] = True
    for column in columns:
        differs[1:] |= column[1:] != column[:-1]
    return differs


def _united(bits: np.ndarray, firsts: np.ndarray) -> np.ndarray:
    """Return the union of the bits of each run of equal rows."""
    if not len(bits):
        return bits
    united: np.ndarray = np.bitwise_or.reduceat(bits, np.flatnonzero(firsts))
    return united
