"""``replay_report``: whether a task's answers and metrics come out the same from the kept calls alone."""

from __future__ import annotations

import polars as pl

from kgrag_assets.rows.pairs import ROW_KEY_COLUMN, TASK
from kgrag_assets.rows.table import Column, Table

REPLAY_REPORT = Table(
    name="replay_report",
    description="Each stage from judging on, computed again from llm_calls without a model, beside what is stored.",
    columns=(
        TASK,
        Column("stage", pl.String, "llm_judgments, attribute_mappings or match_metrics."),
        Column("stored", pl.Int64, "Rows that are stored."),
        Column("equal", pl.Int64, "Rows that came out the same."),
        Column("different", pl.Int64, "Rows that came out otherwise, or only on one side."),
        Column("first_difference", pl.String, "The first row that differs, in words; empty text without one."),
        ROW_KEY_COLUMN,
    ),
    key=("task", "stage"),
)
