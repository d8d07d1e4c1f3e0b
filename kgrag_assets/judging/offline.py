"""The judge without a language model: an additive scorer that is not trained and says what it counted."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence

from kgrag_assets.blocking.signals import SIGNALS_VERSION
from kgrag_assets.judging.graph_evidence import strongest
from kgrag_assets.judging.linked_values import is_class_evidence
from kgrag_assets.judging.points import Point
from kgrag_assets.judging.protocol import Evidence, JudgePair, Judgment
from kgrag_assets.judging.value_evidence import key_evidence, type_evidence, value_evidence
from kgrag_assets.judging.word_evidence import kind_evidence, word_evidence
from kgrag_assets.rows.keys import key_of

OFFLINE_VERSION = "offline-4"

# Log odds before anything is known: a column has about one partner among some fifty.
PRIOR = -4.0

# Cosines of two texts that have nothing to do with each other lie around 0.2 with a spread of 0.1 (of all pairs of
# two schemas nearly all are such; all-MiniLM-L6-v2, and much the same with other sentence embedders).
UNRELATED_COSINE, COSINE_SPREAD = 0.2, 0.1
# The two cosines are of much the same words, so that each counts half; and a column is near in meaning to all that is
# said about its subject, so that together they count less than the words themselves.
MEANING, NAME_MEANING, TABLES = 0.5, 0.5, 2.0
# No single cosine decides alone.
COSINE_LIMIT = 4.0

# Values on both sides that the graph knows as things of one class, times the share of the values.
CLASS = 1.0

# What is looked at; leaving one out shows what it is worth.
PARTS = ("meaning", "words", "kinds", "tables", "types", "values", "keys", "graph")

_LONGEST_FACT = 120


class OfflineJudge:
    """Adds up the evidence for a pair in log odds.

    What counts: closeness of meaning (two cosines), words that the names share or that one side's name and the other's
    description share, the kind of value that the names speak of, likeness of the tables, types, values, key roles, and
    the strongest fact of the graph. The weights are fixed and were set by reasoning about each, not fitted to any
    task's truth; they are written beside each part. The score is the probability that the sum stands for; it answers
    yes from 0.5. It looks at the two attributes only: how a pair stands among its rivals is weighed afterwards, in the
    mapping.
    """

    _parts: tuple[str, ...] = PARTS

    def __init__(self, parts: Collection[str] = PARTS) -> None:
        """Take what is looked at; fewer than all ``PARTS`` show what the others are worth.

        Raises:
            ValueError: an unknown part.
        """
        unknown = sorted(set(parts) - set(PARTS))
        if unknown:
            raise ValueError(f"unknown parts {', '.join(unknown)}: use some of {', '.join(PARTS)}")
        self._parts = tuple(part for part in PARTS if part in parts)

    @property
    def name(self) -> str:
        """The name of this kind of judge."""
        return "offline"

    @property
    def model(self) -> str:
        """Version of the scorer."""
        return OFFLINE_VERSION

    @property
    def prompt_version(self) -> str:
        """Version of what is looked at."""
        parts = "" if self._parts == PARTS else f"/{'+'.join(self._parts)}"
        return f"{OFFLINE_VERSION}/{SIGNALS_VERSION}{parts}"

    def keys(self, pairs: Sequence[JudgePair]) -> list[str]:
        """Hash everything that decides each judgment: the evidence as it was weighed, the context, the version.

        What changes in an attribute without changing its evidence, such as a few more rows of data, leaves the
        judgment as it is.
        """
        return [self._key(pair) for pair in pairs]

    def _key(self, pair: JudgePair) -> str:
        fact, points = weigh(pair, self._parts)
        return key_of(
            "offline judgment",
            self.prompt_version,
            pair.task,
            pair.pair_id,
            pair.context_key,
            None if fact is None else fact.fact_id,
            [[round(point.weight, 6), point.wording] for point in points],
        )

    def judge(
        self,
        pairs: Sequence[JudgePair],
        wanted: Collection[str] | None = None,
        on_done: Callable[[Judgment], None] | None = None,
    ) -> list[Judgment]:
        """Judge the wanted pairs, in order; ``on_done`` is called after each."""
        judgments = []
        for pair in pairs:
            if wanted is not None and pair.pair_id not in wanted:
                continue
            judgment = judge_pair(pair, self._parts)
            judgments.append(judgment)
            if on_done is not None:
                on_done(judgment)
        return judgments


def judge_pair(pair: JudgePair, parts: Collection[str] = PARTS) -> Judgment:
    """Judge one pair: the sum of its evidence, and a sentence that names the strongest for and against.

    Where facts were shown, ``own_score`` and ``own_answer`` are what it would say without them.
    """
    fact, points = weigh(pair, parts)
    score = _probability(points)
    # The fact, if one counts, is weighed last.
    own = _probability(points[:-1] if fact is not None else points) if pair.facts else None
    return Judgment(
        pair_id=pair.pair_id,
        parse_status="parsed",
        answer=score >= 0.5,
        score=score,
        reason=_sentence(points),
        cited_facts=() if fact is None else (fact.fact_id,),
        gate="off" if pair.facts else "no_facts",
        own_answer=None if own is None else own >= 0.5,
        own_score=own,
        conflict=None if own is None else (own >= 0.5) != (score >= 0.5),
        votes_for=int(score >= 0.5),
    )


def _probability(points: Sequence[Point]) -> float:
    return round(1.0 / (1.0 + math.exp(-(PRIOR + sum(point.weight for point in points)))), 6)


def weigh(pair: JudgePair, parts: Collection[str] = PARTS) -> tuple[Evidence | None, list[Point]]:
    """Return the fact that counts, if one does, and the evidence of the parts wanted."""
    source, target = pair.source, pair.target
    points: list[Point] = []
    if "meaning" in parts:
        points += _meaning_evidence(pair)
    if "words" in parts:
        points += word_evidence(source, target)
    if "kinds" in parts:
        points += kind_evidence(source, target)
    if "tables" in parts and pair.signals.get("table_similarity"):
        points.append(Point(TABLES * pair.signals["table_similarity"], "the tables are described alike"))
    if "types" in parts:
        points += type_evidence(source, target)
    if "values" in parts:
        points += value_evidence(source, target)
        points += [Point(CLASS * max(0.0, one.score), one.text) for one in pair.values if is_class_evidence(one)]
    if "keys" in parts:
        points += key_evidence(source, target)
    fact, weight = strongest(pair.facts, source, target) if "graph" in parts else (None, 0.0)
    if fact is not None:
        text = " ".join(fact.text.split())
        text = text if len(text) <= _LONGEST_FACT else text[: _LONGEST_FACT - 1] + "…"
        points.append(Point(weight, f"the graph links them: {text}"))
    return fact, points


def _meaning_evidence(pair: JudgePair) -> list[Point]:
    points = []
    for signal, weight, wording in (
        ("cosine_full", MEANING, "meaning"),
        ("cosine_name", NAME_MEANING, "the names' meaning"),
    ):
        if signal in pair.signals:
            cosine = pair.signals[signal]
            distance = (cosine - UNRELATED_COSINE) / COSINE_SPREAD
            how = "close" if distance > 1.5 else "related" if distance > 0 else "far"
            limited = max(-COSINE_LIMIT, min(COSINE_LIMIT, distance))
            points.append(Point(weight * limited, f"{wording} is {how} ({cosine:.2f})"))
    return points


def _sentence(points: Sequence[Point]) -> str:
    strongest = sorted(points, key=lambda point: -abs(point.weight))
    speaks_for = [point.wording for point in strongest if point.weight > 0][:4]
    against = [point.wording for point in strongest if point.weight < 0][:3]
    parts = []
    if speaks_for:
        parts.append(f"For it: {'; '.join(speaks_for)}")
    if against:
        parts.append(f"{'against it' if parts else 'Against it'}: {'; '.join(against)}")
    return (" — ".join(parts) or "Nothing is known that speaks for or against it") + "."
