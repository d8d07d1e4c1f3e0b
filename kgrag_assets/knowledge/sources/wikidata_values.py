"""What Wikidata's values say, as readable text: what belongs here turns one value of a statement into words.

The values: https://doc.wikimedia.org/Wikibase/master/php/docs_topics_json.html#json_datavalues.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Literal, cast

import msgspec

from kgrag_assets.models.endpoints import storable

# Words that stand in every statement are compared while decoding and not made anew each time; a statement with
# another word is parsed in the slower way and gives the same rows.
Datatype = Literal[
    "wikibase-item",
    "wikibase-property",
    "wikibase-lexeme",
    "wikibase-form",
    "wikibase-sense",
    "entity-schema",
    "string",
    "external-id",
    "url",
    "monolingualtext",
    "time",
    "quantity",
    "globe-coordinate",
    "commonsMedia",
    "math",
    "musical-notation",
    "tabular-data",
    "geo-shape",
]
EntityType = Literal["item", "property", "lexeme", "form", "sense", "mediainfo", "entity-schema"]
# Datatypes of properties whose values are literals, as the dump spells them -> as settings name them.
LITERAL_KINDS = {
    "string": "string",
    "external-id": "external-id",
    "url": "url",
    "monolingualtext": "monolingualtext",
    "time": "time",
    "quantity": "quantity",
    "globe-coordinate": "globe-coordinate",
    "commonsMedia": "commons-media",
    "math": "math",
    "musical-notation": "musical-notation",
    "tabular-data": "tabular-data",
    "geo-shape": "geo-shape",
}
ALL_LITERALS = "all"
# The kind of a value whose statement does not name its datatype, as in older files: by what the value is.
_PLAIN_TEXT = "string"

_EARTH = "Q2"
_ID_AT_END = re.compile(r"(?:.*/)?([QPL][1-9][0-9]{0,11})\Z")
_TIME = re.compile(r"([+-]?)([0-9]{1,16})-([0-9]{2})-([0-9]{2})T([0-9]{2}):([0-9]{2}):([0-9]{2})Z\Z")
_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
# Wikibase's precisions of a time: powers of ten years from 0 (10^9) to 9 (one year), then finer.
_MILLENNIUM, _CENTURY, _DECADE, _YEAR, _MONTH, _DAY, _SECOND = 6, 7, 8, 9, 10, 11, 14


class Value(msgspec.Struct, gc=False, rename={"entity_type": "entity-type", "numeric_id": "numeric-id"}):
    """The value of a statement that is no plain text; which fields are set depends on its type."""

    entity_type: EntityType | None = None
    numeric_id: int | None = None
    id: str | None = None
    text: str | None = None
    language: str | None = None
    time: str | None = None
    precision: float | None = None
    amount: str | None = None
    unit: str | None = None
    latitude: float | None = None
    longitude: float | None = None
    globe: str | None = None


class ValueProblemError(ValueError):
    """A value cannot be what its type says; the message says why, for the reject table."""


def value_of(content: dict[str, object]) -> Value:
    """Take from parsed JSON the fields that are of the right type; the others stay unset."""

    def text(name: str) -> str | None:
        field = content.get(name)
        return storable(field) if isinstance(field, str) else None

    numeric = content.get("numeric-id")
    return Value(
        entity_type=cast("EntityType | None", text("entity-type")),
        numeric_id=numeric if type(numeric) is int else None,
        id=text("id"),
        text=text("text"),
        language=text("language"),
        time=text("time"),
        precision=_number(content.get("precision")),
        amount=text("amount"),
        unit=text("unit"),
        latitude=_number(content.get("latitude")),
        longitude=_number(content.get("longitude")),
        globe=text("globe"),
    )


def literal_kind(datatype: str | None, content: str | Value) -> str:
    """Name the kind of a literal as settings do: by its statement's datatype, else by what the value is."""
    if datatype is not None:
        return LITERAL_KINDS.get(datatype, datatype)
    if isinstance(content, str):
        return _PLAIN_TEXT
    if content.text is not None:
        return "monolingualtext"
    if content.time is not None:
        return "time"
    if content.amount is not None:
        return "quantity"
    return "globe-coordinate"


