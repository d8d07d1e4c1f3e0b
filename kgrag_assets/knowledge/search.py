"""Walking the graph: the neighbourhood of a seed, and all short paths between two."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kgrag_assets.knowledge.adjacency import Adjacency

# Steps of the walk: (node, relation, node, whether the edge points along the walk).
_Hop = tuple[int, int, int, bool]


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


@dataclass(frozen=True)
class SearchResult:
    """Paths found, and what was left out.

    ``cut`` counts edges that were not followed at hubs; ``exhausted`` is true where the budget ended the search
    before all paths were found.
    """

    paths: tuple[Path, ...]
    cut: int
    exhausted: bool


def neighbourhood(adjacency: Adjacency, seed: str, max_edges: int = 20, hub_cap: int = 200) -> SearchResult:
    """Return the statements around a seed as paths of one edge.

    Args:
        adjacency: the graph.
        seed: entity id; an unknown one has no neighbourhood.
        max_edges: at most so many are returned; leaving edges first, which say what the seed is.
        hub_cap: at most so many edges of the seed are looked at.
    """
    node = adjacency.node(seed)
    if node is None:
        return SearchResult((), 0, exhausted=False)
    # Edges from the seed to itself say nothing about its surroundings.
    proper = sum(int((others != node).sum()) for others, _relations in (adjacency.out(node), adjacency.into(node)))
    limit = max(0, min(max_edges, hub_cap))
    paths: list[Path] = []
    for other, relation, forward in adjacency.around(node):
        if len(paths) == limit:
            break
        if other != node:
            paths.append(_path(adjacency, (node, other), [(node, relation, other, forward)]))
    return SearchResult(tuple(paths), proper - len(paths), exhausted=False)


def paths_between(
    adjacency: Adjacency, source: str, target: str, max_hops: int = 3, hub_cap: int = 200, budget: int = 100_000
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
        budget: edges looked at, after which the search ends with what it found.

    Returns:
        paths, shortest first, in a fixed order. Two edges between the same nodes make two paths.

    Raises:
        ValueError: ``max_hops`` is not 1, 2 or 3.
    """
    if max_hops not in (1, 2, 3):
        raise ValueError(f"max_hops must be 1, 2 or 3, not {max_hops}")
    start, end = adjacency.node(source), adjacency.node(target)
    if start is None or end is None or start == end:
        return SearchResult((), 0, exhausted=False)
    walker = _Walker(adjacency, hub_cap, budget)
    found = set(walker.join(start, end, max_hops))
    ordered = sorted(found, key=lambda hops: (len(hops), hops))
    paths = [_path(adjacency, (hops[0][0], *(hop[2] for hop in hops)), hops) for hops in ordered]
    return SearchResult(tuple(paths), walker.cut, walker.exhausted)


class _Walker:
    """One search, with its count of what was cut and its budget."""

    def __init__(self, adjacency: Adjacency, hub_cap: int, budget: int) -> None:
        self._graph = adjacency
        self._cap = hub_cap
        self._left = budget
        self._hubs: set[int] = set()
        self.cut = 0
        self.exhausted = False

    def join(self, start: int, end: int, max_hops: int) -> Iterable[tuple[_Hop, ...]]:
        near_start, near_end = self._ring(start), self._ring(end)
        # Edges of the start; a hub keeps those to the end and to the end's own neighbours.
        wanted: set[int] = {end, *(other for other, _relation, _forward in near_end)}
        first = [hop for hop in self._hops(start, near_start) if hop[2] != start]
        if len(near_start) > self._cap:
            kept = [hop for hop in first if hop[2] in wanted]
            # Only a path of three edges can begin with one of those left out.
            self.cut += len(first) - len(kept) if max_hops == 3 else 0
            first = kept
        yield from ((hop,) for hop in first if hop[2] == end)
        if max_hops == 1:
            return
        last: dict[int, list[_Hop]] = {}
        reachable = {hop[2] for hop in first}
        keep_all = len(near_end) <= self._cap
        for hop in self._hops(end, near_end):
            if hop[2] in (start, end):
                continue
            if keep_all or hop[2] in reachable:
                # Turned around: the walk arrives at the end.
                last.setdefault(hop[2], []).append((hop[2], hop[1], end, not hop[3]))
            elif max_hops == 3:
                self.cut += 1
        for hop in first:
            if hop[2] != end:
                yield from ((hop, arrival) for arrival in last.get(hop[2], ()))
        if max_hops == 2:
            return
        yield from self._through_two(first, last, start, end)

    def _through_two(
        self, first: list[_Hop], last: dict[int, list[_Hop]], start: int, end: int
    ) -> Iterable[tuple[_Hop, ...]]:
        by_middle: dict[int, list[_Hop]] = {}
        for hop in first:
            if hop[2] != end:
                by_middle.setdefault(hop[2], []).append(hop)
        for middle, arrivals in sorted(by_middle.items()):
            if self._left <= 0:
                self.exhausted = True
                return
            if self._is_hub(middle):
                continue
            for hop in self._hops(middle, self._ring(middle)):
                if hop[2] in (start, end, middle) or hop[2] not in last or self._is_hub(hop[2]):
                    continue
                for arrival in arrivals:
                    yield from ((arrival, hop, leave) for leave in last[hop[2]])

    def _is_hub(self, middle: int) -> bool:
        """Whether a node is not walked through; its edges count as cut, once."""
        degree = self._graph.degree(middle)
        if degree <= self._cap:
            return False
        if middle not in self._hubs:
            self._hubs.add(middle)
            self.cut += degree
        return True

    def _ring(self, node: int) -> list[tuple[int, int, bool]]:
        ring = list(self._graph.around(node))
        self._left -= len(ring)
        return ring

    @staticmethod
    def _hops(node: int, ring: Iterable[tuple[int, int, bool]]) -> list[_Hop]:
        return [(node, relation, other, forward) for other, relation, forward in ring]


def _path(adjacency: Adjacency, nodes: Iterable[int], hops: Iterable[_Hop]) -> Path:
    edges = []
    for here, relation, there, forward in hops:
        head, tail = (here, there) if forward else (there, here)
        edges.append(Edge(adjacency.entity_id(head), adjacency.relation_id(relation), adjacency.entity_id(tail)))
    return Path(tuple(adjacency.entity_id(node) for node in nodes), tuple(edges))
