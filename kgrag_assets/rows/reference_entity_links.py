"""``reference_entity_links``: which entities of a graph the attributes of a task speak of, by a person's word."""

from __future__ import annotations

import polars as pl

from kgrag_assets.rows.pairs import ROW_KEY_COLUMN, TASK
from kgrag_assets.rows.table import Column, Table

REFERENCE_ENTITY_LINKS = Table(
    name="reference_entity_links",
    description="Optional truth for retrieval: attributes with the entities that they speak of, checked by a person.",
    columns=(
        TASK,
        Column("side", pl.String, "source or target."),
        Column("attribute_id", pl.String, "The attribute."),
        Column("table_name", pl.String, "Its table, as given."),
        Column("column_name", pl.String, "Its column, as given."),
        Column("entity_id", pl.String, "The entity, with its graph: wd:Q42."),
        Column("label", pl.String, "The entity's label as the file gives it, for reading; may be empty text."),
        ROW_KEY_COLUMN,
    ),
    key=("task", "attribute_id", "entity_id"),
)
