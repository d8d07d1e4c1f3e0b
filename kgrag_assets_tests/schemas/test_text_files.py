"""CSV and TSV inputs: encodings, delimiters, quoting, odd names, broken rows."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgrag_assets.schemas.decoding import decode
from kgrag_assets.schemas.delimited import grid_of_text, sniff_delimiter
from kgrag_assets.schemas.errors import SchemaError
from kgrag_assets.schemas.found import trimmed
from kgrag_assets.schemas.readers.schema_table import read_schema_table, split_samples
from kgrag_assets_tests.schemas.conftest import GOOD, Tasks

Read = Callable[[str | bytes], list[tuple[str, str]]]

ACCENTS = "table,column\nPatiënt,größe\n"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32", "latin-1", "cp1252"])
def test_every_usual_encoding_gives_the_same_names(source_names: Read, encoding: str) -> None:
    assert source_names(ACCENTS.encode(encoding)) == [("Patiënt", "größe")]


@pytest.mark.parametrize(("mark", "encoding"), [(b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be")])
def test_utf16_of_both_byte_orders(mark: bytes, encoding: str) -> None:
    assert decode(mark + ACCENTS.encode(encoding), "x.csv") == ACCENTS


def test_windows_characters_are_not_latin1_controls() -> None:
    assert decode("table,column\nt,“c”€\n".encode("cp1252"), "x.csv").endswith("“c”€\n")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "empty"),
        (b" \r\n\t\n", "empty"),
        (b"\xef\xbb\xbf", "empty"),
        (ACCENTS.encode("utf-16-le"), "NUL"),
        (b"table,column\nt,\x00c\n", "byte 16 is NUL"),
        (b"\xff\xfea", "does not fit"),
        (b"PK\x03\x04rest", "zip"),
        (b"PAR1rest", "Parquet"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1rest", "old Excel"),
    ],
)
def test_what_is_no_text_file_is_named(tasks: Tasks, content: bytes, message: str) -> None:
    tasks.put(source_csv=content, target_csv=GOOD)
    with pytest.raises(SchemaError, match=message) as caught:
        tasks.read()
    assert "source.csv" in str(caught.value)


@pytest.mark.parametrize(
    "content",
    ["table,column\n", "table,column\r\n\r\n,,\n", "table;column;data_type"],
)
def test_a_header_without_rows_is_an_error_that_says_so(tasks: Tasks, content: str) -> None:
    tasks.put(source_csv=content, target_csv=GOOD)
    with pytest.raises(SchemaError, match=r"source\.csv.*no usable row below"):
        tasks.read()


def test_a_wrong_header_is_an_error_that_shows_it(tasks: Tasks) -> None:
    tasks.put(source_csv="tab,col\nt,c\n", target_csv=GOOD)
    with pytest.raises(SchemaError, match=r"must name the columns.*tab \| col"):
        tasks.read()


def test_a_header_that_names_a_column_twice_is_an_error(tasks: Tasks) -> None:
    tasks.put(source_csv="table,column,Table_Name\nt,c,u\n", target_csv=GOOD)
    with pytest.raises(SchemaError, match="twice"):
        tasks.read()


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_delimiter_is_found(source_names: Read, delimiter: str) -> None:
    rows = ["table,column,column_description", 't,c,"a; b|c, d\te"']
    text = "\n".join(delimiter.join(next(csv.reader([row]))) if i == 0 else "" for i, row in enumerate(rows))
    out = io.StringIO()
    writer = csv.writer(out, delimiter=delimiter)
    writer.writerow(["t", "c", "a; b|c, d\te"])
    assert source_names(text + out.getvalue()) == [("t", "c")]


def test_excels_first_line_names_the_delimiter(source_names: Read) -> None:
    assert source_names("sep=;\ntable;column\nt,u;c\n") == [("t,u", "c")]


def test_delimiter_of_a_description_does_not_mislead() -> None:
    assert sniff_delimiter("table;column;a,b,c,d", {"table", "column"}) == ";"


ODD = [
    "NA",
    "null",
    "None",
    "007",
    "1e5",
    "=SUM(A1)",
    "+1",
    "@x",
    "😀",
    "a.b",
    'a"b',
    "a'b",
    "a,b",
    "a/b",
    "a\\b",
    "TRUE",
]


def test_odd_names_are_kept_exactly(source_names: Read) -> None:
    out = io.StringIO()
    csv.writer(out).writerows([["table", "column"], *[[name, name] for name in ODD]])
    assert source_names(out.getvalue()) == [(name, name) for name in ODD]


def test_spaces_are_cut_at_the_ends_and_kept_inside(source_names: Read) -> None:
    nbsp = "\u00a0"
    text = f"{nbsp}table{nbsp}, column\u200b\n{nbsp} my{nbsp}table {nbsp},first name{nbsp}\n"
    assert source_names(text) == [(f"my{nbsp}table", "first name")]


_CELL = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=12)


@given(
    st.binary(max_size=200), st.sampled_from([b"", b"table,column\nt,c\n", b"\xff\xfe", b"\xef\xbb\xbftable;column\n"])
)
def test_any_bytes_are_read_or_refused_with_a_reason(content: bytes, head: bytes) -> None:
    try:
        found = read_schema_table([grid_of_text(decode(head + content, "x.csv"), "x.csv", {"table", "column"})])
    except SchemaError:
        return
    assert all(column.table and column.column for column in found.columns)


@given(st.lists(st.tuples(_CELL, _CELL, _CELL), min_size=1, max_size=8), st.sampled_from(",;\t|"))
def test_whatever_a_csv_writer_wrote_is_read_back(rows: list[tuple[str, str, str]], delimiter: str) -> None:
    out = io.StringIO()
    writer = csv.writer(out, delimiter=delimiter, quoting=csv.QUOTE_ALL)
    writer.writerow(["table", "column", "column_description"])
    writer.writerows(rows)
    wanted = [(trimmed(t), trimmed(c), d.strip()) for t, c, d in rows if trimmed(t) and trimmed(c)]
    grid = grid_of_text(decode(out.getvalue().encode(), "x"), "x", {"table", "column"})
    if not wanted:
        with pytest.raises(SchemaError):
            read_schema_table([grid])
        return
    found = read_schema_table([grid])
    assert [(c.table, c.column, c.column_description) for c in found.columns] == wanted
    skipped = [row for row in rows if not (trimmed(row[0]) and trimmed(row[1])) and any(cell.strip() for cell in row)]
    assert len(found.rejects) == len(skipped)


def test_a_bad_row_is_rejected_with_its_line_and_the_others_are_kept(tasks: Tasks) -> None:
    text = 'table,column,column_description\nt,a,"two\nlines"\nt,,x\n,b,x\nt,c,x,y\nt,d\n\nt,e,x,,\n'
    tasks.put(source_csv=text, target_csv=GOOD)
    read = tasks.read()
    assert tasks.names() == [("t", "a"), ("t", "e")]
    rejects = {row["row"]: row["reason"] for row in read.rejects.iter_rows(named=True)}
    assert sorted(rejects) == [4, 5, 6, 7]
    assert "column is missing" in rejects[4]
    assert "table is missing" in rejects[5]
    assert "4 fields where the header has 3" in rejects[6]
    assert "2 fields where the header has 3" in rejects[7]
    assert set(read.rejects["file"]) == {"source.csv"}
    assert read.rejects["row_key"].n_unique() == 4


def test_a_quote_that_is_never_closed_costs_its_own_row_only(tasks: Tasks) -> None:
    tasks.put(source_csv='table,column,column_description\nt,a,x\nt,b,"open\nt,c,x\nt,d,x\n', target_csv=GOOD)
    assert tasks.names() == [("t", "a"), ("t", "c"), ("t", "d")]
    assert tasks.read().rejects.select("row", "content").rows() == [(3, 't,b,"open')]


def test_the_second_of_two_equal_columns_is_rejected_and_case_is_a_difference(tasks: Tasks) -> None:
    tasks.put(source_csv="table,column\nt,id\nt,ID\nt,id\nT,id\n", target_csv=GOOD)
    assert tasks.names() == [("t", "id"), ("t", "ID"), ("T", "id")]
    assert [(row["row"], row["content"]) for row in tasks.read().rejects.iter_rows(named=True)] == [(4, "t | id")]
    assert "in row 2" in tasks.read().rejects["reason"][0]


def test_all_optional_columns_are_read(tasks: Tasks) -> None:
    header = (
        "table,column,data_type,table_description,column_description,is_primary_key,references_table,"
        "references_column,required,sample_values"
    )
    tasks.put(source_csv=f"{header}\nt,c,int,TD,CD,yes,u,v,no,007|08\nt,d,,,,maybe,,,,\n", target_csv=GOOD)
    read = tasks.read()
    first, second = read.attributes.head(2).iter_rows(named=True)
    assert (first["data_type"], first["type_family"]) == ("int", "integer")
    assert (first["table_description"], first["column_description"]) == ("TD", "CD")
    assert (first["is_primary_key"], first["nullable"]) == (True, True)
    assert (first["references_table"], first["references_column"]) == ("u", "v")
    assert first["sample_values"] == ["007", "08"]
    assert (second["is_primary_key"], second["nullable"], second["references_table"]) == (None, None, None)
    assert second["sample_values"] == []
    assert "neither yes nor no" in read.rejects["reason"][0]


def test_a_misspelt_header_is_told(tasks: Tasks) -> None:
    tasks.put(source_csv="table,column,colum_description,owner\nt,c,x,y\n", target_csv=GOOD)
    rejects = tasks.read().rejects
    assert rejects["reason"].to_list() == [
        "the column 'colum_description' is not read: did you mean 'column_description'?"
    ]


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ('["a|b", 1, "007"]', ("a|b", "1", "007")),
        ('["\\ud800x"]', ("?x",)),
        ("[" * 100_000, ("[" * 80,)),
        ("[" + "9" * 5000 + "]", (("[" + "9" * 79),)),
        ("[not json|x", ("[not json", "x")),
        ("a;b; a", ("a", "b")),
        ("x" * 100, ("x" * 80,)),
        ("|".join(str(n) for n in range(20)), tuple(str(n) for n in range(10))),
        ("", ()),
    ],
)
def test_sample_values_are_split(text: str, values: tuple[str, ...]) -> None:
    assert split_samples(text) == values
