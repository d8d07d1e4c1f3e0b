"""The walks of the remote search: outward from one entity, and from two towards each other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from kgrag_assets.knowledge.sparql.edges import EdgeQueries, Hop
from kgrag_assets.knowledge.sparql.errors import SparqlTimeoutError

T = TypeVar("T")
# Entities whose surroundings are asked for at once.
EXPANDED_NODES = 10


class Surroundings:
    """One walk outward from a seed, with its count of what was cut and its budget."""

    def __init__(self, edges: EdgeQueries, seed: str, max_edges: int, hub_cap: int, budget: int, until: float) -> None:
        """Take the seed and the bounds; ``until`` is a deadline by the client's clock."""
        self._edges = edges
        self._seed = seed
        self._most, self._cap, self._left, self._until = max_edges, hub_cap, budget, until
        self._rings: dict[str, list[Hop]] = {}
        self.found: list[tuple[Hop, ...]] = []
        self.cut = 0
        self.exhausted = False

    def go(self, depth: int) -> None:
        """Fill ``found``, nearest first.

        Raises:
            SparqlTimeoutError: time is up; ``found`` holds what was found.
            SparqlError: there is no whole answer.
        """
        layer: list[tuple[Hop, ...]] = [()]
        hubs: set[str] = set()
        for hops in range(depth):
            further: list[tuple[Hop, ...]] = []
            for place, walked in enumerate(layer):
                limit = self._most - len(self.found)
                if hops and (self._left <= 0 or limit <= 0):
                    self.exhausted = True
                    return
                here = walked[-1][2] if walked else self._seed
                ring = self._ring(here, layer[place:])
                if hops and len(ring) > self._cap:
                    self.cut += 0 if here in hubs else len(ring)
                    hubs.add(here)
                    continue
                self._left -= len(ring)
                been = {self._seed, *(hop[2] for hop in walked)}
                proper = [hop for hop in ring if hop[2] not in been]
                taken = proper[: max(0, limit if hops else min(limit, self._cap))]
                self.cut += len(proper) - len(taken)
                further += [(*walked, hop) for hop in taken]
                self.found += [(*walked, hop) for hop in taken]
            layer = further

    def _ring(self, here: str, ahead: list[tuple[Hop, ...]]) -> list[Hop]:
        """Return a node's edges in the order of the local search; the next ones' are fetched with them."""
        if here not in self._rings:
            ends = [walked[-1][2] for walked in ahead if walked] or [here]
            wanted = [end for end in dict.fromkeys(ends) if end not in self._rings][:EXPANDED_NODES]
            # Of the seed only some may be seen: those are to be none of itself. Others are counted with their loops.
            loops = wanted != [self._seed]
            found = self._edges.rings(wanted, self._cap + 1, self._until, loops=loops)
            for end in wanted:
                # Leaving edges first, then by the other end.
                ring = sorted(found.get(end, []), key=lambda hop: (not hop[3], hop[2], hop[1]))
                self._rings[end] = ring
        return self._rings[here]


