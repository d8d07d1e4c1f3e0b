"""A subgraph as a row of ``retrieved_subgraphs``, and such a row as a subgraph again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kgrag_assets.retrieval.protocol import Fact, FactEdge, Seed, Subgraph
from kgrag_assets.rows.table import ROW_KEY


def subgraph_row(pair: Mapping[str, object], subgraph: Subgraph, key: str) -> dict[str, object]:
    """Write a subgraph as a row.

    Args:
        pair: the columns that name the pair.
        subgraph: what a method found for it.
        key: the row's key.
    """
    return {
        **pair,
        "method": subgraph.method,
        "status": subgraph.status,
        # vars: dataclasses.asdict copies every value, which took a third of a task's retrieval.
        "seeds": [vars(seed) for seed in subgraph.seeds],
        "facts": [{**vars(fact), "edges": [vars(edge) for edge in fact.edges]} for fact in subgraph.facts],
        "facts_cut": subgraph.facts_cut,
        "unverified": list(subgraph.unverified),
        "notes": subgraph.notes,
        "request_hashes": list(subgraph.request_hashes),
        ROW_KEY: key,
    }


def subgraph_of(row: Mapping[str, Any]) -> Subgraph:
    """Read a row back."""
    return Subgraph(
        method=row["method"],
        status=row["status"],
        seeds=tuple(Seed(**seed) for seed in row["seeds"]),
        facts=tuple(_fact(fact) for fact in row["facts"]),
        facts_cut=row["facts_cut"],
        unverified=tuple(row["unverified"]),
        notes=row["notes"],
        request_hashes=tuple(row["request_hashes"]),
    )


def _fact(row: Mapping[str, Any]) -> Fact:
    edges = tuple(FactEdge(**edge) for edge in row["edges"])
    return Fact(row["fact_id"], row["kind"], row["text"], row["score"], tuple(row["nodes"]), edges)
