"""The signals of all pairs of two schemas, as matrices of shape (sources, targets)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kgrag_assets.schemas.attribute import Attribute
from kgrag_assets.schemas.words import WORDS_VERSION, name_words, stems, text_words

# Changes with the meaning of a signal that depends on the two attributes alone.
SIGNALS_VERSION = f"signals-3/{WORDS_VERSION}"

# BM25's usual parameters: how soon a repeated word stops counting, and how much long texts are discounted.
K1, B = 1.2, 0.75

# How well two families of types go together; a family with itself is 1, unknown with anything 0.5, others 0.
_AFFINITIES = {
    frozenset(("integer", "decimal")): 0.8,
    frozenset(("date", "timestamp")): 0.9,
    frozenset(("time", "timestamp")): 0.6,
    frozenset(("integer", "boolean")): 0.6,
    frozenset(("text", "integer")): 0.5,
    frozenset(("text", "decimal")): 0.4,
    frozenset(("text", "date")): 0.3,
    frozenset(("text", "timestamp")): 0.3,
    frozenset(("text", "time")): 0.3,
    frozenset(("text", "boolean")): 0.5,
    frozenset(("text", "json")): 0.6,
    frozenset(("integer", "date")): 0.3,
    frozenset(("integer", "timestamp")): 0.2,
}


@dataclass(frozen=True)
class Signals:
    """What is known of each pair; every matrix has shape (sources, targets).

    ``bm25`` depends on all attributes of the two schemas; the others on the two attributes alone.
    """

    cosine_full: np.ndarray
    cosine_name: np.ndarray
    bm25: np.ndarray
    name_similarity: np.ndarray
    type_affinity: np.ndarray
    table_similarity: np.ndarray


def type_affinity(left: str, right: str) -> float:
    """Tell how well two type families go together, 0..1; 0.5 where one is unknown."""
    if "unknown" in (left, right):
        return 0.5
    if left == right:
        return 1.0
    return _AFFINITIES.get(frozenset((left, right)), 0.0)


def overlap(left: Sequence[str], right: Sequence[str]) -> float:
    """Dice coefficient of two bags of stems, 0..1: twice what they share over what they have."""
    if not left or not right:
        return 0.0
    shared = sum((Counter(left) & Counter(right)).values())
    return 2.0 * shared / (len(left) + len(right))


def table_words(attribute: Attribute) -> list[str]:
    """Stems of an attribute's table: its name twice, since a description may be long, and the description once."""
    name = stems(name_words(attribute.table_name))
    return [*name, *name, *stems(text_words(attribute.table_description))[:30]]


def matrix_of(sources: Sequence[Attribute], targets: Sequence[Attribute], part: str) -> np.ndarray:
    """Compare column names (``part`` is ``column``) or tables (``table``) by shared stems, 0..1, for all pairs."""
    if part == "table":
        left, right = [table_words(item) for item in sources], [table_words(item) for item in targets]
    else:
        left = [stems(name_words(item.column_name)) for item in sources]
        right = [stems(name_words(item.column_name)) for item in targets]
    return overlaps(left, right)


def overlaps(left: Sequence[Sequence[str]], right: Sequence[Sequence[str]]) -> np.ndarray:
    """Return ``overlap`` of every bag with every other, float64 of shape (left, right), without a loop over pairs."""
    from scipy.sparse import csr_array

    # The second "date" of a bag is another word than its first: then what two bags share is a dot product.
    numbers: dict[tuple[str, int], int] = {}
    incidences = []
    for bags in (left, right):
        places = [
            [
                numbers.setdefault((word, turn), len(numbers))
                for word, count in Counter(bag).items()
                for turn in range(count)
            ]
            for bag in bags
        ]
        incidences.append(places)
    shared = np.zeros((len(left), len(right)))
    if numbers:
        one, other = (
            csr_array(
                (
                    np.ones(sum(map(len, places))),
                    np.array([place for row in places for place in row], dtype=np.int64),
                    np.cumsum([0, *map(len, places)]),
                ),
                shape=(len(places), len(numbers)),
            )
            for places in incidences
        )
        shared = (one @ other.T).toarray()
    sizes = np.array([len(bag) for bag in left])[:, None] + np.array([len(bag) for bag in right])[None, :]
    return np.asarray(np.divide(2.0 * shared, sizes, out=np.zeros_like(shared), where=sizes > 0))


