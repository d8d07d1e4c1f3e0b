"""From the calls about a pair to one judgment: gate, vote, a second judge's word, and the call's cost shared out."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from kgrag_assets.judging.gate import Gated, apply_gate
from kgrag_assets.judging.parsing import ParsedAnswer
from kgrag_assets.judging.protocol import JudgePair, Judgment
from kgrag_assets.rows.llm_judgments import ANSWERED_STATUSES
from kgrag_assets.settings import JudgingSettings


@dataclass(frozen=True)
class Share:
    """What one pair has of a call's cost."""

    tokens_in: int = 0
    tokens_out: int = 0
    cost_usd: float | None = 0.0

    def __add__(self, other: Share) -> Share:
        known = self.cost_usd is not None and other.cost_usd is not None
        cost = (self.cost_usd or 0.0) + (other.cost_usd or 0.0) if known else None
        return Share(self.tokens_in + other.tokens_in, self.tokens_out + other.tokens_out, cost)


def shares_of(tokens_in: int, tokens_out: int, cost_usd: float | None, pairs: int) -> list[Share]:
    """Share out a call among the pairs it asked about: evenly, what does not divide to the first ones.

    The tokens of the shares sum up to the call's.
    """
    return [
        Share(
            tokens_in // pairs + (place < tokens_in % pairs),
            tokens_out // pairs + (place < tokens_out % pairs),
            None if cost_usd is None else cost_usd / pairs,
        )
        for place in range(pairs)
    ]


def judgment_of(
    pair: JudgePair,
    answers: Sequence[ParsedAnswer],
    labels: Mapping[str, str],
    share: Share,
    request_hash: str,
    settings: JudgingSettings,
) -> Judgment:
    """Make the judgment of a pair from one or several answers (self-consistency, Wang et al., arXiv 2203.11171).

    Each answer passes the gate, then the majority counts; a tie is decided by the mean of the scores, and an exact one
    is no match. The score is half the share of the votes and half the mean score, on the majority's side of one half;
    of a single answer it is that answer's. Reason, citations and relevance are the majority's.

    Args:
        pair: the pair.
        answers: what was read of each call, at least one.
        labels: ids shown with the evidence's own ids.
        share: the pair's share of the cost of all calls.
        request_hash: the first call.
        settings: gate, threshold.
    """
    gated = [
        apply_gate(answer, facts_shown=bool(pair.facts), gate=settings.gate, threshold=settings.gate_threshold)
        for answer in answers
    ]
    voting = [
        (answer, gate)
        for answer, gate in zip(answers, gated, strict=True)
        if answer.status in ANSWERED_STATUSES and gate.answer is not None and gate.score is not None
    ]
    base = Judgment(
        pair_id=pair.pair_id,
        parse_status=answers[0].status,
        answer=None,
        score=None,
        reason=answers[0].reason,
        gate="no_facts" if not pair.facts else "off" if not settings.gate else "with_facts",
        unknown_citations=answers[0].unknown_citations,
        votes=0,
        request_hash=request_hash,
        tokens_in=share.tokens_in,
        tokens_out=share.tokens_out,
        cost_usd=share.cost_usd,
    )
    if not voting:
        return base
    votes_for = sum(gate.answer is True for _, gate in voting)
    scores = [gate.score for _, gate in voting if gate.score is not None]
    mean = sum(scores) / len(scores)
    verdict = votes_for * 2 > len(voting) or (votes_for * 2 == len(voting) and mean > 0.5)
    score = mean if len(voting) == 1 else (votes_for / len(voting) + mean) / 2.0
    if len(voting) > 1:
        score = max(score, 0.5) if verdict else min(score, 0.5)
    majority = [(answer, gate) for answer, gate in voting if gate.answer is verdict]
    first, first_gate = majority[0]
    cited = dict.fromkeys(labels[label] for answer, _ in majority for label in answer.cited_facts)
    unknown = dict.fromkeys(label for answer, _ in voting for label in answer.unknown_citations)
    own = _own(voting)
    return replace(
        base,
        parse_status="parsed" if any(answer.status == "parsed" for answer, _ in voting) else first.status,
        answer=verdict,
        score=round(score, 6),
        reason=first.reason,
        cited_facts=tuple(cited),
        unknown_citations=tuple(unknown),
        relevance=_relevance(voting),
        gate=first_gate.gate,
        own_answer=own[0],
        own_score=own[1],
        conflict=_conflict(voting),
        votes=len(voting),
        votes_for=votes_for,
    )


def with_second(judgment: Judgment, second: Judgment) -> Judgment:
    """Set a second judge's word beside the first; the first one's answer stays, and the cost is that of both."""
    both = judgment.answer is not None and second.answer is not None
    total = Share(judgment.tokens_in, judgment.tokens_out, judgment.cost_usd) + Share(
        second.tokens_in, second.tokens_out, second.cost_usd
    )
    return replace(
        judgment,
        second_answer=second.answer,
        second_score=second.score,
        disagreement=judgment.answer != second.answer if both else None,
        tokens_in=total.tokens_in,
        tokens_out=total.tokens_out,
        cost_usd=total.cost_usd,
    )


_Voting = Sequence[tuple[ParsedAnswer, Gated]]


def _relevance(voting: _Voting) -> int | None:
    said = [answer.relevance for answer, _ in voting if answer.relevance is not None]
    return round(statistics.median(said)) if said else None


def _own(voting: _Voting) -> tuple[bool | None, float | None]:
    said = [
        (answer.own_answer, answer.own_score)
        for answer, _ in voting
        if answer.own_answer is not None and answer.own_score is not None
    ]
    if not said:
        return None, None
    mean = sum(score for _, score in said) / len(said)
    yes = sum(answer for answer, _ in said)
    return yes * 2 > len(said) or (yes * 2 == len(said) and mean > 0.5), round(mean, 6)


def _conflict(voting: _Voting) -> bool | None:
    said = [gate.conflict for _, gate in voting if gate.conflict is not None]
    return any(said) if said else None
