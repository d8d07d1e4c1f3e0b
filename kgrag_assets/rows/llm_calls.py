"""``llm_calls``: every call to a model that was answered, failed or refused, kept at once."""

from __future__ import annotations

import polars as pl

from kgrag_assets.rows.table import Column, Table

# answered: text came back whole. truncated: text cut for length. The others brought no usable text.
CALL_STATUSES = ("answered", "truncated", "refused", "timeout", "rate_limited", "error")

LLM_CALLS = Table(
    name="llm_calls",
    description="The ledger of calls to chat models. Requests hold no key and no password.",
    columns=(
        Column("call_id", pl.Int64, "Running number in the ledger."),
        Column("task", pl.String, "The task that asked."),
        Column("request_hash", pl.String, "Hash of provider, model, messages, schema and parameters."),
        Column("provider", pl.String, "openai or ollama."),
        Column("model", pl.String, "Model that was asked."),
        Column("request", pl.String, "The request as JSON: messages and parameters."),
        Column("raw_answer", pl.String, "The answer as it came; may be empty text."),
        Column("status", pl.String, f"One of {', '.join(CALL_STATUSES)}."),
        Column("error", pl.String, "What went wrong; empty text where nothing did."),
        Column("tokens_in", pl.Int64, "Prompt tokens as the server counted them."),
        Column("tokens_out", pl.Int64, "Answer tokens as the server counted them."),
        Column("latency_s", pl.Float64, "Seconds from asking to the last byte, waits for retries included."),
        Column("cost_usd", pl.Float64, "Cost in US dollars; empty where no price is known.", nullable=True),
        Column("asked_at", pl.Datetime("us", "UTC"), "When the answer came."),
    ),
    key=("call_id",),
)
