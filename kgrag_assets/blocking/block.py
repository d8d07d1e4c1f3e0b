"""Choosing the pairs: the best partners of each attribute from both sides, within the budget."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from kgrag_assets.blocking.signals import Signals, all_signals
from kgrag_assets.rows.candidate_pairs import CANDIDATE_PAIRS
from kgrag_assets.rows.embeddings import vectors_of
from kgrag_assets.rows.keys import pair_id_of
from kgrag_assets.rows.table import TableError, with_row_key
from kgrag_assets.schemas.attribute import Attribute, attributes_of
from kgrag_assets.settings import BlockingSettings

BLOCKING_VERSION = "blocking-1"

# Signals that the fused score is made of. Each is standardised per source and per target before they are
# averaged, so that an attribute that resembles everything has no advantage; the weights are all one.
FUSED = ("cosine_full", "cosine_name", "bm25", "name_similarity", "table_similarity", "type_affinity")


@dataclass(frozen=True)
class BlockingReport:
    """How many pairs there are and what became of them."""

    total_pairs: int
    kept: int
    dropped_not_in_top_k: int
    dropped_by_budget: int
    budget: int

    @property
    def reduction_ratio(self) -> float:
        """Share of all pairs that need not be judged, 0..1."""
        return 1.0 - self.kept / self.total_pairs if self.total_pairs else 0.0


@dataclass(frozen=True)
class Blocking:
    """The candidate pairs and the count of the others."""

    pairs: pl.DataFrame
    report: BlockingReport


def block_pairs(attributes: pl.DataFrame, embeddings: pl.DataFrame, settings: BlockingSettings) -> Blocking:
    """Choose the pairs worth judging.

    A pair is near if it is among the best ``k_vector`` by cosine or the best ``k_lexical`` by BM25 of its source
    or of its target. Of the near pairs, the best by fused score are kept up to the budget, but of each source
    attribute its best pair stays whatever the budget says: an attribute without a candidate cannot be mapped.

    Args:
        attributes: rows of ``schema_attributes`` of one task.
        embeddings: rows of ``attribute_embeddings`` of the task, views ``name`` and ``full``.
        settings: k and budget.

    Raises:
        TableError: an attribute has no vector, or the vectors are of several models.
    """
    by_id = attributes_of(attributes)
    sources = [item for item in by_id.values() if item.side == "source"]
    targets = [item for item in by_id.values() if item.side == "target"]
    total = len(sources) * len(targets)
    budget = min(total, max(settings.budget_floor, math.ceil(settings.budget_share * total)))
    if not total:
        return Blocking(CANDIDATE_PAIRS.empty(), BlockingReport(0, 0, 0, 0, 0))
    signals = all_signals(
        sources, targets, *(_vectors(embeddings, sources, targets, view) for view in ("full", "name"))
    )
    fused = fused_score(signals)
    vector = signals.cosine_full + signals.cosine_name
    ranks = {
        "vector_rank_source": rank_rows(vector, fused),
        "vector_rank_target": rank_rows(vector.T, fused.T).T,
        "lexical_rank_source": rank_rows(signals.bm25, fused),
        "lexical_rank_target": rank_rows(signals.bm25.T, fused.T).T,
    }
    near = np.zeros((len(sources), len(targets)), dtype=bool)
    for name, values in ranks.items():
        near |= values <= (settings.k_vector if name.startswith("vector") else settings.k_lexical)
    kept = _within_budget(fused, near, budget)
    task = str(attributes["task"][0])
    pairs = _frame(task, sources, targets, signals, fused, ranks, kept)
    report = BlockingReport(
        total_pairs=total,
        kept=len(kept),
        dropped_not_in_top_k=int((~near).sum()),
        dropped_by_budget=int(near.sum()) - len(kept),
        budget=budget,
    )
    return Blocking(pairs, report)


def fused_score(signals: Signals) -> np.ndarray:
    """Fuse the signals without training: the mean of each one standardised over its row and over its column.

    Returns:
        float64 of shape (sources, targets), scaled to 0..1 over all pairs.
    """
    total = np.zeros_like(signals.cosine_full)
    for name in FUSED:
        total += double_standardised(getattr(signals, name))
    low, high = float(total.min()), float(total.max())
    scaled: np.ndarray = (total - low) / (high - low) if high > low else np.full_like(total, 0.5)
    return scaled


def double_standardised(values: np.ndarray) -> np.ndarray:
    """Mean of the z-scores within each row and within each column; zero where a row or column is constant."""
    mean: np.ndarray = (_standardised(values, 1) + _standardised(values, 0)) / 2.0
    return mean


def _standardised(values: np.ndarray, axis: int) -> np.ndarray:
    centred = values - values.mean(axis=axis, keepdims=True)
    spread = values.std(axis=axis, keepdims=True)
    # A signal that is constant up to rounding says nothing.
    return np.divide(centred, spread, out=np.zeros_like(centred), where=spread > 1e-9)


def rank_rows(values: np.ndarray, tie_break: np.ndarray) -> np.ndarray:
    """Rank each row's values from 1, best first; equal values by ``tie_break``, then by place."""
    ranks = np.empty(values.shape, dtype=np.int32)
    for row in range(values.shape[0]):
        order = np.lexsort((-tie_break[row], -np.round(values[row], 9)))
        ranks[row, order] = np.arange(1, values.shape[1] + 1, dtype=np.int32)
    return ranks


