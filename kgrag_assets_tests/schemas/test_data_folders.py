"""Folders of Parquet and CSV files: types and profiles, odd names, broken files."""

from __future__ import annotations

from pathlib import Path

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kgrag_assets.schemas.errors import SchemaError
from kgrag_assets_tests.schemas.conftest import GOOD, Tasks


@pytest.fixture
def folder(tasks: Tasks) -> Path:
    """Make a task whose source is an empty folder."""
    path = tasks.put(target_csv=GOOD) / "source"
    path.mkdir()
    return path


def sources(tasks: Tasks) -> dict[str, dict[str, object]]:
    rows = tasks.read().attributes.filter(pl.col("side") == "source").iter_rows(named=True)
    return {f"{row['table_name']}.{row['column_name']}": row for row in rows}


def test_parquet_is_profiled(tasks: Tasks, folder: Path) -> None:
    with duckdb.connect() as con:
        con.execute(
            "COPY (SELECT i AS id, CASE WHEN i % 4 = 0 THEN NULL ELSE '0' || (i % 3) END AS code, 'x'::BLOB AS raw, "
            "[i] AS list, DATE '2020-01-01' + i::INTEGER AS day, repeat('é', 100) AS long FROM range(12) AS t(i)) "
            "TO '" + str(folder / "visit.parquet") + "'"
        )
    found = sources(tasks)
    assert [found[name]["type_family"] for name in found] == ["integer", "text", "binary", "json", "date", "text"]
    code = found["visit.code"]
    # Of 12 rows 3 are null; '01' and '02' stand 4 and 4 times less the nulls, ties in order of the value.
    assert (code["sample_values"], code["distinct_count"], code["null_share"]) == (["00", "01", "02"], 3, 0.25)
    assert (found["visit.raw"]["sample_values"], found["visit.raw"]["distinct_count"]) == ([], 1)
    assert found["visit.long"]["sample_values"] == ["é" * 80]
    assert len(found["visit.id"]["sample_values"]) == 10  # type: ignore[arg-type]


def test_samples_are_the_most_frequent_ones(tasks: Tasks, folder: Path) -> None:
    values = [str(n) for n in range(1, 15) for _ in range(n)]
    pq.write_table(pa.table({"v": values}), folder / "t.parquet")
    assert sources(tasks)["t.v"]["sample_values"] == [str(n) for n in range(14, 4, -1)]


def test_names_of_files_and_columns_may_be_odd(tasks: Tasks, folder: Path) -> None:
    names = ["id", "ID", 'a"b', "a'b", "a.b", "=x", "😀", " pad ", "NA"]
    pq.write_table(pa.table([[1]] * len(names), names=names), folder / "p[1]*?'; --.parquet")
    assert tasks.names() == [("p[1]*?'; --", name) for name in names]


def test_csv_types_need_every_value_and_no_leading_zero(tasks: Tasks, folder: Path) -> None:
    (folder / "t.csv").write_text(
        "n,code,x,d,ts,b,mixed,none,word\n"
        "1,007,1.5,2020-01-02,2020-01-02 03:04:05,true,1,,NA\n"
        "-2,08,2,2020-02-30x,2020-01-02T03:04:05,false,x,,null\n"
        "3,9,1e3,,,TRUE,2,,\n"
    )
    found = sources(tasks)
    types = {name.removeprefix("t."): row["data_type"] for name, row in found.items()}
    assert types == {
        "n": "BIGINT",
        "code": "VARCHAR",
        "x": "DOUBLE",
        "d": "VARCHAR",
        "ts": "TIMESTAMP",
        "b": "BOOLEAN",
        "mixed": "VARCHAR",
        "none": "",
        "word": "VARCHAR",
    }
    assert found["t.code"]["sample_values"] == ["007", "08", "9"]
    assert found["t.word"]["sample_values"] == ["NA", "null"]
    assert (found["t.none"]["null_share"], found["t.none"]["type_family"]) == (1.0, "unknown")


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "cp1252"])
def test_csv_encodings(tasks: Tasks, folder: Path, encoding: str) -> None:
    (folder / "t.csv").write_text("größe;b\nü;1\n", encoding=encoding)
    assert sources(tasks)["t.größe"]["sample_values"] == ["ü"]


def test_a_csv_that_ends_within_a_character_is_read_as_windows_text(tasks: Tasks, folder: Path) -> None:
    (folder / "t.csv").write_bytes(b"a\nx\xc3")
    assert sources(tasks)["t.a"]["sample_values"] == ["x\u00c3"]


def test_a_table_without_rows_keeps_its_columns(tasks: Tasks, folder: Path) -> None:
    (folder / "t.tsv").write_text("a\tb\n")
    pq.write_table(pa.table({"c": pa.array([], pa.int32())}), folder / "u.parquet")
    assert tasks.names() == [("t", "a"), ("t", "b"), ("u", "c")]
    assert sources(tasks)["u.c"]["distinct_count"] is None


def test_broken_lines_of_a_csv_are_rejected_with_their_number(tasks: Tasks, folder: Path) -> None:
    (folder / "t.csv").write_text('a,b\n1,x\n2\n3,"y\nz"\n4,x,y\n5,w\n')
    assert sources(tasks)["t.a"]["sample_values"] == ["1", "3", "5"]
    rejects = tasks.read().rejects
    assert rejects.select("file", "row", "content").rows() == [("source/t.csv", 3, "2"), ("source/t.csv", 6, "4,x,y")]


def test_repeated_and_missing_names_in_a_csv_header(tasks: Tasks, folder: Path) -> None:
    (folder / "t.csv").write_text("a,a,A,\n1,2,3,4\n")
    assert tasks.names() == [("t", "a"), ("t", "A")]
    assert sorted(tasks.read().rejects["reason"]) == [
        "column 4 has no name in the header: name it",
        "the table has this column already: rename or remove one",
    ]


def test_a_truncated_parquet_file_is_named_and_the_others_are_kept(tasks: Tasks, folder: Path) -> None:
    pq.write_table(pa.table({"c": list(range(1000))}), folder / "good.parquet")
    (folder / "bad.parquet").write_bytes((folder / "good.parquet").read_bytes()[:-20])
    (folder / "empty.csv").write_bytes(b"")
    (folder / "notes.docx").write_bytes(b"x")
    (folder / ".DS_Store").write_bytes(b"x")
    assert tasks.names() == [("good", "c")]
    rejects = {row["file"]: row["reason"] for row in tasks.read().rejects.iter_rows(named=True)}
    assert sorted(rejects) == ["source/bad.parquet", "source/empty.csv", "source/notes.docx"]
    assert "cut off or damaged" in rejects["source/bad.parquet"]
    assert str(folder) not in str(rejects)


def test_a_folder_of_nothing_usable_is_an_error(tasks: Tasks, folder: Path) -> None:
    with pytest.raises(SchemaError, match=r"source: put a \.parquet or \.csv file per table"):
        tasks.read()
    (folder / "bad.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(SchemaError, match=r"source/bad\.parquet: cannot be read"):
        tasks.read()


def test_a_single_parquet_file_may_be_named_in_task_yaml(tasks: Tasks) -> None:
    task = tasks.put(target_csv=GOOD, task_yaml="source: {path: visit.parquet}")
    pq.write_table(pa.table({"c": [1]}), task / "visit.parquet")
    assert tasks.names() == [("visit", "c")]
