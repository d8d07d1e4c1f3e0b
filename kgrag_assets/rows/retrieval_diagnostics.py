"""``retrieval_diagnostics``: what each retrieval method brings, and how much of it is on topic."""

from __future__ import annotations

import polars as pl

from kgrag_assets.rows.pairs import ROW_KEY_COLUMN, TASK
from kgrag_assets.rows.table import Column, Table

RETRIEVAL_DIAGNOSTICS = Table(
    name="retrieval_diagnostics",
    description="Coverage, on-topic rate and, where entity links are known, recall@k of each retrieval method.",
    columns=(
        TASK,
        Column("method", pl.String, "The retrieval method; ranked for what the judge is shown after ranking."),
        Column("metric", pl.String, "coverage, on_topic_rate, hit@k and recall@k of its seeds, and so on."),
        Column("value", pl.Float64, "Its value; empty where it is not defined.", nullable=True),
        Column("ci_low", pl.Float64, "Lower end of the 95% bootstrap interval.", nullable=True),
        Column("ci_high", pl.Float64, "Upper end of the 95% bootstrap interval.", nullable=True),
        Column("n", pl.Int64, "How many units it is computed over."),
        Column("meaning", pl.String, "What the metric says, in a sentence."),
        ROW_KEY_COLUMN,
    ),
    key=("task", "method", "metric"),
)
