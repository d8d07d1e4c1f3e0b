"""Graphs as tables: CSV, TSV and Parquet say the same, texts become ids, and no broken row becomes a wrong one."""

from __future__ import annotations

import csv
import gzip
import io
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kgrag_assets.knowledge.collector import Collector
from kgrag_assets.knowledge.sources.blocks import BLOCK_BYTES, ReadOptions
from kgrag_assets.knowledge.sources.protocol import Unit
from kgrag_assets.knowledge.sources.table_lines import INSIDE_QUOTES, MAX_LINES_OF_VALUE, cells_of, rows_of
from kgrag_assets.knowledge.sources.triples_table import TableReader, TableSource, files_of
from kgrag_assets_tests.knowledge.sources.reading import Found, put_together, read_source

PLAIN = ReadOptions()
ALL = ReadOptions(literals=("all",))
ROWS = [
    {
        "head": "Q1",
        "relation": "P31",
        "tail": "Q5",
        "head_label": "patient",
        "relation_label": "instance of",
        "tail_label": "human",
        "head_description": "one who, with care, is cared for",
        "head_aliases": "case|sick  person||case",
    },
    {"head": "heart  valve", "relation": "has part", "tail": "cusp", "tail_description": 'a "leaf"'},
    {"head": "Q1", "relation": "weight", "tail_value": "70 kg"},
]
ENTITIES = [
    {"id": "Q5", "label": "person", "aliases": "human|people", "description": "a being", "kind": ""},
    {"id": "has part", "label": "", "aliases": "", "description": "", "kind": "Relation"},
    {"id": "only id", "label": "a name", "aliases": "", "description": "", "kind": "entity"},
]


def read(folder: Path, options: ReadOptions = PLAIN, block_bytes: int = BLOCK_BYTES) -> Found:
    return read_source(TableSource(files_of(folder), folder, options, block_bytes))


def write(path: Path, rows: Sequence[Mapping[str, str]], separator: str = ",") -> Path:
    names = list(dict.fromkeys(name for row in rows for name in row))
    if path.suffix == ".parquet":
        pl.DataFrame(
            [{name: row.get(name) or None for name in names} for row in rows], infer_schema_length=None
        ).write_parquet(path, row_group_size=2)
        return path
    with path.open("w", encoding="utf-8", newline="") as handle:
        writer = csv.DictWriter(handle, names, delimiter=separator, restval="")
        writer.writeheader()
        writer.writerows(rows)
    return path


@pytest.mark.parametrize("block_bytes", [1, BLOCK_BYTES])
@pytest.mark.parametrize(
    ("suffix", "separator"), [(".csv", ","), (".csv", ";"), (".tsv", "\t"), (".csv", "\t"), (".parquet", "")]
)
def test_all_formats_say_the_same(tmp_path: Path, suffix: str, separator: str, block_bytes: int) -> None:
    write(tmp_path / f"triples{suffix}", ROWS, separator)
    write(tmp_path / f"entities{suffix}", ENTITIES, separator)
    found = read(tmp_path, ALL, block_bytes)
    assert found.rejects == []
    assert found.edges == [("Q1", "P31", "Q5"), ("heart_valve", "has_part", "cusp")]
    assert found.literals == [("Q1", "weight", "70 kg", None)]
    assert found.labels == {
        "Q1": "patient",
        "P31": "instance of",
        "Q5": "person",
        "heart_valve": "heart valve",
        "has_part": "has part",
        "only_id": "a name",
    }
    assert found.aliases == {"Q1": ["case", "sick person"], "Q5": ["human", "people"]}
    assert found.descriptions == {
        "Q1": "one who, with care, is cared for",
        "cusp": 'a "leaf"',
        "Q5": "a being",
    }
    assert found.relations == {"P31", "has_part", "weight"}
    assert found.listed == {"Q1", "P31", "Q5", "heart_valve", "has_part", "only_id"}


