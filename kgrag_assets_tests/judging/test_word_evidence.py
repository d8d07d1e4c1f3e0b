"""What words say: telling ones more than common ones, kinds that do not go together, words that exclude each other."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgrag_assets.judging.word_evidence import (
    FAR_KIND,
    OTHER_KIND,
    SAME_KIND,
    cross_likeness,
    kind_evidence,
    kind_weight,
    kinds,
    likeness,
    opposed,
    word_evidence,
)
from kgrag_assets.schemas.attribute import Attribute
from kgrag_assets_tests.judging.pairs import attribute


def source(column: str, table: str = "t", description: str = "", family: str = "unknown") -> Attribute:
    return attribute("source", table, column, column_description=description, type_family=family)


def target(column: str, table: str = "u", description: str = "", family: str = "unknown") -> Attribute:
    return attribute("target", table, column, column_description=description, type_family=family)


def test_telling_words_count_more_than_common_ones() -> None:
    assert likeness(source("dob"), target("birth_date")) == 1.0
    assert likeness(source("gender_code"), target("gender_id")) > likeness(source("gender_code"), target("race_code"))
    assert likeness(source("x"), target("y")) == 0.0
    # The table's own words say where the column stands.
    assert likeness(source("start"), target("drug_start", "drug")) > likeness(source("start"), target("drug_start"))


def test_a_name_may_stand_in_the_other_description() -> None:
    assert cross_likeness(source("npi"), target("x", description="national provider identifier of the doctor")) > 0
    assert cross_likeness(source("sex"), target("sex", description="sex")) == 0.0
    assert cross_likeness(source("route"), target("x", description="the route")) == 0.5


@pytest.mark.parametrize(
    ("name", "family", "found"),
    [
        ("birth_dt", "unknown", {"time"}),
        ("person_id", "unknown", {"identifier"}),
        ("gender_concept_id", "unknown", {"code", "identifier"}),
        ("total_amount", "unknown", {"quantity"}),
        ("born", "date", {"time"}),
        ("seen", "boolean", {"flag"}),
        ("status", "text", set()),
    ],
)
def test_kinds(name: str, family: str, found: set[str]) -> None:
    assert kinds(source(name, family=family)) == found


def test_kinds_that_do_not_go_together() -> None:
    assert kind_weight({"time"}, {"time", "code"}) == SAME_KIND
    assert kind_weight({"identifier"}, {"code"}) == OTHER_KIND
    assert kind_weight({"time"}, {"code"}) == FAR_KIND
    assert kind_weight(set(), {"code"}) == 0.0


@pytest.mark.parametrize(
    ("left", "right", "exclude"),
    [
        ("strt_dt", "end_date", True),
        ("clm_from_dt", "visit_start_date", False),
        ("range_low", "ref_high", True),
        ("birth_date", "death_date", True),
        ("start_end", "end", False),
        ("city", "zip", True),
        ("first_name", "last_name", True),
        ("name", "last_name", False),
    ],
)
def test_words_that_exclude_each_other(left: str, right: str, *, exclude: bool) -> None:
    assert opposed(source(left), target(right)) is exclude
    assert opposed(source(right), target(left)) is exclude


def test_wordings() -> None:
    told = [point.wording for point in word_evidence(source("dob"), target("birth_date"))]
    assert told == ["the names share “date”, “birth”"]
    told = [point.wording for point in kind_evidence(source("strt_dt"), target("end_amount"))]
    assert told == ["the kinds are time and quantity", "the names exclude each other"]


names = st.text(max_size=12) | st.sampled_from(["birth_dt", "start_id", "end_date", "gender_cd"])


@given(names, names, st.text(max_size=30), st.text(max_size=30))
def test_both_sides_say_the_same_within_bounds(left: str, right: str, said: str, told: str) -> None:
    one, other = source(left or "x", description=said), target(right or "x", description=told)
    for measure in (likeness, cross_likeness):
        assert 0.0 <= measure(one, other) <= 1.0 + 1e-9
        assert measure(one, other) == pytest.approx(measure(other, one))
    assert opposed(one, other) == opposed(other, one)
    assert likeness(one, one) in (0.0, pytest.approx(1.0))
