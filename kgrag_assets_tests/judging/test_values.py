"""What is told of sample values: masked, shapes, or nothing."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgrag_assets.judging.instance_evidence import instance_evidence
from kgrag_assets.judging.masking import MASK, masked
from kgrag_assets.judging.value_lines import value_lines
from kgrag_assets_tests.judging.pairs import attribute


@pytest.mark.parametrize("value", ["M", "female", "E11.9", "mg/dL", "1984", "oral tablet", "A-12", "3.5", "O+", "0"])
def test_codes_words_and_small_numbers_are_shown(value: str) -> None:
    assert masked(value) == value


@pytest.mark.parametrize(
    "value",
    [
        "anna.mueller@example.org",
        "Müller, Anna",
        "Anna Müller",
        "van der Berg, J",
        "1984-03-12",
        "12.03.1984",
        "3 Mar 1984",
        "19840312",
        "078-05-1120",
        "+49 170 1234567",
        "(555) 010-9999",
        "4111 1111 1111 1111",
        "10.0.12.7",
        "fe80::1:2:3",
        "https://x.example/?token=a",
        "123e4567-e89b-12d3-a456-426614174000",
        "12 Main Street",
        "Hauptstrasse 7",
        "the patient says that she cannot sleep at night",
        "9876543210",
    ],
)
def test_what_looks_personal_is_masked(value: str) -> None:
    said = masked(value)
    assert said != value
    letters = set(re.findall(r"[^\W\d_]", said.removesuffix(" [cut]"))) - {"A", "a"}
    assert not letters
    assert not re.search(r"[0-8]", said) or value == "9876543210"


@given(st.text())
def test_no_long_number_address_or_line_break_survives(value: str) -> None:
    said = masked(value)
    assert not re.search(r"\d{5,}", said.replace("9", "x"))
    assert "@" not in said or not re.search(r"[b-zB-Z]@|@[b-zB-Z]", said)
    assert len(said.splitlines()) <= 1
    assert masked(value, personal=True).replace(MASK, "").isascii() or not value.isascii()


def test_a_column_about_people_shows_shapes_only() -> None:
    name = attribute("source", "pat", "last_name", sample_values=("Smith", "Roy"))
    assert value_lines(name, "masked") == ["some values (personal ones as A letter, 9 digit): Aaa | Aaaaa"]
    code = attribute("source", "pat", "status", sample_values=("open", "closed", "open", "void", "late"))
    assert value_lines(code, "masked") == ["some values (personal ones as A letter, 9 digit): closed | open | void"]
    assert value_lines(code, "shapes") == ["shapes of some values (A letter, 9 digit): aaaa | aaaaaa"]
    assert value_lines(code, "local") == []
    assert value_lines(attribute("source", "pat", "status"), "masked") == []
    with pytest.raises(ValueError, match="shapes, masked or local"):
        value_lines(code, "all")


def test_values_are_compared_here_and_only_shares_are_told() -> None:
    left = attribute("source", "a", "x", sample_values=("M", "F"), distinct_count=2)
    right = attribute("target", "b", "y", sample_values=("f", "m", "U"), distinct_count=500)
    found = {one.fact_id: one.text for one in instance_evidence(left, right, "shapes")}
    assert found["values:overlap"].startswith("100% of the smaller side")
    assert "handful" in found["values:distinct"]
    assert instance_evidence(left, right, "local") == ()
    other = attribute("target", "b", "y", sample_values=("2020-01-01",))
    texts = [one.text for one in instance_evidence(left, other, "masked")]
    assert texts == ["no sample value stands on both sides", "the sample values are written in different ways"]
    assert instance_evidence(attribute("source", "a", "x"), other, "masked") == ()


WORDINGS = {
    "N% of the patterns of the sample values are written alike",
    "N% of the smaller side's sample values stand on the other side, too",
    "no sample value stands on both sides",
    "the sample values are written in different ways",
}


@given(st.lists(st.text(), max_size=5), st.lists(st.text(), max_size=5))
def test_no_evidence_holds_a_value(mine: list[str], other: list[str]) -> None:
    left = attribute("source", "a", "x", sample_values=tuple(mine))
    right = attribute("target", "b", "y", sample_values=tuple(other))
    texts = {re.sub(r"\d+%", "N%", one.text) for one in instance_evidence(left, right, "masked")}
    assert texts <= WORDINGS
