"""The score that a source attribute's list is ranked by: the judge's word and how the pair stands among all pairs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from kgrag_assets.rows.llm_judgments import ANSWERED_STATUSES

# The offline judge sums up much of what blocking saw too, so its word counts a quarter; a language model's is new.
OFFLINE_WEIGHT, READER_WEIGHT, CORPUS_WEIGHT = 0.25, 1.0, 1.0

# Judges that fuse signals. The answer of any other judge, which has read the texts, is not overruled.
SIGNAL_JUDGES = ("offline",)

_LOG_ODDS_LIMIT = 6.0
# Keeps a refused pair's score below 0.5, and a confirmed one's above, also when rounded to six digits.
_EDGE = 1e-5


@dataclass(frozen=True)
class ScoredPair:
    """A candidate pair with its judgment; ``score`` is set by ``score_pairs``."""

    pair_id: str
    judged_pair_id: str
    source_id: str
    target_id: str
    source_name: tuple[str, str]
    target_name: tuple[str, str]
    blocking_score: float
    blocking_rank: int
    judge: str | None
    parse_status: str | None
    answer: bool | None
    judge_score: float | None
    judge_reason: str
    top_fact: str
    score: float = 0.0

    @property
    def answered(self) -> bool:
        """Whether the judge gave an answer that could be read."""
        return self.parse_status in ANSWERED_STATUSES and self.judge_score is not None and self.answer is not None

    @property
    def refused(self) -> bool:
        """Whether a judge that has read the texts says no."""
        return self.answered and self.judge not in SIGNAL_JUDGES and self.answer is False


def corpus_evidence(blocking_rank: int, expected: int) -> float:
    """Evidence of a pair's place among all pairs, in log odds.

    Two schemas have about as many correspondences as the smaller has attributes. A pair that blocking ranks at
    that place is as likely as not (0); one at twice the place loses log 2. The size of the candidate list, a
    setting, plays no part.

    Args:
        blocking_rank: from 1.
        expected: number of correspondences to expect, at least 1.
    """
    return math.log(expected / blocking_rank)


def score_pairs(
    pairs: list[ScoredPair], expected: int, fits: Mapping[tuple[str, str], float] | None = None
) -> list[ScoredPair]:
    """Give each pair its score in 0..1, in the order given.

    The log odds of the judge's score and of the pair's place among all pairs are added (see the weights above) and
    turned into a probability. For a judge that reads, that orders the pairs within its answers: a yes lies in
    0.5..1 and a no in 0..0.5, whatever the rest says. A pair without a readable answer lies below every answered
    pair, and below 0.5, by its place alone.

    Args:
        pairs: the candidate pairs of one task.
        expected: as in ``corpus_evidence``.
        fits: by source table and target table, what the fit of the two adds in log odds; nothing where not given.
    """

    def corpus(pair: ScoredPair) -> float:
        fit = 0.0 if fits is None else fits[pair.source_name[0], pair.target_name[0]]
        return CORPUS_WEIGHT * corpus_evidence(pair.blocking_rank, expected) + fit

    scored = [replace(pair, score=_answered_score(pair, corpus(pair))) if pair.answered else pair for pair in pairs]
    ceiling = min([0.5, *(pair.score for pair in scored if pair.answered)])
    return [
        pair if pair.answered else replace(pair, score=round(ceiling * _probability(corpus(pair)), 6))
        for pair in scored
    ]


def _answered_score(pair: ScoredPair, corpus: float) -> float:
    reads = pair.judge not in SIGNAL_JUDGES
    weight = READER_WEIGHT if reads else OFFLINE_WEIGHT
    odds = weight * _log_odds(float(pair.judge_score or 0.0))
    probability = _probability(odds + corpus)
    if reads:
        probability = min(max(probability, _EDGE), 1.0 - _EDGE)
        probability = 0.5 * probability + (0.5 if pair.answer else 0.0)
    return round(probability, 6)


def _log_odds(probability: float) -> float:
    limited = min(max(probability, 1e-9), 1.0 - 1e-9)
    return max(-_LOG_ODDS_LIMIT, min(_LOG_ODDS_LIMIT, math.log(limited / (1.0 - limited))))


def _probability(log_odds: float) -> float:
    return 1.0 / (1.0 + math.exp(-log_odds))
