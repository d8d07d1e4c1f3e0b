"""Which pairs are proposed: the cardinality rules, over scored pairs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from scipy.optimize import linear_sum_assignment

from kgrag_assets.mapping.scoring import ScoredPair
from kgrag_assets.settings import MappingSettings

# Under n:m, how far below its source attribute's best pair another pair may lie and still be proposed.
NEAR_BEST = 0.1


def propose(ranked: Sequence[ScoredPair], settings: MappingSettings) -> set[str]:
    """Choose the proposed pairs.

    A pair can be proposed if it has a readable answer, was not refused by a judge that reads, and has at least
    ``min_score``. Of these:

    - ``n:1``: each source attribute's best; several source attributes may share a target attribute.
    - ``1:1``: each source and each target attribute at most once, so that the sum of what the scores lie above
      ``min_score`` is largest (linear sum assignment; leaving an attribute out counts 0).
    - ``n:m``: each source attribute's best and all that lie at most ``NEAR_BEST`` below it.

    Args:
        ranked: scored pairs, best first within each source attribute.
        settings: cardinality and min_score.

    Returns:
        Ids of the proposed pairs.
    """
    eligible = [pair for pair in ranked if pair.answered and not pair.refused and pair.score >= settings.min_score]
    if settings.cardinality == "1:1":
        return _one_to_one(eligible, settings.min_score)
    by_source: dict[str, list[ScoredPair]] = defaultdict(list)
    for pair in eligible:
        by_source[pair.source_id].append(pair)
    if settings.cardinality == "n:1":
        return {pairs[0].pair_id for pairs in by_source.values()}
    return {
        pair.pair_id
        for pairs in by_source.values()
        for pair in pairs
        # A hair's breadth, since the difference of two rounded scores is not exact.
        if pair.score >= pairs[0].score - NEAR_BEST - 1e-9
    }


def _one_to_one(eligible: Sequence[ScoredPair], min_score: float) -> set[str]:
    if not eligible:
        return set()
    rows = {source: place for place, source in enumerate(dict.fromkeys(pair.source_id for pair in eligible))}
    columns = {target: place for place, target in enumerate(dict.fromkeys(pair.target_id for pair in eligible))}
    # 0 for what is no eligible pair: assigned or not, it means no match. A pair at min_score itself gains a
    # little, so that it is proposed where nothing better is in its way.
    gain = np.zeros((len(rows), len(columns)))
    pair_ids: dict[tuple[int, int], str] = {}
    for pair in eligible:
        place = rows[pair.source_id], columns[pair.target_id]
        gain[place] = pair.score - min_score + 1e-6
        pair_ids[place] = pair.pair_id
    chosen = zip(*linear_sum_assignment(gain, maximize=True), strict=True)
    return {pair_ids[int(row), int(column)] for row, column in chosen if (int(row), int(column)) in pair_ids}
