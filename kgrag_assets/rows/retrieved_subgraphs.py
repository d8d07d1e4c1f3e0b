"""``retrieved_subgraphs``: what a retrieval method found in the graph for a pair, or that it found nothing."""

from __future__ import annotations

import polars as pl

from kgrag_assets.rows.pairs import PAIR_COLUMNS, ROW_KEY_COLUMN
from kgrag_assets.rows.table import Column, Table

# fusion: the facts of all other methods in one list by reciprocal rank.
METHODS = ("vector_triples", "entity_paths", "search_code", "fusion")

# found: facts are there. no_seed: no entity or triple was near enough to either attribute.
# no_path: there were seeds, but no fact in reach. cut: found, and the search ended at its budget.
# no_answer: a language model was asked and gave nothing that could be used.
STATUSES = ("found", "no_seed", "no_path", "cut", "no_answer")

EDGE = pl.Struct(
    {
        "head": pl.String,
        "relation": pl.String,
        "tail": pl.String,
        "head_label": pl.String,
        "relation_label": pl.String,
        "tail_label": pl.String,
    }
)

# A fact's kind is triple, path or shared_entity; the last has one node and no edge. An edge stands as the graph states
# it, head -> relation -> tail, also where a path walks it backwards; ``nodes`` gives the order of the walk.
FACT = pl.Struct(
    {
        "fact_id": pl.String,
        "kind": pl.String,
        "text": pl.String,
        "score": pl.Float64,
        "nodes": pl.List(pl.String),
        "edges": pl.List(EDGE),
    }
)

SEED = pl.Struct(
    {
        "entity_id": pl.String,
        "label": pl.String,
        "side": pl.String,
        "rank": pl.Int32,
        "score": pl.Float64,
    }
)

RETRIEVED_SUBGRAPHS = Table(
    name="retrieved_subgraphs",
    description="For each candidate pair and retrieval method, the facts that were found, or why there are none.",
    columns=(
        *PAIR_COLUMNS,
        Column("method", pl.String, f"One of {', '.join(METHODS)}."),
        Column("status", pl.String, f"One of {', '.join(STATUSES)}."),
        Column("seeds", pl.List(SEED), "Entities that the attributes were linked to; may be an empty list."),
        Column("facts", pl.List(FACT), "Facts found, best first; may be an empty list."),
        Column("facts_cut", pl.Int32, "Facts that the cap on hubs or the budget left out, as far as counted."),
        Column(
            "unverified", pl.List(pl.String), "What a model said that the graph does not know; never shown as fact."
        ),
        Column("notes", pl.String, "What else is to be said: an error of a search program, how deep was searched."),
        Column("request_hashes", pl.List(pl.String), "The calls in llm_calls that took part; an empty list for none."),
        ROW_KEY_COLUMN,
    ),
    key=("task", "pair_id", "method"),
)
