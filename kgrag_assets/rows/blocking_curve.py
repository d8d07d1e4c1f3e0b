"""``blocking_curve``: how many true pairs each budget of blocking would keep."""

from __future__ import annotations

import polars as pl

from kgrag_assets.rows.pairs import ROW_KEY_COLUMN, TASK
from kgrag_assets.rows.table import Column, Table

BLOCKING_CURVE = Table(
    name="blocking_curve",
    description="Pair completeness of blocking at each budget, beside plain cosine; only where a reference exists.",
    columns=(
        TASK,
        Column("method", pl.String, "kgrag, or cosine: plain cosine of name and description, without groups."),
        Column("budget_share", pl.Float64, "Share of all pairs that may be judged, 0..1; a group counts once."),
        Column("pairs_judged", pl.Int64, "Pairs judged at this budget."),
        Column("true_pairs_kept", pl.Int64, "True pairs among those that the judged pairs cover."),
        Column("true_pairs", pl.Int64, "True pairs of the reference."),
        Column("pair_completeness", pl.Float64, "Share of the true pairs kept, 0..1."),
        Column("reduction_ratio", pl.Float64, "Share of all pairs that need not be judged, 0..1."),
        ROW_KEY_COLUMN,
    ),
    key=("task", "method", "budget_share"),
)
