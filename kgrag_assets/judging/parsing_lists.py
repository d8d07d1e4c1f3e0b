"""Reading one text that answers about several candidates."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from kgrag_assets.judging.parsing import LONGEST, ParsedAnswer, answer_of, without_thoughts
from kgrag_assets.models.json_objects import Found, find_objects, fits_answer, whole_value

_LABEL = re.compile(r"\W*c?(\d{1,4})\b", re.IGNORECASE)
_NAMES = ("candidate", "id", "candidate_id")


def parse_answers(text: str, fact_ids: Sequence[Sequence[str]], call_status: str = "answered") -> list[ParsedAnswer]:
    """Read the answers about the candidates C1, C2 and so on. Never raises, and never guesses.

    Args:
        text: the model's text as it came.
        fact_ids: for each candidate the ids of the facts shown with it; others that its answer cites are dropped
            and named.
        call_status: answered or truncated; of a truncated text the complete answers count.

    Returns:
        One for each candidate: ``parsed`` where the whole text fits the schema, ``recovered`` where an answer was
        found otherwise, ``ambiguous`` where there are several that disagree, else ``unparsed``, ``empty`` or
        ``truncated``.
    """
    truncated = call_status == "truncated"
    missing = "truncated" if truncated else "unparsed"
    text = text.strip().lstrip("\ufeff").strip()
    if not text:
        return [ParsedAnswer("truncated" if truncated else "empty")] * len(fact_ids)
    if len(text) > LONGEST:
        return [ParsedAnswer(missing)] * len(fact_ids)
    strict = _strict(text, len(fact_ids))
    if strict is not None:
        return [
            answer_of("parsed", found, bool(found["match"]), ids) for found, ids in zip(strict, fact_ids, strict=True)
        ]
    found = find_objects(without_thoughts(text))
    by_place: dict[int, list[tuple[Found, bool | None]]] = {}
    for answer, verdict in found.answers:
        place = _place(answer, len(fact_ids))
        if place is not None:
            by_place.setdefault(place, []).append((answer, verdict))
    return [_one(by_place.get(place, []), ids, missing) for place, ids in enumerate(fact_ids)]


def _strict(text: str, count: int) -> list[Found] | None:
    value = whole_value(text)
    if not isinstance(value, dict) or set(value) != {"answers"} or not isinstance(value["answers"], list):
        return None
    answers: list[Any] = value["answers"]
    if len(answers) != count:
        return None
    for number, answer in enumerate(answers, start=1):
        if not isinstance(answer, dict) or answer.get("candidate") != f"C{number}":
            return None
        if not fits_answer({name: inner for name, inner in answer.items() if name != "candidate"}):
            return None
    return answers


def _place(answer: Found, count: int) -> int | None:
    for name in _NAMES:
        if name in answer:
            label = _LABEL.match(str(answer[name]))
            place = int(label[1]) - 1 if label else -1
            return place if 0 <= place < count else None
    # With one candidate there is no doubt which is meant.
    return 0 if count == 1 else None


def _one(found: Sequence[tuple[Found, bool | None]], fact_ids: Sequence[str], missing: str) -> ParsedAnswer:
    verdicts = {verdict for _, verdict in found}
    if not verdicts or verdicts == {None}:
        return ParsedAnswer(missing)
    if len(verdicts) > 1:
        return ParsedAnswer("ambiguous", reason="several answers that disagree")
    answer, verdict = found[-1]
    return answer_of("recovered", answer, bool(verdict), fact_ids)
