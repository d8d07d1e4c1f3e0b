"""``kg_changes``: the latest known state of each entity that changed at the source since the graph was loaded."""

from __future__ import annotations

import polars as pl

from kgrag_assets.rows.keys import key_of
from kgrag_assets.rows.pairs import ROW_KEY_COLUMN
from kgrag_assets.rows.table import Column, Table

EDITED = "edited"
DELETED = "deleted"
REDIRECTED = "redirected"
ACTIONS = (EDITED, DELETED, REDIRECTED)

KG_CHANGES = Table(
    name="kg_changes",
    description="What became of entities since the graph was loaded; one row, the latest, for each of them.",
    columns=(
        Column("graph", pl.String, "The knowledge graph: its folder below input/knowledge_graphs."),
        Column("local_id", pl.String, "Id of the entity at the source, such as Q42."),
        Column("action", pl.String, "edited (also: created, restored), deleted or redirected (merged into another)."),
        Column("redirect_to", pl.String, "Id that a redirected entity leads to; empty otherwise.", nullable=True),
        Column("revision", pl.Int64, "Revision at the source that the row stands for; 0 where it is not known."),
        Column("changed_at", pl.String, "When it changed, ISO 8601 in UTC with seconds."),
        Column("document", pl.String, "The entity's JSON with sorted keys; empty text unless edited."),
        ROW_KEY_COLUMN,
    ),
    key=("graph", "local_id"),
    deltas=True,
)


def change_key_of(graph: str, local_id: str, action: str, redirect_to: str | None, revision: int) -> str:
    """Identify a state of an entity: the source never changes what a revision says, so its text is no part of it."""
    return key_of(graph, local_id, action, redirect_to, revision)


def with_newer_states(held: pl.DataFrame, newer: pl.DataFrame) -> pl.DataFrame:
    """Lay newer states over those at hand.

    Args:
        held: rows of ``KG_CHANGES``.
        newer: rows of ``KG_CHANGES`` that were staged later.

    Returns:
        One row per graph and entity, that of ``newer`` where both have one, sorted by graph and id.

    Raises:
        TableError: one of the frames is not of this table.
    """
    both = pl.concat([KG_CHANGES.conform(held), KG_CHANGES.conform(newer)])
    return both.unique(subset=list(KG_CHANGES.key), keep="last").sort(KG_CHANGES.key)
