"""From a phrase to entities: which name wins, and how names are folded."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgrag_assets.knowledge.linking import LexicalLinker, folded, singular
from kgrag_assets.rows.knowledge_graph import KG_ENTITIES


def linker_of(*entities: tuple[str, str, list[str]]) -> LexicalLinker:
    rows: list[dict[str, object]] = [
        {
            "entity_id": entity_id,
            "graph": "test",
            "bucket": 0,
            "kind": "entity",
            "label": label,
            "aliases": aliases,
            "description": "",
            "row_key": entity_id,
        }
        for entity_id, label, aliases in entities
    ]
    frame: pl.DataFrame = KG_ENTITIES.frame(rows)
    return LexicalLinker.from_entities(frame)


def test_exact_before_folded_before_alias_before_singular() -> None:
    linker = linker_of(
        ("wd:Q5", "thing", ["patients"]),
        ("wd:Q4", "patient", []),
        ("wd:Q3", "other", ["Patient"]),
        ("wd:Q2", "Patient", []),
        ("wd:Q1", "patients", []),
    )
    found = linker.link("patient", 10)
    assert [item.entity_id for item in found] == ["wd:Q4", "wd:Q2", "wd:Q3", "wd:Q1", "wd:Q5"]
    assert [item.score for item in found] == sorted((item.score for item in found), reverse=True)
    assert len({item.score for item in found}) == 5
    assert found[0].score == 1.0
    assert [item.matched for item in found] == ["patient", "Patient", "Patient", "patients", "patients"]
    assert linker.link("patient", 2) == found[:2]


def test_a_plural_phrase_finds_the_singular_name() -> None:
    linker = linker_of(("wd:Q1", "home address", []), ("wd:Q2", "country", []), ("wd:Q3", "tax", []))
    for phrase, entity in (("home addresses", "wd:Q1"), ("Countries", "wd:Q2"), ("taxes", "wd:Q3")):
        (found,) = linker.link(phrase, 5)
        assert found.entity_id == entity
        assert 0 < found.score < 0.9


def test_among_equals_relations_come_first() -> None:
    linker = linker_of(("wd:Q1", "date of birth", []), ("wd:P569", "date of birth", []), ("wd:Paper", "paper", []))
    assert [item.entity_id for item in linker.link("date of birth", 5)] == ["wd:P569", "wd:Q1"]
    paper = linker_of(("my:A", "paper", []), ("my:Paper", "paper", []))
    assert [item.entity_id for item in paper.link("paper", 5)] == ["my:A", "my:Paper"]


def test_an_entity_is_found_once_by_its_best_name() -> None:
    (found,) = linker_of(("wd:Q1", "Patients", ["patient", "PATIENT"])).link("patient", 5)
    assert (found.score, found.matched) == (0.9, "patient")


@pytest.mark.parametrize("phrase", ["", " ", "id", "__", "?!", "-- x --"])
def test_short_phrases_are_linked_to_nothing(phrase: str) -> None:
    assert linker_of(("wd:Q1", "id", ["x", ""]), ("wd:Q2", "??", [])).link(phrase, 5) == []


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("Date_of-Birth", "date of birth"),
        ("Café  Zürich", "cafe zurich"),
        ("Straße", "strasse"),
        ("ICD-10", "icd 10"),
        ("\uff26\uff35\uff2c\uff2c width", "full width"),
        ("Aspirin\u2122", "aspirintm"),
        ("дата рождения", "дата рождения"),
        ("出生日期", "出生日期"),
        ("...", ""),
    ],
)
def test_folding(text: str, plain: str) -> None:
    assert folded(text) == plain


def test_names_in_other_scripts_are_linked() -> None:
    (found,) = linker_of(("wd:P569", "дата рождения", [])).link("Дата рождения", 5)
    assert found.entity_id == "wd:P569"


@given(st.text())
def test_folding_again_changes_nothing(text: str) -> None:
    assert folded(folded(text)) == folded(text)


@pytest.mark.parametrize(
    ("plural", "one"),
    [
        ("blood tests", "blood test"),
        ("countries", "country"),
        ("classes", "class"),
        ("boxes", "box"),
        ("branches", "branch"),
        ("courses", "course"),
        ("caches", "cache"),
        ("diagnosis", "diagnosis"),
        ("status", "status"),
        ("address", "address"),
        ("gas", "gas"),
        ("ties", "tie"),
        ("", ""),
    ],
)
def test_singular(plural: str, one: str) -> None:
    assert singular(plural) == one