def literal(content: str | Value, languages: Sequence[str]) -> tuple[str, str | None] | None:
    """Write a literal as readable text.

    Args:
        content: a plain text, or a value that is no entity.
        languages: the wanted languages; a text in another one is left aside.

    Returns:
        the text, and the id of its unit (of a quantity; of a coordinate the globe, where it is not the Earth);
        None where there is nothing to say.

    Raises:
        ValueProblemError: the value is not what its type says.
    """
    if isinstance(content, str):
        text = one_line(content)
        return (text, None) if text else None
    if content.text is not None:
        # A text that does not name its language, as no dump writes it, is taken as it is.
        wanted = content.language is None or content.language in languages
        text = one_line(content.text)
        return (text, None) if text and wanted else None
    if content.time is not None:
        text = time_text(content.time, content.precision)
        return (text, None) if text else None
    if content.amount is not None:
        amount = one_line(content.amount).removeprefix("+")
        return (amount, _unit(content.unit)) if amount else None
    if content.latitude is not None and content.longitude is not None:
        globe = None if content.globe is None else _id_at_end(content.globe)
        place = coordinate_text(content.latitude, content.longitude, content.precision)
        return place, None if globe == _EARTH else globe
    return None


def one_line(text: str) -> str:
    """Write runs of white space, line ends among them, as one space."""
    return " ".join(text.split())


def time_text(time: str, precision: float | None) -> str:
    """Write a point in time as exactly as it is known: ``11 March 1952``, ``19th century``, ``3000 BC``.

    The calendar is left aside: the dump gives a day in the calendar that its source used.

    Args:
        time: ISO 8601 with a sign and unknown parts as 00, such as ``+1952-03-11T00:00:00Z``.
        precision: Wikibase's precision, 0 (billions of years) to 14 (seconds); None is taken as a day.

    Returns:
        the text; a time that is not written as above, or cannot be (month 13, year 0), as it is.
    """
    match = _TIME.match(time)
    year, month, day = (int(match[2]), int(match[3]), int(match[4])) if match else (0, 0, 0)
    if match is None or year == 0 or month > 12 or day > 31:
        return one_line(time).removeprefix("+")
    # An exacter precision than the parts that are given is not believed.
    given = _YEAR if month == 0 else _MONTH if day == 0 else _SECOND
    exact = min(_DAY if precision is None else int(precision), given)
    if exact < _YEAR:
        text = _years_text(year, exact)
    elif exact == _YEAR:
        text = str(year)
    else:
        text = f"{_MONTHS[month - 1]} {year}"
        text = text if exact == _MONTH else f"{day} {text}"
    if match[1] == "-":
        text += " BC"
    if exact > _DAY:
        text += f" {match[5]}:{match[6]}" if exact < _SECOND else f" {match[5]}:{match[6]}:{match[7]}"
    return text


def _years_text(year: int, precision: int) -> str:
    """Write a year that is known to ten years or less exactly; 1900 is in the 19th century, as Wikibase has it."""
    if precision == _DECADE:
        return f"{year // 10 * 10}s"
    if precision in (_CENTURY, _MILLENNIUM):
        length, name = (100, "century") if precision == _CENTURY else (1000, "millennium")
        return f"{_ordinal(-(-year // length))} {name}"
    step = 10 ** (_YEAR - max(precision, 0))
    rounded = (year + step // 2) // step * step or year
    for size, name in ((10**9, " billion years"), (10**6, " million years")):
        if rounded % size == 0:
            return f"{rounded // size}{name}"
    return f"{rounded} years"


def _ordinal(number: int) -> str:
    if number % 100 in (11, 12, 13):
        return f"{number}th"
    return f"{number}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th') }"


def coordinate_text(latitude: float, longitude: float, precision: float | None) -> str:
    """Write degrees north and east as ``52.5, 13.4``, with the digits that the precision (in degrees) is good for.

    Raises:
        ValueProblemError: no place has these degrees.
    """
    if not (-360 <= latitude <= 360 and -360 <= longitude <= 360):  # also refuses what is not a number
        raise ValueProblemError(f"no place is at {latitude}, {longitude}")
    digits = 6
    if precision is not None and 0 < precision < math.inf:
        digits = min(max(math.ceil(-math.log10(precision)), 0), digits)
    return f"{_plain(latitude, digits)}, {_plain(longitude, digits)}"


def _plain(number: float, digits: int) -> str:
    text = f"{number:.{digits}f}"
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def _unit(unit: str | None) -> str | None:
    """Return the id of a quantity's unit; ``1`` is the unit of what has none."""
    if unit is None or unit == "1":
        return None
    found = _id_at_end(unit)
    if found is None:
        # Without its unit the number would say something else.
        raise ValueProblemError(f"the unit {unit[:60]!r} is not an item")
    return found


def _id_at_end(address: str) -> str | None:
    match = _ID_AT_END.match(address)
    return match[1] if match else None


def _number(field: object) -> float | None:
    if isinstance(field, bool) or not isinstance(field, int | float):
        return None
    try:
        return float(field)
    except OverflowError:
        return None
