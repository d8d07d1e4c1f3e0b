"""The fused score, step by step against plain loops and worked examples."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from kgrag_assets.blocking.fusion import (
    COMPARED,
    double_standardised,
    fuse,
    mutual_share,
    places,
    same_name_mean,
    standardised,
    table_coherence,
    without_common,
)

values_of = st.floats(-5, 5, allow_nan=False).map(lambda value: round(value, 3))
matrices = arrays(np.float64, array_shapes(min_dims=2, max_dims=2, max_side=6), elements=values_of)


@st.composite
def grouped(draw: st.DrawFn) -> tuple[np.ndarray, list[str], list[str]]:
    matrix = draw(matrices)
    labels = st.sampled_from("abc")
    rows = draw(st.lists(labels, min_size=matrix.shape[0], max_size=matrix.shape[0]))
    columns = draw(st.lists(labels, min_size=matrix.shape[1], max_size=matrix.shape[1]))
    return matrix, rows, columns


@given(matrices)
def test_standardised_values_have_mean_0_and_spread_1_or_are_all_0(matrix: np.ndarray) -> None:
    found = standardised(matrix)
    assert found.mean() == pytest.approx(0.0, abs=1e-9)
    if matrix.std() > 1e-6:
        assert found.std() == pytest.approx(1.0)
    elif matrix.std() < 1e-12:
        assert not found.any()


@given(matrices)
def test_double_standardised_is_the_mean_of_rows_and_columns(matrix: np.ndarray) -> None:
    def z(value: float, among: np.ndarray) -> float:
        spread = float(among.std())
        return (value - float(among.mean())) / spread if spread > 1e-9 else 0.0

    found = double_standardised(matrix)
    for row, column in np.ndindex(matrix.shape):
        value = float(matrix[row, column])
        assert found[row, column] == pytest.approx((z(value, matrix[row]) + z(value, matrix[:, column])) / 2, abs=1e-6)


@given(grouped())
def test_same_name_mean_against_loops(case: tuple[np.ndarray, list[str], list[str]]) -> None:
    matrix, rows, columns = case
    found = same_name_mean(matrix, rows, columns)
    for row, column in np.ndindex(matrix.shape):
        namesakes = [
            matrix[left, right]
            for left, right in np.ndindex(matrix.shape)
            if rows[left] == rows[row] and columns[right] == columns[column]
        ]
        assert found[row, column] == pytest.approx(float(np.mean(namesakes)), abs=1e-9)


@given(grouped())
def test_table_coherence_against_loops(case: tuple[np.ndarray, list[str], list[str]]) -> None:
    matrix, rows, columns = case
    found = table_coherence(matrix, rows, columns)
    row_numbers, column_numbers = places(rows), places(columns)
    for left in set(rows):
        for right in set(columns):
            inside = [place for place, name in enumerate(rows) if name == left]
            across = [place for place, name in enumerate(columns) if name == right]
            forward = np.mean([max(matrix[row, column] for column in across) for row in inside])
            backward = np.mean([max(matrix[row, column] for row in inside) for column in across])
            place = row_numbers[rows.index(left)], column_numbers[columns.index(right)]
            assert found[place] == pytest.approx(float(forward + backward) / 2, abs=1e-9)


@given(matrices)
def test_mutual_share_against_softmax(matrix: np.ndarray) -> None:
    found = mutual_share(matrix)
    powers = np.exp(matrix)
    for row, column in np.ndindex(matrix.shape):
        by_row = powers[row, column] / powers[row].sum()
        by_column = powers[row, column] / powers[:, column].sum()
        assert found[row, column] == pytest.approx(math.log(math.sqrt(by_row * by_column)), abs=1e-6)
    assert (found <= 1e-9).all()


def test_mutual_share_prefers_the_pair_that_has_no_rival() -> None:
    # Both pairs of the first two rows have 2; the second row's target is wanted by the third row as well.
    found = mutual_share(np.array([[2.0, 0.0], [0.0, 2.0], [0.0, 2.0]]))
    assert found[0, 0] > found[1, 1]


def test_what_all_vectors_share_is_taken_away() -> None:
    vectors = np.array([[0.8, 0.6, 0.0], [0.8, 0.0, 0.6]], dtype=np.float32)
    found = without_common(vectors)
    assert found[:, 0] == pytest.approx([0.0, 0.0], abs=1e-6)
    assert np.linalg.norm(found, axis=1) == pytest.approx([1.0, 1.0])
    assert not without_common(vectors[:1]).any(), "a single attribute shares everything with itself"


def fused(sources: list[list[float]], targets: list[list[float]], tables: list[str], other: list[str]) -> np.ndarray:
    def unit(rows: list[list[float]]) -> dict[str, np.ndarray]:
        found = np.array(rows, dtype=np.float32)
        found /= np.linalg.norm(found, axis=1, keepdims=True)
        return {view: found for left, right, _ in COMPARED for view in (left, right)}

    names = [f"s{place}" for place in range(len(sources))], [f"t{place}" for place in range(len(targets))]
    nothing = np.zeros((len(sources), len(targets)))
    return fuse(unit(sources), unit(targets), nothing, (names[0], tables), (names[1], other))


def test_a_pair_gains_where_its_tables_fit_as_a_whole() -> None:
    # The third source is as near to the third target as to the fourth; its table's other columns are at home
    # in the third target's table.
    base = [[1.0, 0, 0, 0.1], [0, 1.0, 0, 0.1], [0, 0, 1.0, 0.1]]
    targets = [[1.0, 0, 0, 0.1], [0, 1.0, 0, 0.1], [0, 0, 1.0, 0.1], [0, 0, 1.0, 0.1], [0.1, 0.1, 0, 1.0]]
    score = fused(base, targets, ["a", "a", "a"], ["x", "x", "x", "y", "y"])
    assert score[2, 2] > score[2, 3]
    without = fused(base, targets, ["a", "b", "c"], ["v", "w", "x", "y", "z"])
    assert without[2, 2] == pytest.approx(without[2, 3])


@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.integers(1, 6))
def test_the_order_of_the_attributes_decides_nothing(seed: int, rows: int, columns: int) -> None:
    random = np.random.default_rng(seed)
    left, right = random.normal(size=(rows, 5)), random.normal(size=(columns, 5))
    tables, other = [f"a{n % 2}" for n in range(rows)], [f"x{n % 2}" for n in range(columns)]
    score = fused(left.tolist(), right.tolist(), tables, other)
    assert np.isfinite(score).all()
    order, across = random.permutation(rows), random.permutation(columns)
    shuffled = fused(
        left[order].tolist(), right[across].tolist(), [tables[n] for n in order], [other[n] for n in across]
    )
    assert shuffled == pytest.approx(score[np.ix_(order, across)], abs=1e-5)


@given(st.integers(0, 2**32 - 1))
def test_source_and_target_are_treated_alike(seed: int) -> None:
    random = np.random.default_rng(seed)
    left, right = random.normal(size=(4, 5)).tolist(), random.normal(size=(3, 5)).tolist()
    tables, other = ["a", "a", "b", "b"], ["x", "x", "y"]
    assert fused(right, left, other, tables) == pytest.approx(fused(left, right, tables, other).T, abs=1e-5)