def test_literals_are_taken_where_any_are_wanted(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", [{"head": "Q1", "relation": "weight", "tail_value": "70 kg"}])
    assert read(tmp_path).literals == []
    assert read(tmp_path, ReadOptions(literals=("quantity",))).literals == [("Q1", "weight", "70 kg", None)]


def test_only_wanted_relations_are_read(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", ROWS)
    found = read(tmp_path, ReadOptions(relations=("has_part",), literals=("all",)))
    assert (found.edges, found.literals) == ([("heart_valve", "has_part", "cusp")], [])
    assert found.relations == {"has_part"}


def test_other_names_and_columns_in_any_order(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("Object\tnote\tPREDICATE\tsubject\nQ5\tx\tP31\tQ1\n")
    assert read(tmp_path).edges == [("Q1", "P31", "Q5")]


def test_an_id_in_words_is_the_same_as_its_id(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("head,relation,tail\nheart valve,part_of,heart\nheart_valve,is a,valve\n")
    found = read(tmp_path)
    assert found.edges == [("heart_valve", "part_of", "heart"), ("heart_valve", "is_a", "valve")]
    assert found.labels == {"heart_valve": "heart valve", "part_of": "part of", "is_a": "is a"}


@pytest.mark.parametrize("block_bytes", [1, BLOCK_BYTES])
@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (",P31,Q5,", "head: an id is empty"),
        ("Q1, ,Q5,", "relation: an id is empty"),
        ("Q1,P31,,", "tail: an id is empty"),
        (f"Q1,P31,{'x' * 201},", "tail: an id has more than 200 characters"),
        ("Q1,P31,a\x07b,", "tail: an id must be one printable word"),
        ("Q1,P31,Q5,70 kg", "a row has a tail (an id) or a tail_value"),
        ("Q1,P31,Q5", "3 columns where the header has 4"),
        ("Q1,P31,Q5,,", "5 columns where the header has 4"),
        ('Q1,P31,"Q5,', "a quote does not close on its line"),
        ('Q1,P31,"Q5"x,', "quotes are not those of CSV"),
        ('Q1,P31,Q5",', "a quote stands inside a cell that is not quoted"),
        ('Q1,P31,5" disk,', "a quote stands inside a cell that is not quoted"),
    ],
)
def test_one_bad_row_is_refused_and_loses_no_other(tmp_path: Path, line: str, reason: str, block_bytes: int) -> None:
    good = 'Q7,P31,Q5,\n"Q8",P31,"Q5",""\n'
    (tmp_path / "a.csv").write_text(f"head,relation,tail,tail_value\n{good}{line}\nQ9,P31,Q5,\n", newline="")
    found = read(tmp_path, ALL, block_bytes)
    assert [row for row, _ in found.reasons] == [4]
    # At the beginning of a block a quote that closes nothing there may close a value of the block before.
    assert found.reasons[0][1].startswith((reason, INSIDE_QUOTES) if block_bytes == 1 else reason)
    assert found.rejects[0][3] == line
    assert [head for head, *_ in found.edges] == ["Q7", "Q8", "Q9"]
    assert (found.literals, found.listed) == ([], {"Q7", "Q8", "Q9"})


def test_a_kind_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,kind\nQ1,thing\nQ2,entity\n")
    found = read(tmp_path)
    assert found.reasons == [(2, "kind must be entity or relation, not 'thing'")]
    assert found.listed == {"Q2"}


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        ("a,b,c", "the header must name head, relation and tail"),
        ("head,relation", "the header lacks tail"),
        ("head,relation,tail,head", "the header names head twice"),
        ("head,relation,tail,subject", "the header names head twice"),
        ('head,"relation,tail', "the header: a quote does not close"),
        ("", "the file is empty"),
    ],
)
def test_a_header_that_is_none_refuses_the_file(tmp_path: Path, header: str, reason: str) -> None:
    (tmp_path / "a.csv").write_text(f"{header}\n")
    ((_, why),) = read(tmp_path).reasons
    assert why.startswith(reason)


