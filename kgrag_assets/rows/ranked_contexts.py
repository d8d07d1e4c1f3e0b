"""``ranked_contexts``: the few facts about a pair that the judge will see."""

from __future__ import annotations

import polars as pl

from kgrag_assets.rows.pairs import PAIR_COLUMNS, ROW_KEY_COLUMN
from kgrag_assets.rows.retrieved_subgraphs import EDGE
from kgrag_assets.rows.table import Column, Table

# context: facts are there. no_subgraph: no method found a fact that speaks for the pair (weak ones are counted).
STATUSES = ("context", "no_subgraph")

RANKED_FACT = pl.Struct(
    {
        "fact_id": pl.String,
        "rank": pl.Int32,
        "method": pl.String,
        "kind": pl.String,
        "text": pl.String,
        "score": pl.Float64,
        "nodes": pl.List(pl.String),
        "edges": pl.List(EDGE),
    }
)

RANKED_CONTEXTS = Table(
    name="ranked_contexts",
    description="For each candidate pair, the best facts of its subgraphs, in order.",
    columns=(
        *PAIR_COLUMNS,
        Column("status", pl.String, f"One of {', '.join(STATUSES)}."),
        Column("facts", pl.List(RANKED_FACT), "The facts kept, best first; an empty list where there is none."),
        Column("facts_considered", pl.Int32, "How many distinct facts were ranked."),
        Column("ranking", pl.String, "The method of ranking: frequency, cosine, cross_encoder or none."),
        Column("ranked_from", pl.String, "Hash of what was ranked and how; not in row_key, since it shows no fact."),
        ROW_KEY_COLUMN,
    ),
    key=("task", "pair_id"),
)
