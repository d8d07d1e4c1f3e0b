"""One score from many signals, without training: what is said about a pair, set against the rest of the two schemas."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

import numpy as np

# Views whose vectors are compared, and how often each comparison counts. A column's words meet the other side's
# description and the other way round, since one schema often names what the other explains.
COMPARED: tuple[tuple[str, str, float], ...] = (
    ("column", "description", 1.0),
    ("description", "column", 1.0),
    ("description", "description", 1.0),
    ("full", "full", 2.0),
)

# Weight of the fit of the two tables as a whole, in standard deviations of the pairs' score.
COHERENCE_WEIGHT = 0.5

Vectors = Mapping[str, np.ndarray]


def fuse(
    sources: Vectors,
    targets: Vectors,
    name_similarity: np.ndarray,
    source_groups: tuple[Sequence[Hashable], Sequence[Hashable]],
    target_groups: tuple[Sequence[Hashable], Sequence[Hashable]],
) -> np.ndarray:
    """Fuse the cosines of all views and the similarity of names into one score for each pair.

    Four steps, each free of parameters learnt from any task:

    1. Each signal counts twice: as it is, standardised over all pairs, and relative to what its source and its
       target get elsewhere (``double_standardised``, on vectors without what a schema's attributes share).
    2. Columns of one name, such as the ``person_id`` of many tables, lend each other half of their score.
    3. A pair gains where its two tables fit as a whole (``table_coherence``).
    4. A pair is measured by the share it has of its source's and of its target's partners (``mutual_share``).

    Args:
        sources: per view of ``COMPARED`` unit vectors of shape (sources, d).
        targets: likewise, of shape (targets, d).
        name_similarity: shape (sources, targets), 0..1.
        source_groups: the column names and the table names of the sources.
        target_groups: likewise of the targets.

    Returns:
        float64 of shape (sources, targets): logarithm of the mutual share, at most 0.
    """
    score = standardised(name_similarity) + double_standardised(name_similarity)
    own_sources = {view: without_common(vectors) for view, vectors in sources.items()}
    own_targets = {view: without_common(vectors) for view, vectors in targets.items()}
    for left, right, weight in COMPARED:
        cosines = cosine_matrix(sources[left], targets[right])
        relative = cosine_matrix(own_sources[left], own_targets[right])
        score = score + weight * (standardised(cosines) + double_standardised(relative))
    score = (score + same_name_mean(score, source_groups[0], target_groups[0])) / 2.0
    score = standardised(score)
    coherence = double_standardised(table_coherence(score, source_groups[1], target_groups[1]))
    rows, columns = places(source_groups[1]), places(target_groups[1])
    score = standardised(score + COHERENCE_WEIGHT * coherence[np.ix_(rows, columns)])
    return mutual_share(score)


def cosine_matrix(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Cosines of unit vectors, float64 of shape (left, right)."""
    return np.asarray(left.astype(np.float64) @ right.astype(np.float64).T)


def without_common(vectors: np.ndarray) -> np.ndarray:
    """Take away what all vectors of a schema share (its domain), and bring the rest to unit length."""
    centred = vectors.astype(np.float64) - vectors.mean(axis=0, dtype=np.float64, keepdims=True)
    lengths = np.linalg.norm(centred, axis=1, keepdims=True)
    return np.asarray(np.divide(centred, lengths, out=np.zeros_like(centred), where=lengths > 1e-6))


def standardised(values: np.ndarray, axis: int | None = None) -> np.ndarray:
    """Return z-scores over all values, or along an axis; zero where the values are constant."""
    centred = values - values.mean(axis=axis, keepdims=True)
    spread = values.std(axis=axis, keepdims=True)
    # A signal that is constant up to rounding says nothing.
    return np.asarray(np.divide(centred, spread, out=np.zeros_like(centred), where=spread > 1e-9))


def double_standardised(values: np.ndarray) -> np.ndarray:
    """Mean of the z-scores within each row and within each column: an attribute near to everything gains nothing."""
    return np.asarray((standardised(values, 1) + standardised(values, 0)) / 2.0)


def places(groups: Sequence[Hashable]) -> np.ndarray:
    """Return each member's group as a number, groups in order of appearance from 0."""
    numbers: dict[Hashable, int] = {}
    return np.array([numbers.setdefault(group, len(numbers)) for group in groups], dtype=np.int64)


def _group_mean(values: np.ndarray, groups: Sequence[Hashable]) -> np.ndarray:
    # Each row becomes the mean of the rows of its group.
    number = places(groups)
    sums = np.zeros((number.max() + 1, values.shape[1]))
    np.add.at(sums, number, values)
    means = sums / np.bincount(number)[:, None]
    return np.asarray(means[number])


def same_name_mean(
    values: np.ndarray, source_names: Sequence[Hashable], target_names: Sequence[Hashable]
) -> np.ndarray:
    """Mean of each pair's values over all pairs with the same two column names."""
    return _group_mean(_group_mean(values, source_names).T, target_names).T


def table_coherence(
    values: np.ndarray, source_tables: Sequence[Hashable], target_tables: Sequence[Hashable]
) -> np.ndarray:
    """Measure how well two tables fit: the mean of their columns' best partners in the other, both ways averaged.

    Returns:
        float64 of shape (source tables, target tables), tables in order of appearance.
    """
    rows, columns = places(source_tables), places(target_tables)
    fit = np.zeros((rows.max() + 1, columns.max() + 1))
    for row in range(fit.shape[0]):
        mine = values[rows == row]
        for column in range(fit.shape[1]):
            block = mine[:, columns == column]
            fit[row, column] = (block.max(axis=1).mean() + block.max(axis=0).mean()) / 2.0
    return fit


def mutual_share(values: np.ndarray) -> np.ndarray:
    """Logarithm of the geometric mean of a pair's softmax share among its row and among its column."""
    return np.asarray(values - (_log_sum_exp(values, 1) + _log_sum_exp(values, 0)) / 2.0)


def _log_sum_exp(values: np.ndarray, axis: int) -> np.ndarray:
    high = values.max(axis=axis, keepdims=True)
    return np.asarray(high + np.log(np.exp(values - high).sum(axis=axis, keepdims=True)))
