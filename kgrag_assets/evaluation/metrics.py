"""The metrics of a task's mapping against its reference, as rows of ``match_metrics``."""

from __future__ import annotations

import polars as pl

from kgrag_assets.evaluation.ranking_metrics import (
    Ranked,
    average_precision,
    best_f1,
    bootstrap_f1,
    first_hits,
    hit_at,
    mean_reciprocal_rank,
    precision_recall_f1,
)
from kgrag_assets.rows.llm_judgments import ANSWERED_STATUSES
from kgrag_assets.rows.match_metrics import MATCH_METRICS
from kgrag_assets.rows.table import with_row_key
from kgrag_assets.settings import EvaluationSettings

METRICS_VERSION = "metrics-1"

_MEANINGS = {
    "precision": "Share of the proposed pairs that are true.",
    "recall": "Share of the true pairs that are proposed.",
    "f1": "Harmonic mean of precision and recall of the proposed pairs.",
    "best_f1": "Largest F1 that any threshold on the score of all judged pairs reaches.",
    "hit@1": "Share of the source attributes with a true target whose first target is true.",
    "hit@3": "Share of the source attributes with a true target that have one among the first 3.",
    "hit@5": "Share of the source attributes with a true target that have one among the first 5.",
    "mrr": "Mean reciprocal rank of the first true target, over source attributes that have one.",
    "average_precision": "Area under the precision-recall curve of all judged pairs, in order of score.",
    "pair_completeness": "Share of the true pairs that blocking kept.",
    "reduction_ratio": "Share of all pairs that need not be judged.",
    "true_pairs": "Number of true pairs in the reference.",
    "lost_by_blocking": "True pairs that never became candidates.",
    "lost_by_judging": "True pairs that were judged and not proposed.",
    "unanswered_pairs": "Judged pairs without an answer that can be read; they count as not proposed.",
}


def evaluate(
    mappings: pl.DataFrame,
    candidates: pl.DataFrame,
    judgments: pl.DataFrame,
    attributes: pl.DataFrame,
    reference: pl.DataFrame,
    settings: EvaluationSettings,
) -> pl.DataFrame:
    """Measure a mapping.

    Args:
        mappings: rows of ``attribute_mappings`` of one task.
        candidates: rows of ``candidate_pairs``.
        judgments: rows of ``llm_judgments``.
        attributes: rows of ``schema_attributes``.
        reference: rows of ``reference_correspondences``.
        settings: number of bootstrap samples, and the seed.

    Returns:
        rows of ``match_metrics``; none without a reference.
    """
    if reference.is_empty():
        return MATCH_METRICS.empty()
    names = {
        (side, table, column): attribute_id
        for side, table, column, attribute_id in attributes.select(
            "side", "table_name", "column_name", "attribute_id"
        ).iter_rows()
    }
    truth = frozenset(
        (names["source", row[0], row[1]], names["target", row[2], row[3]])
        for row in reference.select("source_table", "source_column", "target_table", "target_column").iter_rows()
    )
    judged = mappings.filter(pl.col("pair_id").is_not_null())
    pairs = judged.select("source_attribute_id", "target_attribute_id", "score").iter_rows()
    ranked = Ranked({(source, target): score for source, target, score in pairs}, truth)
    chosen = judged.filter(pl.col("decision") == "proposed")
    proposed = frozenset(chosen.select("source_attribute_id", "target_attribute_id").iter_rows())
    sources = attributes.filter(pl.col("side") == "source")["attribute_id"].to_list()
    total = len(sources) * (attributes.height - len(sources))
    kept = frozenset(candidates.select("source_attribute_id", "target_attribute_id").iter_rows())
    precision, recall, f1 = precision_recall_f1(proposed, truth)
    first = first_hits(ranked)
    unanswered = judgments.filter(~pl.col("parse_status").is_in(ANSWERED_STATUSES)).height
    values: dict[str, tuple[float | None, int]] = {
        "precision": (precision, len(proposed)),
        "recall": (recall, len(truth)),
        "f1": (f1, len(proposed | truth)),
        "best_f1": (best_f1(ranked), len(ranked.score)),
        **{f"hit@{k}": (hit_at(first, k), len(first)) for k in (1, 3, 5)},
        "mrr": (mean_reciprocal_rank(first), len(first)),
        "average_precision": (average_precision(ranked), len(ranked.score)),
        "pair_completeness": (len(truth & kept) / len(truth), len(truth)),
        "reduction_ratio": (1.0 - len(kept) / total if total else None, total),
        "true_pairs": (float(len(truth)), len(truth)),
        "lost_by_blocking": (float(len(truth - kept)), len(truth)),
        "lost_by_judging": (float(len((truth & kept) - proposed)), len(truth)),
        "unanswered_pairs": (float(unanswered), judgments.height),
    }
    ends = bootstrap_f1(proposed, truth, sources, settings.bootstrap_samples, settings.seed)
    rows = [
        {
            "task": str(reference["task"][0]),
            "metric": metric,
            "value": value,
            "ci_low": ends[metric][0] if metric in ends else None,
            "ci_high": ends[metric][1] if metric in ends else None,
            "n": count,
            "meaning": _MEANINGS[metric],
        }
        for metric, (value, count) in values.items()
    ]
    columns = {name: dtype for name, dtype in MATCH_METRICS.schema.items() if name != "row_key"}
    return with_row_key(pl.DataFrame(rows, schema=columns))
