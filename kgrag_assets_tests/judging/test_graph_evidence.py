"""What facts weigh: the same thing more than a kind of it, a kind more than anything else, and never below nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgrag_assets.judging.graph_evidence import (
    NAMED_BY_BOTH,
    SHARED,
    SURE,
    WEAK,
    fact_weight,
    named_by,
    relation_worth,
    strongest,
)
from kgrag_assets.judging.protocol import Evidence
from kgrag_assets_tests.judging.pairs import attribute

DOB = attribute("source", "pat", "dob", column_description="")
BIRTH = attribute("target", "person", "birth_date", column_description="")
PAYER = attribute("target", "bill", "payer", column_description="")


def shared(score: float, label: str = "date of birth") -> Evidence:
    return Evidence("f", f"{label} (P569): date on which the subject was born", "shared_entity", "entity_paths", score)


@pytest.mark.parametrize(
    ("text", "worth"),
    [
        ("a —said to be the same as→ b", 1.0),
        ("a ←equivalent property— b", 1.0),
        ("a —subclass of→ b", 0.4),
        ("a ←subproperty of— b", 0.4),
        ("a —instance_of→ b", 0.4),
        ("a —subclass of→ b —subclass of→ c", 0.16),
        ("start time —subclass of→ time ←subclass of— end time", 0.0),
        ("a —see also→ b", 0.1),
        ("a —subclass of→ b —see also→ c", 0.04),
        ("no arrows at all", 0.1),
    ],
)
def test_relations_by_hand(text: str, worth: float) -> None:
    assert relation_worth(text) == pytest.approx(worth)


def test_a_shared_entity_weighs_by_its_score_and_its_words() -> None:
    assert fact_weight(shared(WEAK), DOB, BIRTH) == 0.0
    assert fact_weight(shared(SURE), DOB, BIRTH) == fact_weight(shared(1.0), DOB, BIRTH) == SHARED * NAMED_BY_BOTH
    assert fact_weight(shared(SURE), DOB, PAYER) == SHARED
    assert 0.0 < fact_weight(shared((WEAK + SURE) / 2), DOB, PAYER) < SHARED


def test_an_entity_is_named_by_its_label_and_not_by_its_description() -> None:
    assert named_by(shared(1.0), DOB)
    assert not named_by(shared(1.0), PAYER)
    assert named_by(shared(1.0, "payer"), PAYER)
    # Words that stand in half of all names are no name.
    assert not named_by(shared(1.0, "identifier"), attribute("target", "t", "identifier"))


@given(st.text(), st.sampled_from(["shared_entity", "triple", "path", "other"]), st.floats(-2, 2), st.floats(-2, 2))
def test_a_fact_weighs_no_less_than_nothing_and_more_with_its_score(
    text: str, kind: str, score: float, other: float
) -> None:
    fact = Evidence("f", text, kind, "m", score)
    weight, higher = (fact_weight(replace(fact, score=value), DOB, BIRTH) for value in sorted((score, other)))
    assert 0.0 <= weight <= higher <= SHARED * NAMED_BY_BOTH


def test_the_strongest_fact_counts_the_first_of_equals_and_none_that_weighs_nothing() -> None:
    weak, strong = replace(shared(0.5), fact_id="weak"), replace(shared(0.6), fact_id="strong")
    again = replace(strong, fact_id="again")
    assert strongest([weak, strong, again], DOB, BIRTH)[0] == strong
    assert strongest([weak, again, strong], DOB, BIRTH)[0] == again
    assert strongest([], DOB, BIRTH) == (None, 0.0)
    assert strongest([shared(0.0), Evidence("g", "x", "other", "m", 1.0)], DOB, BIRTH) == (None, 0.0)
