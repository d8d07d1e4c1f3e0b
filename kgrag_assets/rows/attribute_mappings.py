"""``attribute_mappings``: every judged pair, ranked, and what is proposed for each source attribute."""

from __future__ import annotations

import polars as pl

from kgrag_assets.rows.pairs import ROW_KEY_COLUMN, TASK
from kgrag_assets.rows.table import Column, Table

# proposed: in the mapping. alternative: judged, not chosen. no_match: the explicit row of a source
# attribute for which nothing is proposed; it has no target.
DECISIONS = ("proposed", "alternative", "no_match")

ATTRIBUTE_MAPPINGS = Table(
    name="attribute_mappings",
    description="The mapping: per source attribute a ranked list of judged targets and the decision on each.",
    columns=(
        TASK,
        Column("source_table", pl.String, "Table of the source attribute."),
        Column("source_column", pl.String, "Column of the source attribute."),
        Column("target_table", pl.String, "Table of the target attribute; empty in a no_match row.", nullable=True),
        Column("target_column", pl.String, "Column of the target attribute; empty in a no_match row.", nullable=True),
        Column("pair_id", pl.String, "The pair; empty in a no_match row.", nullable=True),
        Column(
            "judged_pair_id",
            pl.String,
            "The pair of group representatives that was judged for it, in candidate_pairs; often pair_id itself.",
            nullable=True,
        ),
        Column("source_attribute_id", pl.String, "Source attribute."),
        Column("target_attribute_id", pl.String, "Target attribute; empty in a no_match row.", nullable=True),
        Column("decision", pl.String, f"One of {', '.join(DECISIONS)}."),
        Column("score", pl.Float64, "Score that the list is ranked by, 0..1; empty in a no_match row.", nullable=True),
        Column("rank", pl.Int32, "Rank within the source attribute, from 1; empty in a no_match row.", nullable=True),
        Column("judge_score", pl.Float64, "The judge's score; empty without a parsed answer.", nullable=True),
        Column("blocking_score", pl.Float64, "The blocking score; empty in a no_match row.", nullable=True),
        Column("table_coherence", pl.Float64, "How well the two tables fit as a whole, 0..1.", nullable=True),
        Column("parse_status", pl.String, "How the judge's answer was read; empty in a no_match row.", nullable=True),
        Column("top_fact", pl.String, "The one fact that spoke for the pair; empty text without one."),
        Column("reason", pl.String, "Why this decision, in a sentence."),
        ROW_KEY_COLUMN,
    ),
    key=("task", "source_attribute_id", "target_attribute_id"),
)
