"""Keys of the graph's rows: made one by one in Python and by the million in SQL, they are the same."""

from __future__ import annotations

import duckdb
import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from kgrag_assets.rows.keys import text_key
from kgrag_assets.rows.knowledge_graph import (
    ENTITY_KEY_SQL,
    TRIPLE_ID_SQL,
    TRIPLE_KEY_SQL,
    entity_key_of,
    triple_id_of,
    triple_key_of,
)

TEXT = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), max_size=12)


def asked(columns: dict[str, object], *expressions: str) -> list[str]:
    with duckdb.connect() as connection:
        frame = pl.DataFrame([columns], schema={name: _type(value) for name, value in columns.items()})
        connection.register("given", frame.to_arrow())
        row = connection.execute(f"SELECT {', '.join(expressions)} FROM given").fetchone()
    assert row is not None
    return list(row)


def _type(value: object) -> pl.DataType:
    return pl.List(pl.String()) if isinstance(value, list) else pl.String()


@settings(max_examples=60, deadline=None)
@given(TEXT, TEXT, TEXT, st.none() | TEXT, st.none() | TEXT, st.tuples(TEXT, TEXT, TEXT))
def test_keys_of_triples(
    graph: str, head: str, relation: str, tail: str | None, value: str | None, labels: tuple[str, str, str]
) -> None:
    parts = {"graph": graph, "head": head, "relation": relation, "tail": tail, "tail_value": value}
    triple_id = triple_id_of(graph, head, relation, tail, value)
    assert asked(parts, TRIPLE_ID_SQL) == [triple_id]
    names = dict(zip(("head_label", "relation_label", "tail_label"), labels, strict=True))
    assert asked({"triple_id": triple_id, **names}, TRIPLE_KEY_SQL) == [triple_key_of(triple_id, *labels)]


@settings(max_examples=60, deadline=None)
@given(TEXT, TEXT, TEXT, TEXT, st.lists(TEXT, max_size=3), TEXT)
def test_keys_of_entities(
    entity_id: str, graph: str, kind: str, label: str, aliases: list[str], description: str
) -> None:
    parts = {"entity_id": entity_id, "graph": graph, "kind": kind, "label": label, "aliases": aliases}
    expected = entity_key_of(entity_id, graph, kind, label, aliases, description)
    assert asked({**parts, "description": description}, ENTITY_KEY_SQL) == [expected]


@given(st.lists(st.none() | TEXT, max_size=4), st.lists(st.none() | TEXT, max_size=4))
def test_no_two_lists_of_parts_are_written_alike(one: list[str | None], other: list[str | None]) -> None:
    assert (text_key(*one) == text_key(*other)) == (one == other)
