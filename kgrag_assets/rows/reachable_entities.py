"""``reachable_entities``: the part of the graph that the attributes of some task lead to."""

from __future__ import annotations

import polars as pl

from kgrag_assets.rows.pairs import ROW_KEY_COLUMN
from kgrag_assets.rows.table import Column, Table

REACHABLE_ENTITIES = Table(
    name="reachable_entities",
    description="Entities that an attribute of some task is linked to, and their neighbours.",
    columns=(
        Column("entity_id", pl.String, "Entity id with its namespace."),
        Column("linked", pl.Boolean, "Whether an attribute is linked to it; else it is a neighbour of one that is."),
        ROW_KEY_COLUMN,
    ),
    key=("entity_id",),
)
