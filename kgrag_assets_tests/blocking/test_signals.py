"""The signals: BM25 against its formula, similarities in their bounds, nothing undefined whatever the names are."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kgrag_assets.blocking.signals import (
    K1,
    B,
    Signals,
    all_signals,
    bm25,
    documents,
    matrix_of,
    overlap,
    symmetric_bm25,
    type_affinity,
)
from kgrag_assets.rows.schema_attributes import TYPE_FAMILIES
from kgrag_assets.schemas.attribute import Attribute
from kgrag_assets_tests.matching import attribute

words = st.lists(st.sampled_from(["birth", "date", "sex", "code", "zip"]), max_size=6)
texts = st.sampled_from(
    ["", "   ", "the", "___", "birth date", "日本", "patient_id", "zip code of the patient", "\ud800"]
)


def several(side: str) -> st.SearchStrategy[list[Attribute]]:
    made = st.builds(
        lambda table, column, about, family: attribute(
            side, table, column, column_description=about, type_family=family
        ),
        texts,
        texts,
        texts,
        st.sampled_from(TYPE_FAMILIES),
    )
    return st.lists(made, min_size=1, max_size=5)


def formula(query: list[str], document: list[str], corpus: list[list[str]]) -> float:
    """BM25 of one query and one document, as the books write it."""
    mean = sum(len(other) for other in corpus) / len(corpus)
    total = 0.0
    for word in set(query):
        n = sum(1 for other in corpus if word in other)
        here = document.count(word)
        if here:
            idf = math.log(1 + (len(corpus) - n + 0.5) / (n + 0.5))
            total += idf * here * (K1 + 1) / (here + K1 * (1 - B + B * len(document) / mean))
    return total


@given(st.lists(words, max_size=4), st.lists(words, max_size=5))
def test_bm25_is_its_formula(queries: list[list[str]], corpus: list[list[str]]) -> None:
    scores = bm25(queries, corpus)
    assert scores.shape == (len(queries), len(corpus))
    for row, column in product(range(len(queries)), range(len(corpus))):
        assert scores[row, column] == pytest.approx(formula(queries[row], corpus[column], corpus))


def test_bm25_of_nothing_is_zero_and_a_rare_word_counts_more() -> None:
    assert bm25([[]], [["a"], []]).tolist() == [[0.0, 0.0]]
    assert bm25([["a"]], [[], []]).tolist() == [[0.0, 0.0]]
    rare, common = bm25([["rare"], ["common"]], [["rare", "common"], ["common", "other"]])[:, 0]
    assert rare > common > 0


@given(several("source"), several("target"))
def test_symmetric_bm25_looks_at_both_sides_alike(sources: list[Attribute], targets: list[Attribute]) -> None:
    assert np.allclose(symmetric_bm25(sources, targets), symmetric_bm25(targets, sources).T)


@given(words, words)
def test_overlap_is_dice_of_bags(left: list[str], right: list[str]) -> None:
    shared = sum(min(left.count(word), right.count(word)) for word in set(left))
    expected = 2 * shared / (len(left) + len(right)) if left and right else 0.0
    assert overlap(left, right) == pytest.approx(expected)
    assert overlap(left, right) == overlap(right, left)
    assert overlap(left, left) == (1.0 if left else 0.0)


@given(several("source"), several("target"), st.sampled_from(["column", "table"]))
def test_matrices_hold_each_pairs_own_value(sources: list[Attribute], targets: list[Attribute], part: str) -> None:
    matrix = matrix_of(sources, targets, part)
    assert matrix.shape == (len(sources), len(targets))
    for row, column in product(range(len(sources)), range(len(targets))):
        assert 0.0 <= matrix[row, column] <= 1.0
        assert matrix[row, column] == matrix_of([sources[row]], [targets[column]], part).item()


def test_abbreviations_and_word_forms_meet() -> None:
    left, right = attribute(column="pat_addr"), attribute("target", "person", "PatientAddresses")
    assert matrix_of([left], [right], "column").item() == 1.0
    assert matrix_of([left], [attribute("target", "person", "gender")], "column").item() == 0.0


def test_a_column_name_counts_twice_in_its_document() -> None:
    document = documents([attribute(table="person", column="gender", column_description="administrative gender")])[0]
    assert document.count("gender") == 3
    assert document.count("person") == 1


@pytest.mark.parametrize("left", TYPE_FAMILIES)
def test_type_affinity_is_symmetric_and_one_with_itself(left: str) -> None:
    assert type_affinity(left, left) == (0.5 if left == "unknown" else 1.0)
    for right in TYPE_FAMILIES:
        assert 0.0 <= type_affinity(left, right) == type_affinity(right, left) <= 1.0
        if left != right:
            assert type_affinity(left, right) < 1.0


@settings(deadline=None)
@given(several("source"), several("target"))
def test_all_signals_have_their_shape_and_no_gaps(sources: list[Attribute], targets: list[Attribute]) -> None:
    random = np.random.default_rng(0)
    left, right = (random.normal(size=(len(side), 4)).astype(np.float32) for side in (sources, targets))
    left, right = (side / np.linalg.norm(side, axis=1, keepdims=True) for side in (left, right))
    signals = all_signals(sources, targets, (left, right), (left[:, ::-1], right[:, ::-1]))
    for name in Signals.__dataclass_fields__:
        values = getattr(signals, name)
        assert values.shape == (len(sources), len(targets)), name
        assert values.dtype == np.float64, name
        assert np.isfinite(values).all(), name
        low = -1.0 if name.startswith("cosine") else 0.0
        assert (values >= low - 1e-6).all(), name
        assert name == "bm25" or (values <= 1 + 1e-6).all(), name
    assert np.allclose(signals.cosine_full, [[float(a @ b) for b in right] for a in left], atol=1e-6)
    assert np.allclose(signals.cosine_full, signals.cosine_name, atol=1e-6)
