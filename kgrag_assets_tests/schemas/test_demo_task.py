"""The demo task: a clinic's schema, a slice of the built-in OMOP target, and a reference between the two."""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path

import pytest
import yaml

from kgrag_assets.settings import Settings

REPOSITORY = Path(__file__).parents[2]
TASK = REPOSITORY / "data_lake" / "input" / "tasks" / "demo_clinic"
BUILTIN = REPOSITORY / "kgrag_assets" / "schemas" / "builtin" / "omop-5.4.csv"

# What an ETL to OMOP leaves behind: the model has no names of patients, and no place for office matters. The
# version of ICD decides how a code is looked up; it is not stored.
WITHOUT_COUNTERPART = {
    ("pat_master", "pat_nm"),
    ("pat_master", "parking_permit_no"),
    ("pat_master", "last_upd_usr"),
    ("encntr", "wr_tkt_no"),
    ("encntr", "row_chksum"),
    ("dx", "icd_ver"),
}


def read(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


@pytest.fixture(scope="module")
def source() -> list[dict[str, str]]:
    return read(TASK / "source.csv")


@pytest.fixture(scope="module")
def target() -> list[dict[str, str]]:
    return read(TASK / "target.csv")


@pytest.fixture(scope="module")
def reference() -> list[dict[str, str]]:
    return read(TASK / "reference.csv")


def names(rows: list[dict[str, str]]) -> set[tuple[str, str]]:
    return {(row["table"], row["column"]) for row in rows}


def test_source_is_about_five_tables_and_forty_columns(source: list[dict[str, str]]) -> None:
    assert list(source[0]) == [
        "table",
        "column",
        "data_type",
        "table_description",
        "column_description",
        "sample_values",
    ]
    assert len(names(source)) == len(source) == 44
    assert len({row["table"] for row in source}) == 5
    assert all(row["data_type"] for row in source)
    assert all(sample.strip() for row in source for sample in row["sample_values"].split("|"))


def test_source_is_described_as_unevenly_as_real_ones(source: list[dict[str, str]]) -> None:
    lengths = [len(row["column_description"].split()) for row in source]
    assert 3 <= lengths.count(0) <= 10
    assert sum(1 for length in lengths if 1 <= length <= 2) >= 5
    assert sum(1 for length in lengths if length >= 8) >= 5
    assert any(not row["table_description"] for row in source)


def test_provider_numbers_are_nobodys(source: list[dict[str, str]]) -> None:
    """A real NPI passes the Luhn check behind the prefix 80840; an invented one must not."""
    numbers = next(row["sample_values"] for row in source if row["column"] == "prov_npi").split("|")
    for number in numbers:
        digits = [int(digit) for digit in reversed("80840" + number)]
        doubled = [2 * digit - 9 * (2 * digit > 9) if place % 2 else digit for place, digit in enumerate(digits)]
        assert len(number) == 10
        assert sum(doubled) % 10


def test_target_is_cut_from_the_builtin_one_and_nothing_else(target: list[dict[str, str]]) -> None:
    builtin = read(BUILTIN)
    assert all(row in builtin for row in target)
    tables = {row["table"] for row in target}
    expected = [
        row
        for row in builtin
        if row["table"] in tables
        # Left out by rule, not by name: links to tables outside the slice, and the second concept of a code.
        and row["references_table"] in tables | {"", "concept"}
        and not row["column"].endswith("_source_concept_id")
        and row["column"] not in {"measurement_event_id", "meas_event_field_concept_id"}
    ]
    assert names(target) == names(expected)
    assert len(target) == 110


def test_reference_names_columns_that_exist(
    source: list[dict[str, str]], target: list[dict[str, str]], reference: list[dict[str, str]]
) -> None:
    pairs = [tuple(row.values()) for row in reference]
    assert len(set(pairs)) == len(pairs) == 62
    assert {(row["source_table"], row["source_column"]) for row in reference} <= names(source)
    assert {(row["target_table"], row["target_column"]) for row in reference} <= names(target)


def test_columns_without_counterpart(source: list[dict[str, str]], reference: list[dict[str, str]]) -> None:
    mapped = {(row["source_table"], row["source_column"]) for row in reference}
    assert names(source) - mapped == WITHOUT_COUNTERPART


def test_some_columns_go_to_several_targets(reference: list[dict[str, str]]) -> None:
    targets = Counter((row["source_table"], row["source_column"]) for row in reference)
    assert targets["pat_master", "dob"] == 4
    assert sum(1 for count in targets.values() if count == 1) >= 15


def test_options_are_accepted() -> None:
    task = yaml.safe_load((TASK / "task.yaml").read_text(encoding="utf-8"))
    assert task["title"]
    settings = Settings(_env_file=None).for_task(task["options"], "task.yaml")
    assert settings.mapping.cardinality == "n:1"
