"""Literals of RDF as readable text: what belongs here tells a literal's kind by its datatype and writes it."""

from __future__ import annotations

import re

from kgrag_assets.knowledge.sources.iris import IriIds
from kgrag_assets.knowledge.sources.wikidata_values import ValueProblemError, coordinate_text, one_line, time_text

_XSD = "http://www.w3.org/2001/XMLSchema#"
_WKT = "http://www.opengis.net/ont/geosparql#wktLiteral"
_DATE, _MONTH, _YEAR = _XSD + "date", _XSD + "gYearMonth", _XSD + "gYear"
_TIMES = frozenset((_XSD + "dateTime", _XSD + "dateTimeStamp", _DATE, _MONTH, _YEAR, _XSD + "time"))
_NUMBERS = frozenset(
    _XSD + name
    for name in (
        *("decimal", "integer", "double", "float", "int", "long", "short", "byte"),
        *("nonNegativeInteger", "positiveInteger", "nonPositiveInteger", "negativeInteger"),
        *("unsignedInt", "unsignedLong", "unsignedShort", "unsignedByte"),
    )
)
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?\Z|[+-]?INF\Z|NaN\Z")
_MIDNIGHT = "T00:00:00Z"
_MONTH_PRECISION, _DAY_PRECISION, _SECOND_PRECISION = 10, 11, 14
_POINT = re.compile(r"(?:<([^>]*)>\s*)?point\s*\(\s*([+-]?[0-9.eE+-]+)\s+([+-]?[0-9.eE+-]+)\s*\)\Z", re.IGNORECASE)
_EARTH = "http://www.wikidata.org/entity/Q2"


def kind_of(language: str | None, datatype: str | None) -> str:
    """Name the kind of a literal as settings do; a datatype that is not known is a ``string``."""
    if language is not None:
        return "monolingualtext"
    if datatype in _TIMES:
        return "time"
    if datatype in _NUMBERS:
        return "quantity"
    return "globe-coordinate" if datatype == _WKT else "string"


def text_of(text: str, datatype: str | None, ids: IriIds) -> tuple[str, str | None]:
    """Write a literal, its escapes undone, as readable text.

    Returns:
        the text, and for a place that is not on Earth the id of its globe.

    Raises:
        ValueProblemError: the text is not what its datatype says.
    """
    text = one_line(text)
    if datatype in _TIMES:
        return _time(text, datatype), None
    if datatype in _NUMBERS:
        if not _NUMBER.match(text):
            raise ValueProblemError(f"not a number: {text[:60]!r}")
        return text.removeprefix("+"), None
    if datatype == _WKT:
        return _place(text, ids)
    return text, None


def _time(text: str, datatype: str | None) -> str:
    if datatype == _DATE:
        return time_text(text.removesuffix("Z") + _MIDNIGHT, _DAY_PRECISION)
    if datatype == _MONTH:
        return time_text(f"{text}-00{_MIDNIGHT}", _MONTH_PRECISION)
    # A dump does not say how exact a time is; midnight is rarely meant.
    return time_text(text, _DAY_PRECISION if text.endswith(_MIDNIGHT) else _SECOND_PRECISION)


def _place(text: str, ids: IriIds) -> tuple[str, str | None]:
    match = _POINT.match(text)
    if match is None:
        return text, None  # a line or an area
    try:
        longitude, latitude = float(match[2]), float(match[3])
    except ValueError as error:
        raise ValueProblemError(f"not a point: {text[:60]!r}") from error
    globe = match[1]
    return coordinate_text(latitude, longitude, None), None if globe in (None, _EARTH) else ids.id_of(globe)
