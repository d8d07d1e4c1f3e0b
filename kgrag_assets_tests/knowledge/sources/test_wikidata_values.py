"""Values as words: times by their precision, coordinates by theirs, units by their ids."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgrag_assets.knowledge.sources.wikidata_values import (
    Value,
    ValueProblemError,
    coordinate_text,
    literal,
    literal_kind,
    time_text,
    value_of,
)


@pytest.mark.parametrize(
    ("time", "precision", "text"),
    [
        ("+1952-03-11T00:00:00Z", 11, "11 March 1952"),
        ("+1952-03-11T00:00:00Z", None, "11 March 1952"),
        ("+1952-03-11T00:00:00Z", 10, "March 1952"),
        ("+1952-03-11T00:00:00Z", 9, "1952"),
        ("+00000001952-03-11T00:00:00Z", 11, "11 March 1952"),
        ("+1952-03-00T00:00:00Z", 11, "March 1952"),
        ("+1952-00-00T00:00:00Z", 11, "1952"),
        ("+1952-00-00T00:00:00Z", None, "1952"),
        ("+0476-09-04T00:00:00Z", 11, "4 September 476"),
        ("-0044-03-15T00:00:00Z", 11, "15 March 44 BC"),
        ("-3000-00-00T00:00:00Z", 9, "3000 BC"),
        ("+2012-01-01T00:00:00Z", 8, "2010s"),
        ("-0351-01-01T00:00:00Z", 8, "350s BC"),
        ("+1801-01-01T00:00:00Z", 7, "19th century"),
        ("+1900-01-01T00:00:00Z", 7, "19th century"),
        ("+1901-01-01T00:00:00Z", 7, "20th century"),
        ("+2001-01-01T00:00:00Z", 7, "21st century"),
        ("+0150-01-01T00:00:00Z", 7, "2nd century"),
        ("-0250-01-01T00:00:00Z", 7, "3rd century BC"),
        ("+1101-01-01T00:00:00Z", 7, "12th century"),
        ("-2000-00-00T00:00:00Z", 6, "2nd millennium BC"),
        ("-10000-00-00T00:00:00Z", 5, "10000 years BC"),
        ("-120000-00-00T00:00:00Z", 4, "100000 years BC"),
        ("-66000000-00-00T00:00:00Z", 3, "66 million years BC"),
        ("-66000000-00-00T00:00:00Z", 2, "70 million years BC"),
        ("-13798000000-00-00T00:00:00Z", 3, "13798 million years BC"),
        ("-13798000000-00-00T00:00:00Z", 0, "14 billion years BC"),
        ("-4000-00-00T00:00:00Z", 0, "4000 years BC"),
        ("+1969-07-20T20:17:40Z", 14, "20 July 1969 20:17:40"),
        ("+1969-07-20T20:17:40Z", 13, "20 July 1969 20:17"),
        # What is not written as Wikibase writes it is handed on as it stands.
        ("+1952-13-11T00:00:00Z", 11, "1952-13-11T00:00:00Z"),
        ("+0000-00-00T00:00:00Z", 9, "0000-00-00T00:00:00Z"),
        ("in spring", 11, "in spring"),
    ],
)
def test_times(time: str, precision: float | None, text: str) -> None:
    assert time_text(time, precision) == text


@given(st.integers(1, 10**10), st.integers(0, 12), st.integers(0, 31), st.integers(-1, 15), st.sampled_from("+-"))
def test_a_time_says_its_year_when_it_is_known_to_the_year(
    year: int, month: int, day: int, precision: int, sign: str
) -> None:
    text = time_text(f"{sign}{year:04}-{month:02}-{day:02}T00:00:00Z", precision)
    assert text
    assert text.endswith(" BC") is (sign == "-") or precision > 11
    assert (str(year) in text.split()) or precision < 9


@pytest.mark.parametrize(
    ("latitude", "longitude", "precision", "text"),
    [
        (52.5, 13.4, 0.1, "52.5, 13.4"),
        (52.516666666667, 13.383333333333, 1 / 3600, "52.5167, 13.3833"),
        (57, -5, 1e-5, "57, -5"),
        (57.12345678, -5, None, "57.123457, -5"),
        (57.12345678, -5, 0, "57.123457, -5"),
        (57.9, -5, 1, "58, -5"),
        (100, -0.0000001, 10, "100, 0"),
        (1e-5, 0, 1e-5, "0.00001, 0"),
    ],
)
def test_coordinates(latitude: float, longitude: float, precision: float | None, text: str) -> None:
    assert coordinate_text(latitude, longitude, precision) == text


@pytest.mark.parametrize("place", [(math.nan, 0), (0, math.inf), (1000, 0)])
def test_a_place_that_is_nowhere_is_refused(place: tuple[float, float]) -> None:
    with pytest.raises(ValueProblemError, match="no place is at"):
        coordinate_text(*place, None)


@pytest.mark.parametrize(
    ("content", "written"),
    [
        ("plain \n text", ("plain text", None)),
        ("  ", None),
        ({"text": "a  title", "language": "en"}, ("a title", None)),
        ({"text": "ein Titel", "language": "de"}, None),
        ({"amount": "+17", "unit": "1"}, ("17", None)),
        ({"amount": "-3.50", "unit": "1", "upperBound": "+1", "lowerBound": "+0"}, ("-3.50", None)),
        ({"amount": "+78782", "unit": "http://www.wikidata.org/entity/Q712226"}, ("78782", "Q712226")),
        ({"amount": "+5"}, ("5", None)),
        ({"latitude": 57, "longitude": -5, "precision": 1e-05, "globe": "http://www.wikidata.org/entity/Q2"},
         ("57, -5", None)),
        ({"latitude": 0.67, "longitude": 23.5, "precision": 0.01, "globe": "http://www.wikidata.org/entity/Q405"},
         ("0.67, 23.5", "Q405")),
        ({"latitude": 57}, None),
        ({"something": "new"}, None),
    ],
)  # fmt: skip
def test_literals(content: str | dict[str, object], written: tuple[str, str | None] | None) -> None:
    assert literal(content if isinstance(content, str) else value_of(content), ("en",)) == written


def test_a_number_whose_unit_cannot_be_read_is_refused() -> None:
    with pytest.raises(ValueProblemError, match="the unit 'metres' is not an item"):
        literal(Value(amount="+3", unit="metres"), ("en",))


@pytest.mark.parametrize(
    ("datatype", "content", "kind"),
    [
        ("commonsMedia", "a.jpg", "commons-media"),
        ("external-id", "x", "external-id"),
        ("newer-than-this", "x", "newer-than-this"),
        (None, "x", "string"),
        (None, Value(text="x"), "monolingualtext"),
        (None, Value(time="x"), "time"),
        (None, Value(amount="1"), "quantity"),
        (None, Value(latitude=1, longitude=1), "globe-coordinate"),
    ],
)
def test_kinds(datatype: str | None, content: str | Value, kind: str) -> None:
    assert literal_kind(datatype, content) == kind
