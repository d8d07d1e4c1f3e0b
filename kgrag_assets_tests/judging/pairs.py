"""Pairs to be judged, for this room's tests."""

from __future__ import annotations

from typing import Any

from kgrag_assets.judging.protocol import Evidence, JudgePair
from kgrag_assets.rows.keys import attribute_id_of, pair_id_of
from kgrag_assets.schemas.attribute import Attribute

FACT = Evidence("fact-1", "date of birth -- subclass of --> point in time", "triple", "vector_triples", 0.8)


def attribute(side: str, table: str, column: str, **changes: Any) -> Attribute:
    """Make an attribute."""
    values: dict[str, Any] = {
        "attribute_id": attribute_id_of(side, table, column),
        "side": side,
        "table_name": table,
        "column_name": column,
        "data_type": "date",
        "type_family": "temporal",
        "table_description": f"About {table}.",
        "column_description": f"The {column}.",
    }
    return Attribute(**{**values, **changes})


def pair(
    source: Attribute | None = None,
    target: Attribute | None = None,
    facts: tuple[Evidence, ...] = (FACT,),
    context_key: str = "context",
) -> JudgePair:
    """Make a pair."""
    source = source or attribute("source", "pat", "dob")
    target = target or attribute("target", "person", "birth_datetime")
    return JudgePair(
        task="clinic",
        pair_id=pair_id_of(source.attribute_id, target.attribute_id),
        source=source,
        target=target,
        signals={},
        facts=facts,
        context_key=context_key,
    )


def pairs(number: int) -> list[JudgePair]:
    """Make different pairs."""
    return [pair(source=attribute("source", "pat", f"column_{place}")) for place in range(number)]
