"""Ranking the facts of a pair's subgraphs, of all methods, and keeping the best few."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from kgrag_assets.lake.lake import difference
from kgrag_assets.rows.keys import Part, key_of
from kgrag_assets.rows.pairs import PAIR_NAMES
from kgrag_assets.rows.ranked_contexts import RANKED_CONTEXTS
from kgrag_assets.rows.table import ROW_KEY
from kgrag_assets.settings import RankingSettings

RANKER_VERSION = "ranker-1"

# Scores are kept with this many decimals: they are part of a context's key, and the last bits of a cosine
# differ between machines.
SCORE_DECIMALS = 3
# Facts below this are counted, not shown: on real schemas and a general graph those that a person would call
# on-topic lie above it and chance neighbours ("both columns are of a claim, a claim is a concept") below.
SHOWN_FROM = 0.45
# Among equals: an entity that both name says more than a triple near both, and that more than a path.
_KIND_ORDER = {"shared_entity": 0, "triple": 1, "path": 2}


@dataclass(frozen=True)
class RankableFact:
    """A fact of a subgraph with what ranking looks at; ``row`` is the fact as stored."""

    method: str
    kind: str
    text: str
    score: float
    relations: tuple[str, ...]
    row: Mapping[str, Any]


@dataclass(frozen=True)
class RankedRows:
    """The contexts of a task, and how many were kept, made now, and dropped."""

    frame: pl.DataFrame
    kept: int
    computed: int
    removed: int


@dataclass(frozen=True)
class Ranking:
    """The best facts of a pair; whether any fact speaks for it, shown or not; how many distinct ones were ranked."""

    best: tuple[RankableFact, ...]
    spoke: bool
    considered: int


def rank_facts(facts: Sequence[RankableFact], top_n: int) -> Ranking:
    """Order the facts of one pair, of all methods, and keep the best.

    All scores are on one scale, "how near the fact lies to both attributes" in 0..1, so the methods are merged
    by score. A triple keeps its score (its cosines). A path's is weighed by its relations, after the path
    ranking of KG-RAG4SM (Ma et al., "Knowledge Graph-based Retrieval-Augmented Generation for Schema Matching",
    arXiv 2501.08686):
    a relation that stands in many of the paths found for this pair is what the two have to do with each other,
    and the sum over a path is divided by its length, so that long paths do not win by having more relations.
    Among equal scores a shared entity stands before a triple and a triple before a path. Facts whose texts differ
    in case, spaces, punctuation or direction of reading only count once, the best of them.

    Args:
        facts: the facts of one pair.
        top_n: how many are kept.

    Returns:
        The best facts with their final scores, of those that reach ``SHOWN_FROM``, and how many were ranked.
    """
    weighed = _weigh_paths(facts)
    weighed.sort(key=lambda fact: (-fact.score, _KIND_ORDER[fact.kind], fact.text))
    distinct: dict[tuple[str, ...], RankableFact] = {}
    for fact in weighed:
        distinct.setdefault(_reading(fact), fact)
    shown = [fact for fact in distinct.values() if fact.score >= SHOWN_FROM]
    return Ranking(tuple(shown[:top_n]), spoke=bool(shown), considered=len(distinct))


def _weigh_paths(facts: Sequence[RankableFact]) -> list[RankableFact]:
    paths = [fact for fact in facts if fact.kind == "path"]
    # In how many paths a relation stands, not how often: one long walk must not vote for itself.
    standing = Counter(relation for path in paths for relation in set(path.relations))
    weighed: list[RankableFact] = []
    for fact in facts:
        score = fact.score
        if fact.kind == "path" and fact.relations:
            frequency = sum(standing[relation] for relation in fact.relations) / (len(fact.relations) * len(paths))
            score *= 0.5 + 0.5 * frequency
        weighed.append(replace(fact, score=round(score, SCORE_DECIMALS)))
    return weighed


_WORD = re.compile(r"\w+")


def _reading(fact: RankableFact) -> tuple[str, ...]:
    """Return the words of a text in order; of a path or triple, its statements in any order."""
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


def rank_contexts(
    subgraphs: pl.DataFrame, candidates: pl.DataFrame, settings: RankingSettings, existing: pl.DataFrame
) -> RankedRows:
    """Rank the facts of every candidate pair; a pair without any has a row that says so.

    The key of a row hashes the facts that it shows, not the subgraphs they came from: when the graph changes
    and a pair's best facts do not, the pair's context, and every judgment of it, stands.

    Args:
        subgraphs: rows of ``retrieved_subgraphs`` of one task; those of other pairs are not looked at.
        candidates: rows of ``candidate_pairs``.
        settings: ``top_n`` is used.
        existing: rows of ``ranked_contexts`` as they are.
    """
    by_pair: dict[str, list[RankableFact]] = {}
    ordered = subgraphs.sort("pair_id", "method")
    for pair_id, method, facts in ordered.select("pair_id", "method", "facts").iter_rows():
        by_pair.setdefault(pair_id, []).extend(_rankable(method, facts))
    rows: list[dict[str, object]] = []
    for pair in candidates.select(PAIR_NAMES).iter_rows(named=True):
        ranking = rank_facts(by_pair.get(pair["pair_id"], ()), settings.top_n)
        rows.append(_row(pair, ranking, settings.top_n))
    wanted = RANKED_CONTEXTS.frame(rows)
    todo = difference(wanted, existing)
    return RankedRows(frame=wanted, kept=todo.kept.height, computed=todo.missing.height, removed=todo.removed)


def _rankable(method: str, facts: Iterable[Mapping[str, Any]]) -> list[RankableFact]:
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


def _row(pair: Mapping[str, Any], ranking: Ranking, top_n: int) -> dict[str, object]:
    facts = [
        {
            "fact_id": fact.row["fact_id"],
            "rank": rank,
            "method": fact.method,
            "kind": fact.kind,
            "text": fact.text,
            "score": fact.score,
            "nodes": fact.row["nodes"],
            "edges": fact.row["edges"],
        }
        for rank, fact in enumerate(ranking.best, start=1)
    ]
    content: Part = [[str(fact["fact_id"]), str(fact["text"]), float(fact["score"])] for fact in facts]
    return {
        **pair,
        # Also where facts speak for the pair and none is to be shown (top_n 0).
        "status": "context" if ranking.spoke else "no_subgraph",
        "facts": facts,
        "facts_considered": ranking.considered,
        ROW_KEY: key_of("context", RANKER_VERSION, pair["task"], pair["pair_id"], content, top_n, ranking.spoke),
    }