def _within_budget(fused: np.ndarray, near: np.ndarray, budget: int) -> list[tuple[int, int]]:
    rows, columns = np.nonzero(near)
    order = np.lexsort((columns, rows, -fused[rows, columns]))
    ranked = [(int(rows[place]), int(columns[place])) for place in order]
    first: dict[int, tuple[int, int]] = {}
    for pair in ranked:
        first.setdefault(pair[0], pair)
    must = set(first.values())
    room = max(budget - len(must), 0)
    kept = must | set([pair for pair in ranked if pair not in must][:room])
    return [pair for pair in ranked if pair in kept]


def _vectors(
    embeddings: pl.DataFrame, sources: Sequence[Attribute], targets: Sequence[Attribute], view: str
) -> tuple[np.ndarray, np.ndarray]:
    rows = embeddings.filter(pl.col("view") == view)
    place = {attribute_id: row for row, attribute_id in enumerate(rows["attribute_id"])}
    missing = [item for item in (*sources, *targets) if item.attribute_id not in place]
    if missing:
        raise TableError(
            f"{len(missing)} attributes have no vector of the view {view!r}, the first is "
            f"{missing[0].table_name}.{missing[0].column_name}: bring attribute_embeddings up to date"
        )
    vectors = vectors_of(rows)
    return (
        vectors[[place[item.attribute_id] for item in sources]],
        vectors[[place[item.attribute_id] for item in targets]],
    )


def _frame(
    task: str,
    sources: Sequence[Attribute],
    targets: Sequence[Attribute],
    signals: Signals,
    fused: np.ndarray,
    ranks: dict[str, np.ndarray],
    kept: Sequence[tuple[int, int]],
) -> pl.DataFrame:
    rows = []
    for rank, (row, column) in enumerate(kept, start=1):
        source, target = sources[row], targets[column]
        rows.append(
            {
                "task": task,
                "pair_id": pair_id_of(source.attribute_id, target.attribute_id),
                "source_table": source.table_name,
                "source_column": source.column_name,
                "target_table": target.table_name,
                "target_column": target.column_name,
                "source_attribute_id": source.attribute_id,
                "target_attribute_id": target.attribute_id,
                **{name: int(values[row, column]) for name, values in ranks.items()},
                # Rounded: the last bits differ between machines, and an equal pair must keep its key.
                **{name: round(float(getattr(signals, name)[row, column]), 6) for name in Signals.__dataclass_fields__},
                "blocking_score": round(float(fused[row, column]), 6),
                "blocking_rank": rank,
            }
        )
    columns = {name: dtype for name, dtype in CANDIDATE_PAIRS.schema.items() if name != "row_key"}
    return with_row_key(pl.DataFrame(rows, schema=columns))
