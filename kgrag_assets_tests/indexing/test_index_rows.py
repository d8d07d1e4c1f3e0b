"""Columns of ids against plain lists, and equal vectors against plain comparison."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings

from kgrag_assets.indexing import distinct_vectors
from kgrag_assets.indexing.distinct_vectors import distinct
from kgrag_assets.indexing.index_rows import IndexRows, found_in, frame_of, hash_of

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=4)


@settings(deadline=None)
@given(st.lists(texts, unique=True, max_size=12))
def test_rows_are_sorted_and_read_back(ids: list[str]) -> None:
    keys = [f"key of {entry}" for entry in ids]
    frame = frame_of(ids, keys)
    assert frame["id"].to_list() == sorted(ids)
    assert [ids[place] for place in frame["place"]] == sorted(ids)
    rows = IndexRows.of(frame)
    assert len(rows) == len(ids)
    assert rows.texts(list(range(len(ids)))) == sorted(ids)
    assert rows.frame().rows() == [(entry, f"key of {entry}") for entry in sorted(ids)]
    backwards = rows.take(np.arange(len(ids))[::-1].copy())
    assert backwards.texts(list(range(len(ids)))) == sorted(ids, reverse=True)


@settings(deadline=None)
@given(st.lists(texts, max_size=5), st.lists(texts, max_size=5))
def test_columns_hash_alike_where_their_values_are_alike(one: list[str], other: list[str]) -> None:
    first, second = pl.Series(one, dtype=pl.String), pl.Series(other, dtype=pl.String)
    assert (hash_of(first) == hash_of(second)) == (one == other)
    # A part of a longer column is a column like any other.
    longer = pl.Series(["x", *one, "y"], dtype=pl.String)
    assert hash_of(longer[1:-1]) == hash_of(first)
    assert (hash_of(first, second) == hash_of(second, first)) == (one == other)


@settings(deadline=None)
@given(st.dictionaries(texts, texts, max_size=8), st.dictionaries(texts, texts, max_size=8))
def test_rows_are_found_among_others(rows: dict[str, str], others: dict[str, str]) -> None:
    frame = frame_of(list(rows), list(rows.values()))
    found, same = found_in(frame, IndexRows.of(frame_of(list(others), list(others.values()))))
    order = sorted(others)
    for entry, place, alike in zip(frame["id"], found.tolist(), same.tolist(), strict=True):
        assert (order[place] == entry) if place >= 0 else (entry not in others)
        assert alike == (others.get(entry) == rows[entry])


def test_rows_that_do_not_go_together_are_refused() -> None:
    with pytest.raises(ValueError, match="2 ids do not go with 1 keys"):
        frame_of(["a", "b"], ["x"])
    with pytest.raises(ValueError, match="'b' stands twice"):
        frame_of(["b", "a", "b"], ["x", "y", "z"])
    with pytest.raises(ValueError, match="needs an id and a key"):
        frame_of(pl.Series(["a", None]), ["x", "y"])


@pytest.mark.parametrize("collide", [False, True])
@pytest.mark.parametrize("dimension", [3, 4])
def test_equal_vectors_share_a_node(collide: bool, dimension: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distinct_vectors, "SLICE", 5)
    if collide:
        monkeypatch.setattr(distinct_vectors, "_hashed", lambda vectors: (vectors[:, 0] > 0).astype(np.uint64))

    @settings(max_examples=40, deadline=None)
    @given(st.lists(st.lists(st.sampled_from([-1.0, 0.5, 2.0]), min_size=dimension, max_size=dimension), min_size=1))
    def check(values: list[list[float]]) -> None:
        vectors = np.array(values, dtype=np.float32)
        made = distinct(lambda rows: vectors[rows], len(vectors))
        # Every row has the vector of its node; without collisions no vector has two nodes.
        assert np.array_equal(vectors[made.first][made.nodes], vectors)
        assert np.array_equal(made.nodes[made.first], np.arange(len(made.first)))
        assert (np.diff(made.first) > 0).all()
        assert np.array_equal(made.bounds, np.stack([vectors.min(axis=0), vectors.max(axis=0)]))
        if not collide:
            assert len(made.first) == len(np.unique(vectors, axis=0))

    check()
