"""What an attribute is called in text: never empty, bounded, and each view says what it promises."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgrag_assets.schemas.attribute_text import ATTRIBUTE_VIEWS, MAX_DESCRIPTION, attribute_text, query_phrases
from kgrag_assets_tests.matching import attribute

names = st.text(min_size=1, max_size=12)
texts = st.text(max_size=60) | st.text("ab \n", max_size=900)


@given(names, names, texts, texts, st.sampled_from(ATTRIBUTE_VIEWS))
def test_a_text_is_never_empty_on_one_line_and_bounded(
    table: str, column: str, about_table: str, about_column: str, view: str
) -> None:
    item = attribute(table=table, column=column, table_description=about_table, column_description=about_column)
    text = attribute_text(item, view)
    assert text
    assert text == attribute_text(item, view)
    # Each letter of a name may be an abbreviation of some words.
    assert len(text) <= MAX_DESCRIPTION * 2 + 60 * (len(table) + len(column))


def test_the_views_by_hand() -> None:
    item = attribute(table="pat", column="addr_cd", column_description="  Where \n the person lives. ")
    assert attribute_text(item, "name") == "address code of patient"
    full = attribute_text(item, "full")
    for part in ("patient", "address code", "Where the person lives."):
        assert part in full


def test_the_name_view_does_not_depend_on_descriptions_and_the_full_view_does() -> None:
    plain, told = attribute(), attribute(column_description="A day.")
    assert attribute_text(plain, "name") == attribute_text(told, "name")
    assert attribute_text(plain, "full") != attribute_text(told, "full")


def test_a_name_without_words_stands_as_it_is() -> None:
    assert "___" in attribute_text(attribute(column="___"), "name")
    assert "$$" in attribute_text(attribute(table="$$"), "name")


def test_a_long_description_is_cut_at_a_word() -> None:
    text = attribute_text(attribute(column_description="word " * 500), "full")
    assert text.endswith("word…")
    assert text.count("word") <= MAX_DESCRIPTION / 5


def test_an_unknown_view_is_named() -> None:
    with pytest.raises(ValueError, match="vector"):
        attribute_text(attribute(), "vector")


@given(names, names, texts)
def test_phrases_are_distinct_and_not_empty(table: str, column: str, about: str) -> None:
    phrases = query_phrases(attribute(table=table, column=column, column_description=about))
    assert all(phrase.strip() for phrase in phrases)
    assert len(set(phrases)) == len(phrases) <= 6


def test_phrases_by_hand() -> None:
    item = attribute(
        table="patients",
        column="patient_gender_code",
        column_description="The gender of the person; see the code list.",
    )
    phrases = query_phrases(item)
    assert phrases[0] == "patient gender code"
    assert "gender" in phrases
    assert "gender code" in phrases
    assert query_phrases(attribute(column="___", column_description="")) == []


def test_only_a_short_first_clause_of_the_description_is_a_phrase() -> None:
    short = query_phrases(attribute(column="x", column_description="The blood pressure, in mmHg."))
    assert "blood pressure" in short
    long = query_phrases(attribute(column="x", column_description="one two three four five six seven"))
    assert not any(phrase.startswith("one") for phrase in long)
