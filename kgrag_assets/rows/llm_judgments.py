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

# with_facts: the answer with the facts in view counts. without_facts: the model found them irrelevant, and its answer
# without them counts. no_facts: there were none to show. off: the facts were shown and no gate was asked for.
GATES = ("with_facts", "without_facts", "no_facts", "off")

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
        Column("unknown_citations", pl.List(pl.String), "Ids that the judge cited and was not shown; a warning sign."),
        Column(
            "relevance", pl.Int32, "The model's score of the facts' relevance, 0..10; empty without.", nullable=True
        ),
        Column("gate", pl.String, f"One of {', '.join(GATES)}."),
        Column("own_answer", pl.Boolean, "The model's answer without the facts; empty where not asked.", nullable=True),
        Column("own_score", pl.Float64, "Its confidence without the facts, 0..1; empty likewise.", nullable=True),
        Column("conflict", pl.Boolean, "Whether the answers with and without the facts differ.", nullable=True),
        Column("votes", pl.Int32, "Readable answers that the vote counted; 1 without self-consistency, 0 for none."),
        Column("votes_for", pl.Int32, "How many of them say that the pair corresponds."),
        Column("second_answer", pl.Boolean, "The second judge's answer; empty without one.", nullable=True),
        Column("second_score", pl.Float64, "The second judge's score; empty without one.", nullable=True),
        Column("disagreement", pl.Boolean, "Whether the two judges differ; empty without a second.", nullable=True),
        Column("context_key", pl.String, "row_key of the ranked context that the judge saw."),
        Column("request_hash", pl.String, "The call in llm_calls; empty for the offline judge.", nullable=True),
        Column("tokens_in", pl.Int64, "Prompt tokens, a call's shared out among its pairs; 0 for the offline judge."),
        Column("tokens_out", pl.Int64, "Answer tokens, shared out likewise; 0 for the offline judge."),
        Column("cost_usd", pl.Float64, "Cost in US dollars, shared out; empty where no price is known.", nullable=True),
        ROW_KEY_COLUMN,
    ),
    key=("task", "pair_id"),
)
