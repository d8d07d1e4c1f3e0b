"""Measures of ranked lists and of sets of pairs: plain functions of numbers, used for our mapping and its baselines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Ranked:
    """Scored pairs of one task. ``score`` is by (source, target); ``truth`` holds the true pairs."""

    score: Mapping[tuple[str, str], float]
    truth: frozenset[tuple[str, str]]

    def lists(self) -> dict[str, list[str]]:
        """Targets of each source, best first; equal scores by target id."""
        found: dict[str, list[tuple[float, str]]] = {}
        for (source, target), score in self.score.items():
            found.setdefault(source, []).append((-score, target))
        return {source: [target for _, target in sorted(targets)] for source, targets in found.items()}


def first_hits(ranked: Ranked) -> dict[str, int | None]:
    """Rank of the first true target of each source attribute that has one, from 1; None where none is ranked."""
    lists = ranked.lists()
    wanted: dict[str, set[str]] = {}
    for source, target in ranked.truth:
        wanted.setdefault(source, set()).add(target)
    return {
        source: next((rank for rank, target in enumerate(lists.get(source, []), 1) if target in targets), None)
        for source, targets in wanted.items()
    }


def hit_at(first: Mapping[str, int | None], k: int) -> float | None:
    """Share of source attributes with a true target among the first ``k``; None where no attribute has one."""
    if not first:
        return None
    return sum(1 for rank in first.values() if rank is not None and rank <= k) / len(first)


def mean_reciprocal_rank(first: Mapping[str, int | None]) -> float | None:
    """Mean of one over the rank of the first true target, 0 where none is ranked."""
    if not first:
        return None
    return sum(1.0 / rank for rank in first.values() if rank is not None) / len(first)


def precision_recall_f1(
    proposed: frozenset[tuple[str, str]], truth: frozenset[tuple[str, str]]
) -> tuple[float | None, float | None, float | None]:
    """Precision, recall and F1 of a set of pairs; precision is None where nothing is proposed."""
    right = len(proposed & truth)
    precision = right / len(proposed) if proposed else None
    recall = right / len(truth) if truth else None
    if recall is None:
        return precision, None, None
    return precision, recall, 2.0 * right / (len(proposed) + len(truth))


def best_f1(ranked: Ranked) -> float | None:
    """Return the largest F1 that any threshold on the score reaches; equal scores are taken together."""
    if not ranked.truth:
        return None
    ordered = sorted(ranked.score.items(), key=lambda entry: -entry[1])
    best, right = 0.0, 0
    for place, (pair, score) in enumerate(ordered, start=1):
        right += pair in ranked.truth
        if place == len(ordered) or ordered[place][1] != score:
            best = max(best, 2.0 * right / (place + len(ranked.truth)))
    return best


def average_precision(ranked: Ranked) -> float | None:
    """Mean, over all true pairs, of the precision at the pair's place; 0 for a true pair that is not ranked."""
    if not ranked.truth:
        return None
    ordered = sorted(ranked.score.items(), key=lambda entry: (-entry[1], entry[0]))
    right, total = 0, 0.0
    for place, (pair, _score) in enumerate(ordered, start=1):
        if pair in ranked.truth:
            right += 1
            total += right / place
    return total / len(ranked.truth)


def bootstrap_f1(
    proposed: frozenset[tuple[str, str]],
    truth: frozenset[tuple[str, str]],
    sources: Sequence[str],
    samples: int,
    seed: int,
) -> dict[str, tuple[float, float]]:
    """95% intervals of precision, recall and F1 by resampling source attributes (Efron's percentile bootstrap).

    Args:
        proposed: proposed pairs.
        truth: true pairs.
        sources: all source attributes of the task.
        samples: number of resamples.
        seed: seed of the generator; equal seeds give equal intervals.

    Returns:
        low and high end by name; a name is missing where no resample defines it.
    """
    place = {source: number for number, source in enumerate(sources)}
    counts = np.zeros((len(sources), 3))
    for column, pairs in enumerate((proposed & truth, proposed, truth)):
        for source, _target in pairs:
            counts[place[source], column] += 1
    if not len(sources):
        return {}
    generator = np.random.default_rng(seed)
    drawn = generator.integers(0, len(sources), size=(samples, len(sources)))
    right, given, true = counts[drawn].sum(axis=1).T
    with np.errstate(divide="ignore", invalid="ignore"):
        values = {"precision": right / given, "recall": right / true, "f1": 2.0 * right / (given + true)}
    ends = {}
    for name, column_values in values.items():
        defined = column_values[np.isfinite(column_values)]
        if len(defined):
            low, high = np.percentile(defined, [2.5, 97.5])
            ends[name] = (float(low), float(high))
    return ends