def test_lines_that_are_not_utf8_and_packed_files(tmp_path: Path) -> None:
    (tmp_path / "a.csv.gz").write_bytes(
        gzip.compress(b"\xef\xbb\xbfhead,relation,tail\r\n\r\nQ1,caf\xe9,Q2\r\nQ1,P31,Q2\r\n")
    )
    found = read(tmp_path)
    assert found.reasons == [(3, "the line is not UTF-8")]
    assert found.edges == [("Q1", "P31", "Q2")]


MULTI = 'Q1,P1,Q2,"first,\nQ666,P666,Q667,x\nlast"\n'


@pytest.mark.parametrize("block_bytes", [1, 30, 60, 90, BLOCK_BYTES])
def test_no_line_of_a_value_with_line_breaks_becomes_a_row(tmp_path: Path, block_bytes: int) -> None:
    """Its middle line looks like a row, even where a block begins or ends within the value."""
    good = "".join(f"Q{number},P1,Q2,\n" for number in range(10, 14))
    text = (
        f"head,relation,tail,head_description\n{good}{MULTI}{good.replace('Q1', 'Q2')}{MULTI}{good.replace('Q1', 'Q3')}"
    )
    (tmp_path / "a.csv").write_text(text, newline="")
    found = read(tmp_path, block_bytes=block_bytes)
    heads = {head for head, *_ in found.edges}
    if block_bytes > 60:  # a smaller block may hold the middle line alone, which no look at it can tell
        assert "Q666" not in heads
        assert [row for row, _ in found.reasons] == [6, 7, 8, 13, 14, 15]
    assert heads - {"Q666"} == {f"Q{number}" for number in (*range(10, 14), *range(20, 24), *range(30, 34))}


def test_a_value_that_ends_where_another_begins() -> None:
    into = Collector()
    block = b'Q1,"a\nb","c\nQ666,x,y\nd"\nQ2,e,f\n'
    assert [cells for _, _, cells in rows_of(block, ",", into, first=True)] == [["Q2", "e", "f"]]
    assert [row for _, row, *_ in into.rejects] == [1, 2, 3, 4]


def test_a_stray_quote_costs_only_its_line() -> None:
    rows = "".join(f'Q{number},"x, y",z\n' for number in range(MAX_LINES_OF_VALUE + 5))
    into = Collector()
    found = list(rows_of(f'Q1,"stray,z\n{rows}'.encode(), ",", into, first=False))
    assert (len(found), len(into.rejects)) == (MAX_LINES_OF_VALUE + 5, 1)


cells = st.text(alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="\r\n\0"), max_size=8)
quoted = st.text(alphabet='ab",; \t', max_size=8)


@given(st.lists(st.one_of(cells, quoted), min_size=2, max_size=5), st.sampled_from(",;\t"), st.booleans())
def test_cells_are_those_that_a_writer_wrote(row: list[str], separator: str, everything: bool) -> None:
    handle = io.StringIO()
    csv.writer(handle, delimiter=separator, quoting=csv.QUOTE_ALL if everything else csv.QUOTE_MINIMAL).writerow(row)
    assert cells_of(handle.getvalue().removesuffix("\r\n"), separator) == row


@settings(max_examples=200, deadline=None)
@given(st.lists(st.text(alphabet='Qb",\n', max_size=10), max_size=8))
def test_a_row_is_taken_only_where_a_csv_parser_sees_it_too(lines: list[str]) -> None:
    """Of a block that begins a file, whatever is taken is a record of the file as CSV has it."""
    text = "".join(f"{line}\n" for line in lines)
    taken = [cells for _, _, cells in rows_of(text.encode(), ",", Collector(), first=True)]
    if text.count('"') % 2 == 0:  # else a quote is open to the end: then no two parsers agree
        try:
            records = list(csv.reader(io.StringIO(text, newline=""), strict=True))
        except csv.Error:
            return
        assert all(cells in records for cells in taken)


