"""The judge without a language model: an additive scorer that is not trained and says what it counted."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence

from kgrag_assets.blocking.signals import SIGNALS_VERSION
from kgrag_assets.judging.protocol import Evidence, JudgePair, Judgment
from kgrag_assets.judging.value_evidence import Point, key_evidence, type_evidence, value_evidence
from kgrag_assets.rows.keys import key_of
from kgrag_assets.schemas.attribute import Attribute
from kgrag_assets.schemas.words import name_words, stems

OFFLINE_VERSION = "offline-3"

# Log odds before anything is known: a column has about one partner among some fifty.
PRIOR = -4.0

# Cosines of two texts that have nothing to do with each other lie around 0.2 with a spread of 0.1 (of all pairs of
# two schemas nearly all are such; all-MiniLM-L6-v2, and much the same with other sentence embedders).
UNRELATED_COSINE, COSINE_SPREAD = 0.2, 0.1
MEANING, NAMES, WORDS, TABLES = 1.0, 0.5, 3.0, 2.0
# No single cosine decides alone.
COSINE_LIMIT = 4.0

# A fact's weight by its kind, times its score: an entity that both attributes name says more than a way between
# two entities, and a missing fact says nothing, since no graph is complete.
FACT_WEIGHTS = {"shared_entity": 1.0, "triple": 0.6, "path": 0.5}

_LONGEST_FACT = 120


class OfflineJudge:
    """Adds up the evidence for a pair in log odds.

    What counts: closeness of meaning (cosine of names with descriptions, and of names), shared words of the two
    names, likeness of the tables, types, sample values, key roles, and the strongest fact of the graph. The weights
    are fixed and were set by reasoning about each, not from any task's truth. The score is the probability that
    the sum stands for; it answers yes from 0.5. It looks at the two attributes only: how a pair stands among its
    rivals is weighed afterwards, in the mapping.
    """

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
        return f"{OFFLINE_VERSION}/{SIGNALS_VERSION}"

    def keys(self, pairs: Sequence[JudgePair]) -> list[str]:
        """Hash everything that decides each judgment: both attributes, the local signals, the facts, the version."""
        return [self._key(pair) for pair in pairs]

    def _key(self, pair: JudgePair) -> str:
        return key_of(
            "offline judgment",
            self.prompt_version,
            pair.task,
            pair.pair_id,
            _content(pair.source),
            _content(pair.target),
            {name: float(value) for name, value in pair.signals.items()},
            pair.context_key,
            [[fact.fact_id, fact.text, fact.kind, fact.method, float(fact.score)] for fact in pair.facts],
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
            judgment = judge_pair(pair)
            judgments.append(judgment)
            if on_done is not None:
                on_done(judgment)
        return judgments


def judge_pair(pair: JudgePair) -> Judgment:
    """Judge one pair: the sum of its evidence, and a sentence that names the strongest for and against."""
    fact, graph = _graph_evidence(pair.facts)
    points = [
        *_signal_evidence(pair),
        *type_evidence(pair.source, pair.target),
        *value_evidence(pair.source, pair.target),
        *key_evidence(pair.source, pair.target),
        *graph,
    ]
    score = round(1.0 / (1.0 + math.exp(-(PRIOR + sum(point.weight for point in points)))), 6)
    return Judgment(
        pair_id=pair.pair_id,
        parse_status="parsed",
        answer=score >= 0.5,
        score=score,
        reason=_sentence(points),
        cited_facts=() if fact is None else (fact.fact_id,),
        gate="no_facts" if fact is None else "off",
        votes_for=int(score >= 0.5),
    )


def _content(attribute: Attribute) -> list[str | bool | list[str] | None]:
    # The id leaves out nothing that is read here: names, texts, types, samples and key roles.
    return [
        attribute.table_name,
        attribute.column_name,
        attribute.data_type,
        attribute.type_family,
        attribute.table_description,
        attribute.column_description,
        list(attribute.sample_values),
        attribute.is_primary_key,
        attribute.references_table,
    ]


def _signal_evidence(pair: JudgePair) -> list[Point]:
    signals = pair.signals
    points = []
    for signal, weight, wording in (
        ("cosine_full", MEANING, "meaning"),
        ("cosine_name", NAMES, "the names' meaning"),
    ):
        if signal in signals:
            cosine = signals[signal]
            distance = (cosine - UNRELATED_COSINE) / COSINE_SPREAD
            how = "close" if distance > 1.5 else "related" if distance > 0 else "far"
            limited = max(-COSINE_LIMIT, min(COSINE_LIMIT, distance))
            points.append(Point(weight * limited, f"{wording} is {how} ({cosine:.2f})"))
    if signals.get("name_similarity"):
        shared = _shared_words(pair.source, pair.target)
        points.append(Point(WORDS * signals["name_similarity"], f"the names share {', '.join(shared) or 'words'}"))
    if signals.get("table_similarity"):
        points.append(Point(TABLES * signals["table_similarity"], "the tables are described alike"))
    return points


def _shared_words(source: Attribute, target: Attribute) -> list[str]:
    mine, other = name_words(source.column_name), set(stems(name_words(target.column_name)))
    return list(dict.fromkeys(f"“{word}”" for word in mine if set(stems([word])) & other))


def _graph_evidence(facts: Sequence[Evidence]) -> tuple[Evidence | None, list[Point]]:
    # The strongest only: the facts shown for a pair mostly say the same thing in several ways.
    weighed = [
        (FACT_WEIGHTS.get(fact.kind, 0.0) * max(0.0, min(1.0, fact.score)), -place, fact)
        for place, fact in enumerate(facts)
    ]
    if not weighed:
        return None, []
    weight, _, fact = max(weighed, key=lambda item: item[:2])
    if not weight:
        return None, []
    text = " ".join(fact.text.split())
    text = text if len(text) <= _LONGEST_FACT else text[: _LONGEST_FACT - 1] + "…"
    return fact, [Point(weight, f"the graph links them: {text}")]


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
