"""Walks in the graph between seeds: each pair of seeds is searched once, whatever asks for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from kgrag_assets.retrieval.names import Name
from kgrag_assets.retrieval.protocol import FactEdge
from kgrag_assets.rows.keys import key_of


@dataclass(frozen=True)
class Step:
    """A statement as the graph has it: head, relation, tail."""

    head: str
    relation: str
    tail: str


@dataclass(frozen=True)
class Walk:
    """A walk along ``nodes``; ``steps[i]`` joins ``nodes[i]`` and ``nodes[i + 1]`` in one direction or the other."""

    nodes: tuple[str, ...]
    steps: tuple[Step, ...]

    def reversed(self) -> Walk:
        """Return the same walk from its other end; the statements stay as they are."""
        return Walk(self.nodes[::-1], self.steps[::-1])

    @cached_property
    def fact_id(self) -> str:
        """The same for a walk and its reverse."""
        order = min(self.nodes, self.nodes[::-1])
        steps = self.steps if order == self.nodes else self.steps[::-1]
        return key_of("path", order, [[step.head, step.relation, step.tail] for step in steps])

    def text(self, names: Mapping[str, Name]) -> str:
        """Write the walk in its order, each arrow in the statement's own direction."""
        words = [names[self.nodes[0]].label]
        for place, step in enumerate(self.steps):
            relation = names[step.relation].label
            forward = step.head == self.nodes[place]
            words.append(f"—{relation}→" if forward else f"←{relation}—")
            words.append(names[self.nodes[place + 1]].label)
        return " ".join(words)

    def edges(self, names: Mapping[str, Name]) -> tuple[FactEdge, ...]:
        """Return the statements with their labels, as the graph states them."""
        return tuple(
            FactEdge(
                step.head,
                step.relation,
                step.tail,
                names[step.head].label,
                names[step.relation].label,
                names[step.tail].label,
            )
            for step in self.steps
        )

    def ids(self) -> set[str]:
        """Return every id that the walk's text names."""
        return {*self.nodes, *(step.relation for step in self.steps)}


@dataclass(frozen=True)
class Walks:
    """What a search found; ``cut`` counts what a hub's cap or the budget left out, as far as counted."""

    walks: tuple[Walk, ...]
    cut: int
    exhausted: bool


class GraphSearch(Protocol):
    """Searches for walks; an adapter around ``knowledge.search`` is one."""

    def between(self, source: str, target: str, max_hops: int | None = None) -> Walks:
        """Return simple paths of at most ``max_hops`` from one entity to another; None for the search's own limit."""

    def around(self, seed: str) -> Walks:
        """Return the statements around an entity, as walks of one step."""


class CachedSearch:
    """Asks another search once for each pair of entities and length, in whichever order they are given.

    Of each only the first ``keep`` walks are held, by length and then by ids in the direction asked: all that a list of
    the best ``keep`` facts can need, while two hubs of a large graph have thousands. The rest is counted in ``cut``.
    """

    def __init__(self, search: GraphSearch, keep: int | None = None) -> None:
        """Take the search, and how many walks are held; None for all."""
        self._search = search
        self._keep = keep
        self._between: dict[tuple[str, str, int | None], Walks] = {}
        self._around: dict[str, Walks] = {}

    def between(self, source: str, target: str, max_hops: int | None = None) -> Walks:
        """Return simple paths of at most ``max_hops`` from one entity to another."""
        found = self._between.get((source, target, max_hops))
        if found is None:
            one, two = min(source, target), max(source, target)
            all_walks = self._search.between(one, two, max_hops)
            self._between[one, two, max_hops] = self._first(all_walks, all_walks.walks)
            self._between[two, one, max_hops] = self._first(all_walks, [walk.reversed() for walk in all_walks.walks])
            found = self._between[source, target, max_hops]
        return found

    def around(self, seed: str) -> Walks:
        """Return the statements around an entity, as walks of one step."""
        found = self._around.get(seed)
        if found is None:
            found = self._around[seed] = self._search.around(seed)
        return found

    def _first(self, found: Walks, walks: Sequence[Walk]) -> Walks:
        kept = tuple(sorted(walks, key=walk_order)[: self._keep])
        return Walks(kept, found.cut + len(walks) - len(kept), found.exhausted)


def walk_order(walk: Walk) -> tuple[int, tuple[str, ...], tuple[str, ...]]:
    """Return what walks of equal worth are sorted by: length, then ids, so that the order never depends on chance."""
    return len(walk.steps), walk.nodes, tuple(step.relation for step in walk.steps)
