"""Which pairs are proposed, under the task's cardinality."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from kgrag_assets.mapping.scoring import JudgedPair

# In n:m a target is proposed beside the best one if its score comes this near.
MARGIN = 0.05


def propose(pairs: Sequence[JudgedPair], scores: Mapping[str, float], cardinality: str, min_score: float) -> set[str]:
    """Choose the pairs of the mapping.

    - ``n:1``: each source attribute gets its best target; several may get the same.
    - ``1:1``: the assignment of sources to targets with the largest sum of scores, each used once (Kuhn 1955,
      by scipy); a source may stay without a target.
    - ``n:m``: each source attribute gets its best target and those within ``MARGIN`` of it.

    In all of them a pair below ``min_score``, or one that a language model answered with no, is not proposed.

    Args:
        pairs: judged pairs.
        scores: score by pair id.
        cardinality: ``1:1``, ``n:1`` or ``n:m``.
        min_score: lowest score that is proposed, 0..1.

    Returns:
        ids of the proposed pairs.

    Raises:
        ValueError: an unknown cardinality.
    """
    allowed = [pair for pair in pairs if scores[pair.pair_id] >= min_score and not _denied(pair)]
    if cardinality == "1:1":
        return _assigned(allowed, scores)
    if cardinality not in ("n:1", "n:m"):
        raise ValueError(f"cardinality must be 1:1, n:1 or n:m, not {cardinality!r}")
    best: dict[str, JudgedPair] = {}
    for pair in sorted(allowed, key=lambda pair: (-scores[pair.pair_id], pair.pair_id)):
        best.setdefault(pair.source, pair)
    if cardinality == "n:1":
        return {pair.pair_id for pair in best.values()}
    return {pair.pair_id for pair in allowed if scores[pair.pair_id] >= scores[best[pair.source].pair_id] - MARGIN}


def _denied(pair: JudgedPair) -> bool:
    return pair.judge_score is None or (pair.judge != "offline" and pair.answer is not True)


def _assigned(pairs: Sequence[JudgedPair], scores: Mapping[str, float]) -> set[str]:
    if not pairs:
        return set()
    from scipy.optimize import linear_sum_assignment

    sources = sorted({pair.source for pair in pairs})
    targets = sorted({pair.target for pair in pairs})
    row = {source: place for place, source in enumerate(sources)}
    column = {target: place for place, target in enumerate(targets)}
    # One more column for each source, worth nothing: to stay without a target.
    gain = np.zeros((len(sources), len(targets) + len(sources)))
    ids: dict[tuple[int, int], str] = {}
    for pair in pairs:
        place = (row[pair.source], column[pair.target])
        gain[place] = scores[pair.pair_id]
        ids[place] = pair.pair_id
    chosen = zip(*linear_sum_assignment(gain, maximize=True), strict=True)
    return {ids[int(left), int(right)] for left, right in chosen if (int(left), int(right)) in ids}