@settings(deadline=None)
@given(st.lists(st.text(alphabet='Q1 ,"|', max_size=12), max_size=6), st.integers(1, 6))
def test_no_block_fails(lines: list[str], size: int) -> None:
    header = b"head,relation,tail"
    rows = [f"{line}\n".encode() for line in lines]
    parts = []
    for start in range(0, len(rows), size):
        part = Collector(first_row=start + 1)
        TableReader().read(b"".join(rows[start : start + size]), header, ALL, part, first=False)
        parts.append(part)
    found = put_together(parts)
    assert all(part and " " not in part for edge in found.edges for part in edge)


# Parquet


def units(path: Path, options: ReadOptions = PLAIN) -> list[Unit]:
    found = []
    for unit in TableSource([path], path.parent, options).units():
        assert not isinstance(unit, Collector)
        found.append(unit)
    return found


def test_a_unit_is_a_row_group(tmp_path: Path) -> None:
    rows = [{"head": f"Q{number}", "relation": "P1", "tail": "" if number == 4 else "Q1"} for number in range(5)]
    path = write(tmp_path / "a.parquet", rows)
    found = units(path)
    assert [unit.first_row for unit in found] == [1, 3, 5]
    assert sum(unit.size for unit in found) == path.stat().st_size
    assert len({unit.key for unit in found}) == 3
    read_all = read(tmp_path)
    assert read_all.rejects == [("a.parquet", 5, "tail: an id is empty", "head='Q4', relation='P1'")]
    assert len(read_all.edges) == 4


def test_the_key_of_a_row_group_changes_with_file_and_settings(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", [{"head": "Q1", "relation": "P1", "tail": "Q2"}])
    (first,) = units(path)
    assert units(path)[0].key == first.key
    assert units(path, ALL)[0].key != first.key
    time = path.stat().st_mtime_ns
    write(path, [{"head": "Q1", "relation": "P1", "tail": "Q3"}])
    os.utime(path, ns=(time, time))
    assert units(path)[0].key != first.key
    os.utime(path, ns=(time, time + 1))
    into = Collector()
    first.read(into)
    assert [reason for *_, reason, _ in into.rejects] == ["the file was exchanged while it was read: load again"]
    assert into.edges == []


def test_values_of_other_types(tmp_path: Path) -> None:
    frame = pl.DataFrame(
        {
            "head": [1, 2],
            "relation": pl.Series(["is a", "is a"], dtype=pl.Categorical),
            "tail": ["thing\nor two", None],
            "tail_value": [None, "first\nsecond"],
            "head_aliases": [["one", "uno|due"], None],
        }
    )
    frame.write_parquet(tmp_path / "a.parquet")
    found = read(tmp_path, ALL)
    assert found.rejects == []
    assert found.edges == [("1", "is_a", "thing_or_two")]
    assert found.literals == [("2", "is_a", "first second", None)]
    assert found.aliases == {"1": ["one", "uno|due"]}


def test_files_that_are_no_tables(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(b"no parquet")
    (tmp_path / "b.parquet").write_bytes(b"")
    pl.DataFrame({"a": ["x"]}).write_parquet(tmp_path / "c.parquet")
    pl.DataFrame({"head": [["x"]], "relation": ["r"], "tail": ["t"]}).write_parquet(tmp_path / "d.parquet")
    whole = write(tmp_path / "e.parquet", [{"head": "Q1", "relation": "P1", "tail": "Q2"}]).read_bytes()
    (tmp_path / "e.parquet").write_bytes(whole[:4] + bytes(byte ^ 0xFF for byte in whole[4:40]) + whole[40:])
    write(tmp_path / "f.parquet", [{"head": "Q7", "relation": "P1", "tail": "Q2"}])
    found = read(tmp_path)
    assert [file for file, *_ in found.rejects] == [f"{name}.parquet" for name in "abcde"]
    reasons = [reason for _, reason in found.reasons]
    assert all("is no Parquet file or is damaged" in reasons[at] for at in (0, 1, 4))
    assert reasons[2].startswith("the header must name head")
    assert reasons[3] == "the column head must hold texts or numbers, not large_list<element: large_string>"
    assert found.edges == [("Q7", "P1", "Q2")]
