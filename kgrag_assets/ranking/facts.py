"""A fact as ranking looks at it, and when two facts say the same."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class RankableFact:
    """A fact of a subgraph with what ranking looks at; ``row`` is the fact as stored."""

    method: str
    kind: str
    text: str
    score: float
    relations: tuple[str, ...]
    row: Mapping[str, Any]


def rankable(method: str, facts: Iterable[Mapping[str, Any]]) -> list[RankableFact]:
    """Take the facts of one stored subgraph."""
    return [
        RankableFact(
            method=method,
            kind=fact["kind"],
            text=fact["text"],
            score=float(fact["score"]),
            relations=tuple(edge["relation"] for edge in fact["edges"]),
            row=fact,
        )
        for fact in facts
    ]


def reading(fact: RankableFact) -> tuple[str, ...]:
    """Return the words of a text in order; of a path or triple, its statements in any order.

    Facts of equal reading differ in case, spaces, punctuation or direction only.
    """
    edges = fact.row["edges"]
    if edges:
        return tuple(
            sorted(
                " ".join(
                    _WORD.findall(f"{edge['head_label']} {edge['relation_label']} {edge['tail_label']}".casefold())
                )
                for edge in edges
            )
        )
    return tuple(_WORD.findall(fact.text.casefold()))


def words_of(fact: RankableFact) -> frozenset[str]:
    """Return the distinct words of a fact's reading."""
    return frozenset(word for part in reading(fact) for word in part.split())


def likeness(left: frozenset[str], right: frozenset[str]) -> float:
    """Jaccard index of two sets of words, 0..1; two empty ones are alike."""
    union = len(left | right)
    return len(left & right) / union if union else 1.0
