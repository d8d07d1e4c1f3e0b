"""The columns that every table about a pair of attributes begins with."""

from __future__ import annotations

import polars as pl

from kgrag_assets.rows.table import ROW_KEY, Column

TASK = Column("task", pl.String, "The task: the name of its folder below input/tasks.")
ROW_KEY_COLUMN = Column(ROW_KEY, pl.String, "Hash of everything that decides this row; equal keys mean equal rows.")

PAIR_COLUMNS: tuple[Column, ...] = (
    TASK,
    Column("pair_id", pl.String, "The pair: a hash of its two attribute ids."),
    Column("source_table", pl.String, "Table of the source attribute, as given."),
    Column("source_column", pl.String, "Column of the source attribute, as given."),
    Column("target_table", pl.String, "Table of the target attribute, as given."),
    Column("target_column", pl.String, "Column of the target attribute, as given."),
)

PAIR_NAMES: tuple[str, ...] = tuple(column.name for column in PAIR_COLUMNS)
