"""``match_metrics`` and ``match_misses``: how good a mapping is, and what became of each true pair."""

from __future__ import annotations

import polars as pl

from kgrag_assets.rows.pairs import PAIR_COLUMNS, ROW_KEY_COLUMN, TASK
from kgrag_assets.rows.table import Column, Table

MATCH_METRICS = Table(
    name="match_metrics",
    description="Metrics of a task's mapping against its reference, one row each.",
    columns=(
        TASK,
        Column("metric", pl.String, "Name of the metric."),
        Column("value", pl.Float64, "Its value; empty where it is not defined (no row to count).", nullable=True),
        Column("ci_low", pl.Float64, "Lower end of the 95% bootstrap interval.", nullable=True),
        Column("ci_high", pl.Float64, "Upper end of the 95% bootstrap interval.", nullable=True),
        Column("n", pl.Int64, "How many units (source attributes or pairs) it is computed over."),
        Column("meaning", pl.String, "What the metric says, in a sentence."),
        ROW_KEY_COLUMN,
    ),
    key=("task", "metric"),
)

# found: proposed. not_proposed: judged, ranked, and another (or none) was proposed.
# unanswered: the judge's answer could not be read. blocking: never became a candidate.
OUTCOMES = ("found", "not_proposed", "unanswered", "blocking")

MATCH_MISSES = Table(
    name="match_misses",
    description="Every true pair of the reference and the stage at which it was found or lost.",
    columns=(
        *PAIR_COLUMNS,
        Column("outcome", pl.String, f"One of {', '.join(OUTCOMES)}."),
        Column(
            "rank", pl.Int32, "Rank in its source attribute's list; empty where it was never judged.", nullable=True
        ),
        Column("score", pl.Float64, "Its score; empty where it was never judged.", nullable=True),
        Column("proposed_instead", pl.String, "Target that was proposed instead, as table.column.", nullable=True),
        Column("reason", pl.String, "Why the pair was lost, as far as the signals say; empty text where it was found."),
        ROW_KEY_COLUMN,
    ),
    key=("task", "pair_id"),
)
