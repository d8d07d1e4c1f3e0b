"""Masking: what looks personal never comes through, whatever stands around it."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgrag_assets.judging.masking import LONGEST_VALUE, is_personal_column, masked
from kgrag_assets.judging.value_lines import value_lines
from kgrag_assets.schemas.value_profile import ValueProfile
from kgrag_assets_tests.judging.pairs import attribute

CUT = " [cut]"
around = st.text(max_size=8)
names = st.from_regex(r"[A-Z][b-z]{2,7}", fullmatch=True)


def letters(said: str) -> set[str]:
    """Letters of what is told, but for those that stand for letters."""
    return set(re.findall(r"[^\W\d_]", said.removesuffix(CUT))) - {"A", "a"}


@given(around, st.integers(10_000), around)
def test_no_five_digits_in_a_row_come_through(before: str, number: int, after: str) -> None:
    said = masked(f"{before}{number}{after}")
    assert str(number) not in said or set(str(number)) == {"9"}
    assert not re.search(r"[^\D9]\d{4,}|\d{4,}[^\D9]", said)
    assert all(set(run) == {"9"} for run in re.findall(r"\d{5,}", said))


@given(around, st.emails(), around)
def test_no_address_comes_through(before: str, email: str, after: str) -> None:
    said = masked(f"{before} {email} {after}")
    assert email not in said
    assert not letters(said)


@given(names, names, st.sampled_from(["{0} {1}", "{1}, {0}", "{1},{0}", "Dr. {1}", "mr {1}", "{0} de {1}"]))
def test_no_name_of_a_person_comes_through(first: str, last: str, form: str) -> None:
    assert not letters(masked(form.format(first, last)))


@given(
    st.dates(date(1000, 1, 1)),
    st.sampled_from(["%Y-%m-%d", "%d.%m.%Y", "%m/%d/%y", "%d %b %Y", "%Y%m%d", "%B %d, %Y", "%d%b%Y"]),
)
def test_no_full_date_comes_through(day: object, form: str) -> None:
    said = masked(format(day, form))
    assert not re.search(r"[0-8]", said)
    assert not letters(said)


@given(st.uuids(), st.booleans())
def test_no_uuid_comes_through(value: object, plain: bool) -> None:
    said = masked(str(value).replace("-", "") if plain else str(value))
    assert not letters(said)
    assert not re.search(r"[0-8]", said)


@given(st.ip_addresses())
def test_no_ip_address_comes_through(value: object) -> None:
    said = masked(str(value))
    assert not letters(said)
    assert not re.search(r"[0-8]", said)


@pytest.mark.parametrize(
    "value",
    [
        "078-05-1120",
        "078 05 1120",
        "+49 170 123",
        "555-0100",
        "4111-1111-1111-1111",
        "DE89370400440532013000",
        "52.520008",
        "-13.40495399",
        "PO Box 12",
        "12 Elm St",
        "Elm St 12b",
        "sk4f9a0b2c7d1e",
        "AKIAIOSFODNN7EXAMPLE",
        "www.clinic.example",
        "ftp://x/y?k=1",
        "clinic.org/p",
        "Ms Roe",
        "@handle",
        "12 Feb 84",
        "Feb 12 1984",
        "1984/2/3 10:00",
        "O'Brien, Pat",
        "x" * (LONGEST_VALUE + 1),
    ],
)
def test_what_may_be_personal_is_masked(value: str) -> None:
    said = masked(value)
    assert said != value
    assert not letters(said)
    assert not re.search(r"[0-8]", said.removesuffix(CUT))


@pytest.mark.parametrize(
    "value",
    ["M", "Female", "E11.9", "S72.001A", "mg/dL", "1984", "5 mg", "0.5 mg", "10 ml", "120/80", "3.75", "O+", "2345-7"],
)
def test_codes_words_and_quantities_come_through(value: str) -> None:
    assert masked(value) == value


@pytest.mark.parametrize(
    ("words", "description", "personal"),
    [
        (["patient", "surname"], [], True),
        (["zip", "code"], [], True),
        (["status"], ["the", "patient's", "state"], False),
        (["snm"], ["surname", "of", "the", "person"], True),
        (["unit"], [], False),
    ],
)
def test_columns_about_a_person(words: list[str], description: list[str], *, personal: bool) -> None:
    assert is_personal_column(words, description) is personal


def test_values_that_tell_rows_apart_are_shown_as_shapes() -> None:
    code = attribute("source", "t", "code", column_description="", sample_values=("ab", "cd"), distinct_count=500)
    assert value_lines(code, "masked")[0].endswith("ab | cd")
    unique = replace(code, profile=ValueProfile(uniqueness=1.0))
    assert value_lines(unique, "masked")[0].endswith(": aa")
    assert value_lines(replace(unique, distinct_count=3), "masked")[0].endswith("ab | cd")
    assert value_lines(replace(code, is_primary_key=True), "masked")[0].endswith(": aa")
    assert value_lines(replace(code, column_description="e-mail, surname"), "masked")[0].endswith(": aa")
    assert value_lines(unique, "local") == []


@given(st.lists(st.text(), max_size=6))
def test_at_most_three_values_on_one_line_are_shown(found: list[str]) -> None:
    one = attribute("source", "t", "code", sample_values=tuple(found))
    for policy in ("shapes", "masked"):
        lines = value_lines(one, policy)
        assert len(lines) <= 1
        assert all(len(line.splitlines()) == 1 and len(line) < 60 + 3 * (LONGEST_VALUE + 4) for line in lines)
