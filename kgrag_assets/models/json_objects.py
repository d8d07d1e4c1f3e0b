"""Finding JSON objects in a model's text, and the yes or no that they hold."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

# What models call the field, besides the name that the schema gives it.
MATCH_KEYS = ("match", "is_match", "matched", "label", "answer")

_YES = ("true", "yes", "1", "match", "matched")
_NO = ("false", "no", "0", "no match", "not matched", "not a match")
_DEEPEST = 4
# Each attempt reads from one brace to where it fails; a text of braces alone must not take forever.
_ATTEMPTS = 400

Found = dict[str, Any]


@dataclass(frozen=True)
class FoundObjects:
    """Objects that hold an answer, each with it (None: neither yes nor no), and the text around all objects.

    ``gave_up`` says that the text held too many braces to be searched.
    """

    answers: tuple[tuple[Found, bool | None], ...]
    around: str
    gave_up: bool = False


class _ContradictionError(ValueError):
    """An object names its answer twice, with different values."""


def _pairs(pairs: list[tuple[str, Any]]) -> Found:
    found: Found = {}
    for name, value in pairs:
        if name in MATCH_KEYS and name in found and found[name] != value:
            raise _ContradictionError(name)
        found[name] = value
    return found


# NaN and Infinity are no JSON; as None they are no confidence either.
_DECODER = json.JSONDecoder(object_pairs_hook=_pairs, parse_constant=lambda _name: None)


_ALWAYS = frozenset(("match", "confidence", "reason", "facts"))
_WITH_GATE = _ALWAYS | {"own_match", "own_confidence", "relevance"}


def whole_value(text: str) -> object:
    """Return the value if the whole text is one JSON value; None where it is not."""
    try:
        value: object = _DECODER.decode(text)
    # RecursionError: nested deeper than anybody means.
    except (ValueError, RecursionError):
        return None
    return value


def strict_object(text: str) -> Found | None:
    """Return the object if the whole text is one that fits the schema: all fields, of their types, no other."""
    value = whole_value(text)
    return value if isinstance(value, dict) and fits_answer(value) else None


def fits_answer(value: Found) -> bool:
    """Say whether an object is an answer about one pair, with the fields of the gate or without."""
    if set(value) not in (_ALWAYS, _WITH_GATE):
        return False
    facts = value["facts"]
    fits = (
        isinstance(value["match"], bool)
        and _is_number(value["confidence"], 1)
        and isinstance(value["reason"], str)
        and isinstance(facts, list)
        and all(isinstance(fact, str) for fact in facts)
    )
    if "relevance" not in value:
        return fits
    gated = isinstance(value["own_match"], bool) and _is_number(value["own_confidence"], 1)
    return fits and gated and isinstance(value["relevance"], int) and _is_number(value["relevance"], 10)


def _is_number(value: object, most: int) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= most


def find_objects(text: str) -> FoundObjects:
    """Find every JSON object in a text, in fences, prose, lists or other objects, and read the answers."""
    answers: list[tuple[Found, bool | None]] = []
    around: list[str] = []
    position, attempts = 0, 0
    while (brace := text.find("{", position)) >= 0:
        attempts += 1
        if attempts > _ATTEMPTS:
            return FoundObjects((), text, gave_up=True)
        around.append(text[position:brace])
        try:
            value, end = _DECODER.raw_decode(text, brace)
        except _ContradictionError:
            return FoundObjects((({}, True), ({}, False)), text)
        except (ValueError, RecursionError):
            around.append("{")
            position = brace + 1
            continue
        answers.extend(_answers_in(value, 0))
        around.append(" ")
        position = end
    around.append(text[position:])
    return FoundObjects(tuple(answers), "".join(around))


def _answers_in(value: object, depth: int) -> list[tuple[Found, bool | None]]:
    if depth > _DEEPEST:
        return []
    if isinstance(value, list):
        return [answer for item in value for answer in _answers_in(item, depth + 1)]
    if not isinstance(value, dict):
        return []
    verdicts = [_verdict(value[name]) for name in MATCH_KEYS if name in value]
    if verdicts:
        # One decided field is an answer, whatever a second one says in words.
        decided = [verdict for verdict in verdicts if verdict is not None]
        return [(value, verdict) for verdict in decided] or [(value, None)]
    return [answer for item in value.values() for answer in _answers_in(item, depth + 1)]


def _verdict(value: object) -> bool | None:
    if isinstance(value, bool):
        return value
    if isinstance(value, int) and value in (0, 1):
        return bool(value)
    if isinstance(value, str):
        word = value.strip().rstrip(".!").lower()
        if word in _YES:
            return True
        if word in _NO:
            return False
    return None