class Meeting:
    """One search between two ends, with its count of what was cut and its budget."""

    def __init__(
        self, edges: EdgeQueries, start: str, end: str, max_hops: int, hub_cap: int, budget: int, until: float
    ) -> None:
        """Take the two ends and the bounds; ``until`` is a deadline by the client's clock."""
        self._edges = edges
        self._start, self._end = start, end
        self._max_hops, self._cap, self._left, self._until = max_hops, hub_cap, budget, until
        self.found: set[tuple[Hop, ...]] = set()
        self.cut = 0
        self.exhausted = False

    def walk(self) -> None:
        """Fill ``found``; what it holds is right at every moment, also when an error ends the walk."""
        if self._max_hops == 1:
            self._direct()
            return
        by_middle: dict[str, list[Hop]] = {}
        first, last = self._ends()
        for hop in first:
            if hop[2] not in (self._start, self._end):
                by_middle.setdefault(hop[2], []).append(hop)
        arrivals: dict[str, list[Hop]] = {}
        for hop in last:
            if hop[2] not in (self._start, self._end):
                arrivals.setdefault(hop[2], []).append(_turned(hop))
        for middle, hops in by_middle.items():
            self.found.update((hop, arrival) for hop in hops for arrival in arrivals.get(middle, ()))
        if self._max_hops == 3 and by_middle and arrivals:
            self._through_two(by_middle, arrivals)

    def _ends(self) -> tuple[list[Hop], list[Hop]]:
        """Return the hops from the start and from the end that the walk may use; direct ones go to ``found``."""
        start, end = self._start, self._end
        rings = self._edges.rings([start, end], self._cap + 1, self._until)
        near_start, near_end = rings.get(start, []), rings.get(end, [])
        self._left -= len(near_start) + len(near_end)
        if not near_start or not near_end:
            return [], []
        start_is_hub, end_is_hub = len(near_start) > self._cap, len(near_end) > self._cap
        if start_is_hub and end_is_hub:
            self._direct()
            both = self._gathered(self._edges.common(start, end, self._until))
            first = list(dict.fromkeys(leaving for leaving, _arriving in both))
            last = list(dict.fromkeys(arriving for _leaving, arriving in both))
        elif start_is_hub:
            last = near_end
            wanted = {end, *(hop[2] for hop in near_end)} - {start}
            first = self._gathered(self._edges.links([start], list(wanted), self._until))
        else:
            first = near_start
            # At once: what is known stays, whatever happens to the next query.
            self.found.update((hop,) for hop in first if hop[2] == end)
            wanted = {hop[2] for hop in first} - {start, end}
            last = self._gathered(self._edges.links([end], list(wanted), self._until)) if end_is_hub else near_end
        self.found.update((hop,) for hop in first if hop[2] == end)
        if self._max_hops == 3:
            # Only a path of three edges can begin with one of those left out.
            self.cut += _left_out(near_start, first, {start, end}) if start_is_hub else 0
            self.cut += _left_out(near_end, last, {start, end}) if end_is_hub else 0
        return first, last

    def _direct(self) -> None:
        direct = self._gathered(self._edges.links([self._start], [self._end], self._until))
        self.found.update((hop,) for hop in direct)

    def _through_two(self, by_middle: dict[str, list[Hop]], arrivals: dict[str, list[Hop]]) -> None:
        if self._left <= 0:
            self.exhausted = True
            return
        links = self._gathered(self._edges.links(list(by_middle), list(arrivals), self._until))
        middles = {node for hop in links for node in (hop[0], hop[2])}
        is_hub = dict(self._gathered(self._edges.hubs(list(middles), self._cap, self._until), price=0))
        for link in links:
            # A node that nobody could count any more may be a hub.
            if is_hub.get(link[0], True) or is_hub.get(link[2], True):
                self.cut += 1
            else:
                self.found.update((hop, link, arrival) for hop in by_middle[link[0]] for arrival in arrivals[link[2]])

    def _gathered(self, items: Iterator[T], price: int = 1) -> list[T]:
        """Take what comes until the time is up, or the budget where an item has a price."""
        taken: list[T] = []
        try:
            for item in items:
                taken.append(item)
                self._left -= price
                if price and self._left <= 0:
                    self.exhausted = True
                    break
        except SparqlTimeoutError:
            self.exhausted = True
        return taken


def _left_out(ring: list[Hop], kept: list[Hop], aside: set[str]) -> int:
    """Count edges of a hub that were seen and not followed; ends ``aside`` do not count."""
    seen, followed = (sum(hop[2] not in aside for hop in hops) for hops in (ring, kept))
    return max(0, seen - followed)


def _turned(hop: Hop) -> Hop:
    here, relation, there, forward = hop
    return there, relation, here, not forward
