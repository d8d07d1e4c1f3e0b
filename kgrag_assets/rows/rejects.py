"""``rejected_rows``: what was read and not taken, each with its place and reason."""

from __future__ import annotations

import dataclasses

import polars as pl

from kgrag_assets.rows.pairs import ROW_KEY_COLUMN
from kgrag_assets.rows.table import Column, Table

_REJECT_COLUMNS = (
    Column("file", pl.String, "File (and sheet) or endpoint the row came from."),
    Column("row", pl.Int64, "Line or row number from 1, as an editor counts; empty for a whole file.", nullable=True),
    Column("reason", pl.String, "Why it was not taken, and what to do."),
    Column("content", pl.String, "The row as text, cut to 500 characters."),
    ROW_KEY_COLUMN,
)

SCHEMA_REJECTS = Table(
    name="schema_rejects",
    description="Rows of a task's schema and reference files that were not taken.",
    columns=(Column("task", pl.String, "The task."), *_REJECT_COLUMNS),
)

KG_REJECTS = Table(
    name="kg_rejects",
    description="Lines of a knowledge graph's files that were not taken.",
    columns=(
        Column("graph", pl.String, "The knowledge graph: its folder below input/knowledge_graphs."),
        *_REJECT_COLUMNS,
    ),
)

KG_CHANGE_REJECTS = dataclasses.replace(
    KG_REJECTS,
    name="kg_change_rejects",
    description="Changed entities that the graph's source could not give in a form that can be used.",
)
