"""Profiles of values: the same from every engine, rounded, near to the truth, and from few rows."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import duckdb
import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kgrag_assets.rows.schema_attributes import SCHEMA_ATTRIBUTES
from kgrag_assets.schemas.attribute import attributes_of
from kgrag_assets.schemas.profiling import profile_duckdb, profile_of, profile_query, quoted
from kgrag_assets.schemas.readers.data_folder import read_data_file
from kgrag_assets.schemas.readers.sqlite_file import read_sqlite
from kgrag_assets.schemas.value_profile import (
    TEXT_PATTERN,
    Pattern,
    ValueProfile,
    describe_values,
    number_of,
    pattern_of,
    rounded,
    year_of,
)
from kgrag_assets_tests.schemas.conftest import GOOD, Tasks


@pytest.mark.parametrize(
    ("value", "pattern"),
    [
        ("ICD-10", "AAA-99"),
        ("ABC-123", "AAA-999"),
        ("E11.9", "A99.9"),
        ("female", "a+"),
        ("Berlin", "Aa+"),
        ("BERLIN", "A+"),
        ("New  York", "Aaa Aa+"),
        ("12345678901", "9+"),
        ("2024-05-13", "9999-99-99"),
        (" é ", "a"),
        ("x" * 61, TEXT_PATTERN),
        ("", ""),
    ],
)
def test_patterns_by_hand(value: str, pattern: str) -> None:
    assert pattern_of(value) == pattern


@given(st.text())
def test_a_pattern_holds_no_letter_or_digit_of_the_value(value: str) -> None:
    pattern = pattern_of(value)
    letters = {character for character in pattern if character.isalpha() or character.isdecimal()}
    assert pattern == TEXT_PATTERN or letters <= {"A", "a", "9"}


@pytest.mark.parametrize(
    ("value", "number"), [("1", 1.0), ("-2.50", -2.5), ("1e3", 1000.0), (".5", 0.5), ("007", None), ("1,5", None)]
)
def test_numbers(value: str, number: float | None) -> None:
    assert number_of(value) == number


@pytest.mark.parametrize(
    ("value", "year"),
    [("1984-03-12", 1984), ("12.03.1984 10:00", 1984), ("1984/3/1T00:00", 1984), ("1984", None), ("1984-03", None)],
)
def test_years(value: str, year: int | None) -> None:
    assert year_of(value) == year


def test_rounding() -> None:
    assert [rounded(number) for number in (12345.0, -0.0449, 0.0, 99.6)] == [12000.0, -0.045, 0.0, 100.0]


def test_a_description_by_hand() -> None:
    told = describe_values([("10", 6.0), ("20", 3.0), ("3000", 1.0)], uniqueness=0.3)
    assert told == ValueProfile(
        uniqueness=0.3,
        shortest=2,
        mean_length=2.2,
        longest=4,
        minimum=10.0,
        quartile_1=10.0,
        median=10.0,
        quartile_3=20.0,
        maximum=3000.0,
        patterns=(Pattern("99", 0.9), Pattern("9999", 0.1)),
    )
    assert describe_values([(" ", 3.0)]) is None
    dates = describe_values([("1984-01-02", 1.0), ("03/04/2001", 1.0)], extremes=("1950-01-01", "2010-12-31"))
    assert dates is not None
    assert (dates.first_year, dates.last_year, dates.minimum) == (1950, 2010, None)
    mixed = describe_values([("1", 9.0), ("n/a", 1.0)])
    assert mixed is not None
    assert mixed.minimum is None


def profile(values: Sequence[object], data_type: str = "VARCHAR", ordered: str | None = None) -> ValueProfile:
    with duckdb.connect() as con:
        con.execute(f"CREATE TABLE t (v {data_type})")
        con.executemany("INSERT INTO t VALUES (?)", [(value,) for value in values])
        found = profile_duckdb(con, "t", "v", ordered=ordered)
    assert found.values is not None
    return found.values


columns = st.lists(st.one_of(st.none(), st.text(max_size=6), st.integers(-9, 9).map(str)), min_size=1, max_size=30)


@given(columns)
@settings(max_examples=40, deadline=None)
def test_duckdb_and_sqlite_say_the_same(values: list[str | None]) -> None:
    values = [value if value is None else value.replace("\x00", "") for value in values]
    told = []
    for connect in (duckdb.connect, lambda: sqlite3.connect(":memory:")):
        with closing(connect()) as con:  # type: ignore[no-untyped-call]
            con.execute("CREATE TABLE t (v TEXT)")
            con.executemany("INSERT INTO t VALUES (?)", [(value,) for value in values])
            told.append(profile_of(con.execute(profile_query("SELECT v AS value FROM t")).fetchall()))
    assert told[0].distinct_count == told[1].distinct_count == len({value for value in values if value is not None})
    assert told[0].null_share == told[1].null_share == values.count(None) / len(values)
    assert told[0].values == told[1].values


def test_a_large_column_is_read_in_few_rows_and_described_nearly(tmp_path: Path) -> None:
    path = tmp_path / "big.parquet"
    with duckdb.connect() as con:
        # Each number once, in an order of its own: all that a profile knows of them is what it samples.
        con.execute(f"COPY (SELECT (i * 7919) % 100003 AS v FROM range(100003) AS t(i)) TO '{path}'")
        rows = con.execute(profile_query(f"SELECT CAST(v AS VARCHAR) AS value FROM '{path}'")).fetchall()
        assert len(rows) <= 30 + 997 + 1
        assert rows == con.execute(profile_query(f"SELECT CAST(v AS VARCHAR) AS value FROM '{path}'")).fetchall()
    told = read_data_file(path, "big").columns[0]
    assert (told.distinct_count, told.null_share) == (100_003, 0.0)
    found = told.values
    assert found is not None
    assert (found.uniqueness, found.minimum, found.maximum) == (1.0, 0.0, 100_000.0)
    for cut, truth in ((found.quartile_1, 25_000), (found.median, 50_000), (found.quartile_3, 75_000)):
        assert cut == pytest.approx(truth, rel=0.1)
    assert (found.shortest, found.longest) == (1, 6)


def test_the_extremes_are_those_of_all_rows() -> None:
    values = [*range(1, 5000), 9_000_000, -7]
    assert profile(values, "INTEGER", quoted("v")).maximum == 9_000_000.0
    assert profile(values, "INTEGER", quoted("v")).minimum == -7.0
    days = ["2001-01-01", "2001-01-02", "1899-12-31"]
    assert (profile(days, "DATE", quoted("v")).first_year, profile(days, "DATE").last_year) == (1899, 2001)


@given(st.integers(0, 2**32), st.integers(1, 20))
@settings(max_examples=5, deadline=None)
def test_a_few_more_rows_change_little(seed: int, more: int) -> None:
    values = np.random.default_rng(seed).integers(1000, 9999, 2000).tolist()
    before = describe_values([(str(value), 1.0) for value in values])
    after = describe_values([(str(value), 1.0) for value in [*values, *values[:more]]])
    assert before is not None
    assert after is not None
    assert before.patterns == after.patterns
    for name in ("quartile_1", "median", "quartile_3"):
        assert getattr(after, name) == pytest.approx(getattr(before, name), rel=0.05)


def test_csv_numbers_are_ordered_as_numbers(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("v,w\n" + "\n".join(f"{i},x{i}" for i in range(3000)) + "\n100000,y\n", encoding="utf-8")
    v, w = (column.values for column in read_data_file(path, "t.csv").columns)
    assert v is not None
    assert w is not None
    assert (v.minimum, v.maximum) == (0.0, 100_000.0)
    assert w.minimum is None


def test_sqlite_takes_any_value_and_orders_the_numbers(tmp_path: Path) -> None:
    path = tmp_path / "t.sqlite"
    with closing(sqlite3.connect(path)) as con:
        con.execute("CREATE TABLE t (v INTEGER, mixed INTEGER)")
        con.executemany("INSERT INTO t VALUES (?, ?)", [(i, i if i % 2 else "many") for i in range(2000)])
        con.execute("INSERT INTO t VALUES (123456, x'00ff')")
        con.commit()
    v, mixed = (column.values for column in read_sqlite(path, "t").columns)
    assert v is not None
    assert mixed is not None
    assert (v.minimum, v.maximum, mixed.maximum) == (0.0, 120_000.0, None)


def test_a_profile_goes_into_the_table_and_comes_back(tasks: Tasks) -> None:
    folder = tasks.put(target_csv=GOOD) / "source"
    folder.mkdir()
    (folder / "t.csv").write_text("code,empty\nAB-1,\nCD-2,\n", encoding="utf-8")
    frame = tasks.read().attributes
    assert frame.schema == SCHEMA_ATTRIBUTES.schema
    by_name = {one.column_name: one for one in attributes_of(frame).values() if one.side == "source"}
    assert by_name["code"].profile == ValueProfile(
        uniqueness=1.0, shortest=4, mean_length=4.0, longest=4, patterns=(Pattern("AA-9", 1.0),)
    )
    assert by_name["empty"].profile is None
    assert frame["row_key"].to_list() == tasks.read().attributes["row_key"].to_list()
    assert [row["profile"] for row in frame.filter(pl.col("side") == "target").iter_rows(named=True)] == [None]
    profile = by_name["code"].profile
    assert profile is not None
    assert ValueProfile.of_row(replace(profile, minimum=1.0).row()) == replace(profile, minimum=1.0)
