"""What the language model's part in retrieval has cost, from the ledger."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from kgrag_assets.models.ledger import CallLedger


@dataclass(frozen=True)
class Spent:
    """Calls that took part and brought text, with their tokens; ``cost_usd`` counts those whose price is known."""

    calls: int
    tokens_in: int
    tokens_out: int
    cost_usd: float


def spent_on(subgraphs: pl.DataFrame, ledger: CallLedger) -> Spent:
    """Add up the calls that rows of ``retrieved_subgraphs`` name, each once, whenever they were asked.

    Raises:
        LakeError: the ledger cannot be read.
    """
    hashes = subgraphs["request_hashes"].explode(empty_as_null=True).drop_nulls().unique().sort().to_list()
    replies = [reply for reply in map(ledger.find, hashes) if reply is not None]
    return Spent(
        calls=len(replies),
        tokens_in=sum(reply.tokens_in for reply in replies),
        tokens_out=sum(reply.tokens_out for reply in replies),
        cost_usd=sum((reply.cost_usd or 0.0 for reply in replies), 0.0),
    )
