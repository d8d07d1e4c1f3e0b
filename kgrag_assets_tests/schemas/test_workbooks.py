"""XLSX inputs: sheets, merged cells, long sheet names, files that are no workbook."""

from __future__ import annotations

import datetime as dt
import re
import zipfile
from pathlib import Path

import openpyxl
import pytest
import xlsxwriter

from kgrag_assets.schemas.errors import SchemaError
from kgrag_assets.schemas.workbook import read_workbook
from kgrag_assets_tests.schemas.conftest import GOOD, Tasks


def write(path: Path, sheets: dict[str, list[list[object]]], merges: dict[str, list[str]] | None = None) -> None:
    book = openpyxl.Workbook()
    book.remove(book.worksheets[0])
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
        for row in sheet.iter_rows():
            for cell in row:
                if isinstance(cell.value, str):
                    cell.data_type = "s"
        for cells in (merges or {}).get(name, []):
            sheet.merge_cells(cells)
    book.save(path)


def test_all_sheets_are_read_and_others_are_told(tasks: Tasks) -> None:
    folder = tasks.put(target_csv=GOOD)
    header = ["table", "column", "data_type"]
    sheets: dict[str, list[list[object]]] = {
        "A": [header, ["t", "007", "int"], ["t", "=x", "int"], ["t", 7, None], ["t", 1.5], ["t", True]],
        "Notes": [["read me"]],
        "Empty": [],
        "B": [["Our schema"], [], header, ["u", dt.date(2020, 1, 2)]],
    }
    write(folder / "source.xlsx", sheets)
    assert tasks.names() == [
        ("t", "007"),
        ("t", "=x"),
        ("t", "7"),
        ("t", "1.5"),
        ("t", "TRUE"),
        ("u", "2020-01-02"),
    ]
    read = tasks.read()
    assert set(read.attributes["origin"]) == {"source.xlsx#A", "source.xlsx#B", "target.csv"}
    assert read.rejects.select("file", "row").rows() == [("source.xlsx#Notes", 1)]


def test_a_merged_table_cell_names_all_its_rows(tasks: Tasks) -> None:
    folder = tasks.put(target_csv=GOOD)
    rows: list[list[object]] = [
        ["table", "table_description", "column", "column_description"],
        ["person", "people", "a", "both"],
        [None, None, "b", None],
        [None, None, "c", "own"],
        ["visit", None, "d", None],
        [None, None, None, None],
    ]
    write(folder / "source.xlsx", {"S": rows}, {"S": ["A2:A4", "B2:B4", "D2:D3", "A5:A6"]})
    assert tasks.names() == [("person", "a"), ("person", "b"), ("person", "c"), ("visit", "d")]
    described = tasks.read().attributes.head(4).select("table_description", "column_description").rows()
    assert described == [("people", "both"), ("people", "both"), ("people", "own"), ("", "")]
    assert tasks.read().rejects.height == 0


def test_a_merged_column_cell_is_one_column(tasks: Tasks) -> None:
    folder = tasks.put(target_csv=GOOD)
    rows: list[list[object]] = [["table", "column", "data_type"], ["t", "a", "int"], ["t", None, "text"]]
    write(folder / "source.xlsx", {"S": rows}, {"S": ["B2:B3"]})
    assert tasks.names() == [("t", "a")]
    assert tasks.read().rejects.select("row").rows() == [(3,)]


@pytest.mark.filterwarnings("ignore:Title is more than 31 characters")
def test_sheets_without_a_table_column_are_tables_also_when_they_share_31_characters(tasks: Tasks) -> None:
    folder = tasks.put(target_csv=GOOD)
    long = "observation_of_everything_in_the_"
    # Longer names than Excel allows do come from other programs.
    write(folder / "source.xlsx", {f"{long}one": [["column"], ["a"]], f"{long}two": [["column"], ["a"]]})
    assert tasks.names() == [(f"{long}one", "a"), (f"{long}two", "a")]


def test_two_sheets_with_one_name_cannot_be_told_apart(tasks: Tasks) -> None:
    folder = tasks.put(target_csv=GOOD)
    path = folder / "source.xlsx"
    write(path, {"one": [["column"], ["a"]], "two": [["column"], ["b"]]})
    cut = "x" * 31
    with zipfile.ZipFile(path) as book:
        parts = {name: book.read(name) for name in book.namelist()}
    parts["xl/workbook.xml"] = re.sub(rb'name="(one|two)"', b'name="' + cut.encode() + b'"', parts["xl/workbook.xml"])
    with zipfile.ZipFile(path, "w") as book:
        for name, content in parts.items():
            book.writestr(name, content)
    assert tasks.names() == [(cut, "a")]
    rejects = tasks.read().rejects
    assert rejects.height == 1
    assert "another sheet has the same name" in rejects["reason"][0]


def test_a_renamed_xls_is_named(tasks: Tasks) -> None:
    tasks.put(source_xlsx=b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), target_csv=GOOD)
    with pytest.raises(SchemaError, match=r"source\.xlsx: this is an old Excel workbook \(\.xls\).*save it as \.xlsx"):
        tasks.read()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "empty"),
        (b"table,column\nt,c\n", "a text file"),
        (b"PK\x03\x04cut off", "damaged zip"),
        (b"PAR1", "Parquet"),
    ],
)
def test_other_files_named_xlsx_are_named(tasks: Tasks, content: bytes, message: str) -> None:
    tasks.put(source_xlsx=content, target_csv=GOOD)
    with pytest.raises(SchemaError, match=message):
        tasks.read()


def test_a_truncated_workbook_is_an_error(tasks: Tasks, tmp_path: Path) -> None:
    path = tmp_path / "whole.xlsx"
    write(path, {"S": [["table", "column"], ["t", "c"]]})
    tasks.put(source_xlsx=path.read_bytes()[:-200], target_csv=GOOD)
    with pytest.raises(SchemaError, match="damaged"):
        tasks.read()


def test_a_workbook_of_empty_sheets_is_an_error(tasks: Tasks) -> None:
    folder = tasks.put(target_csv=GOOD)
    write(folder / "source.xlsx", {"A": [], "B": []})
    with pytest.raises(SchemaError, match="every sheet is empty"):
        tasks.read()


def test_rows_keep_their_numbers_below_empty_ones(tmp_path: Path) -> None:
    path = tmp_path / "x.xlsx"
    with xlsxwriter.Workbook(str(path)) as book:
        sheet = book.add_worksheet("S")
        sheet.write_string(2, 1, "table")
        sheet.write_string(5, 1, "t")
        sheet.write_formula(6, 1, "=1+1", None, 2)
    (grid,) = read_workbook(path, "x.xlsx")
    assert [(row.number, row.values[1]) for row in grid.rows] == [(3, "table"), (6, "t"), (7, "2")]
