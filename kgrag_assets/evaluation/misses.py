"""``match_misses``: what became of each true pair, and what was proposed in its place."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import polars as pl

from kgrag_assets.rows.llm_judgments import ANSWERED_STATUSES
from kgrag_assets.rows.match_metrics import MATCH_MISSES
from kgrag_assets.rows.pairs import PAIR_NAMES
from kgrag_assets.rows.table import ROW_KEY, with_row_key


def find_misses(
    mappings: pl.DataFrame, reference: pl.DataFrame, reasons: Mapping[str, str] | None = None
) -> pl.DataFrame:
    """Follow each true pair to the stage at which it was found or lost.

    Args:
        mappings: rows of ``attribute_mappings``: every pair that a judgment covers is one of them.
        reference: rows of ``reference_correspondences``.
        reasons: by ``pair_id``, why blocking may lose a pair.

    Returns:
        Rows of ``match_misses``, one per true pair; none where the reference is empty.
    """
    if reference.is_empty():
        return MATCH_MISSES.empty()
    ranked = {row["pair_id"]: row for row in mappings.filter(pl.col("pair_id").is_not_null()).iter_rows(named=True)}
    chosen: dict[tuple[str, str], list[str]] = defaultdict(list)
    proposals = mappings.filter(pl.col("decision") == "proposed").sort("rank")
    for row in proposals.iter_rows(named=True):
        chosen[row["source_table"], row["source_column"]].append(f"{row['target_table']}.{row['target_column']}")
    rows = []
    for true in reference.select(PAIR_NAMES).iter_rows(named=True):
        pair_id = true["pair_id"]
        place = ranked.get(pair_id)
        if place is not None and place["decision"] == "proposed":
            outcome = "found"
        elif place is None:
            outcome = "blocking"
        elif place["parse_status"] not in ANSWERED_STATUSES:
            outcome = "unanswered"
        else:
            outcome = "not_proposed"
        instead = chosen[true["source_table"], true["source_column"]] if outcome != "found" else []
        rows.append(
            {
                **true,
                "outcome": outcome,
                "rank": None if place is None else place["rank"],
                "score": None if place is None else place["score"],
                "proposed_instead": ", ".join(instead) or None,
                "reason": _reason(outcome, place, (reasons or {}).get(pair_id, "")),
            }
        )
    schema = {name: dtype for name, dtype in MATCH_MISSES.schema.items() if name != ROW_KEY}
    return MATCH_MISSES.conform(with_row_key(pl.DataFrame(rows, schema=schema)))


def _reason(outcome: str, place: Mapping[str, Any] | None, lost: str) -> str:
    if outcome == "found":
        return ""
    if place is None:
        return lost or "blocking kept no pair that covers it"
    return str(place["reason"])
