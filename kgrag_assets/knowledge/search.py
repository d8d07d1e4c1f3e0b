"""Walking the graph: the surroundings of a seed, and all short paths between seeds."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

import numpy as np

from kgrag_assets.knowledge.adjacency import Adjacency
from kgrag_assets.knowledge.search_entries import entries_of

MAX_SEEDS = 63
_NO_LIMIT = int(np.iinfo(np.int64).max)
# Nodes, relations, and whether each edge points along the walk.
_Walk = tuple[tuple[int, ...], tuple[int, ...], tuple[bool, ...]]


@dataclass(frozen=True)
class Edge:
    """A statement, as the graph has it: ``head`` to ``tail``, whichever way a path walks it."""

    head: str
    relation: str
    tail: str


@dataclass(frozen=True)
class Path:
    """A walk over distinct nodes; ``edges[i]`` lies between ``nodes[i]`` and ``nodes[i + 1]``."""

    nodes: tuple[str, ...]
    edges: tuple[Edge, ...]

    def text(self, labels: Mapping[str, str]) -> str:
        """Write the path in its order by labels, each arrow in the statement's own direction."""
        words = [labels[self.nodes[0]]]
        for place, edge in enumerate(self.edges):
            relation = labels[edge.relation]
            words.append(f"—{relation}→" if edge.head == self.nodes[place] else f"←{relation}—")
            words.append(labels[self.nodes[place + 1]])
        return " ".join(words)


@dataclass(frozen=True)
class SearchResult:
    """Paths found, and what was left out.

    ``cut`` counts edges that were not followed at hubs; ``exhausted`` is true where the budget or the greatest
    number of paths ended the search before all were found. ``labels`` has the label of every id in the paths; an
    id that is both a node and a relation is named as a node.
    """

    paths: tuple[Path, ...]
    cut: int
    exhausted: bool
    labels: Mapping[str, str] = field(default_factory=dict, compare=False)


def neighbourhood(
    adjacency: Adjacency,
    seed: str,
    max_edges: int = 20,
    hub_cap: int = 200,
    depth: int = 1,
    budget: int = 100_000,
    graphs: Collection[str] | None = None,
) -> SearchResult:
    """Return the statements around a seed, breadth first: all simple paths of at most ``depth`` edges from it.

    Args:
        adjacency: the graph.
        seed: entity id; an unknown one has no neighbourhood.
        max_edges: at most so many paths are returned, the nearest; at each node leaving edges first, which say what
            it is.
        hub_cap: at most so many edges of the seed are looked at; another node with more edges is not walked
            through, and its edges count as cut.
        depth: longest path.
        budget: edges looked at, after which no further node is; those of the seed always are.
        graphs: walk only edges that one of these graphs states; None for all.

    Returns:
        paths in the order in which they were found. ``cut`` counts, too, edges of nodes looked at that ``max_edges``
        left out; ``exhausted`` says that nodes within ``depth`` were not looked at.

    Raises:
        ValueError: ``depth`` is below 1.
        KnowledgeError: the graph has not one of ``graphs``.
    """
    if depth < 1:
        raise ValueError(f"depth must be at least 1, not {depth}")
    wanted = adjacency.mask_of(graphs)
    start = adjacency.node(seed)
    if start is None:
        return SearchResult((), 0, exhausted=False)
    layer: list[_Walk] = [((start,), (), ())]
    found: list[_Walk] = []
    hubs: set[int] = set()
    cut, left, exhausted = 0, budget, False
    for hops in range(depth):
        further: list[_Walk] = []
        for nodes, relations, forwards in layer:
            here = nodes[-1]
            limit = max_edges - len(found)
            if hops and (left <= 0 or limit <= 0):
                exhausted = True
                break
            both = [adjacency.out(here, wanted), adjacency.into(here, wanted)]
            degree = sum(len(others) for others, _relations in both)
            if hops and degree > hub_cap:
                cut += 0 if here in hubs else degree
                hubs.add(here)
                continue
            left -= degree
            # Edges to where the walk has been say nothing about its surroundings.
            proper = [np.all([others != node for node in nodes], axis=0) for others, _relations in both]
            limit = max(0, limit if hops else min(limit, hub_cap))
            taken = [
                ((*nodes, other), (*relations, relation), (*forwards, forward))
                for forward, (others, kinds), kept in zip((True, False), both, proper, strict=True)
                for other, relation in zip(_some(others, kept, limit), _some(kinds, kept, limit), strict=True)
            ][:limit]
            cut += sum(int(kept.sum()) for kept in proper) - len(taken)
            further += taken
            found += taken
        layer = further
    return _decoded(adjacency, found, cut, exhausted)


def paths_between(
    adjacency: Adjacency,
    source: str,
    target: str,
    max_hops: int = 3,
    hub_cap: int = 200,
    budget: int = 100_000,
    graphs: Collection[str] | None = None,
    max_paths: int | None = None,
) -> SearchResult:
    """Return all simple paths of at most ``max_hops`` between two entities, ignoring direction while walking.

    The search meets in the middle: it walks from both ends and joins where both arrive at the same node. A node
    with more than ``hub_cap`` edges is a hub. A path of three edges is not walked through a hub, and of a seed that
    is a hub only the edges to neighbours of the other seed are followed. Direct edges and common neighbours are
    never lost, hub or not.

    Args:
        adjacency: the graph.
        source: entity id.
        target: entity id.
        max_hops: longest path, 1 to 3.
        hub_cap: edges of a node beyond which it counts as a hub.
        budget: edges looked at, after which the search ends with what it found; of a seed that is a hub, which is
            looked up from the other side, only the edges followed are counted.
        graphs: walk only edges that one of these graphs states; None for all.
        max_paths: at most so many are returned, the shortest; None for all.

    Returns:
        paths, shortest first, in a fixed order. Two edges between the same nodes make two paths.

    Raises:
        ValueError: ``max_hops`` is not 1, 2 or 3.
        KnowledgeError: the graph has not one of ``graphs``.
    """
    return _search(adjacency, (source, target), max_hops, hub_cap, budget, max_paths, graphs)


