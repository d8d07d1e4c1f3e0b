"""From the stages' tables to the rows of ``attribute_mappings``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from kgrag_assets.mapping.choosing import propose
from kgrag_assets.mapping.scoring import JudgedPair, final_scores
from kgrag_assets.rows.attribute_mappings import ATTRIBUTE_MAPPINGS
from kgrag_assets.rows.table import with_row_key
from kgrag_assets.schemas.attribute import Attribute, attributes_of
from kgrag_assets.settings import MappingSettings

MAPPING_VERSION = "mapping-1"


def map_task(
    attributes: pl.DataFrame,
    candidates: pl.DataFrame,
    judgments: pl.DataFrame,
    contexts: pl.DataFrame,
    settings: MappingSettings,
) -> pl.DataFrame:
    """Rank the judged targets of each source attribute and decide on each.

    Args:
        attributes: rows of ``schema_attributes`` of one task.
        candidates: rows of ``candidate_pairs``.
        judgments: rows of ``llm_judgments``; a pair without a parsed answer stays, at the end of its list.
        contexts: rows of ``ranked_contexts``, for the one fact that is shown.
        settings: cardinality and threshold.

    Returns:
        rows of ``attribute_mappings``: every judged pair, and a ``no_match`` row for each source attribute
        for which nothing is proposed.
    """
    by_id = attributes_of(attributes)
    pairs = _pairs(candidates, judgments)
    scores, coherence = final_scores(pairs)
    proposed = propose(pairs, scores, settings.cardinality, settings.min_score)
    facts = _top_facts(judgments, contexts)
    lists: dict[str, list[JudgedPair]] = {}
    for pair in sorted(pairs, key=lambda pair: (-scores[pair.pair_id], -pair.blocking_score, pair.pair_id)):
        lists.setdefault(pair.source, []).append(pair)
    task = str(attributes["task"][0]) if attributes.height else ""
    rows: list[dict[str, Any]] = []
    for source in (item for item in by_id.values() if item.side == "source"):
        mine = lists.get(source.attribute_id, [])
        chosen = [pair for pair in mine if pair.pair_id in proposed]
        for rank, pair in enumerate(mine, start=1):
            rows.append(
                {
                    **_names(task, source, by_id[pair.target]),
                    "pair_id": pair.pair_id,
                    "decision": "proposed" if pair.pair_id in proposed else "alternative",
                    "score": scores[pair.pair_id],
                    "rank": rank,
                    "judge_score": pair.judge_score,
                    "blocking_score": pair.blocking_score,
                    "table_coherence": round(coherence[pair.source_table, pair.target_table], 6),
                    "parse_status": pair.parse_status,
                    "top_fact": facts.get(pair.pair_id, ""),
                    "reason": _reason(pair, chosen, scores, settings),
                }
            )
        if not chosen:
            rows.append({**_names(task, source, None), **_no_match(mine, scores, by_id, settings)})
    columns = {name: dtype for name, dtype in ATTRIBUTE_MAPPINGS.schema.items() if name != "row_key"}
    return with_row_key(pl.DataFrame(rows, schema=columns))


def _pairs(candidates: pl.DataFrame, judgments: pl.DataFrame) -> list[JudgedPair]:
    joined = candidates.join(
        judgments.select("pair_id", "judge", "score", "answer", "parse_status", "reason"), on="pair_id", how="inner"
    )
    return [
        JudgedPair(
            pair_id=row["pair_id"],
            source=row["source_attribute_id"],
            target=row["target_attribute_id"],
            source_table=row["source_table"],
            target_table=row["target_table"],
            judge=row["judge"],
            judge_score=row["score"],
            answer=row["answer"],
            parse_status=row["parse_status"],
            reason=row["reason"],
            blocking_score=row["blocking_score"],
        )
        for row in joined.iter_rows(named=True)
    ]


def _top_facts(judgments: pl.DataFrame, contexts: pl.DataFrame) -> dict[str, str]:
    """Find the fact that the judge cited first, or else the context's first, by pair."""
    cited = dict(judgments.select("pair_id", "cited_facts").iter_rows())
    found = {}
    for pair_id, facts in contexts.select("pair_id", "facts").iter_rows():
        texts = {fact["fact_id"]: fact["text"] for fact in facts}
        wanted = [fact_id for fact_id in cited.get(pair_id) or [] if fact_id in texts]
        if texts:
            found[pair_id] = texts[wanted[0]] if wanted else next(iter(texts.values()))
    return found


def _names(task: str, source: Attribute, target: Attribute | None) -> dict[str, Any]:
    return {
        "task": task,
        "source_table": source.table_name,
        "source_column": source.column_name,
        "target_table": target.table_name if target is not None else None,
        "target_column": target.column_name if target is not None else None,
        "source_attribute_id": source.attribute_id,
        "target_attribute_id": target.attribute_id if target is not None else None,
    }


def _reason(
    pair: JudgedPair, chosen: Sequence[JudgedPair], scores: Mapping[str, float], settings: MappingSettings
) -> str:
    if pair in chosen:
        return pair.reason
    if pair.judge_score is None:
        return f"the judge gave no answer that can be read ({pair.parse_status})"
    if pair.judge != "offline" and pair.answer is False:
        return f"the judge says no: {pair.reason}" if pair.reason else "the judge says no"
    if scores[pair.pair_id] < settings.min_score:
        return f"score below {settings.min_score:g}; {pair.reason}"
    if chosen:
        return f"another target was chosen; {pair.reason}"
    return f"its target was given to another column; {pair.reason}"


def _no_match(
    mine: Sequence[JudgedPair],
    scores: Mapping[str, float],
    by_id: Mapping[str, Attribute],
    settings: MappingSettings,
) -> dict[str, Any]:
    if not mine:
        reason = "no pair of it was judged"
    else:
        best = mine[0]
        target = by_id[best.target]
        reason = f"best was {target.table_name}.{target.column_name} with {scores[best.pair_id]:.2f}: " + (
            f"below {settings.min_score:g}"
            if scores[best.pair_id] < settings.min_score
            else _reason(best, [], scores, settings)
        )
    empty = ("pair_id", "score", "rank", "judge_score", "blocking_score", "table_coherence", "parse_status")
    return {**dict.fromkeys(empty), "decision": "no_match", "top_fact": "", "reason": reason}
