"""Reading a model's answer: strictly where it fits the schema, carefully where text stands around it, else not."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kgrag_assets.judging.plain_verdicts import PlainVerdicts, has_negation, plain_verdicts
from kgrag_assets.models.json_objects import FoundObjects, find_objects, strict_object

# The score of an answer that names no confidence: surer than a coin, less sure than any stated certainty.
DEFAULT_CONFIDENCE = 0.75

_REASON_LENGTH = 500
_DISAGREE = "several answers that disagree"
# Longer texts are no answers to this question, and searching them costs time.
LONGEST = 100_000
_THOUGHT_TAG = re.compile(r"<(?P<closing>/?)(?:think|thinking|reasoning|thought)>", re.IGNORECASE)
_CITED = re.compile(r"^\W*([fv]\d+)\b", re.IGNORECASE)
MOST_RELEVANT = 10


@dataclass(frozen=True)
class ParsedAnswer:
    """What was read from an answer.

    ``status`` is one of the parse statuses parsed, recovered, ambiguous, unparsed, empty, truncated.
    ``score`` is the probability of a match, 0..1. ``answer`` and ``score`` are None where nothing was read.
    ``own_answer`` and ``own_score`` are those without the facts, ``relevance`` is the facts' (0..10): None where the
    model was not asked, or did not say.
    """

    status: str
    answer: bool | None = None
    score: float | None = None
    reason: str = ""
    cited_facts: tuple[str, ...] = ()
    unknown_citations: tuple[str, ...] = ()
    relevance: int | None = None
    own_answer: bool | None = None
    own_score: float | None = None


def parse_answer(text: str, fact_ids: Sequence[str], call_status: str = "answered") -> ParsedAnswer:
    """Read an answer. Never raises, and never guesses: what leaves a doubt gets no answer.

    Args:
        text: the model's text as it came.
        fact_ids: ids of the facts that were shown; others that the answer cites are dropped and named in
            ``unknown_citations``.
        call_status: answered or truncated; of a truncated text only a complete JSON object counts.

    Returns:
        ``parsed``: the whole text is one JSON object of the schema. ``recovered``: an answer was found with
        other text around it, or without some fields. ``ambiguous``: answers that disagree.
    """
    truncated = call_status == "truncated"
    text = text.strip().lstrip("\ufeff").strip()
    if not text:
        return ParsedAnswer("truncated" if truncated else "empty")
    if len(text) > LONGEST:
        return ParsedAnswer("truncated" if truncated else "unparsed")
    whole = strict_object(text)
    if whole is not None:
        return answer_of("parsed", whole, bool(whole["match"]), fact_ids)
    rest = without_thoughts(text)
    if not rest:
        return ParsedAnswer("truncated" if truncated else "unparsed")
    return _recovered(rest, fact_ids, truncated=truncated)


def _recovered(text: str, fact_ids: Sequence[str], *, truncated: bool) -> ParsedAnswer:
    found = find_objects(text)
    if found.gave_up:
        return ParsedAnswer("unparsed")
    plain = plain_verdicts(found.around)
    if found.answers:
        return _from_objects(found, plain, fact_ids)
    if truncated:
        return ParsedAnswer("truncated")
    return _from_words(text, plain)


def _from_objects(found: FoundObjects, plain: PlainVerdicts, fact_ids: Sequence[str]) -> ParsedAnswer:
    verdicts = [verdict for _, verdict in found.answers] + list(plain.verdicts)
    decided = {verdict for verdict in verdicts if verdict is not None}
    # An object whose match is neither yes nor no beside one that says yes leaves a doubt.
    if len(decided) > 1 or (decided and None in verdicts):
        return ParsedAnswer("ambiguous", reason=_DISAGREE)
    if not decided:
        return ParsedAnswer("unparsed")
    return answer_of("recovered", found.answers[-1][0], decided.pop(), fact_ids)


def _from_words(text: str, plain: PlainVerdicts) -> ParsedAnswer:
    if not plain.verdicts or not (plain.labelled or plain.nothing_else):
        return ParsedAnswer("unparsed")
    if len(set(plain.verdicts)) > 1 or plain.doubtful:
        return ParsedAnswer("ambiguous", reason=_DISAGREE)
    verdict = plain.verdicts[0]
    if verdict and has_negation(text):
        return ParsedAnswer("ambiguous", reason="the answer says yes, and the text around it negates something")
    return ParsedAnswer("recovered", verdict, score_of(verdict, None))


def score_of(answer: bool, confidence: float | None) -> float:
    """Turn an answer and how sure the model is of it into the probability of a match.

    Without a confidence the score is 0.75 for a match and 0.25 for none.
    """
    sure = DEFAULT_CONFIDENCE if confidence is None else confidence
    return sure if answer else 1.0 - sure


def without_thoughts(text: str) -> str:
    """Return a text without what a model wrote between thinking tags."""
    kept: list[str] = []
    position, thinking = 0, False
    for tag in _THOUGHT_TAG.finditer(text):
        if not tag["closing"]:
            if not thinking:
                kept.append(text[position : tag.start()])
            thinking = True
        elif thinking:
            thinking = False
        else:
            # A server swallowed the opening tag: what stands before was thought.
            kept.clear()
        position = tag.end()
    if not thinking:
        kept.append(text[position:])
    return " ".join(kept).strip()


def answer_of(status: str, found: dict[str, Any], answer: bool, fact_ids: Sequence[str]) -> ParsedAnswer:
    """Read the other fields of an object that holds an answer; what is not as it should be counts as left out."""
    reason = found.get("reason")
    reason = " ".join(reason.split()) if isinstance(reason, str) else ""
    if len(reason) > _REASON_LENGTH:
        reason = reason[: _REASON_LENGTH - 6] + " [cut]"
    cited, unknown = _cited(found.get("facts"), fact_ids)
    own = found.get("own_match")
    own_answer = own if isinstance(own, bool) else None
    return ParsedAnswer(
        status,
        answer,
        score_of(answer, _confidence(found.get("confidence"))),
        reason,
        cited,
        unknown_citations=unknown,
        relevance=_relevance(found.get("relevance")),
        own_answer=own_answer,
        own_score=None if own_answer is None else score_of(own_answer, _confidence(found.get("own_confidence"))),
    )


def _relevance(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return round(value) if 0 <= value <= MOST_RELEVANT else None


def _confidence(value: object) -> float | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        try:
            value = float(value.strip())
        except ValueError:
            return None
    if not isinstance(value, int | float):
        return None
    # 85 may mean percent or nonsense: a confidence that is not one is none.
    return float(value) if math.isfinite(value) and 0 <= value <= 1 else None


def _cited(value: object, fact_ids: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    known = {fact_id.casefold(): fact_id for fact_id in fact_ids}
    cited: list[str] = []
    unknown: list[str] = []
    for item in value if isinstance(value, list) else []:
        if not isinstance(item, str) or not item.strip():
            continue
        name = item.strip()
        exact = known.get(name.casefold())
        label = _CITED.match(name)
        fact_id = exact or (known.get(label[1].casefold()) if label else None)
        if fact_id is None:
            shown = (label[1].upper() if label else " ".join(name.split()))[:40]
            if shown not in unknown:
                unknown.append(shown)
        elif fact_id not in cited:
            cited.append(fact_id)
    return tuple(cited), tuple(unknown[:5])