def paths_among(
    adjacency: Adjacency,
    seeds: Sequence[str],
    max_hops: int = 3,
    hub_cap: int = 200,
    budget: int = 500_000,
    max_paths: int | None = 10_000,
    graphs: Collection[str] | None = None,
) -> SearchResult:
    """Return all simple paths of at most ``max_hops`` between every two of the seeds, each path once.

    What ``paths_between`` finds for each pair, with one budget, and each node between them looked at once, whatever
    the number of pairs it serves. A hub counts in ``cut`` once.

    Args:
        adjacency: the graph.
        seeds: entity ids, at most 63; unknown and repeated ones are passed over.
        max_hops: longest path, 1 to 3.
        hub_cap: edges of a node beyond which it counts as a hub.
        budget: edges looked at, after which the search ends with what it found.
        max_paths: at most so many are returned, the shortest; None for all.
        graphs: walk only edges that one of these graphs states; None for all.

    Returns:
        paths, shortest first, in a fixed order; each leads from the seed given earlier to the one given later.

    Raises:
        ValueError: ``max_hops`` is not 1, 2 or 3, or there are more than 63 seeds.
        KnowledgeError: the graph has not one of ``graphs``.
    """
    return _search(adjacency, seeds, max_hops, hub_cap, budget, max_paths, graphs)


def _search(
    adjacency: Adjacency,
    seeds: Sequence[str],
    max_hops: int,
    hub_cap: int,
    budget: int,
    max_paths: int | None,
    graphs: Collection[str] | None,
) -> SearchResult:
    if max_hops not in (1, 2, 3):
        raise ValueError(f"max_hops must be 1, 2 or 3, not {max_hops}")
    wanted = adjacency.mask_of(graphs)
    known = dict.fromkeys(node for node in map(adjacency.node, seeds) if node is not None)
    if len(known) > MAX_SEEDS:
        raise ValueError(f"at most {MAX_SEEDS} seeds can be searched at once, not {len(known)}")
    if len(known) < 2:
        return SearchResult((), 0, exhausted=False)
    from kgrag_assets.knowledge import search_kernels

    limit = _NO_LIMIT if max_paths is None else max(0, max_paths)
    entries = entries_of(adjacency, list(known), hub_cap, min(limit, _NO_LIMIT - 1) + 1, wanted)
    rows, count, cut, exhausted = search_kernels.search(
        adjacency.view,
        wanted is not None,
        np.uint64(wanted or 0),
        np.fromiter(known, dtype=np.int32, count=len(known)),
        entries.hubs,
        entries.rows,
        max_hops,
        hub_cap,
        budget - entries.looked_at,
        limit,
    )
    # Only a path of three edges can begin with an edge of a hub that was not followed.
    cut = int(cut) + (entries.cut if max_hops == 3 else 0)
    exhausted = bool(exhausted) or count > limit
    rows = rows[:count]
    walks = [_walk(row) for row in rows[_order(adjacency, rows)[:limit]].tolist()]
    return _decoded(adjacency, walks, cut, exhausted)


def _order(adjacency: Adjacency, rows: np.ndarray) -> np.ndarray:
    """Return the fixed order of paths: shortest first, then along the walk by node, relation and direction."""
    nodes, relations = adjacency.node_keys(rows[:, 1:5]), adjacency.relation_keys(rows[:, 5:8])
    columns = [rows[:, 0]]
    for hop in range(3):
        columns += [nodes[:, hop], relations[:, hop], nodes[:, hop + 1], (rows[:, 8] >> hop) & 1]
    return np.lexsort(columns[::-1])


def _walk(row: list[int]) -> _Walk:
    hops = row[0]
    return (
        tuple(row[1 : hops + 2]),
        tuple(row[5 : hops + 5]),
        tuple(bool(row[8] >> hop & 1) for hop in range(hops)),
    )


def _decoded(adjacency: Adjacency, walks: list[_Walk], cut: int, exhausted: bool) -> SearchResult:
    nodes = {node: adjacency.entity_id(node) for node in {node for walk in walks for node in walk[0]}}
    relations = {kind: adjacency.relation_id(kind) for kind in {kind for walk in walks for kind in walk[1]}}
    # Paths share most of their edges.
    edges: dict[tuple[int, int, int], Edge] = {}
    paths: list[Path] = []
    for walk, kinds, forwards in walks:
        steps: list[Edge] = []
        for place, (kind, forward) in enumerate(zip(kinds, forwards, strict=True)):
            here, there = walk[place], walk[place + 1]
            head, tail = (here, there) if forward else (there, here)
            edge = edges.get((head, kind, tail))
            if edge is None:
                edge = edges[head, kind, tail] = Edge(nodes[head], relations[kind], nodes[tail])
            steps.append(edge)
        paths.append(Path(tuple(nodes[node] for node in walk), tuple(steps)))
    labels = {id_: adjacency.relation_label(kind) for kind, id_ in relations.items()}
    labels.update((id_, adjacency.label(node)) for node, id_ in nodes.items())
    return SearchResult(tuple(paths), cut, exhausted, labels)


def _some(values: np.ndarray, kept: np.ndarray, limit: int) -> list[int]:
    """Return the first of the kept values, reading no more of them than that takes."""
    places = np.fromiter(islice(np.flatnonzero(kept), limit), dtype=np.int64)
    chosen: list[int] = values[places].tolist()
    return chosen
