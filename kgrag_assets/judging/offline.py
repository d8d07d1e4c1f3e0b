"""The judge that needs no language model: a documented, training-free scorer of one pair.

What it looks at is what the two attributes and their facts alone decide:

1. *Text*: the cosine of the full descriptions, from 0.2 (nothing) to 0.8 (the same).
2. *Name*: the larger of shared word stems and the cosine of the expanded names, from 0.3 to 0.9.
3. *Table*: shared stems of table names and descriptions.
4. *Type*: how well the data types go together; types that exclude each other take a third away.
5. *Values*: where both sides have samples, shared values, or at least shared shapes.
6. *Graph*: the best fact of the context. An entity that both attributes name counts in full, a path between them
   half, a triple near both a third; each by its own score. No fact is neutral: the graph does not know everything.

The first four are averaged with fixed weights; values and graph then close a part of what is missing to 1, as
independent witnesses do (noisy or). The weights were set once by reason, not fitted to any task. The score orders
pairs well enough to work with; it is not a probability.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kgrag_assets.judging.protocol import Evidence, JudgePair, Judgment
from kgrag_assets.judging.values import shape_overlap, value_overlap
from kgrag_assets.rows.keys import key_of
from kgrag_assets.schemas.attribute import Attribute

VERSION = "offline-1"

TEXT, NAME, TABLE, TYPE = 0.40, 0.35, 0.15, 0.10
VALUES, SHAPES, GRAPH = 0.35, 0.10, 0.30
EXCLUDED_TYPES = 2 / 3
KIND_WEIGHTS = {"shared_entity": 1.0, "path": 0.5, "triple": 0.33}
THRESHOLD = 0.5


class OfflineJudge:
    """Scores pairs by fixed rules; free, and the same on every machine."""

    name = "offline"
    model = VERSION
    prompt_version = VERSION

    def key(self, pair: JudgePair) -> str:
        """Hash both attributes, the signals, the facts and the rules' version."""
        return key_of(
            "judgment",
            VERSION,
            pair.task,
            pair.pair_id,
            _content(pair.source),
            _content(pair.target),
            dict(pair.signals),
            pair.context_key,
        )

    def judge(self, pairs: Sequence[JudgePair], on_done: Callable[[Judgment], None] | None = None) -> list[Judgment]:
        """Judge pairs, in order."""
        judgments = []
        for pair in pairs:
            judgment = judge_pair(pair)
            judgments.append(judgment)
            if on_done is not None:
                on_done(judgment)
        return judgments


def judge_pair(pair: JudgePair) -> Judgment:
    """Score one pair as the module says."""
    signals = pair.signals
    text = _between(signals["cosine_full"], 0.2, 0.8)
    name = max(signals["name_similarity"], _between(signals["cosine_name"], 0.3, 0.9))
    score = TEXT * text + NAME * name + TABLE * signals["table_similarity"] + TYPE * signals["type_affinity"]
    if signals["type_affinity"] == 0.0:
        score *= EXCLUDED_TYPES
    left, right = pair.source.sample_values, pair.target.sample_values
    shared, shaped = value_overlap(left, right), shape_overlap(left, right)
    score += (1.0 - score) * max(VALUES * shared, SHAPES * shaped)
    fact, weight = _best_fact(pair.facts)
    score += (1.0 - score) * GRAPH * weight
    score = round(min(max(score, 0.0), 1.0), 6)
    return Judgment(
        pair_id=pair.pair_id,
        parse_status="parsed",
        answer=score >= THRESHOLD,
        score=score,
        reason=_reason(pair, text, name, shared, fact),
        cited_facts=() if fact is None else (fact.fact_id,),
    )


def _between(value: float, low: float, high: float) -> float:
    return min(max((value - low) / (high - low), 0.0), 1.0)


def _best_fact(facts: Sequence[Evidence]) -> tuple[Evidence | None, float]:
    weighed = [(KIND_WEIGHTS.get(fact.kind, 0.0) * min(max(fact.score, 0.0), 1.0), fact) for fact in facts]
    best = max(weighed, key=lambda entry: entry[0], default=None)
    return (None, 0.0) if best is None or best[0] == 0.0 else (best[1], best[0])


def _reason(pair: JudgePair, text: float, name: float, shared: float, fact: Evidence | None) -> str:
    speaks_for, speaks_against = [], []
    for value, subject in ((name, "names"), (text, "descriptions"), (pair.signals["table_similarity"], "tables")):
        if value >= 0.6:
            speaks_for.append(f"the {subject} are alike")
        elif value < 0.2:
            speaks_against.append(f"the {subject} differ")
    if shared > 0:
        speaks_for.append("sample values are shared")
    if fact is not None and fact.kind == "shared_entity":
        speaks_for.append("both name one concept of the graph")
    elif fact is not None and fact.kind == "path":
        speaks_for.append("the graph connects their concepts")
    if pair.signals["type_affinity"] == 0.0:
        speaks_against.append(f"types {pair.source.type_family} and {pair.target.type_family} exclude each other")
    parts = [
        f"for: {', '.join(speaks_for)}" if speaks_for else "",
        f"against: {', '.join(speaks_against)}" if speaks_against else "",
    ]
    return "; ".join(part for part in parts if part) or "nothing speaks clearly for or against"


def _content(attribute: Attribute) -> list[str | list[str] | None]:
    return [
        attribute.table_name,
        attribute.column_name,
        attribute.type_family,
        attribute.table_description,
        attribute.column_description,
        list(attribute.sample_values),
    ]
