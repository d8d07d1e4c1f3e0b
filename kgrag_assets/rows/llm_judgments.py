"""``llm_judgments``: what a judge said about each candidate pair."""

from __future__ import annotations

import polars as pl

from kgrag_assets.rows.pairs import PAIR_COLUMNS, ROW_KEY_COLUMN
from kgrag_assets.rows.table import Column, Table

# parsed: the answer fits the schema. recovered: an answer was found in text around it, without doubt.
# ambiguous: several answers that disagree. unparsed: no answer in the text. empty: nothing was written.
# truncated: cut for length before an answer. refused, timeout, rate_limited, error: no answer was given.
PARSE_STATUSES = (
    "parsed",
    "recovered",
    "ambiguous",
    "unparsed",
    "empty",
    "truncated",
    "refused",
    "timeout",
    "rate_limited",
    "error",
)

ANSWERED_STATUSES = ("parsed", "recovered")

# The call itself failed: asking again may bring an answer. Of the others the answer is in the ledger and stays.
FAILED_STATUSES = ("timeout", "rate_limited", "error")

LLM_JUDGMENTS = Table(
    name="llm_judgments",
    description="The judgment of each candidate pair, with the evidence it cites and what it cost.",
    columns=(
        *PAIR_COLUMNS,
        Column("judge", pl.String, "offline, openai or ollama."),
        Column("model", pl.String, "Model of the judge; for offline, its version."),
        Column("prompt_version", pl.String, "Version of the prompt template; for offline, its version."),
        Column("parse_status", pl.String, f"One of {', '.join(PARSE_STATUSES)}."),
        Column("answer", pl.Boolean, "Whether the pair corresponds; empty without a parsed answer.", nullable=True),
        Column("score", pl.Float64, "Confidence that it corresponds, 0..1; empty without an answer.", nullable=True),
        Column("reason", pl.String, "The judge's short reason; may be empty text."),
        Column("cited_facts", pl.List(pl.String), "Ids of the context's facts that the judge used."),
        Column("context_key", pl.String, "row_key of the ranked context that the judge saw."),
        Column("request_hash", pl.String, "The call in llm_calls; empty for the offline judge.", nullable=True),
        Column("tokens_in", pl.Int64, "Prompt tokens; 0 for the offline judge."),
        Column("tokens_out", pl.Int64, "Answer tokens; 0 for the offline judge."),
        Column("cost_usd", pl.Float64, "Cost in US dollars; empty where no price is known.", nullable=True),
        ROW_KEY_COLUMN,
    ),
    key=("task", "pair_id"),
)
