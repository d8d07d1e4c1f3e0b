"""Ranking the facts of a pair's subgraphs, of all methods, and keeping the best few."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from kgrag_assets.lake.lake import difference
from kgrag_assets.ranking.facts import RankableFact, likeness, rankable, reading, words_of
from kgrag_assets.ranking.scorers import FactScorer, PairFacts
from kgrag_assets.rows.keys import Part, key_of
from kgrag_assets.rows.pairs import PAIR_NAMES
from kgrag_assets.rows.ranked_contexts import RANKED_CONTEXTS
from kgrag_assets.rows.table import ROW_KEY
from kgrag_assets.schemas.attribute import attributes_of
from kgrag_assets.settings import RankingSettings

RANKER_VERSION = "ranker-2"

# Among equals: an entity that both name says more than a triple near both, and that more than a path.
_KIND_ORDER = {"shared_entity": 0, "triple": 1, "path": 2}
FUSED = "fusion"


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


def rank_facts(scored: Sequence[RankableFact], settings: RankingSettings, *, ordered: bool = True) -> Ranking:
    """Order the facts of one pair, of all methods, and keep the best.

    All scores are on one scale, so the methods are merged by score; among equal scores a shared entity stands before a
    triple and a triple before a path. Facts of equal reading count once, the best of them, and so do near-duplicates:
    facts that share ``near_duplicate`` of their words (Jaccard index) with one that is kept.

    Args:
        scored: the facts of one pair with the scores that decide.
        settings: ``top_n``, ``min_score``, ``near_duplicate``.
        ordered: False keeps the order given and leaves out nothing for its score.

    Returns:
        The best facts, and how many distinct ones were ranked.
    """
    facts = list(scored)
    if ordered:
        facts.sort(key=lambda fact: (-fact.score, _KIND_ORDER[fact.kind], fact.text))
    distinct: dict[tuple[str, ...], RankableFact] = {}
    for fact in facts:
        distinct.setdefault(reading(fact), fact)
    speaking = [fact for fact in distinct.values() if not ordered or fact.score >= settings.min_score]
    best: list[RankableFact] = []
    words: list[frozenset[str]] = []
    for fact in speaking:
        if len(best) >= settings.top_n:
            break
        mine = words_of(fact)
        if all(likeness(mine, other) < settings.near_duplicate for other in words):
            best.append(fact)
            words.append(mine)
    return Ranking(tuple(best), spoke=bool(speaking), considered=len(distinct))


def rank_contexts(
    attributes: pl.DataFrame,
    subgraphs: pl.DataFrame,
    candidates: pl.DataFrame,
    settings: RankingSettings,
    scorer: FactScorer,
    existing: pl.DataFrame,
) -> RankedRows:
    """Rank the facts of every candidate pair; a pair without any has a row that says so.

    The key of a row hashes the facts that it shows, not the subgraphs they came from: when the graph changes
    and a pair's best facts do not, the pair's context, and every judgment of it, stands. Pairs whose subgraphs are
    those that were ranked before, in the same way, are not scored again.

    Args:
        attributes: rows of ``schema_attributes`` of one task.
        subgraphs: rows of ``retrieved_subgraphs``; those of other pairs are not looked at. Of a pair that has a fused
            one, only that is.
        candidates: rows of ``candidate_pairs``.
        settings: how many facts, and which.
        scorer: the method that gives facts their scores.
        existing: rows of ``ranked_contexts`` as they are.

    Raises:
        ModelUnavailableError: the scorer's model cannot be used.
    """
    found = _by_pair(subgraphs)
    by_id = attributes_of(attributes)
    known = {row["ranked_from"]: row for row in existing.iter_rows(named=True)}
    way = key_of(RANKER_VERSION, scorer.version, settings.method, settings.top_n, settings.min_score)
    way = key_of(way, settings.near_duplicate)
    rows: list[dict[str, object] | None] = []
    todo: list[tuple[int, Mapping[str, Any], str, PairFacts]] = []
    columns = [*PAIR_NAMES, "source_attribute_id", "target_attribute_id"]
    for row in candidates.select(columns).iter_rows(named=True):
        keys, facts = found.get(row["pair_id"], ([], []))
        source, target = by_id[row.pop("source_attribute_id")], by_id[row.pop("target_attribute_id")]
        texts = [source.column_name, source.column_description, target.column_name, target.column_description]
        # The task and the pair are in it: a row is found again by this alone.
        ranked_from = key_of("ranked", way, row["task"], row["pair_id"], list(keys), texts)
        rows.append(known.get(ranked_from))
        if rows[-1] is None:
            todo.append((len(rows) - 1, row, ranked_from, PairFacts(source, target, tuple(facts))))
    for (place, pair, ranked_from, _), scored in zip(todo, scorer.scored([entry[3] for entry in todo]), strict=True):
        ranking = rank_facts(scored, settings, ordered=scorer.ordered)
        rows[place] = _row(pair, ranking, settings, ranked_from)
    wanted = RANKED_CONTEXTS.frame([row for row in rows if row is not None])
    diff = difference(wanted, existing)
    return RankedRows(frame=wanted, kept=diff.kept.height, computed=diff.missing.height, removed=diff.removed)


def _by_pair(subgraphs: pl.DataFrame) -> dict[str, tuple[list[str], list[RankableFact]]]:
    fused = subgraphs.filter(pl.col("method") == FUSED)
    if fused.height:
        subgraphs = pl.concat([fused, subgraphs.join(fused.select("pair_id"), on="pair_id", how="anti")])
    found: dict[str, tuple[list[str], list[RankableFact]]] = {}
    ordered = subgraphs.sort("pair_id", "method").select("pair_id", "method", "facts", ROW_KEY)
    for pair_id, method, facts, key in ordered.iter_rows():
        keys, mine = found.setdefault(pair_id, ([], []))
        keys.append(key)
        mine.extend(rankable(method, facts))
    return found


def _row(pair: Mapping[str, Any], ranking: Ranking, settings: RankingSettings, ranked_from: str) -> dict[str, object]:
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
        "ranking": settings.method,
        "ranked_from": ranked_from,
        ROW_KEY: key_of(
            "context", settings.method, pair["task"], pair["pair_id"], content, settings.top_n, ranking.spoke
        ),
    }
