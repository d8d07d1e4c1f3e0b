"""``candidate_pairs``: the pairs that blocking kept, with every signal that spoke for them."""

from __future__ import annotations

import polars as pl

from kgrag_assets.rows.pairs import PAIR_COLUMNS, ROW_KEY_COLUMN
from kgrag_assets.rows.table import Column, Table

CANDIDATE_PAIRS = Table(
    name="candidate_pairs",
    description="Pairs of attributes worth judging, within the task's budget; an attribute stands for its group.",
    columns=(
        *PAIR_COLUMNS,
        Column("source_attribute_id", pl.String, "Source attribute."),
        Column("target_attribute_id", pl.String, "Target attribute."),
        Column("pairs_covered", pl.Int32, "Pairs of attributes that it stands for: the product of its groups' sizes."),
        Column("vector_rank_source", pl.Int32, "Rank of the target among the source's targets, by cosine, from 1."),
        Column("vector_rank_target", pl.Int32, "Rank of the source among the target's sources, by cosine, from 1."),
        Column("lexical_rank_source", pl.Int32, "Rank of the target among the source's targets, by BM25, from 1."),
        Column("lexical_rank_target", pl.Int32, "Rank of the source among the target's sources, by BM25, from 1."),
        Column("cosine_full", pl.Float64, "Cosine of the two vectors of the full view, -1..1."),
        Column("cosine_name", pl.Float64, "Cosine of the two vectors of the name view, -1..1."),
        Column("bm25", pl.Float64, "BM25 of the two texts, symmetric, 0 or more."),
        Column("name_similarity", pl.Float64, "Similarity of the two names' expanded words, 0..1."),
        Column("type_affinity", pl.Float64, "How well the two data types go together, 0..1; 0.5 where unknown."),
        Column("table_similarity", pl.Float64, "Similarity of the two tables, 0..1."),
        Column("blocking_score", pl.Float64, "The fused score that blocking ranked by, 0..1."),
        Column("blocking_rank", pl.Int32, "Rank by blocking_score within the task, from 1."),
        ROW_KEY_COLUMN,
    ),
    key=("task", "pair_id"),
)
