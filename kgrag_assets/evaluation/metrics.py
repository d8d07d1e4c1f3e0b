"""``match_metrics``: a mapping measured against its reference."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import polars as pl

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
from kgrag_assets.rows.llm_judgments import ANSWERED_STATUSES
from kgrag_assets.rows.match_metrics import MATCH_METRICS
from kgrag_assets.rows.table import ROW_KEY, with_row_key
from kgrag_assets.settings import EvaluationSettings

METRICS_VERSION = "metrics-1"

HIT_RANKS = (1, 3, 5)


@dataclass(frozen=True)
class RankedPair:
    """A pair with its score and rank in a ranked mapping, and whether it is proposed."""

    source: tuple[str, str]
    target: tuple[str, str]
    score: float
    rank: int
    proposed: bool


@dataclass(frozen=True)
class Metric:
    """One measure of a task."""

    name: str
    value: float | None
    interval: Interval
    n: int
    meaning: str


_NONE = Interval(None, None)


def _per_source(sources: list[tuple[str, str]], marks: Iterable[tuple[str, str]]) -> np.ndarray:
    counts: dict[tuple[str, str], int] = defaultdict(int)
    for source in marks:
        counts[source] += 1
    return np.array([counts[source] for source in sources], dtype=np.float64)


def set_metrics(
    pairs: list[RankedPair],
    truth: set[tuple[tuple[str, str], tuple[str, str]]],
    sources: list[tuple[str, str]],
    settings: EvaluationSettings,
) -> list[Metric]:
    """Measure the proposed pairs as a set.

    Args:
        pairs: all ranked pairs.
        truth: the true pairs.
        sources: all source attributes, the units that the bootstrap draws.
        settings: resamples and seed.
    """
    proposed = {(pair.source, pair.target) for pair in pairs if pair.proposed}
    hits = _per_source(sources, (source for source, _ in proposed & truth))
    chosen = _per_source(sources, (source for source, _ in proposed))
    true = _per_source(sources, (source for source, _ in truth))

    def metric(name: str, meaning: str, n: int, value: Callable[[float, float, float], float | None]) -> Metric:
        def resampled(drawn: np.ndarray) -> float | None:
            return value(float(hits[drawn].sum()), float(chosen[drawn].sum()), float(true[drawn].sum()))

        interval = bootstrap(resampled, len(sources), settings.bootstrap_samples, settings.seed)
        return Metric(name, value(float(hits.sum()), float(chosen.sum()), float(true.sum())), interval, n, meaning)

    return [
        metric("precision", "Share of the proposed pairs that are true.", len(proposed), lambda h, c, _: ratio(h, c)),
        metric("recall", "Share of the true pairs that are proposed.", len(truth), lambda h, _, t: ratio(h, t)),
        metric("f1", "Harmonic mean of precision and recall of the proposed pairs.", len(proposed | truth), f1_of),
    ]


def rank_metrics(
    pairs: list[RankedPair],
    truth: set[tuple[tuple[str, str], tuple[str, str]]],
    sources: list[tuple[str, str]],
    settings: EvaluationSettings,
) -> list[Metric]:
    """Measure the ranked lists; arguments as for ``set_metrics``.

    A source attribute with a true pair of which none was ranked counts as a list without a hit.
    """
    first: dict[tuple[str, str], float] = {source: float("inf") for source, _ in truth}
    by_source: dict[tuple[str, str], list[RankedPair]] = defaultdict(list)
    for pair in pairs:
        by_source[pair.source].append(pair)
        if (pair.source, pair.target) in truth:
            first[pair.source] = min(first[pair.source], float(pair.rank))
    ranks = np.array([first[source] for source in sources if source in first], dtype=np.float64)

    def by_list(name: str, meaning: str, value: Callable[[np.ndarray], float | None]) -> Metric:
        interval = bootstrap(lambda drawn: value(ranks[drawn]), len(ranks), settings.bootstrap_samples, settings.seed)
        return Metric(name, value(ranks), interval, len(ranks), meaning)

    scores = [np.array([pair.score for pair in by_source[source]], dtype=np.float64) for source in sources]
    is_true = [
        np.array([(pair.source, pair.target) in truth for pair in by_source[source]], dtype=bool) for source in sources
    ]
    true = _per_source(sources, (source for source, _ in truth))

    def by_pair(name: str, meaning: str, value: Callable[[np.ndarray, np.ndarray, int], float | None]) -> Metric:
        def measured(drawn: Iterable[int]) -> float | None:
            places = list(drawn)
            if not places:
                return None
            return value(
                np.concatenate([scores[place] for place in places]),
                np.concatenate([is_true[place] for place in places]),
                int(true[places].sum()),
            )

        interval = bootstrap(
            lambda drawn: measured(drawn.tolist()), len(sources), settings.bootstrap_samples, settings.seed
        )
        return Metric(name, measured(range(len(sources))), interval, len(pairs), meaning)

    found = [
        by_list(
            f"hit@{k}",
            f"Share of source attributes with a true pair that have one among their first {k}.",
            lambda values, k=k: hit_at(values, k),  # type: ignore[misc]  # a default binds the loop's value
        )
        for k in HIT_RANKS
    ]
    return [
        *found,
        by_list("mrr", "Mean of 1 / rank of the first true pair of a source attribute.", mean_reciprocal_rank),
        by_pair("average_precision", "Average precision over all ranked pairs by score.", average_precision),
        by_pair("best_f1", "F1 at the threshold that would be best; needs the truth, so an upper bound.", best_f1),
    ]


def ranked_pairs(mappings: pl.DataFrame) -> list[RankedPair]:
    """Turn rows of ``attribute_mappings`` into ranked pairs, without the rows of no match."""
    columns = ("source_table", "source_column", "target_table", "target_column", "score", "rank", "decision")
    return [
        RankedPair((row[0], row[1]), (row[2], row[3]), float(row[4]), int(row[5]), row[6] == "proposed")
        for row in mappings.filter(pl.col("decision") != "no_match").select(columns).iter_rows()
    ]


def pair_names(frame: pl.DataFrame) -> set[tuple[tuple[str, str], tuple[str, str]]]:
    """Return the pairs of a frame as ((source table, column), (target table, column))."""
    columns = ("source_table", "source_column", "target_table", "target_column")
    return {((row[0], row[1]), (row[2], row[3])) for row in frame.select(columns).iter_rows()}


def evaluate(
    mappings: pl.DataFrame,
    candidates: pl.DataFrame,
    attributes: pl.DataFrame,
    reference: pl.DataFrame,
    settings: EvaluationSettings,
) -> pl.DataFrame:
    """Measure one task's mapping.

    Args:
        mappings: rows of ``attribute_mappings``.
        candidates: rows of ``candidate_pairs``.
        attributes: rows of ``schema_attributes``.
        reference: rows of ``reference_correspondences``.
        settings: resamples and seed of the bootstrap, whose units are the source attributes.

    Returns:
        Rows of ``match_metrics``; none where the reference is empty.
    """
    if reference.is_empty():
        return MATCH_METRICS.empty()
    names = attributes.filter(pl.col("side") == "source").select("table_name", "column_name")
    sources: list[tuple[str, str]] = [(table, column) for table, column in names.iter_rows()]
    targets = attributes.filter(pl.col("side") == "target").height
    truth, pairs = pair_names(reference), ranked_pairs(mappings)
    judged = mappings.filter(pl.col("pair_id").is_not_null())
    metrics = [
        *set_metrics(pairs, truth, sources, settings),
        *rank_metrics(pairs, truth, sources, settings),
        *blocking_metrics(truth, pair_names(judged), candidates.height, sources, targets, settings),
        *_counts(pairs, truth, judged),
    ]
    rows = [
        {
            "task": str(reference["task"][0]),
            "metric": metric.name,
            "value": _rounded(metric.value),
            "ci_low": _rounded(metric.interval.low),
            "ci_high": _rounded(metric.interval.high),
            "n": metric.n,
            "meaning": metric.meaning,
        }
        for metric in metrics
    ]
    schema = {name: dtype for name, dtype in MATCH_METRICS.schema.items() if name != ROW_KEY}
    return MATCH_METRICS.conform(with_row_key(pl.DataFrame(rows, schema=schema)))


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 9)


def blocking_metrics(
    truth: set[tuple[tuple[str, str], tuple[str, str]]],
    kept: set[tuple[tuple[str, str], tuple[str, str]]],
    judged: int,
    sources: list[tuple[str, str]],
    targets: int,
    settings: EvaluationSettings,
) -> list[Metric]:
    """Measure blocking: ``kept`` are the pairs that ``judged`` candidates cover, ``targets`` the target attributes."""
    caught = _per_source(sources, (source for source, _ in truth & kept))
    true = _per_source(sources, (source for source, _ in truth))
    total = len(sources) * targets
    saved = ratio(judged, total)
    return [
        Metric(
            "pair_completeness",
            ratio(float(caught.sum()), float(true.sum())),
            bootstrap(
                lambda drawn: ratio(float(caught[drawn].sum()), float(true[drawn].sum())),
                len(sources),
                settings.bootstrap_samples,
                settings.seed,
            ),
            len(truth),
            "Share of the true pairs that blocking kept.",
        ),
        Metric(
            "reduction_ratio",
            None if saved is None else 1.0 - saved,
            _NONE,
            total,
            "Share of all pairs that need not be judged.",
        ),
    ]


def _counts(
    pairs: list[RankedPair],
    truth: set[tuple[tuple[str, str], tuple[str, str]]],
    judged: pl.DataFrame,
) -> list[Metric]:
    kept = pair_names(judged)
    answered = pair_names(judged.filter(pl.col("parse_status").is_in(ANSWERED_STATUSES)))
    proposed = {(pair.source, pair.target) for pair in pairs if pair.proposed}

    def count(name: str, found: int, of: int, meaning: str) -> Metric:
        return Metric(name, float(found), _NONE, of, meaning)

    return [
        count("true_pairs", len(truth), len(truth), "True pairs in the reference."),
        count("unanswered_pairs", len(kept - answered), len(kept), "Pairs without a readable answer."),
        count("true_lost_by_blocking", len(truth - kept), len(truth), "True pairs that never became candidates."),
        count(
            "true_unanswered",
            len((truth & kept) - answered - proposed),
            len(truth),
            "True pairs not proposed because the judge gave no readable answer.",
        ),
        count(
            "true_lost_by_judging",
            len((truth & answered & kept) - proposed),
            len(truth),
            "True pairs that were judged and not proposed.",
        ),
    ]
