"""``blocking_curve``: what each budget of blocking would keep, beside plain cosine; and why true pairs are lost."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import polars as pl

from kgrag_assets.blocking.block import ScoredGroups
from kgrag_assets.blocking.signals import overlap, table_words
from kgrag_assets.rows.blocking_curve import BLOCKING_CURVE
from kgrag_assets.rows.table import ROW_KEY, with_row_key
from kgrag_assets.schemas.attribute import Attribute

CURVE_VERSION = "curve-1"

SHARES = (0.01, 0.02, 0.03, 0.05, 0.075, 0.10, 0.15, 0.20, 0.30, 0.50, 1.0)
# Below this cosine two texts have hardly anything to do with each other.
_FAR = 0.3

_Truth = list[tuple[int, int]]


def blocking_curve(scored: ScoredGroups, reference: pl.DataFrame) -> pl.DataFrame:
    """Measure pair completeness at each share of all pairs, for the fused scores of groups and for plain cosine.

    Args:
        scored: all pairs of a task, scored.
        reference: rows of ``reference_correspondences``.

    Returns:
        Rows of ``blocking_curve``; none where the reference is empty.
    """
    truth = _places(scored, reference)
    if not truth:
        return BLOCKING_CURVE.empty()
    total = scored.attribute_scores.size
    of_groups = _ranks(scored.scores)
    grouped = [int(of_groups[scored.source_groups.number[s], scored.target_groups.number[t]]) for s, t in truth]
    plain = _ranks(scored.signals.cosine_full)
    rows: list[dict[str, object]] = []
    for method, ranks, most in (
        ("kgrag", grouped, scored.scores.size),
        ("cosine", [int(plain[pair]) for pair in truth], total),
    ):
        for share in SHARES:
            judged = min(most, math.ceil(share * total))
            kept = sum(rank <= judged for rank in ranks)
            rows.append(
                {
                    "task": str(reference["task"][0]),
                    "method": method,
                    "budget_share": share,
                    "pairs_judged": judged,
                    "true_pairs_kept": kept,
                    "true_pairs": len(truth),
                    "pair_completeness": round(kept / len(truth), 6),
                    "reduction_ratio": round(1.0 - judged / total, 6),
                }
            )
    schema = {name: dtype for name, dtype in BLOCKING_CURVE.schema.items() if name != ROW_KEY}
    return BLOCKING_CURVE.conform(with_row_key(pl.DataFrame(rows, schema=schema)))


def lost_reasons(scored: ScoredGroups, reference: pl.DataFrame) -> dict[str, str]:
    """Say for each true pair why blocking may lose it: what the texts lack, and how many pairs stand before it.

    Args:
        scored: all pairs of a task, scored.
        reference: rows of ``reference_correspondences``.

    Returns:
        A sentence by ``pair_id``; for every true pair, lost or not.
    """
    places = _place_by_name(scored)
    reasons: dict[str, str] = {}
    names = ("pair_id", "source_table", "source_column", "target_table", "target_column")
    for pair_id, *name in reference.select(names).iter_rows():
        source, target = places["source"].get(tuple(name[:2])), places["target"].get(tuple(name[2:]))
        if source is not None and target is not None:
            reasons[pair_id] = _reason(scored, source, target)
    return reasons


def _reason(scored: ScoredGroups, source: int, target: int) -> str:
    row, column = int(scored.source_groups.number[source]), int(scored.target_groups.number[target])
    score = scored.scores[row, column]
    before = int((scored.scores[row] > score).sum()), int((scored.scores[:, column] > score).sum())
    causes = []
    for side, attribute in (("source", scored.sources[source]), ("target", scored.targets[target])):
        if not attribute.column_description.strip():
            causes.append(f"the {side} has no description")
    cosine = float(scored.signals.cosine_full[source, target])
    if cosine < _FAR:
        causes.append(f"the texts are far from each other (cosine {cosine:.2f})")
    if not scored.signals.name_similarity[source, target]:
        causes.append("the names share no word")
    if not _share_table_words(scored.sources[source], scored.targets[target]):
        causes.append("the tables share no word")
    cause = "; ".join(causes) or "its rivals are nearer"
    return f"{cause}; {before[0]} targets stand before it for its source, {before[1]} sources for its target"


def _share_table_words(source: Attribute, target: Attribute) -> bool:
    return overlap(table_words(source), table_words(target)) > 0.0


def _ranks(scores: np.ndarray) -> np.ndarray:
    """Rank all pairs from 1, best first; equal ones by place."""
    ranks = np.empty(scores.size, dtype=np.int64)
    ranks[np.argsort(-scores, axis=None, kind="stable")] = np.arange(1, scores.size + 1)
    return ranks.reshape(scores.shape)


def _place_by_name(scored: ScoredGroups) -> Mapping[str, dict[tuple[str, ...], int]]:
    return {
        side: {(item.table_name, item.column_name): place for place, item in enumerate(items)}
        for side, items in (("source", scored.sources), ("target", scored.targets))
    }


def _places(scored: ScoredGroups, reference: pl.DataFrame) -> _Truth:
    places = _place_by_name(scored)
    names = ("source_table", "source_column", "target_table", "target_column")
    found = (
        (places["source"].get(row[:2]), places["target"].get(row[2:])) for row in reference.select(names).iter_rows()
    )
    return [(source, target) for source, target in found if source is not None and target is not None]
