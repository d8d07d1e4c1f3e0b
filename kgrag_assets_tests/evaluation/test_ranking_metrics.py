"""Measures of lists and sets against values worked out by hand and against the plainest way to compute them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgrag_assets.evaluation.ranking_metrics import (
    Interval,
    average_precision,
    best_f1,
    bootstrap,
    f1_of,
    hit_at,
    mean_reciprocal_rank,
    ratio,
)

# Few values, so that many scores are equal.
scored = st.lists(st.tuples(st.sampled_from([0.0, 0.25, 0.5, 1.0]), st.booleans()), max_size=15)
first_ranks = st.lists(st.integers(1, 8).map(float) | st.just(float("inf")), min_size=1, max_size=10).map(np.array)


def arrays(pairs: list[tuple[float, bool]]) -> tuple[np.ndarray, np.ndarray]:
    return np.array([score for score, _ in pairs], dtype=float), np.array([true for _, true in pairs], dtype=bool)


def test_lists_by_hand() -> None:
    first = np.array([1.0, 2.0, float("inf")])
    assert hit_at(first, 1) == pytest.approx(1 / 3)
    assert hit_at(first, 2) == pytest.approx(2 / 3)
    assert hit_at(first, 9) == pytest.approx(2 / 3)
    assert mean_reciprocal_rank(first) == pytest.approx((1 + 1 / 2 + 0) / 3)


def test_pairs_by_hand() -> None:
    scores, is_true = arrays([(0.9, True), (0.8, False), (0.7, False), (0.6, True), (0.5, False)])
    # True pairs stand at places 1 and 4; a third was never scored.
    assert average_precision(scores, is_true, 3) == pytest.approx((1 / 1 + 2 / 4 + 0) / 3)
    # After place 1: 2*1/(1+3); after place 4: 2*2/(4+3).
    assert best_f1(scores, is_true, 3) == pytest.approx(4 / 7)
    # 1 of 2 proposed is true, 1 of 3 true is proposed: 2 * (1/2 * 1/3) / (1/2 + 1/3).
    assert f1_of(1, 2, 3) == pytest.approx(2 / 5)


def test_equal_scores_count_as_one_step() -> None:
    scores, is_true = arrays([(0.5, True), (0.5, False), (0.5, False)])
    assert best_f1(scores, is_true, 1) == pytest.approx(2 / 4)
    assert average_precision(scores, is_true, 1) == pytest.approx(1 / 3)


def test_what_is_not_defined_is_none() -> None:
    scores, is_true = arrays([(0.5, False)])
    assert best_f1(scores, is_true, 0) is None
    assert average_precision(scores, is_true, 0) is None
    assert hit_at(np.array([]), 1) is None
    assert mean_reciprocal_rank(np.array([])) is None
    assert ratio(0, 0) is None
    assert f1_of(0, 0, 0) is None
    assert f1_of(0, 0, 3) == 0.0
    nothing = arrays([])
    assert best_f1(*nothing, 2) == 0.0
    assert average_precision(*nothing, 2) == 0.0


@given(first_ranks)
def test_hits_grow_with_k_and_hold_the_reciprocal_rank_between(first: np.ndarray) -> None:
    hits = [sum(1 for rank in first if rank <= k) / len(first) for k in range(1, 9)]
    assert [hit_at(first, k) for k in range(1, 9)] == pytest.approx(hits)
    mrr = mean_reciprocal_rank(first)
    assert mrr == pytest.approx(sum(0.0 if rank == float("inf") else 1.0 / rank for rank in first) / len(first))
    assert hits[0] - 1e-12 <= mrr <= hits[-1] + 1e-12


@given(scored, st.integers(0, 3), st.randoms(use_true_random=False))
def test_best_f1_and_average_precision_like_trying_every_threshold(
    pairs: list[tuple[float, bool]], unscored: int, random: st.DrawFn
) -> None:
    true = sum(is_true for _, is_true in pairs) + unscored
    best, total, hits_before = 0.0, 0.0, 0
    for cut in sorted({score for score, _ in pairs}, reverse=True):
        chosen = [is_true for score, is_true in pairs if score >= cut]
        hits = sum(chosen)
        best = max(best, 2 * hits / (len(chosen) + true)) if true else 0.0
        total += (hits - hits_before) * hits / len(chosen)
        hits_before = hits
    expected = (pytest.approx(best), pytest.approx(total / true)) if true else (None, None)
    assert (best_f1(*arrays(pairs), true), average_precision(*arrays(pairs), true)) == expected
    shuffled = list(pairs)
    random.shuffle(shuffled)  # type: ignore[attr-defined]  # a random.Random
    assert best_f1(*arrays(shuffled), true) == best_f1(*arrays(pairs), true)
    assert average_precision(*arrays(shuffled), true) == average_precision(*arrays(pairs), true)


@given(st.integers(0, 9), st.integers(0, 9), st.integers(1, 9))
def test_f1_is_the_harmonic_mean(hits: int, wrong: int, lost: int) -> None:
    precision, recall = ratio(hits, hits + wrong), ratio(hits, hits + lost)
    assert recall is not None
    expected = 2 * precision * recall / (precision + recall) if precision and recall else 0.0
    assert f1_of(hits, hits + wrong, hits + lost) == pytest.approx(expected)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20).map(np.array), st.integers(0, 100))
def test_intervals_stay_within_the_values_and_depend_on_the_seed_alone(values: np.ndarray, seed: int) -> None:
    def mean(drawn: np.ndarray) -> float:
        assert len(drawn) == len(values)
        return float(values[drawn].mean())

    interval = bootstrap(mean, len(values), 50, seed)
    assert interval == bootstrap(mean, len(values), 50, seed)
    assert interval.low is not None
    assert interval.high is not None
    assert values.min() - 1e-9 <= interval.low <= interval.high <= values.max() + 1e-9


def test_an_interval_holds_the_value_and_another_seed_gives_another() -> None:
    values = np.arange(40) / 40
    interval = bootstrap(lambda drawn: float(values[drawn].mean()), 40, 500, 1)
    assert interval.low is not None
    assert interval.high is not None
    assert interval.low < values.mean() < interval.high
    # The width that the normal approximation gives: 2 * 1.96 * deviation / sqrt(n).
    assert interval.high - interval.low == pytest.approx(2 * 1.96 * values.std() / 40**0.5, rel=0.2)
    assert interval != bootstrap(lambda drawn: float(values[drawn].mean()), 40, 500, 2)


def test_resamples_without_a_value_are_left_out_and_nothing_has_no_interval() -> None:
    assert bootstrap(lambda _drawn: 1.0, 0, 100, 0) == Interval(None, None)
    assert bootstrap(lambda _drawn: None, 3, 100, 0) == Interval(None, None)
    sometimes = bootstrap(lambda drawn: 1.0 if 0 in drawn else None, 3, 100, 0)
    assert sometimes == Interval(1.0, 1.0)
