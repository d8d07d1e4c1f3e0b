"""KGTK's literals: what belongs here reads one, by the sigil it begins with, and writes it as readable text."""

from __future__ import annotations

import re
from collections.abc import Callable

from kgrag_assets.knowledge.sources.lines import is_id
from kgrag_assets.knowledge.sources.wikidata_values import ValueProblemError, coordinate_text, one_line, time_text

STRING = re.compile(r'"((?:[^"\\]|\\.)*)"\Z', re.DOTALL)
_QUANTITY = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)(?:\[[^\]]*\])?([^\[\]]*)\Z")
_UNIT_ID = re.compile(r"Q[1-9][0-9]*\Z")
_NUMBER_OF_BASE = re.compile(r"[+-]?0[xXoObB][0-9a-fA-F]+\Z")
_COORDINATE = re.compile(r"@([+-]?[0-9.]+)/([+-]?[0-9.]+)\Z")
_ESCAPE = re.compile(r"\\(.)")
_ESCAPED = {"n": " ", "t": " ", "r": " "}


def unescaped(text: str) -> str:
    """Undo the escapes of a text; a line end or a tab becomes a space."""
    # KGTK escapes | and quotes with a backslash; files in use also carry \" inside single quotes.
    if "\\" not in text:
        return text
    return _ESCAPE.sub(lambda match: _ESCAPED.get(match.group(1), match.group(1)), text)


def _string(value: str) -> tuple[str, str | None]:
    match = STRING.match(value)
    if match is None:
        raise ValueProblemError('a string must be written as "text"')
    return one_line(unescaped(match.group(1))), None


def _time(value: str) -> tuple[str, str | None]:
    text, _, precision = value[1:].partition("/")
    precision = precision.partition("/")[0]  # a calendar may follow
    if precision and not precision.isdecimal():
        raise ValueProblemError(f"the precision of a time is a number, not {precision[:20]!r}")
    return time_text(text, int(precision) if precision else None), None


def _coordinate(value: str) -> tuple[str, str | None]:
    match = _COORDINATE.match(value)
    try:
        if match is not None:
            return coordinate_text(float(match.group(1)), float(match.group(2)), None), None
    except ValueError as error:
        if isinstance(error, ValueProblemError):
            raise
    raise ValueProblemError("a place must be written as @latitude/longitude")


def quantity(value: str) -> tuple[str, str | None]:
    """Write a number, and the id of its unit; a unit that is no item stays behind the number.

    Raises:
        ValueProblemError: the value is no quantity.
    """
    if _NUMBER_OF_BASE.match(value):
        return value.removeprefix("+"), None
    match = _QUANTITY.match(value)
    if match is None or not (match.group(2) == "" or is_id(match.group(2))):
        raise ValueProblemError(f"not a quantity: {value[:60]!r}")
    number, unit = match.group(1).removeprefix("+"), match.group(2)
    if _UNIT_ID.match(unit):
        return number, unit
    return f"{number} {unit}".rstrip(), None


def _typed(value: str) -> tuple[str, str | None]:
    """Write a value of another type (``!1000^^dbpedia:USD``) without its type."""
    text = value[1:].partition("^^")[0].partition("^")[0]
    return one_line(unescaped(text.strip('"'))), None


def _boolean(value: str) -> tuple[str, str | None]:
    return value, None


# The first character of a value -> its kind as settings name it, and how it is written. A digit, sign or point
# begins a quantity.
KINDS: dict[str, tuple[str, Callable[[str], tuple[str, str | None]]]] = {
    '"': ("string", _string),
    "'": ("monolingualtext", _string),
    "^": ("time", _time),
    "@": ("globe-coordinate", _coordinate),
    "!": ("string", _typed),
    "T": ("string", _boolean),
    "F": ("string", _boolean),
}
