"""``review_queue``: what a person should look at first, by what an answer is expected to gain."""

from __future__ import annotations

import polars as pl

from kgrag_assets.rows.pairs import ROW_KEY_COLUMN, TASK
from kgrag_assets.rows.table import Column, Table

REVIEW_QUEUE = Table(
    name="review_queue",
    description="Source attributes whose decision is worth a person's look, the most worthwhile first.",
    columns=(
        TASK,
        Column("place", pl.Int32, "Place in the list, from 1."),
        Column("source_table", pl.String, "Table of the source attribute, as given."),
        Column("source_column", pl.String, "Column of the source attribute, as given."),
        Column("source_attribute_id", pl.String, "Source attribute."),
        Column("attributes_settled", pl.Int32, "Attributes of its group that the same look settles."),
        Column("expected_gain", pl.Float64, "Correspondences that a look is expected to put right."),
        Column("question", pl.String, "What to decide, with the best targets and their scores."),
        Column("why", pl.String, "Why it is uncertain: close rivals, judges that differ, conflict with the evidence."),
        ROW_KEY_COLUMN,
    ),
    key=("task", "source_attribute_id"),
)
