"""``ablation_report``: what each part of the method is worth on a task, one row for each combination of parts."""

from __future__ import annotations

import polars as pl

from kgrag_assets.rows.pairs import ROW_KEY_COLUMN, TASK
from kgrag_assets.rows.table import Column, Table

# matrix: a combination of parts. depth, top_k, threshold: one value varied, the rest as the task has it.
STUDIES = ("matrix", "depth", "top_k", "threshold")

# Metrics that a cell carries with their intervals; the others of match_metrics stay out.
CELL_METRICS = ("hit@1", "hit@3", "hit@5", "mrr", "average_precision", "best_f1", "precision", "recall", "f1")

METRIC = pl.Struct({"metric": pl.String, "value": pl.Float64, "ci_low": pl.Float64, "ci_high": pl.Float64})

ABLATION_REPORT = Table(
    name="ablation_report",
    description="The task judged and mapped with each combination of parts, with metrics, tokens, cost and latency.",
    columns=(
        TASK,
        Column("cell", pl.String, "Name of the cell: its parts, joined."),
        Column("study", pl.String, f"One of {', '.join(STUDIES)}."),
        Column("query_form", pl.String, "concept or question; empty text without retrieval."),
        Column("retrieval", pl.String, "The methods, or none."),
        Column("ranking", pl.String, "The method of ranking; empty text without retrieval."),
        Column("top_n", pl.Int32, "Facts that the judge is shown at most; 0 without retrieval."),
        Column("max_hops", pl.Int32, "Depth of the path search."),
        Column("top_k", pl.Int32, "Seeds for each attribute."),
        Column("gate", pl.Boolean, "Whether irrelevant facts are kept from deciding; false for the offline judge."),
        Column("gate_threshold", pl.Int32, "Relevance from which facts decide; 0 without a gate."),
        Column("judge", pl.String, "offline, openai or ollama."),
        Column("model", pl.String, "Model of the judge; for offline, its version."),
        Column("pairs_judged", pl.Int64, "Pairs judged."),
        Column("pairs_with_facts", pl.Int64, "Of these, pairs that had a fact to show."),
        Column("metrics", pl.List(METRIC), f"{', '.join(CELL_METRICS)}, each with its 95% bootstrap interval."),
        Column("calls", pl.Int64, "Calls to a language model, kept ones included."),
        Column("tokens_in", pl.Int64, "Prompt tokens of these calls."),
        Column("tokens_out", pl.Int64, "Answer tokens of these calls."),
        Column("cost_usd", pl.Float64, "Cost of these calls; empty where no price is known.", nullable=True),
        Column("latency_s", pl.Float64, "Mean latency of these calls; empty without any.", nullable=True),
        ROW_KEY_COLUMN,
    ),
    key=("task", "study", "cell"),
)
