"""``attribute_mappings``: the ranked list of each source attribute, what is proposed, and why."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence

import polars as pl

from kgrag_assets.blocking.groups import covered_pairs
from kgrag_assets.mapping.cardinality import propose
from kgrag_assets.mapping.scoring import ScoredPair, score_pairs
from kgrag_assets.rows.attribute_mappings import ATTRIBUTE_MAPPINGS
from kgrag_assets.rows.table import ROW_KEY, with_row_key
from kgrag_assets.settings import MappingSettings

MAPPING_VERSION = "mapping-2"

# Tables that do not fit lower a pair so much at most, in log odds for each unit of weight.
_MOST_FIT = 2.0

Row = dict[str, object]


def map_task(
    attributes: pl.DataFrame,
    groups: pl.DataFrame,
    candidate_pairs: pl.DataFrame,
    judgments: pl.DataFrame,
    contexts: pl.DataFrame,
    settings: MappingSettings,
) -> pl.DataFrame:
    """Turn the judgments of one task into one mapping.

    Args:
        attributes: rows of ``schema_attributes``.
        groups: rows of ``attribute_groups``: a judged pair stands for all pairs of its groups' members.
        candidate_pairs: rows of ``candidate_pairs``.
        judgments: rows of ``llm_judgments``; a pair without one counts as without an answer.
        contexts: rows of ``ranked_contexts``, for the facts' texts.
        settings: cardinality, min_score, and what the fit of the tables counts.

    Returns:
        Rows of ``attribute_mappings``: every pair that a judgment covers, ranked within its source attribute, and a
        row of no match for each source attribute for which nothing is proposed.
    """
    if attributes.is_empty():
        return ATTRIBUTE_MAPPINGS.empty()
    task = str(attributes["task"][0])
    sources = attributes.filter(pl.col("side") == "source").select("attribute_id", "table_name", "column_name")
    sides = groups.group_by("side").agg(pl.col("representative_id").n_unique())
    expected = max(1, min([count for _, count in sides.iter_rows()], default=1))
    pairs = _candidates(groups, candidate_pairs, judgments, contexts)
    scored = score_pairs(pairs, expected)
    coherence = table_coherence(scored, attributes)
    if settings.coherence:
        scored = score_pairs(pairs, expected, table_fits(coherence, settings.coherence))
    ranked: dict[str, list[ScoredPair]] = defaultdict(list)
    for pair in sorted(scored, key=lambda item: (not item.answered, -item.score, item.blocking_rank)):
        ranked[pair.source_id].append(pair)
    proposed = propose([pair for pairs in ranked.values() for pair in pairs], settings)
    taken = {pair.target_id: pair for pair in scored if pair.pair_id in proposed}
    rows: list[Row] = []
    for source_id, table, column in sources.iter_rows():
        pairs = ranked[source_id]
        for rank, pair in enumerate(pairs, start=1):
            rows.append(_pair_row(task, pair, rank, pairs, proposed, coherence))
        if not any(pair.pair_id in proposed for pair in pairs):
            rows.append(_no_match_row(task, (source_id, table, column), _why_nothing(pairs, taken, settings)))
    schema = {name: dtype for name, dtype in ATTRIBUTE_MAPPINGS.schema.items() if name != ROW_KEY}
    return ATTRIBUTE_MAPPINGS.conform(with_row_key(pl.DataFrame(rows, schema=schema)))


def table_coherence(pairs: Sequence[ScoredPair], attributes: pl.DataFrame) -> dict[tuple[str, str], float]:
    """Measure how well two tables fit: the mean of their columns' best scores in the other, both ways averaged.

    A column without a candidate in the other table counts 0.

    Args:
        pairs: scored pairs.
        attributes: rows of ``schema_attributes``, for the number of columns of each table.

    Returns:
        0..1 by source table and target table, for those that have a pair.
    """
    columns = {
        (side, table): count for side, table, count in attributes.group_by("side", "table_name").len().iter_rows()
    }
    best: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
    for pair in pairs:
        mine = best[pair.source_name[0], pair.target_name[0]]
        for attribute in (pair.source_id, pair.target_id):
            mine[attribute] = max(mine.get(attribute, 0.0), pair.score)
    source_ids = {pair.source_id for pair in pairs}
    coherence = {}
    for (source_table, target_table), scores in best.items():
        forward = sum(score for attribute, score in scores.items() if attribute in source_ids)
        backward = sum(score for attribute, score in scores.items() if attribute not in source_ids)
        fit = forward / columns["source", source_table] + backward / columns["target", target_table]
        coherence[source_table, target_table] = round(fit / 2.0, 6)
    return coherence


def table_fits(coherence: Mapping[tuple[str, str], float], weight: float) -> dict[tuple[str, str], float]:
    """Turn the coherence of tables into log odds: 0 for tables that fit each other best, below it for others.

    Each pair of tables is set against the best partner of the source table and against that of the target table; the
    mean of the two, in logarithms, counts. It tells the twelve ``person_id`` of a data model apart, which one judgment
    covers.

    Args:
        coherence: by source table and target table, 0..1.
        weight: what a factor of e counts.
    """
    best: dict[tuple[str, str], float] = defaultdict(float)
    for (source, target), fit in coherence.items():
        best["source", source] = max(best["source", source], fit)
        best["target", target] = max(best["target", target], fit)
    return {
        (source, target): weight
        * max(-_MOST_FIT, (_log_ratio(fit, best["source", source]) + _log_ratio(fit, best["target", target])) / 2.0)
        for (source, target), fit in coherence.items()
    }


def _log_ratio(fit: float, best: float) -> float:
    # A little is added to both: tables that hardly fit at all differ by noise.
    return math.log((fit + 0.05) / (best + 0.05))


def _candidates(
    groups: pl.DataFrame, candidate_pairs: pl.DataFrame, judgments: pl.DataFrame, contexts: pl.DataFrame
) -> list[ScoredPair]:
    judged = {row["pair_id"]: row for row in judgments.iter_rows(named=True)}
    facts = dict(contexts.select("pair_id", "facts").iter_rows())
    pairs = []
    ordered = candidate_pairs.sort("blocking_rank")
    ranks = {row[0]: row[1:] for row in ordered.select("pair_id", "blocking_score", "blocking_rank").iter_rows()}
    for row in covered_pairs(ordered, groups).iter_rows(named=True):
        judged_pair_id = row["judged_pair_id"]
        judgment = judged.get(judged_pair_id)
        blocking_score, blocking_rank = ranks[judged_pair_id]
        pairs.append(
            ScoredPair(
                pair_id=row["pair_id"],
                judged_pair_id=judged_pair_id,
                source_id=row["source_attribute_id"],
                target_id=row["target_attribute_id"],
                source_name=(row["source_table"], row["source_column"]),
                target_name=(row["target_table"], row["target_column"]),
                blocking_score=blocking_score,
                blocking_rank=blocking_rank,
                judge=judgment["judge"] if judgment else None,
                parse_status=judgment["parse_status"] if judgment else None,
                answer=judgment["answer"] if judgment else None,
                judge_score=judgment["score"] if judgment else None,
                judge_reason=" ".join(judgment["reason"].split()) if judgment else "",
                top_fact=_top_fact(facts.get(judged_pair_id) or [], judgment["cited_facts"] if judgment else []),
            )
        )
    return pairs


def _top_fact(facts: Sequence[Mapping[str, object]], cited: Sequence[str]) -> str:
    """Text of the first fact that the judge cites, else of the first shown; empty without facts."""
    texts = {str(fact["fact_id"]): str(fact["text"]) for fact in facts}
    return next((texts[fact_id] for fact_id in cited if fact_id in texts), next(iter(texts.values()), ""))


def _name(name: tuple[str, str]) -> str:
    return f"{name[0]}.{name[1]}"


def _pair_row(
    task: str,
    pair: ScoredPair,
    rank: int,
    pairs: Sequence[ScoredPair],
    proposed: set[str],
    coherence: Mapping[tuple[str, str], float],
) -> Row:
    chosen = pair.pair_id in proposed
    return {
        "task": task,
        "source_table": pair.source_name[0],
        "source_column": pair.source_name[1],
        "target_table": pair.target_name[0],
        "target_column": pair.target_name[1],
        "pair_id": pair.pair_id,
        "judged_pair_id": pair.judged_pair_id,
        "source_attribute_id": pair.source_id,
        "target_attribute_id": pair.target_id,
        "decision": "proposed" if chosen else "alternative",
        "score": pair.score,
        "rank": rank,
        "judge_score": pair.judge_score if pair.answered else None,
        "blocking_score": pair.blocking_score,
        "table_coherence": coherence[pair.source_name[0], pair.target_name[0]],
        "parse_status": pair.parse_status,
        "top_fact": pair.top_fact,
        "reason": _why(pair, rank, pairs, chosen=chosen),
    }


def _why(pair: ScoredPair, rank: int, pairs: Sequence[ScoredPair], *, chosen: bool) -> str:
    if not pair.answered:
        return f"The judge gave no readable answer ({pair.parse_status or 'not judged'}); placed by blocking alone."
    place = f"Rank {rank} of {len(pairs)}"
    if pair.refused:
        place += ", and the judge says no"
    elif not chosen and rank > 1:
        place += f", behind {_name(pairs[0].target_name)}"
    return f"{place}. {pair.judge_reason}".strip()


def _why_nothing(pairs: Sequence[ScoredPair], taken: Mapping[str, ScoredPair], settings: MappingSettings) -> str:
    if not pairs:
        return "Blocking kept no candidate."
    best = next((pair for pair in pairs if pair.answered), None)
    if best is None:
        return f"The judge gave no readable answer on any of the {len(pairs)} candidates."
    open_pairs = [pair for pair in pairs if pair.answered and not pair.refused]
    if not open_pairs:
        said = sum(pair.refused for pair in pairs)
        return f"The judge says no to all {said} candidates that it answered; the nearest is {_name(best.target_name)}."
    best = open_pairs[0]
    if best.score < settings.min_score:
        return (
            f"The best of {len(pairs)} candidates, {_name(best.target_name)}, has a score of {best.score:.2f}, "
            f"below {settings.min_score:.2f}."
        )
    rival = taken.get(best.target_id)
    to_whom = f" went to {_name(rival.source_name)}" if rival is not None else " is left to other attributes"
    return f"The best candidate, {_name(best.target_name)},{to_whom}: each target is used once."


def _no_match_row(task: str, source: tuple[str, str, str], reason: str) -> Row:
    empty = (
        "target_table",
        "target_column",
        "pair_id",
        "judged_pair_id",
        "target_attribute_id",
        "score",
        "rank",
        "judge_score",
        "blocking_score",
        "table_coherence",
        "parse_status",
    )
    return {
        "task": task,
        "source_table": source[1],
        "source_column": source[2],
        "source_attribute_id": source[0],
        "decision": "no_match",
        "top_fact": "",
        "reason": reason,
        **dict.fromkeys(empty),
    }
