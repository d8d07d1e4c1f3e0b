"""The inner loop of the path search, compiled. Import inside the function that searches: numba takes long to load."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

import numba
import numpy as np

from kgrag_assets.knowledge.graph_view import CHANGED, GraphView

# A found path is a row of 9 columns: its length, up to 4 nodes from 1, up to 3 relations from 5, and in 8 a bit for
# each edge that points along it; 0 where there is none.
# Odd, and near 2**32 divided by the golden ratio: spreads consecutive numbers over a table (Knuth, TAOCP 6.4).
_SPREAD = 2654435769
_UNKNOWN, _NO_HUB, _HUB = 0, 1, 2

_Function = TypeVar("_Function", bound=Callable[..., object])


def _compiled(function: _Function) -> _Function:
    """Compile at the first call; keep the result on disk where numba finds a place that it can write."""
    try:
        return cast("_Function", numba.njit(cache=True, nogil=True)(function))
    except RuntimeError:
        # No place for the cache: compiled anew by each process.
        return cast("_Function", numba.njit(nogil=True)(function))


@_compiled
def _states(masks: np.ndarray, place: int, wanted: np.uint64) -> bool:
    """Whether one of the wanted graphs states an edge; where there are no masks, the first graph states all."""
    if len(masks) == 0:
        return bool((wanted & np.uint64(1)) != 0)
    return bool((np.uint64(masks[place]) & wanted) != 0)


@_compiled
def _slot(view: GraphView, node: int) -> int:
    """Where a touched node's edges in the overlay begin."""
    low, high = 0, len(view.touched)
    while low < high:
        middle = (low + high) // 2
        if view.touched[middle] < node:
            low = middle + 1
        else:
            high = middle
    return low


# Two directions of a base and of its overlay: four loops that differ in their arrays.
@_compiled
def _collect(view: GraphView, filtered: bool, wanted: np.uint64, node: int, edges: np.ndarray) -> int:  # noqa: PLR0912
    """Count a node's edges; where ``edges`` has room for them, write rows of (other node, relation, leaves it)."""
    flag = np.uint8(0)
    overlaid = len(view.flags) > 0
    if overlaid:
        flag = view.flags[node]
    inside = node < len(view.out_starts) - 1
    room = len(edges)
    count = 0
    if inside and (flag & CHANGED) == 0:
        start, end = int(view.out_starts[node]), int(view.out_starts[node + 1])
        if not filtered and room == 0:
            count += end - start
        else:
            for place in range(start, end):
                if not filtered or _states(view.out_masks, place, wanted):
                    if count < room:
                        edges[count, 0] = view.out_nodes[place]
                        edges[count, 1] = view.out_relations[place]
                        edges[count, 2] = 1
                    count += 1
    if flag != 0:
        slot = _slot(view, node)
        for place in range(view.new_out_starts[slot], view.new_out_starts[slot + 1]):
            if not filtered or _states(view.new_out_masks, place, wanted):
                if count < room:
                    edges[count, 0] = view.new_out_nodes[place]
                    edges[count, 1] = view.new_out_relations[place]
                    edges[count, 2] = 1
                count += 1
        for place in range(view.new_in_starts[slot], view.new_in_starts[slot + 1]):
            if not filtered or _states(view.new_in_masks, place, wanted):
                if count < room:
                    edges[count, 0] = view.new_in_nodes[place]
                    edges[count, 1] = view.new_in_relations[place]
                    edges[count, 2] = 0
                count += 1
    if inside:
        start, end = int(view.in_starts[node]), int(view.in_starts[node + 1])
        if not filtered and room == 0:
            count += end - start
            if flag != 0:
                count -= view.dropped[_slot(view, node)]
        else:
            for place in range(start, end):
                other = view.in_nodes[place]
                if overlaid and view.flags[other] & CHANGED:
                    continue
                if not filtered or _states(view.in_masks, place, wanted):
                    if count < room:
                        edges[count, 0] = other
                        edges[count, 1] = view.in_relations[place]
                        edges[count, 2] = 0
                    count += 1
    return count


