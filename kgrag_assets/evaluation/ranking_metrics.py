"""Measures of ranked lists and of sets of pairs, as functions of arrays that know nothing of tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

LOWER, UPPER = 2.5, 97.5


@dataclass(frozen=True)
class Interval:
    """Ends of a 95% bootstrap interval; None where no resample had a value."""

    low: float | None
    high: float | None


def ratio(part: float, whole: float) -> float | None:
    """Divide, or return None where there is nothing to divide by."""
    return part / whole if whole else None


def f1_of(hits: float, chosen: float, true: float) -> float | None:
    """Harmonic mean of precision and recall from counts; None where nothing was chosen and nothing is true."""
    return ratio(2.0 * hits, chosen + true)


def _cuts(scores: np.ndarray, is_true: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Pairs chosen and true pairs among them at every threshold; pairs of equal score enter together."""
    order = np.argsort(-scores, kind="stable")
    ordered = scores[order]
    hits = np.cumsum(is_true[order])
    last = np.flatnonzero(np.append(ordered[1:] != ordered[:-1], True)) if len(ordered) else np.array([], dtype=int)
    return last + 1, hits[last]


def best_f1(scores: np.ndarray, is_true: np.ndarray, true_pairs: int) -> float | None:
    """Best F1 that any threshold on the score gives.

    Args:
        scores: shape (pairs,).
        is_true: bool, shape (pairs,).
        true_pairs: all true pairs, those that were never scored included.

    Returns:
        0..1, or None where there is no true pair.
    """
    if not true_pairs:
        return None
    chosen, hits = _cuts(scores, is_true)
    return float((2.0 * hits / (chosen + true_pairs)).max()) if len(chosen) else 0.0


def average_precision(scores: np.ndarray, is_true: np.ndarray, true_pairs: int) -> float | None:
    """Sum of precision times gain in recall over all thresholds; pairs of equal score count as one step.

    Args and result as for ``best_f1``; a true pair that was never scored adds nothing.
    """
    if not true_pairs:
        return None
    chosen, hits = _cuts(scores, is_true)
    gains = np.diff(hits, prepend=0)
    return float((gains * hits / chosen).sum() / true_pairs) if len(chosen) else 0.0


def hit_at(first_ranks: np.ndarray, k: int) -> float | None:
    """Share of lists whose first true entry has rank k or better.

    Args:
        first_ranks: float, shape (lists,): rank from 1 of the first true entry, infinity where there is none.
        k: how many entries are looked at.
    """
    return float((first_ranks <= k).mean()) if len(first_ranks) else None


def mean_reciprocal_rank(first_ranks: np.ndarray) -> float | None:
    """Mean of 1 / rank of the first true entry, 0 for a list without one; see ``hit_at``."""
    return float((1.0 / first_ranks).mean()) if len(first_ranks) else None


def bootstrap(measure: Callable[[np.ndarray], float | None], units: int, samples: int, seed: int) -> Interval:
    """Resample units with replacement and return the middle 95% of a measure (percentile bootstrap, Efron 1979).

    Args:
        measure: called with an index array of shape (units,), drawn with replacement.
        units: how many there are.
        samples: how many resamples.
        seed: of the random numbers; the same units and seed give the same interval.
    """
    if not units:
        return Interval(None, None)
    random = np.random.default_rng(seed)
    values = [measure(random.integers(0, units, units)) for _ in range(samples)]
    found = np.array([value for value in values if value is not None], dtype=np.float64)
    if not len(found):
        return Interval(None, None)
    low, high = np.percentile(found, (LOWER, UPPER))
    return Interval(float(low), float(high))
