"""What became of each true pair: found, or lost by blocking, by an unreadable answer, or by the decision."""

from __future__ import annotations

import polars as pl

from kgrag_assets.rows.llm_judgments import ANSWERED_STATUSES
from kgrag_assets.rows.match_metrics import MATCH_MISSES
from kgrag_assets.rows.pairs import PAIR_NAMES
from kgrag_assets.rows.table import with_row_key


def find_misses(
    mappings: pl.DataFrame, candidates: pl.DataFrame, judgments: pl.DataFrame, reference: pl.DataFrame
) -> pl.DataFrame:
    """Tell the outcome of each true pair.

    Args:
        mappings: rows of ``attribute_mappings`` of one task.
        candidates: rows of ``candidate_pairs``.
        judgments: rows of ``llm_judgments``.
        reference: rows of ``reference_correspondences``.

    Returns:
        rows of ``match_misses``, one a true pair.
    """
    proposed = mappings.filter(pl.col("decision") == "proposed")
    targets: dict[tuple[str, str], str] = {}
    for table, column, target_table, target_column in (
        proposed.sort("rank").select("source_table", "source_column", "target_table", "target_column").iter_rows()
    ):
        targets.setdefault((table, column), f"{target_table}.{target_column}")
    judged = {row["pair_id"]: row for row in mappings.filter(pl.col("pair_id").is_not_null()).iter_rows(named=True)}
    kept = set(candidates["pair_id"])
    answered = set(judgments.filter(pl.col("parse_status").is_in(ANSWERED_STATUSES))["pair_id"])
    rows = []
    for pair in reference.select(PAIR_NAMES).iter_rows(named=True):
        pair_id = pair["pair_id"]
        mapping = judged.get(pair_id)
        if pair_id not in kept:
            outcome = "blocking"
        elif pair_id not in answered:
            outcome = "unanswered"
        elif mapping is not None and mapping["decision"] == "proposed":
            outcome = "found"
        else:
            outcome = "not_proposed"
        instead = targets.get((pair["source_table"], pair["source_column"]))
        rows.append(
            {
                **pair,
                "outcome": outcome,
                "rank": mapping["rank"] if mapping is not None else None,
                "score": mapping["score"] if mapping is not None else None,
                "proposed_instead": None if outcome == "found" else instead,
            }
        )
    columns = {name: dtype for name, dtype in MATCH_MISSES.schema.items() if name != "row_key"}
    return with_row_key(pl.DataFrame(rows, schema=columns))
