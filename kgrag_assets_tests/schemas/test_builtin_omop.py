"""The built-in OMOP target: the model's facts, our own words."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
BUILTIN = REPOSITORY / "kgrag_assets" / "schemas" / "builtin" / "omop-5.4.csv"
CDM = REPOSITORY.parent / "shared" / "data" / "omop_cdm"
HEADER = [
    "table",
    "column",
    "data_type",
    "table_description",
    "column_description",
    "is_primary_key",
    "references_table",
    "references_column",
    "required",
]


def read(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8-sig", newline="") as lines:
        return list(csv.DictReader(lines))


@pytest.fixture(scope="module")
def rows() -> list[dict[str, str]]:
    return read(BUILTIN)


@pytest.fixture(scope="module")
def fields() -> list[dict[str, str]]:
    path = CDM / "OMOP_CDMv5.4_Field_Level.csv"
    if not path.is_file():
        pytest.skip("the OMOP CDM's own files are not on this machine")
    return read(path)


def name_of(field: str) -> str:
    """Return the plain name: the CDM writes one field, a reserved word of SQL, in the quotes it needs there."""
    return field.strip().strip('"')


def fact(value: str) -> str:
    return "" if value.strip() == "NA" else value.strip().lower()


def sentences(*texts: str) -> set[str]:
    return {part.strip().rstrip(".").lower() for text in texts for part in re.split(r"(?<=[.!?])\s+", text)}


def phrases(*texts: str) -> set[tuple[str, ...]]:
    """Return all runs of six words: long enough that a shared one is a copy and not a coincidence."""
    words = [re.findall(r"[a-z0-9]+", text.lower()) for text in texts]
    return {tuple(text[start : start + 6]) for text in words for start in range(len(text) - 5)}


def test_layout(rows: list[dict[str, str]]) -> None:
    assert list(rows[0]) == HEADER
    assert len(rows) == 432
    assert len({row["table"] for row in rows}) == 39
    assert len({(row["table"], row["column"]) for row in rows}) == len(rows)
    assert {row["is_primary_key"] for row in rows} == {"yes", "no"}
    assert {row["required"] for row in rows} == {"yes", "no"}


def test_references_lead_to_fields_that_exist(rows: list[dict[str, str]]) -> None:
    there = {(row["table"], row["column"]) for row in rows}
    references = [(row["references_table"], row["references_column"]) for row in rows]
    assert all(bool(table) == bool(column) for table, column in references)
    assert {reference for reference in references if reference != ("", "")} <= there
    assert ("concept", "concept_id") in references


def test_every_table_has_one_description(rows: list[dict[str, str]]) -> None:
    by_table: dict[str, set[str]] = {}
    for row in rows:
        by_table.setdefault(row["table"], set()).add(row["table_description"])
    assert all(len(texts) == 1 for texts in by_table.values())
    assert len(set.union(*by_table.values())) == len(by_table)


def test_descriptions_are_short_sentences_that_say_more_than_the_name(rows: list[dict[str, str]]) -> None:
    for row in rows:
        for text in (row["table_description"], row["column_description"]):
            assert text == text.strip(), row
            assert text.endswith("."), row
        text = row["column_description"]
        assert 8 <= len(text.split()) <= 20, row
        name = set(row["column"].split("_")) | {"the", "a", "of", "id", "identifier"}
        assert len(set(re.findall(r"[a-z]+", text.lower())) - name) >= 3, row


def test_facts_are_those_of_the_model(rows: list[dict[str, str]], fields: list[dict[str, str]]) -> None:
    ours = [
        (
            row["table"],
            row["column"],
            row["data_type"],
            row["required"],
            row["is_primary_key"],
            row["references_table"],
            row["references_column"],
        )
        for row in rows
    ]
    model = [
        (
            row["cdmTableName"],
            name_of(row["cdmFieldName"]),
            row["cdmDatatype"],
            row["isRequired"].lower(),
            row["isPrimaryKey"].lower(),
            fact(row["fkTableName"]),
            fact(row["fkFieldName"]),
        )
        for row in fields
    ]
    assert ours == model


def test_no_sentence_is_taken_from_the_model(rows: list[dict[str, str]], fields: list[dict[str, str]]) -> None:
    tables = read(CDM / "OMOP_CDMv5.4_Table_Level.csv")
    theirs = sentences(*(row[name] for row in fields for name in ("userGuidance", "etlConventions")))
    theirs |= sentences(*(row[name] for row in tables for name in ("tableDescription", "userGuidance")))
    ours = sentences(*(row[name] for row in rows for name in ("table_description", "column_description")))
    assert not ours & theirs


def test_no_phrase_is_taken_from_the_model(rows: list[dict[str, str]], fields: list[dict[str, str]]) -> None:
    tables = read(CDM / "OMOP_CDMv5.4_Table_Level.csv")
    theirs = phrases(*(row[name] for row in fields for name in ("userGuidance", "etlConventions")))
    theirs |= phrases(*(row[name] for row in tables for name in ("tableDescription", "userGuidance", "etlConventions")))
    assert len(theirs) > 1000
    ours = phrases(*(row[name] for row in rows for name in ("table_description", "column_description")))
    assert not ours & theirs
