"""The knowledge gate: whether the answer with the facts in view counts or the one without, and from which relevance."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kgrag_assets.judging.parsing import MOST_RELEVANT, ParsedAnswer


@dataclass(frozen=True)
class Gated:
    """The answer that counts, and why it does: ``gate`` is one of ``rows.llm_judgments.GATES``."""

    answer: bool | None
    score: float | None
    gate: str
    conflict: bool | None


def apply_gate(parsed: ParsedAnswer, *, facts_shown: bool, gate: bool, threshold: int) -> Gated:
    """Choose between the answer with the facts and the one without.

    Below the threshold the facts do not bear on the question, and the model's own answer counts. Where it gave none,
    or no relevance, the answer with the facts stays: nothing is known against it. A conflict is told either way.

    Args:
        parsed: what the model said.
        facts_shown: whether there was a fact of the graph to show.
        gate: whether the gate is asked for.
        threshold: relevance, 0..10, from which the facts decide.
    """
    conflict = None
    if parsed.answer is not None and parsed.own_answer is not None and facts_shown:
        conflict = parsed.answer != parsed.own_answer
    if not facts_shown:
        return Gated(parsed.answer, parsed.score, "no_facts", conflict)
    if not gate:
        return Gated(parsed.answer, parsed.score, "off", conflict)
    irrelevant = parsed.relevance is not None and parsed.relevance < threshold
    if irrelevant and parsed.answer is not None and parsed.own_answer is not None:
        return Gated(parsed.own_answer, parsed.own_score, "without_facts", conflict)
    return Gated(parsed.answer, parsed.score, "with_facts", conflict)


@dataclass(frozen=True)
class Weighed:
    """Both answers to a pair whose truth is known, with the facts' relevance."""

    relevance: int
    with_facts: bool
    without_facts: bool
    truth: bool


@dataclass(frozen=True)
class ThresholdScore:
    """How good the answers are that a threshold lets through."""

    threshold: int
    precision: float | None
    recall: float | None
    f1: float


def score_thresholds(
    pairs: Sequence[Weighed], thresholds: Iterable[int] = range(MOST_RELEVANT + 2)
) -> list[ThresholdScore]:
    """Measure each threshold on pairs whose truth is known; 0 always takes the facts, 11 never does."""
    scores = []
    for threshold in thresholds:
        said = [pair.with_facts if pair.relevance >= threshold else pair.without_facts for pair in pairs]
        hits = sum(answer and pair.truth for answer, pair in zip(said, pairs, strict=True))
        proposed, true = sum(said), sum(pair.truth for pair in pairs)
        scores.append(
            ThresholdScore(
                threshold=threshold,
                precision=hits / proposed if proposed else None,
                recall=hits / true if true else None,
                f1=2 * hits / (proposed + true) if proposed + true else 0.0,
            )
        )
    return scores


def learn_threshold(pairs: Sequence[Weighed], default: int) -> int:
    """Return the threshold of the best F1 on pairs whose truth is known; among equals, the one nearest to ``default``.

    A threshold that is learnt on a task is to be used on others: on its own it flatters.
    """
    scores = score_thresholds(pairs)
    best = max(score.f1 for score in scores)
    return min(
        (score.threshold for score in scores if score.f1 >= best - 1e-12),
        key=lambda number: (abs(number - default), number),
    )
