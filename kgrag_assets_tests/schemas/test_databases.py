"""DuckDB and SQLite files: keys, comments, profiles, files that are locked or broken."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import duckdb
import polars as pl
import pytest

from kgrag_assets.schemas.errors import SchemaError
from kgrag_assets_tests.schemas.conftest import GOOD, Tasks


def row(tasks: Tasks, table: str, column: str) -> dict[str, object]:
    frame = tasks.read().attributes
    return frame.row(by_predicate=(pl.col("table_name") == table) & (pl.col("column_name") == column), named=True)


@pytest.fixture
def duck(tasks: Tasks) -> Path:
    """Make a task whose source is a DuckDB file."""
    path = tasks.put(target_csv=GOOD) / "source.duckdb"
    with duckdb.connect(str(path)) as con:
        con.execute('CREATE TABLE person (id INTEGER PRIMARY KEY, "na""me.x" VARCHAR NOT NULL)')
        con.execute("CREATE TABLE visit (person INTEGER REFERENCES person(id), seen TIMESTAMP)")
        con.execute("CREATE SCHEMA other; CREATE TABLE other.visit (x INTEGER)")
        con.execute("COMMENT ON TABLE person IS 'people'; COMMENT ON COLUMN person.\"na\"\"me.x\" IS 'how called'")
        con.execute("INSERT INTO person VALUES (1, '007'), (2, 'b'), (3, 'b')")
        con.execute('CREATE VIEW names AS SELECT "na""me.x" AS n FROM person')
    return path


@pytest.mark.usefixtures("duck")
def test_duckdb_file(tasks: Tasks) -> None:
    assert tasks.names() == [
        ("names", "n"),
        ("person", "id"),
        ("person", 'na"me.x'),
        ("visit", "person"),
        ("visit", "seen"),
        ("other.visit", "x"),
    ]
    name = row(tasks, "person", 'na"me.x')
    assert (name["table_description"], name["column_description"]) == ("people", "how called")
    assert (name["sample_values"], name["distinct_count"], name["null_share"]) == (["b", "007"], 2, 0.0)
    assert (name["nullable"], name["is_primary_key"]) == (False, False)
    assert row(tasks, "person", "id")["is_primary_key"] is True
    foreign = row(tasks, "visit", "person")
    assert (foreign["references_table"], foreign["references_column"]) == ("person", "id")
    assert foreign["distinct_count"] is None


def test_a_view_over_another_file_reads_nothing_there(tasks: Tasks, duck: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret.csv"
    secret.write_text("word\nhidden\n")
    with duckdb.connect(str(duck)) as con:
        con.execute("CREATE VIEW leak AS SELECT * FROM read_csv('" + str(secret) + "')")
    assert row(tasks, "leak", "word")["sample_values"] == []
    assert tasks.read().rejects["file"].to_list() == ["source.duckdb#leak"]


def test_a_duckdb_file_open_elsewhere_is_said_to_be(tasks: Tasks, duck: Path) -> None:
    code = "import duckdb, sys; c = duckdb.connect(sys.argv[1]); print('open', flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", code, str(duck)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "open\n"
        with pytest.raises(SchemaError, match=r"source\.duckdb: somebody has this DuckDB file open"):
            tasks.read()
        holder.communicate("")


def test_a_duckdb_file_open_in_this_process_is_said_to_be(tasks: Tasks, duck: Path) -> None:
    with duckdb.connect(str(duck)), pytest.raises(SchemaError, match="open for writing"):
        tasks.read()


def test_broken_and_empty_duckdb_files(tasks: Tasks, duck: Path) -> None:
    duck.write_bytes(duck.read_bytes()[:5000])
    with pytest.raises(SchemaError, match=r"source\.duckdb: cannot be opened"):
        tasks.read()
    duck.unlink()
    duckdb.connect(str(duck)).close()
    with pytest.raises(SchemaError, match="no table"):
        tasks.read()


@pytest.fixture
def lite(tasks: Tasks) -> Path:
    """Make a task whose source is an SQLite file with the ending .db."""
    path = tasks.put(target_csv=GOOD) / "source.db"
    with closing(sqlite3.connect(path)) as con:
        con.executescript(
            'CREATE TABLE person (id INTEGER PRIMARY KEY, "na""me" TEXT NOT NULL, twice AS (id * 2), raw BLOB);'
            "CREATE TABLE visit (person INT REFERENCES person, untyped);"
            "INSERT INTO person VALUES (1, '007', x'00'), (2, 'b', NULL), (3, 'b', NULL),"
            "(4, CAST(x'ff' AS TEXT), NULL);"
            'CREATE VIEW names AS SELECT "na""me" AS n FROM person; CREATE VIEW broken AS SELECT * FROM gone;'
            "CREATE TABLE bare (a int)"
        )
    return path


@pytest.mark.usefixtures("lite")
def test_sqlite_file(tasks: Tasks) -> None:
    assert tasks.names() == [
        ("person", "id"),
        ("person", 'na"me'),
        ("person", "twice"),
        ("person", "raw"),
        ("visit", "person"),
        ("visit", "untyped"),
        ("names", "n"),
        ("bare", "a"),
    ]
    name = row(tasks, "person", 'na"me')
    assert (name["sample_values"], name["distinct_count"]) == (["b", "007", "\ufffd"], 3)
    assert (name["nullable"], row(tasks, "person", "id")["is_primary_key"]) == (False, True)
    assert (row(tasks, "person", "raw")["sample_values"], row(tasks, "person", "raw")["null_share"]) == ([], 0.75)
    foreign = row(tasks, "visit", "person")
    assert (foreign["references_table"], foreign["references_column"]) == ("person", "id")
    assert tasks.read().rejects["file"].to_list() == ["source.db#broken"]


def test_reading_leaves_the_sqlite_file_as_it_is(tasks: Tasks, lite: Path) -> None:
    before = lite.read_bytes()
    tasks.read()
    assert lite.read_bytes() == before
    assert sorted(path.name for path in lite.parent.iterdir()) == ["source.db", "target.csv"]


def test_broken_sqlite_file(tasks: Tasks, lite: Path) -> None:
    content = lite.read_bytes()
    lite.write_bytes(content[:100] + bytes(len(content) - 100))
    with pytest.raises(SchemaError, match=r"source\.db: cannot be read as an SQLite database"):
        tasks.read()


@pytest.mark.parametrize("ending", ["sqlite", "duckdb", "db"])
def test_an_empty_database_file_is_an_error(tasks: Tasks, ending: str) -> None:
    tasks.put(**{f"source_{ending}": b""}, target_csv=GOOD)
    with pytest.raises(SchemaError, match="the file is empty"):
        tasks.read()
