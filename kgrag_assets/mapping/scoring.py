"""The score that ranks a source attribute's targets: the judge's word, weighed with the rest of the schema."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class JudgedPair:
    """What the mapping needs of a judged pair. ``judge_score`` and ``answer`` are None without a parsed answer."""

    pair_id: str
    source: str
    target: str
    source_table: str
    target_table: str
    judge: str
    judge_score: float | None
    answer: bool | None
    parse_status: str
    reason: str
    blocking_score: float


# A model was asked about the pair itself, so the rest of the schema only orders what it said. The offline judge
# saw nothing but the pair's own words: what the whole schema says weighs as much as that.
CORPUS_WEIGHT_MODEL = 0.2
CORPUS_WEIGHT_OFFLINE = 0.5
COHERENCE_SHARE = 0.4
# Pairs without an answer stand below every answered pair.
UNANSWERED_CEILING = 0.2


def table_coherence(pairs: Sequence[JudgedPair], base: Mapping[str, float]) -> dict[tuple[str, str], float]:
    """How well two tables fit as a whole: the mean, over the source table's columns, of the best pair between them.

    Divided by the best value that the source table reaches with any target table, so that each source table
    has a partner with 1.

    Args:
        pairs: all judged pairs.
        base: a score in 0..1 of each pair, by pair id.
    """
    columns: dict[str, set[str]] = {}
    best: dict[tuple[str, str], dict[str, float]] = {}
    for pair in pairs:
        columns.setdefault(pair.source_table, set()).add(pair.source)
        here = best.setdefault((pair.source_table, pair.target_table), {})
        here[pair.source] = max(here.get(pair.source, 0.0), base[pair.pair_id])
    means = {tables: sum(values.values()) / len(columns[tables[0]]) for tables, values in best.items()}
    tops: dict[str, float] = {}
    for (source_table, _target_table), value in means.items():
        tops[source_table] = max(tops.get(source_table, 0.0), value)
    return {tables: value / tops[tables[0]] if tops[tables[0]] > 0 else 0.0 for tables, value in means.items()}


def relative_blocking(pairs: Sequence[JudgedPair]) -> dict[str, float]:
    """Return the blocking score relative to the best of the pair's source and of its target, averaged, 0..1."""
    row: dict[str, float] = {}
    column: dict[str, float] = {}
    for pair in pairs:
        row[pair.source] = max(row.get(pair.source, 0.0), pair.blocking_score)
        column[pair.target] = max(column.get(pair.target, 0.0), pair.blocking_score)

    def share(value: float, best: float) -> float:
        return value / best if best > 0 else 0.0

    return {
        pair.pair_id: (share(pair.blocking_score, row[pair.source]) + share(pair.blocking_score, column[pair.target]))
        / 2
        for pair in pairs
    }


def final_scores(pairs: Sequence[JudgedPair]) -> tuple[dict[str, float], dict[tuple[str, str], float]]:
    """Score each pair in 0..1, and say how coherent each pair of tables is.

    The judge's score and the schema's (relative blocking score and coherence of the tables) are averaged. A
    model's answer stays on its side of 0.5 whatever the schema says. A pair without an answer is scored by the
    schema alone, below all others.

    Returns:
        scores by pair id, and coherence by (source table, target table).
    """
    relative = relative_blocking(pairs)
    base = {
        pair.pair_id: (relative[pair.pair_id] + pair.judge_score) / 2
        if pair.judge_score is not None
        else relative[pair.pair_id] / 2
        for pair in pairs
    }
    coherence = table_coherence(pairs, base)
    scores = {}
    for pair in pairs:
        fit = coherence[pair.source_table, pair.target_table]
        schema = (1.0 - COHERENCE_SHARE) * relative[pair.pair_id] + COHERENCE_SHARE * fit
        scores[pair.pair_id] = round(_combined(pair, schema), 6)
    return scores, coherence


def _combined(pair: JudgedPair, schema: float) -> float:
    if pair.judge_score is None:
        return UNANSWERED_CEILING * schema
    weight = CORPUS_WEIGHT_OFFLINE if pair.judge == "offline" else CORPUS_WEIGHT_MODEL
    score = (1.0 - weight) * pair.judge_score + weight * schema
    if pair.judge == "offline":
        return score
    if pair.answer:
        return max(score, 0.5)
    return min(score, 0.499999)
