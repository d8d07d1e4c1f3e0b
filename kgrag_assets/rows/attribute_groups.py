"""``attribute_groups``: which attributes of one side mean the same, and are therefore blocked and judged once."""

from __future__ import annotations

import polars as pl

from kgrag_assets.rows.pairs import ROW_KEY_COLUMN, TASK
from kgrag_assets.rows.table import Column, Table

ATTRIBUTE_GROUPS = Table(
    name="attribute_groups",
    description="Each attribute with its group: those of its side that mean the same. Most groups have one member.",
    columns=(
        TASK,
        Column("side", pl.String, "source or target."),
        Column("attribute_id", pl.String, "The attribute."),
        Column("table_name", pl.String, "Its table, as given."),
        Column("column_name", pl.String, "Its column, as given."),
        Column("representative_id", pl.String, "The member that is blocked and judged for all; itself, mostly."),
        Column("group_size", pl.Int32, "Members of the group, itself included."),
        Column("reason", pl.String, "Why it is in the group; empty text for a group of one."),
        ROW_KEY_COLUMN,
    ),
    key=("task", "attribute_id"),
)
