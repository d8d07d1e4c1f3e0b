"""Large partitions that change a little: rows, changes beside them, and what a reader sees."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kgrag_assets.lake.lake import Lake
from kgrag_assets.rows.keys import key_of
from kgrag_assets.rows.table import ROW_KEY, Column, Table, data_version

BIG = Table(
    name="big",
    description="Rows that change a little at a time.",
    columns=(Column("id", pl.String, "Id."), Column("value", pl.Int64, "Value."), Column(ROW_KEY, pl.String, "Key.")),
    key=("id",),
    deltas=True,
)
OTHER = Table(name="other", description="The same columns.", columns=BIG.columns, key=("id",), deltas=True)


def rows(values: dict[int, int]) -> pl.DataFrame:
    named = [{"id": f"e{place}", "value": value, ROW_KEY: key_of(place, value)} for place, value in values.items()]
    return BIG.frame(named)


def seen(lake: Lake, table: Table = BIG) -> dict[str, int]:
    return dict(lake.read(table, "p").select("id", "value").iter_rows())


def named(values: dict[int, int]) -> dict[str, int]:
    return {f"e{place}": value for place, value in values.items()}


STATES = st.lists(st.dictionaries(st.integers(0, 40), st.integers(0, 2), max_size=40), min_size=1, max_size=5)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(states=STATES)
def test_a_partition_is_what_was_last_written(
    tmp_path_factory: pytest.TempPathFactory, states: list[dict[int, int]]
) -> None:
    lake = Lake.at(tmp_path_factory.mktemp("lake"))
    before: dict[int, int] = {}
    for number, values in enumerate(states):
        written = lake.write(BIG, "p", rows(values))
        assert seen(lake) == named(values)
        assert written.data_version == data_version(rows(values)) == lake.version(BIG, "p")
        assert written.rows == len(values)
        assert written.kept == len(set(values.items()) & set(before.items()))
        assert written.removed == len(set(before.items()) - set(values.items()))
        assert written.changed == (number == 0 or values != before)
        before = values


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(states=STATES)
def test_changes_applied_one_after_the_other_give_the_same_rows(
    tmp_path_factory: pytest.TempPathFactory, states: list[dict[int, int]]
) -> None:
    lake = Lake.at(tmp_path_factory.mktemp("lake"))
    before: dict[int, int] = {}
    for values in states:
        added = rows(dict(values.items() - before.items()))
        removed = rows(dict(before.items() - values.items()))[ROW_KEY]
        written = lake.apply(BIG, "p", added, removed)
        assert seen(lake) == named(values)
        assert written.data_version == lake.version(BIG, "p") == data_version(rows(values))
        lake.adopt(OTHER, "p", BIG)
        assert seen(lake, OTHER) == named(values)
        before = values


def test_a_small_change_leaves_the_rows_file_as_it_is(tmp_path: Path) -> None:
    lake = Lake.at(tmp_path)
    values = dict.fromkeys(range(100), 0)
    lake.write(BIG, "p", rows(values))
    files = lake.files(BIG, "p")
    before = files.rows.stat().st_mtime_ns
    lake.write(BIG, "p", rows({**values, 3: 1}))
    assert files.rows.stat().st_mtime_ns == before
    assert files.has_changes()
    lake.write(BIG, "p", rows(values))
    assert not files.changes.exists(), "what is as it was needs no changes"


def test_changes_of_rows_that_were_replaced_are_ignored(tmp_path: Path) -> None:
    lake = Lake.at(tmp_path)
    values = dict.fromkeys(range(100), 0)
    lake.write(BIG, "p", rows(values))
    lake.write(BIG, "p", rows({**values, 3: 1}))
    files = lake.files(BIG, "p")
    left_by_a_kill = files.changes.read_bytes()
    other = dict.fromkeys(range(50), 2)
    lake.write(BIG, "p", rows(other))
    files.changes.write_bytes(left_by_a_kill)
    assert seen(lake) == named(other)
    lake.write(BIG, "p", rows({**other, 0: 1}))
    assert seen(lake) == named({**other, 0: 1})


def test_rows_that_come_as_a_file(tmp_path: Path) -> None:
    lake = Lake.at(tmp_path)
    values = dict.fromkeys(range(100), 0)
    lake.write(BIG, "p", rows(values))
    changed = {**values, 7: 5}
    written = lake.write_file(BIG, "p", lambda path: rows(changed).write_parquet(path))
    assert (written.added, written.removed, written.changed) == (1, 1, True)
    assert seen(lake) == named(changed)
    assert lake.files(BIG, "p").has_changes()
    again = lake.write_file(BIG, "p", lambda path: rows(changed).write_parquet(path))
    assert not again.changed
    whole = lake.write_file(BIG, "p", lambda path: rows(dict.fromkeys(range(30), 9)).write_parquet(path))
    assert whole.rows == 30
    assert seen(lake) == named(dict.fromkeys(range(30), 9))
    assert not list(lake.files(BIG, "p").rows.parent.glob(".*"))


def test_some_columns_of_a_partition(tmp_path: Path) -> None:
    lake = Lake.at(tmp_path)
    values = dict.fromkeys(range(100), 0)
    lake.write(BIG, "p", rows(values))
    lake.write(BIG, "p", rows({**values, 3: 1}))
    assert sorted(lake.read(BIG, "p", ["value"])["value"]) == [0] * 99 + [1]
    assert lake.scan(BIG, "p", ["id"]).collect().height == 100
    assert lake.read(BIG, "never", ["id"]).is_empty()