@_compiled
def _place(table: np.ndarray, nodes: np.ndarray, node: int) -> int:
    """Where a node stands among ``nodes``, by the hash table over them, or -1."""
    bits = len(table) - 1
    slot = ((np.int64(node) * _SPREAD) >> 8) & bits
    while table[slot] >= 0:
        if nodes[table[slot]] == node:
            return int(table[slot])
        slot = (slot + 1) & bits
    return -1


@_compiled
def _leads_on(mask: np.uint64, own: int, seeds: int, hubs: np.ndarray) -> bool:
    """Whether a path of three edges may begin at a neighbour of these seeds, which is itself seed ``own`` or none."""
    one = np.uint64(1)
    for a in range(seeds):
        if (mask >> np.uint64(a)) & one:
            for b in range(a + 1, seeds):
                if b != own and (not hubs[a] or (mask >> np.uint64(b)) & one):
                    return True
    return False


@_compiled
def _larger(rows: np.ndarray) -> np.ndarray:
    """Return a copy with twice the room."""
    copy = np.zeros((2 * len(rows), 9), dtype=np.int32)
    for row in range(len(rows)):
        for column in range(9):
            copy[row, column] = rows[row, column]
    return copy


@_compiled
def _groups(entries: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the entries' nodes once each, where the entries of each begin, and a bit for each seed it leads to."""
    nodes = np.empty(len(entries), dtype=np.int32)
    starts = np.zeros(len(entries) + 1, dtype=np.int64)
    masks = np.zeros(len(entries), dtype=np.uint64)
    distinct = 0
    for place in range(len(entries)):
        if place == 0 or entries[place, 0] != entries[place - 1, 0]:
            nodes[distinct] = entries[place, 0]
            starts[distinct] = place
            distinct += 1
        masks[distinct - 1] |= np.uint64(1) << np.uint64(entries[place, 1])
    starts[distinct] = len(entries)
    return nodes[:distinct], starts[: distinct + 1], masks[:distinct]


@_compiled
def _short(
    seeds: np.ndarray,
    entries: np.ndarray,
    nodes: np.ndarray,
    starts: np.ndarray,
    max_hops: int,
    max_paths: int,
) -> tuple[np.ndarray, int, bool]:
    """Return the paths of one edge and of two, how many, and whether ``max_paths`` ended the search."""
    rows = np.zeros((256, 9), dtype=np.int32)
    count = 0
    for place in range(len(entries)):
        node, a = entries[place, 0], entries[place, 1]
        for b in range(a + 1, len(seeds)):
            if seeds[b] == node:
                if count == len(rows):
                    rows = _larger(rows)
                rows[count, 0], rows[count, 1], rows[count, 2] = 1, seeds[a], node
                rows[count, 5], rows[count, 8] = entries[place, 2], entries[place, 3]
                count += 1
    if max_hops == 1:
        return rows, count, False
    for here in range(len(nodes)):
        if count > max_paths:
            return rows, count, True
        for first in range(starts[here], starts[here + 1]):
            for last in range(starts[here], starts[here + 1]):
                a, b = entries[first, 1], entries[last, 1]
                if a < b:
                    if count == len(rows):
                        rows = _larger(rows)
                    rows[count, 0], rows[count, 1], rows[count, 2], rows[count, 3] = 2, seeds[a], nodes[here], seeds[b]
                    rows[count, 5], rows[count, 6] = entries[first, 2], entries[last, 2]
                    rows[count, 8] = entries[first, 3] | ((1 - entries[last, 3]) << 1)
                    count += 1
    return rows, count, False


@_compiled
def _table(nodes: np.ndarray) -> np.ndarray:
    """Return a hash table of the places of nodes, at most a quarter full; -1 where there is none."""
    width = 64
    while width < 4 * len(nodes):
        width *= 2
    table = np.full(width, -1, dtype=np.int32)
    for here in range(len(nodes)):
        slot = ((np.int64(nodes[here]) * _SPREAD) >> 8) & (width - 1)
        while table[slot] >= 0:
            slot = (slot + 1) & (width - 1)
        table[slot] = here
    return table


@_compiled
def search(  # noqa: PLR0912, PLR0915  the body of one loop nest, in which every condition says which path is none
    view: GraphView,
    filtered: bool,
    wanted: np.uint64,
    seeds: np.ndarray,
    hubs: np.ndarray,
    entries: np.ndarray,
    max_hops: int,
    hub_cap: int,
    budget: int,
    max_paths: int,
) -> tuple[np.ndarray, int, int, bool]:
    """Find the paths between every two of the seeds, each from the earlier seed to the later.

    Args:
        view: the graph.
        filtered: whether only edges that ``wanted`` graphs state are walked.
        wanted: bits of graphs.
        seeds: int32, distinct nodes.
        hubs: bool, whether each seed is a hub.
        entries: int32 rows of (node, seed, relation, leaves the seed), the edges between seeds and their neighbours
            that are followed, sorted by the node's id.
        max_hops: 1, 2 or 3.
        hub_cap: edges beyond which a node is a hub.
        budget: edges looked at before the search ends.
        max_paths: paths after which it ends; those of one node are finished first, so that more may come.

    Returns:
        int32 rows of paths and how many of them are filled, edges left out at hubs, and whether the budget or
        ``max_paths`` ended the search.
    """
    one = np.uint64(1)
    nodes, starts, masks = _groups(entries)
    rows, count, ended = _short(seeds, entries, nodes, starts, max_hops, max_paths)
    cut = 0
    if ended or max_hops < 3:
        return rows, count, cut, ended
    table = _table(nodes)
    own = np.full(len(nodes), -1, dtype=np.int64)
    for a in range(len(seeds)):
        here = _place(table, nodes, seeds[a])
        if here >= 0:
            own[here] = a
    state = np.zeros(len(nodes), dtype=np.uint8)
    nothing = np.empty((0, 3), dtype=np.int32)
    edges = np.empty((256, 3), dtype=np.int32)
    for here in range(len(nodes)):
        if not _leads_on(masks[here], own[here], len(seeds), hubs):
            continue
        if budget <= 0 or count > max_paths:
            return rows, count, cut, True
        degree = _collect(view, filtered, wanted, nodes[here], nothing)
        if degree > hub_cap:
            if state[here] != _HUB:
                cut += degree
            state[here] = _HUB
            continue
        if degree > len(edges):
            edges = np.empty((degree, 3), dtype=np.int32)
        budget -= _collect(view, filtered, wanted, nodes[here], edges)
        for place in range(degree):
            if edges[place, 0] == nodes[here]:
                continue
            there = _place(table, nodes, edges[place, 0])
            if there < 0:
                continue
            for first in range(starts[here], starts[here + 1]):
                a = entries[first, 1]
                for last in range(starts[there], starts[there + 1]):
                    b = entries[last, 1]
                    if b <= a or own[here] == b or own[there] == a:
                        continue
                    # Of a hub only the edges to neighbours of the other seed.
                    if hubs[a] and not (masks[here] >> np.uint64(b)) & one:
                        continue
                    if hubs[b] and not (masks[there] >> np.uint64(a)) & one:
                        continue
                    if state[there] == _UNKNOWN:
                        many = _collect(view, filtered, wanted, nodes[there], nothing)
                        state[there] = _HUB if many > hub_cap else _NO_HUB
                        if many > hub_cap:
                            cut += many
                    if state[there] == _HUB:
                        continue
                    if count == len(rows):
                        rows = _larger(rows)
                    rows[count, 0], rows[count, 1], rows[count, 2] = 3, seeds[a], nodes[here]
                    rows[count, 3], rows[count, 4] = nodes[there], seeds[b]
                    rows[count, 5], rows[count, 6], rows[count, 7] = (
                        entries[first, 2],
                        edges[place, 1],
                        entries[last, 2],
                    )
                    rows[count, 8] = entries[first, 3] | (edges[place, 2] << 1) | ((1 - entries[last, 3]) << 2)
                    count += 1
    return rows, count, cut, False
