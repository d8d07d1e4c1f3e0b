"""The first and last edges of a path search: those between the seeds and their neighbours that are followed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kgrag_assets.knowledge.adjacency import Adjacency

# Neighbours of a hub that are compared with another hub's at a time.
_CHUNK = 1 << 16


@dataclass(frozen=True)
class Entries:
    """Edges followed from seeds.

    ``rows`` is int32 of (node, seed's place, relation, whether the edge leaves the seed), sorted by the node's id;
    ``hubs`` says which seeds are hubs; ``looked_at`` counts edges looked at, ``cut`` those of hubs not followed.
    """

    rows: np.ndarray
    hubs: np.ndarray
    looked_at: int
    cut: int


def entries_of(adjacency: Adjacency, seeds: list[int], hub_cap: int, limit: int, wanted: int | None) -> Entries:
    """Collect the edges of all seeds.

    A seed with more than ``hub_cap`` edges is a hub. Of a hub only the edges to other seeds, to neighbours of seeds
    that are none, and to neighbours that it shares with another hub are followed; they are looked up, not searched
    for, so that a hub costs what is around the other seeds.

    Args:
        adjacency: the graph.
        seeds: distinct nodes.
        hub_cap: edges of a node beyond which it counts as a hub.
        limit: at most so many shared neighbours of two hubs are taken from the base.
        wanted: bits of the graphs whose edges are walked, None for all.
    """
    degrees = [adjacency.degree(seed, wanted) for seed in seeds]
    hubs = [degree > hub_cap for degree in degrees]
    parts: list[np.ndarray] = []
    for place, seed in enumerate(seeds):
        if not hubs[place]:
            for forward, (others, relations) in (
                (1, adjacency.out(seed, wanted)),
                (0, adjacency.into(seed, wanted)),
            ):
                parts.append(_rows(others, place, relations, forward, seed))
    looked_at = sum(degree for degree, hub in zip(degrees, hubs, strict=True) if not hub)
    cut = 0
    if any(hubs):
        near = np.unique(np.concatenate([np.array(seeds, dtype=np.int32), *(part[:, 0] for part in parts)]))
        shared = [
            _shared(adjacency, seeds[one], seeds[two], limit, wanted)
            for one in range(len(seeds))
            for two in range(one + 1, len(seeds))
            if hubs[one] and hubs[two]
        ]
        near = np.unique(np.concatenate([near, *shared])) if shared else near
        for place, seed in enumerate(seeds):
            if hubs[place]:
                followed = [
                    _rows(others, place, relations, forward, seed)
                    for forward, side in ((1, "out"), (0, "in"))
                    for others, relations in adjacency.edges_with(side, seed, near, wanted)
                ]
                kept = sum(len(part) for part in followed)
                looked_at += kept
                loops = sum(len(others) for others, _ in adjacency.edges_with("out", seed, near[near == seed], wanted))
                # An edge from a seed to itself stands in both directions.
                cut += degrees[place] - 2 * loops - kept
                parts += followed
    rows = np.concatenate(parts)
    return Entries(rows[np.argsort(adjacency.node_keys(rows[:, 0]), kind="stable")], np.array(hubs), looked_at, cut)


def _rows(others: np.ndarray, place: int, relations: np.ndarray, forward: int, seed: int) -> np.ndarray:
    rows = np.empty((len(others), 4), dtype=np.int32)
    rows[:, 0], rows[:, 1], rows[:, 2], rows[:, 3] = others, place, relations, forward
    loops = others == seed
    return rows[~loops] if loops.any() else rows


def _shared(adjacency: Adjacency, one: int, two: int, limit: int, wanted: int | None) -> np.ndarray:
    """Return the neighbours that two hubs share; where there are more than ``limit``, the first so many by id."""
    small, large = (one, two) if adjacency.degree(one) <= adjacency.degree(two) else (two, one)

    def shared(nodes: np.ndarray) -> np.ndarray:
        nodes = np.unique(nodes[(nodes != one) & (nodes != two)])
        for hub in (small, large):
            joined = [others for side in ("out", "in") for others, _ in adjacency.edges_with(side, hub, nodes, wanted)]
            nodes = np.unique(np.concatenate(joined))
        return nodes

    found = [shared(np.concatenate([adjacency.overlay_neighbours(hub) for hub in (one, two)]))]
    sides = [adjacency.base_neighbours(side, small) for side in ("out", "in")]
    taken = 0
    while taken < limit and any(map(len, sides)):
        # The next chunk of either side, both up to the same node, so that what is found comes in the order of ids.
        ends = [int(side[_CHUNK - 1]) for side in sides if len(side) > _CHUNK]
        places = [int(np.searchsorted(side, min(ends), side="right")) if ends else len(side) for side in sides]
        found.append(shared(np.concatenate([side[:place] for side, place in zip(sides, places, strict=True)])))
        sides = [side[place:] for side, place in zip(sides, places, strict=True)]
        taken += len(found[-1])
    nodes = np.unique(np.concatenate(found))
    return nodes[np.argsort(adjacency.node_keys(nodes))[:limit]]
