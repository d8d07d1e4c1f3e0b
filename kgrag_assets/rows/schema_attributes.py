"""``schema_attributes``: every column of a task's two schemas, one row each."""

from __future__ import annotations

import polars as pl

from kgrag_assets.rows.pairs import ROW_KEY_COLUMN, TASK
from kgrag_assets.rows.table import Column, Table

SIDES = ("source", "target")

TYPE_FAMILIES = (
    "integer",
    "decimal",
    "text",
    "date",
    "time",
    "timestamp",
    "boolean",
    "binary",
    "json",
    "unknown",
)

# What the values of a column are like, where values were profiled; rounded, so that a few new rows change nothing.
PROFILE = pl.Struct(
    {
        "uniqueness": pl.Float64,
        "shortest": pl.Int64,
        "mean_length": pl.Float64,
        "longest": pl.Int64,
        "minimum": pl.Float64,
        "quartile_1": pl.Float64,
        "median": pl.Float64,
        "quartile_3": pl.Float64,
        "maximum": pl.Float64,
        "first_year": pl.Int64,
        "last_year": pl.Int64,
        "patterns": pl.List(pl.Struct({"pattern": pl.String, "share": pl.Float64})),
    }
)

SCHEMA_ATTRIBUTES = Table(
    name="schema_attributes",
    description="The attributes (columns) of both schemas of a task, with what is known about each.",
    columns=(
        TASK,
        Column("attribute_id", pl.String, "The attribute: a hash of side, table and column."),
        Column("side", pl.String, "source or target."),
        Column("table_name", pl.String, "Name of the table, exactly as given."),
        Column("column_name", pl.String, "Name of the column, exactly as given."),
        Column("position", pl.Int32, "Place in the schema as read, from 0."),
        Column("data_type", pl.String, "Data type as given; empty where the input has none."),
        Column("type_family", pl.String, f"One of {', '.join(TYPE_FAMILIES)}."),
        Column("nullable", pl.Boolean, "Whether the column may be null; empty where unknown.", nullable=True),
        Column("is_primary_key", pl.Boolean, "Whether the column is (part of) the primary key.", nullable=True),
        Column("references_table", pl.String, "Table that a foreign key points to.", nullable=True),
        Column("references_column", pl.String, "Column that a foreign key points to.", nullable=True),
        Column("table_description", pl.String, "What the input says about the table; may be empty text."),
        Column("column_description", pl.String, "What the input says about the column; may be empty text."),
        Column("sample_values", pl.List(pl.String), "A few values as text, most frequent first; may be an empty list."),
        Column("distinct_count", pl.Int64, "Number of distinct values, where values were profiled.", nullable=True),
        Column("null_share", pl.Float64, "Share of nulls in 0..1, where values were profiled.", nullable=True),
        Column("profile", PROFILE, "Lengths, numbers, years, patterns of profiled values, rounded.", nullable=True),
        Column("origin", pl.String, "File (and sheet) or connection name that the attribute was read from."),
        ROW_KEY_COLUMN,
    ),
    key=("task", "side", "table_name", "column_name"),
)