def documents(attributes: Sequence[Attribute]) -> list[list[str]]:
    """Stems of each attribute as one document: column name twice, table name, both descriptions."""
    result = []
    for item in attributes:
        column = stems(name_words(item.column_name))
        result.append(
            [
                *column,
                *column,
                *stems(name_words(item.table_name)),
                *stems(text_words(item.column_description))[:80],
            ]
        )
    return result


def bm25(queries: Sequence[Sequence[str]], corpus: Sequence[Sequence[str]]) -> np.ndarray:
    """Score every query against every document by BM25 (Robertson and Zaragoza 2009, with idf kept above zero).

    Returns:
        float64 of shape (queries, documents); zero for an empty query or document.
    """
    counts = [Counter(document) for document in corpus]
    lengths = np.array([len(document) for document in corpus], dtype=np.float64)
    mean = lengths.mean() if len(lengths) and lengths.sum() else 1.0
    frequency = Counter(word for count in counts for word in count)
    scores = np.zeros((len(queries), len(corpus)))
    weights: dict[str, np.ndarray] = {}
    for row, query in enumerate(queries):
        for word in sorted(set(query)):
            if word not in frequency:
                continue
            if word not in weights:
                n = frequency[word]
                idf = np.log(1.0 + (len(corpus) - n + 0.5) / (n + 0.5))
                here = np.array([count.get(word, 0) for count in counts], dtype=np.float64)
                weights[word] = idf * here * (K1 + 1.0) / (here + K1 * (1.0 - B + B * lengths / mean))
            scores[row] += weights[word]
    return scores


def symmetric_bm25(sources: Sequence[Attribute], targets: Sequence[Attribute]) -> np.ndarray:
    """Mean of the sources asking the targets and the targets asking the sources, each divided by the query's length.

    Divided, because a long description would otherwise score high with everything.
    """
    left, right = documents(sources), documents(targets)
    forward, backward = bm25(left, right), bm25(right, left).T
    lengths_left = np.array([max(len(set(document)), 1) for document in left], dtype=np.float64)
    lengths_right = np.array([max(len(set(document)), 1) for document in right], dtype=np.float64)
    scores: np.ndarray = (forward / np.sqrt(lengths_left)[:, None] + backward / np.sqrt(lengths_right)[None, :]) / 2.0
    return scores


def all_signals(
    sources: Sequence[Attribute],
    targets: Sequence[Attribute],
    full: tuple[np.ndarray, np.ndarray],
    name: tuple[np.ndarray, np.ndarray],
) -> Signals:
    """Compute every signal for every pair.

    Args:
        sources: source attributes.
        targets: target attributes.
        full: unit vectors of the full view, shapes (sources, d) and (targets, d).
        name: unit vectors of the name view, likewise.
    """
    families = sorted({item.type_family for item in (*sources, *targets)})
    table = np.array([[type_affinity(left, right) for right in families] for left in families])
    place = {family: number for number, family in enumerate(families)}
    affinity = table[
        np.ix_([place[item.type_family] for item in sources], [place[item.type_family] for item in targets])
    ]
    return Signals(
        cosine_full=full[0].astype(np.float64) @ full[1].T.astype(np.float64),
        cosine_name=name[0].astype(np.float64) @ name[1].T.astype(np.float64),
        bm25=symmetric_bm25(sources, targets),
        name_similarity=matrix_of(sources, targets, "column"),
        type_affinity=affinity,
        table_similarity=matrix_of(sources, targets, "table"),
    )
