"""Choosing the pairs: the best partners of each group of attributes from both sides, within the budget."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from kgrag_assets.blocking.fusion import COMPARED, fuse
from kgrag_assets.blocking.groups import GROUPS_VERSION, Grouping, group_attributes, groups_frame, groups_table
from kgrag_assets.blocking.signals import SIGNALS_VERSION, Signals, all_signals
from kgrag_assets.rows.attribute_groups import ATTRIBUTE_GROUPS
from kgrag_assets.rows.candidate_pairs import CANDIDATE_PAIRS
from kgrag_assets.rows.embeddings import vectors_of
from kgrag_assets.rows.keys import pair_id_of
from kgrag_assets.rows.table import TableError, with_row_key
from kgrag_assets.schemas.attribute import Attribute, attributes_of
from kgrag_assets.schemas.words import split_name
from kgrag_assets.settings import BlockingSettings

BLOCKING_VERSION = f"blocking-3/{GROUPS_VERSION}/{SIGNALS_VERSION}"

_VIEWS = tuple(sorted({view for left, right, _ in COMPARED for view in (left, right)} | {"name", "full"}))


@dataclass(frozen=True)
class BlockingReport:
    """How many pairs there are and what became of them.

    ``total_pairs`` counts pairs of attributes, ``group_pairs`` those of groups; the other numbers count pairs of
    groups. ``near`` counts the pairs that each reason brought in, a pair once for each of its reasons.
    """

    total_pairs: int
    group_pairs: int
    kept: int
    pairs_covered: int
    dropped_not_in_top_k: int
    dropped_by_budget: int
    budget: int
    near: Mapping[str, int]

    @property
    def reduction_ratio(self) -> float:
        """Share of all pairs of attributes that need not be judged, 0..1."""
        return 1.0 - self.kept / self.total_pairs if self.total_pairs else 0.0


@dataclass(frozen=True)
class Blocking:
    """The candidate pairs of representatives, the groups they stand for, and the count of the other pairs."""

    pairs: pl.DataFrame
    groups: pl.DataFrame
    report: BlockingReport


@dataclass(frozen=True)
class ScoredGroups:
    """All pairs of two schemas, scored: attributes, groups, signals, and the fused scores.

    ``attribute_scores`` has shape (sources, targets), ``scores`` shape (source groups, target groups): the best of
    their members' pairs.
    """

    sources: Sequence[Attribute]
    targets: Sequence[Attribute]
    source_groups: Grouping
    target_groups: Grouping
    signals: Signals
    attribute_scores: np.ndarray
    scores: np.ndarray


def score_all_pairs(attributes: pl.DataFrame, embeddings: pl.DataFrame, settings: BlockingSettings) -> ScoredGroups:
    """Group the attributes of both sides and score every pair; see ``block_pairs``.

    Raises:
        TableError: an attribute has no vector of a view, or the vectors are of several models.
    """
    by_id = attributes_of(attributes)
    sources = [item for item in by_id.values() if item.side == "source"]
    targets = [item for item in by_id.values() if item.side == "target"]
    left, right = _vectors(embeddings, sources), _vectors(embeddings, targets)
    signals = all_signals(sources, targets, (left["full"], right["full"]), (left["name"], right["name"]))
    fused = fuse(left, right, signals.name_similarity, _names(sources), _names(targets))
    source_groups = group_attributes(sources, left["description"], group=settings.group)
    target_groups = group_attributes(targets, right["description"], group=settings.group)
    scores = best_of_groups(fused, source_groups, target_groups)
    return ScoredGroups(sources, targets, source_groups, target_groups, signals, fused, scores)


def best_of_groups(values: np.ndarray, sources: Grouping, targets: Grouping) -> np.ndarray:
    """Return the best value of all pairs of members, float64 of shape (source groups, target groups)."""
    rows = np.full((len(sources.representative), values.shape[1]), -np.inf)
    np.maximum.at(rows, sources.number, values)
    best = np.full((len(targets.representative), rows.shape[0]), -np.inf)
    np.maximum.at(best, targets.number, rows.T)
    return best.T


def block_pairs(attributes: pl.DataFrame, embeddings: pl.DataFrame, settings: BlockingSettings) -> Blocking:
    """Choose the pairs worth judging.

    Attributes of one side that mean the same form a group, which is judged once (``groups``). A pair of groups is near
    if it is among the best ``k_vector`` by cosine (of the full view) or the best ``k_lexical`` by BM25, of its source
    or of its target. Of the near pairs, the best by the fused score (``fusion``) are kept up to the budget, a share of
    all pairs of attributes; of each source group its best pair stays as long as the budget reaches, since an attribute
    without a candidate cannot be mapped.

    Args:
        attributes: rows of ``schema_attributes`` of one task.
        embeddings: rows of ``attribute_embeddings`` of the task, all views.
        settings: k, budget, and whether attributes are grouped.

    Raises:
        TableError: an attribute has no vector of a view, or the vectors are of several models.
    """
    sides = attributes["side"].to_list()
    total = sides.count("source") * sides.count("target")
    if not total:
        return Blocking(CANDIDATE_PAIRS.empty(), ATTRIBUTE_GROUPS.empty(), BlockingReport(0, 0, 0, 0, 0, 0, 0, {}))
    scored = score_all_pairs(attributes, embeddings, settings)
    budget = min(scored.scores.size, budget_of(total, settings))
    cosine = best_of_groups(scored.signals.cosine_full, scored.source_groups, scored.target_groups)
    words = best_of_groups(scored.signals.bm25, scored.source_groups, scored.target_groups)
    ranks = {
        "vector_rank_source": rank_rows(cosine, scored.scores),
        "vector_rank_target": rank_rows(cosine.T, scored.scores.T).T,
        "lexical_rank_source": rank_rows(words, scored.scores),
        "lexical_rank_target": rank_rows(words.T, scored.scores.T).T,
    }
    nearness = {
        name: values <= (settings.k_vector if name.startswith("vector") else settings.k_lexical)
        for name, values in ranks.items()
    }
    near = np.logical_or.reduce(list(nearness.values()))
    # With both k at 0 nothing is near, but an attribute without a candidate cannot be mapped.
    alone = np.flatnonzero(~near.any(axis=1))
    near[alone, scored.scores[alone].argmax(axis=1)] = True
    kept = _within_budget(scored.scores, near, budget)
    task = str(attributes["task"][0])
    pairs = _frame(task, scored, _unit_scale(scored.scores), ranks, kept)
    rows = groups_frame(task, scored.sources, scored.source_groups)
    rows += groups_frame(task, scored.targets, scored.target_groups)
    report = BlockingReport(
        total_pairs=total,
        group_pairs=scored.scores.size,
        kept=len(kept),
        pairs_covered=int(pairs["pairs_covered"].sum()),
        dropped_not_in_top_k=int((~near).sum()),
        dropped_by_budget=int(near.sum()) - len(kept),
        budget=budget,
        near={name: int(values.sum()) for name, values in nearness.items()},
    )
    return Blocking(pairs, groups_table(rows), report)


def budget_of(total_pairs: int, settings: BlockingSettings) -> int:
    """Return how many pairs may be judged of so many pairs of attributes."""
    return min(total_pairs, max(settings.budget_floor, math.ceil(settings.budget_share * total_pairs)))


def _names(attributes: Sequence[Attribute]) -> tuple[list[str], list[str]]:
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
    scored: ScoredGroups,
    fused: np.ndarray,
    ranks: dict[str, np.ndarray],
    kept: Sequence[tuple[int, int]],
) -> pl.DataFrame:
    rows = []
    source_sizes, target_sizes = scored.source_groups.sizes, scored.target_groups.sizes
    for rank, (row, column) in enumerate(kept, start=1):
        left = int(scored.source_groups.representative[row])
        right = int(scored.target_groups.representative[column])
        source, target = scored.sources[left], scored.targets[right]
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
                "pairs_covered": int(source_sizes[row] * target_sizes[column]),
                **{name: int(values[row, column]) for name, values in ranks.items()},
                # Rounded: the last bits differ between machines, and an equal pair must keep its key.
                **{name: _rounded(getattr(scored.signals, name)[left, right]) for name in Signals.__dataclass_fields__},
                "blocking_score": _rounded(fused[row, column]),
                "blocking_rank": rank,
            }
        )
    columns = {name: dtype for name, dtype in CANDIDATE_PAIRS.schema.items() if name != "row_key"}
    return with_row_key(pl.DataFrame(rows, schema=columns))
