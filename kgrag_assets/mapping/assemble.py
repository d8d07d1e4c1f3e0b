"""``attribute_mappings``: the ranked list of each source attribute, what is proposed, and why."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import polars as pl

from kgrag_assets.mapping.cardinality import propose
from kgrag_assets.mapping.scoring import ScoredPair, score_pairs
from kgrag_assets.rows.attribute_mappings import ATTRIBUTE_MAPPINGS
from kgrag_assets.rows.table import ROW_KEY, with_row_key
from kgrag_assets.settings import MappingSettings

MAPPING_VERSION = "mapping-1"

Row = dict[str, object]


def map_task(
    attributes: pl.DataFrame,
    candidate_pairs: pl.DataFrame,
    judgments: pl.DataFrame,
    contexts: pl.DataFrame,
    settings: MappingSettings,
) -> pl.DataFrame:
    """Turn the judgments of one task into one mapping.

    Args:
        attributes: rows of ``schema_attributes``.
        candidate_pairs: rows of ``candidate_pairs``.
        judgments: rows of ``llm_judgments``; a pair without one counts as without an answer.
        contexts: rows of ``ranked_contexts``, for the facts' texts.
        settings: cardinality and min_score.

    Returns:
        Rows of ``attribute_mappings``: every candidate pair, ranked within its source attribute, and a row of
        no match for each source attribute for which nothing is proposed.
    """
    if attributes.is_empty():
        return ATTRIBUTE_MAPPINGS.empty()
    task = str(attributes["task"][0])
    sources = attributes.filter(pl.col("side") == "source").select("attribute_id", "table_name", "column_name")
    targets = attributes.filter(pl.col("side") == "target")
    expected = max(1, min(sources.height, targets.height))
    scored = score_pairs(_candidates(candidate_pairs, judgments, contexts), expected)
    ranked: dict[str, list[ScoredPair]] = defaultdict(list)
    for pair in sorted(scored, key=lambda item: (not item.answered, -item.score, item.blocking_rank)):
        ranked[pair.source_id].append(pair)
    proposed = propose([pair for pairs in ranked.values() for pair in pairs], settings)
    taken = {pair.target_id: pair for pair in scored if pair.pair_id in proposed}
    coherence = table_coherence(scored, attributes)
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


def _candidates(candidate_pairs: pl.DataFrame, judgments: pl.DataFrame, contexts: pl.DataFrame) -> list[ScoredPair]:
    judged = {row["pair_id"]: row for row in judgments.iter_rows(named=True)}
    facts = dict(contexts.select("pair_id", "facts").iter_rows())
    pairs = []
    for row in candidate_pairs.sort("blocking_rank").iter_rows(named=True):
        judgment = judged.get(row["pair_id"])
        pairs.append(
            ScoredPair(
                pair_id=row["pair_id"],
                source_id=row["source_attribute_id"],
                target_id=row["target_attribute_id"],
                source_name=(row["source_table"], row["source_column"]),
                target_name=(row["target_table"], row["target_column"]),
                blocking_score=row["blocking_score"],
                blocking_rank=row["blocking_rank"],
                judge=judgment["judge"] if judgment else None,
                parse_status=judgment["parse_status"] if judgment else None,
                answer=judgment["answer"] if judgment else None,
                judge_score=judgment["score"] if judgment else None,
                judge_reason=" ".join(judgment["reason"].split()) if judgment else "",
                top_fact=_top_fact(facts.get(row["pair_id"]) or [], judgment["cited_facts"] if judgment else []),
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
