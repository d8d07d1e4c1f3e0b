"""Names and texts in words: nothing but separators is lost, and abbreviations are spelled out."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgrag_assets.schemas.words import (
    STOP_WORDS,
    abbreviations,
    expand_words,
    name_words,
    split_name,
    stem,
    stems,
    text_words,
)

SPLITS = {
    "pat_DOB": ["pat", "dob"],
    "HTTPServerId2": ["http", "server", "id", "2"],
    "birthDate": ["birth", "date"],
    "BIRTH-DATE": ["birth", "date"],
    "icd10code": ["icd", "10", "code"],
    "Größe_cm": ["größe", "cm"],
    "ÄnderungsDatum": ["änderungs", "datum"],
    "prénomÉlève": ["prénom", "élève"],
    "e\u0301tat": ["état"],
    "患者_氏名": ["患者", "氏名"],
    "": [],
    "__ - .": [],
    "a\n\x00b": ["a", "b"],
}


@pytest.mark.parametrize("name", SPLITS)
def test_splitting_by_hand(name: str) -> None:
    assert split_name(name) == SPLITS[name]


@given(st.text(max_size=30))
def test_splitting_loses_no_letter_and_no_digit(name: str) -> None:
    words = split_name(name)
    assert all(words)
    kept = "".join(words)
    for character in unicodedata.normalize("NFC", name):
        if character.isalpha() or character.isdecimal():
            assert character.lower() in kept


@given(st.lists(st.text("abcxyz", min_size=1, max_size=6), min_size=1, max_size=5))
def test_all_ways_of_writing_a_name_split_alike(words: list[str]) -> None:
    assert split_name("_".join(words)) == words
    assert split_name("-".join(words).upper()) == words
    assert split_name(" ".join(word.capitalize() for word in words)) == words
    if all(len(word) > 1 for word in words):
        assert split_name("".join(word.capitalize() for word in words)) == words


@given(st.lists(st.text(max_size=8), max_size=5))
def test_expanding_replaces_known_words_and_no_others(words: list[str]) -> None:
    expected: list[str] = []
    for word in words:
        expected += abbreviations().get(word, (word,))
    assert expand_words(words) == expected


def test_the_packaged_abbreviations_are_lower_case_and_say_something() -> None:
    for short, words in abbreviations().items():
        assert short == short.strip().lower()
        assert split_name(short) == [short], "a name is looked up piece by piece"
        assert words
        assert short not in words


def test_names_are_spelled_out() -> None:
    assert name_words("pat_DOB") == ["patient", "date", "of", "birth"]
    assert name_words("addr") == ["address"]


@given(st.text(max_size=40))
def test_texts_in_words(text: str) -> None:
    assert all(text_words(text))
    assert text_words(text.upper().lower()) == [word.lower() for word in text_words(text.upper().lower())]


def test_a_text_with_an_identifier_in_it() -> None:
    assert text_words("The birthDate, see person_address.") == ["the", "birth", "date", "see", "person", "address"]
    assert text_words("") == []


def test_stems_bring_forms_together_and_leave_grammar_out() -> None:
    assert stem("conditions") == stem("condition")
    assert stem("addresses") == stem("address")
    assert stems(["the", "dates", "of", "birth"]) == [stem("date"), stem("birth")]
    assert stems(STOP_WORDS) == []
