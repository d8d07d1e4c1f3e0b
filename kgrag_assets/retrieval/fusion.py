"""Fusing what several methods found for a pair, in several graphs, into one list by reciprocal rank."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from kgrag_assets.retrieval.protocol import MAX_COUNT, Fact, Seed, Subgraph
from kgrag_assets.rows.keys import key_of

METHOD = "fusion"
VERSION = "fusion-1"

# The constant of Cormack, Clarke, Buettcher, "Reciprocal Rank Fusion outperforms Condorcet and individual Rank Learning
# Methods" (SIGIR 2009): so large that the first places of one list do not drown what several lists agree on.
RRF_K = 60

# Among equals: an entity that both attributes name says more than a triple, and that more than a path.
_KIND_ORDER = {"shared_entity": 0, "triple": 1, "path": 2}

# What a fact says, however it was found: its statements in any order, or its one entity.
Content = frozenset[tuple[str, ...]]


def content_of(fact: Fact) -> Content:
    """Return what a fact says; a triple and a path of that one statement say the same."""
    if not fact.edges:
        return frozenset({fact.nodes})
    return frozenset((edge.head, edge.relation, edge.tail) for edge in fact.edges)


def graphs_of(fact: Fact) -> tuple[str, ...]:
    """Return the graphs that state a fact, sorted: the namespaces of its statements' heads, or of its entity.

    A tail may be a literal, which has no namespace.
    """
    ids = [edge.head for edge in fact.edges] or list(fact.nodes)
    return tuple(sorted({name.partition(":")[0] for name in ids}))


def fused_key(pair_id: str, keys: Iterable[str], max_facts: int) -> str:
    """Hash everything that decides a fused row: the rows that are fused, in any order, and how many facts are kept."""
    return key_of(VERSION, pair_id, RRF_K, max_facts, sorted(keys))


def fuse(subgraphs: Sequence[Subgraph], max_facts: int) -> Subgraph:
    """Fuse the subgraphs of one pair, one for each method, by reciprocal rank.

    The facts of one method about one graph are a ranked list, best first. A fact's reciprocal rank is the sum, over
    the lists it stands in, of 1 / (60 + its rank there); facts that say the same are one. The order of the result is
    by reciprocal rank; among equals by score, kind and text. ``score`` keeps its meaning (``protocol.Fact``): it is
    the best that a method gave the fact, so it need not fall along the list.

    Args:
        subgraphs: what the methods found; their order makes no difference.
        max_facts: facts kept.

    Returns:
        The fused subgraph. Seeds are those of all methods, each once for a side, with its best score; what a model
        said that the graph does not know, notes and calls are those of all methods. ``facts_cut`` is the sum of the
        methods' and of what ``max_facts`` left out.
    """
    parts = sorted(subgraphs, key=lambda part: part.method)
    ranks: dict[Content, list[float]] = defaultdict(list)
    best: dict[Content, Fact] = {}
    for part in parts:
        for ranked in _lists(part.facts).values():
            for rank, (content, fact) in enumerate(ranked.items(), start=1):
                ranks[content].append(1.0 / (RRF_K + rank))
                known = best.get(content)
                best[content] = fact if known is None else min(known, fact, key=_merit)
    # fsum: the same sum in whichever order the lists come.
    order = sorted(best, key=lambda content: (-math.fsum(ranks[content]), *_merit(best[content])))
    facts = tuple(best[content] for content in order[:max_facts])
    cut = sum(part.facts_cut for part in parts) + len(order) - len(facts)
    return Subgraph(
        method=METHOD,
        status=_status(parts, found=bool(facts)),
        seeds=_seeds(parts),
        facts=facts,
        facts_cut=min(cut, MAX_COUNT),
        unverified=tuple(dict.fromkeys(one for part in parts for one in part.unverified)),
        notes="; ".join(f"{part.method}: {part.notes}" for part in parts if part.notes),
        request_hashes=tuple(dict.fromkeys(one for part in parts for one in part.request_hashes)),
    )


def _lists(facts: Iterable[Fact]) -> Mapping[tuple[str, ...], Mapping[Content, Fact]]:
    """Split a method's facts by graph; of facts that say the same the first stands for all."""
    lists: dict[tuple[str, ...], dict[Content, Fact]] = defaultdict(dict)
    for fact in facts:
        lists[graphs_of(fact)].setdefault(content_of(fact), fact)
    return lists


def _merit(fact: Fact) -> tuple[float, int, str, str]:
    return -fact.score, _KIND_ORDER.get(fact.kind, len(_KIND_ORDER)), fact.text, fact.fact_id


def _status(parts: Sequence[Subgraph], *, found: bool) -> str:
    states = {part.status for part in parts}
    if found:
        return "cut" if "cut" in states else "found"
    # The method that came furthest speaks for all.
    return next((state for state in ("no_path", "no_seed", "no_answer") if state in states), "no_seed")


def _seeds(parts: Iterable[Subgraph]) -> tuple[Seed, ...]:
    best: dict[tuple[str, str], Seed] = {}
    for part in parts:
        for seed in part.seeds:
            known = best.get((seed.side, seed.entity_id))
            if known is None or known.score < seed.score:
                best[seed.side, seed.entity_id] = seed
    found: list[Seed] = []
    for side in ("source", "target", "both"):
        mine = sorted(
            (seed for seed in best.values() if seed.side == side), key=lambda one: (-one.score, one.entity_id)
        )
        found += [replace(seed, rank=rank) for rank, seed in enumerate(mine, start=1)]
    return tuple(found)
