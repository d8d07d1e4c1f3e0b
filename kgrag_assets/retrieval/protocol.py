"""What a retrieval method is given for a pair, what it finds, and what every method can do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from kgrag_assets.schemas.attribute import Attribute

# The table counts in 32 bits; at hubs of millions of edges a sum passes that.
MAX_COUNT = 2**31 - 1


class RetrievalError(RuntimeError):
    """Something that retrieval needs is missing or does not go together; the message says what to do."""


@dataclass(frozen=True)
class RetrievalQuery:
    """One candidate pair."""

    pair_id: str
    source: Attribute
    target: Attribute


@dataclass(frozen=True)
class FactEdge:
    """A statement of the graph in its true direction, with labels for reading."""

    head: str
    relation: str
    tail: str
    head_label: str
    relation_label: str
    tail_label: str


@dataclass(frozen=True)
class Fact:
    """Something that the graph says about a pair.

    ``score`` is in 0..1: how near the fact lies to both attributes. It means the same for every method, so that
    facts of several can be ranked together, and a fact that speaks for one of the two only has less than half of it.
    ``fact_id`` and ``text`` are the fact's content.
    """

    fact_id: str
    kind: str
    text: str
    score: float
    nodes: tuple[str, ...]
    edges: tuple[FactEdge, ...]


@dataclass(frozen=True)
class Seed:
    """An entity that an attribute was linked to; ``side`` is source or target, or both where the whole pair was."""

    entity_id: str
    label: str
    side: str
    rank: int
    score: float


@dataclass(frozen=True)
class Subgraph:
    """What a method found for a pair. ``status`` is one of ``rows.retrieved_subgraphs.STATUSES``."""

    method: str
    status: str
    seeds: tuple[Seed, ...]
    facts: tuple[Fact, ...]
    facts_cut: int
    unverified: tuple[str, ...] = ()
    notes: str = ""
    request_hashes: tuple[str, ...] = ()


class Retriever(Protocol):
    """A way to find the subgraph that speaks about a pair."""

    @property
    def name(self) -> str:
        """One of ``rows.retrieved_subgraphs.METHODS``."""

    def key(self, query: RetrievalQuery) -> str:
        """Hash everything that decides the result for this pair; equal keys mean that the result stands."""

    def retrieve(self, queries: Sequence[RetrievalQuery]) -> list[Subgraph]:
        """Find the subgraph of each pair, in order."""
