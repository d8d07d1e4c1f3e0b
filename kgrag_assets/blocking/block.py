"""Choosing the pairs: the best partners of each attribute from both sides, within the budget."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from kgrag_assets.blocking.fusion import COMPARED, fuse, same_name_mean
from kgrag_assets.blocking.signals import SIGNALS_VERSION, Signals, all_signals
from kgrag_assets.rows.candidate_pairs import CANDIDATE_PAIRS
from kgrag_assets.rows.embeddings import vectors_of
from kgrag_assets.rows.keys import pair_id_of
from kgrag_assets.rows.table import TableError, with_row_key
from kgrag_assets.schemas.attribute import Attribute, attributes_of
from kgrag_assets.schemas.words import split_name
from kgrag_assets.settings import BlockingSettings

BLOCKING_VERSION = f"blocking-2/{SIGNALS_VERSION}"

_VIEWS = tuple(sorted({view for left, right, _ in COMPARED for view in (left, right)} | {"name", "full"}))


@dataclass(frozen=True)
class BlockingReport:
    """How many pairs there are and what became of them.

    ``near`` counts the pairs that each reason brought in, a pair once for each of its reasons.
    """

    total_pairs: int
    kept: int
    dropped_not_in_top_k: int
    dropped_by_budget: int
    budget: int
    near: Mapping[str, int]

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

    A pair is near if it is among the best ``k_vector`` by cosine (of the full view) or the best ``k_lexical`` by
    BM25, of its source or of its target; or if a pair of the same two column names is, since the ``person_id`` of
    twelve tables would use up the k by themselves. Of the near pairs, the best by the fused score (``fusion``) are
    kept up to the budget; of each source attribute its best pair stays as long as the budget reaches, since an
    attribute without a candidate cannot be mapped.

    Args:
        attributes: rows of ``schema_attributes`` of one task.
        embeddings: rows of ``attribute_embeddings`` of the task, all views.
        settings: k and budget.

    Raises:
        TableError: an attribute has no vector of a view, or the vectors are of several models.
    """
    by_id = attributes_of(attributes)
    sources = [item for item in by_id.values() if item.side == "source"]
    targets = [item for item in by_id.values() if item.side == "target"]
    total = len(sources) * len(targets)
    if not total:
        return Blocking(CANDIDATE_PAIRS.empty(), BlockingReport(0, 0, 0, 0, 0, {}))
    budget = min(total, max(settings.budget_floor, math.ceil(settings.budget_share * total)))
    left, right = _vectors(embeddings, sources), _vectors(embeddings, targets)
    signals = all_signals(sources, targets, (left["full"], right["full"]), (left["name"], right["name"]))
    source_groups, target_groups = _groups(sources), _groups(targets)
    fused = fuse(left, right, signals.name_similarity, source_groups, target_groups)
    ranks = {
        "vector_rank_source": rank_rows(signals.cosine_full, fused),
        "vector_rank_target": rank_rows(signals.cosine_full.T, fused.T).T,
        "lexical_rank_source": rank_rows(signals.bm25, fused),
        "lexical_rank_target": rank_rows(signals.bm25.T, fused.T).T,
    }
    nearness = {
        name: values <= (settings.k_vector if name.startswith("vector") else settings.k_lexical)
        for name, values in ranks.items()
    }
    near = with_namesakes(np.logical_or.reduce(list(nearness.values())), source_groups[0], target_groups[0])
    # With both k at 0 nothing is near, but an attribute without a candidate cannot be mapped.
    alone = np.flatnonzero(~near.any(axis=1))
    near[alone, fused[alone].argmax(axis=1)] = True
    kept = _within_budget(fused, near, budget)
    pairs = _frame(str(attributes["task"][0]), sources, targets, signals, _unit_scale(fused), ranks, kept)
    report = BlockingReport(
        total_pairs=total,
        kept=len(kept),
        dropped_not_in_top_k=int((~near).sum()),
        dropped_by_budget=int(near.sum()) - len(kept),
        budget=budget,
        near={name: int(values.sum()) for name, values in nearness.items()},
    )
    return Blocking(pairs, report)


def with_namesakes(near: np.ndarray, source_names: Sequence[str], target_names: Sequence[str]) -> np.ndarray:
    """Add to the near pairs, bool of shape (sources, targets), all pairs of the same two column names."""
    return same_name_mean(near.astype(np.float64), source_names, target_names) > 0.0


def _groups(attributes: Sequence[Attribute]) -> tuple[list[str], list[str]]:
    # Column names that differ by case or separators only are one name.
    return [" ".join(split_name(item.column_name)) or item.column_name for item in attributes], [
        item.table_name for item in attributes
    ]


def _unit_scale(fused: np.ndarray) -> np.ndarray:
    low, high = float(fused.min()), float(fused.max())
    return (fused - low) / (high - low) if high > low else np.full_like(fused, 0.5)


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
    must = set(list(first.values())[:budget])
    kept = must.union([pair for pair in ranked if pair not in must][: budget - len(must)])
    return [pair for pair in ranked if pair in kept]


def _vectors(embeddings: pl.DataFrame, attributes: Sequence[Attribute]) -> dict[str, np.ndarray]:
    found: dict[str, np.ndarray] = {}
    for view in _VIEWS:
        rows = embeddings.filter(pl.col("view") == view)
        place = {attribute_id: row for row, attribute_id in enumerate(rows["attribute_id"])}
        missing = [item for item in attributes if item.attribute_id not in place]
        if missing:
            raise TableError(
                f"{len(missing)} attributes have no vector of the view {view!r}, the first is "
                f"{missing[0].table_name}.{missing[0].column_name}: bring attribute_embeddings up to date"
            )
        found[view] = vectors_of(rows)[[place[item.attribute_id] for item in attributes]]
    return found


def _rounded(value: float) -> float:
    # Adding 0 makes -0.0 to 0.0: which of the two a tiny value becomes differs between machines.
    return round(float(value), 6) + 0.0


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
                **{name: _rounded(getattr(signals, name)[row, column]) for name in Signals.__dataclass_fields__},
                "blocking_score": _rounded(fused[row, column]),
                "blocking_rank": rank,
            }
        )
    columns = {name: dtype for name, dtype in CANDIDATE_PAIRS.schema.items() if name != "row_key"}
    return with_row_key(pl.DataFrame(rows, schema=columns))
