"""KGTK edge files: what is taken, what is refused and why, and the real extract of Wikidata."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Protocol

import pytest

from kgrag_assets.knowledge.kgtk import read_kgtk
from kgrag_assets.knowledge.statements import Rejected, Statements

ARNOLD = Path(__file__).parents[2].parent / "shared" / "data" / "wikidata_arnold"
HEADER = "node1\tlabel\tnode2\tid"


class Read(Protocol):
    """Writes lines below a header and reads the file."""

    def __call__(self, *lines: str, languages: tuple[str, ...] = ("en",), literals: bool = False) -> Statements: ...


@pytest.fixture
def read(tmp_path: Path) -> Read:
    def of(*lines: str, languages: tuple[str, ...] = ("en",), literals: bool = False) -> Statements:
        path = tmp_path / "edges.tsv"
        path.write_text("\n".join([HEADER, *lines]) + "\n", encoding="utf-8", newline="")
        return read_kgtk([path], languages, literals=literals)

    return of


def test_names_and_statements_are_taken(read: Read) -> None:
    found = read(
        "Q1\tlabel\t'patient'@en\ta",
        "Q1\talias\t'case'@en\tb",
        "Q1\talias\t'sick  person'@en\tc",
        "Q1\tdescription\t'one who is cared for'@en\td",
        "Q1\tP279\tQ5\te",
    )
    names = found.names["Q1"]
    assert (names.label, names.description) == ("patient", "one who is cared for")
    assert list(names.aliases) == ["case", "sick person"]
    assert list(found.edges) == [("Q1", "P279", "Q5")]
    assert (found.rejected, list(found.literals)) == ([], [])


def test_an_entity_with_statements_of_its_own_is_listed_without_a_label(read: Read) -> None:
    found = read("Q1\tP31\tQ5\ta", "Q2\talias\t'only this'@en\tb")
    assert {name for name, names in found.names.items() if names.listed} == {"Q1"}


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("\tP31\tQ5\tx", "node1 is not an id: ''"),
        ("not an id\tP31\tQ5\tx", "node1 is not an id: 'not an id'"),
        ("'text'@en\tP31\tQ5\tx", "node1 is not an id"),
        ("Q1\t\tQ5\tx", "label is not a relation's id"),
        ("Q1\tsome words\tQ5\tx", "label is not a relation's id: 'some words'"),
        ("Q1\tP31\t\tx", "node2 is empty"),
        ("Q1\tP31\tQ5|Q6\tx", "node2 is a list"),
        ("Q1\tP31", "2 columns where the header has 4"),
        ("Q1\tP31\tQ5", "3 columns where the header has 4"),
        ("Q1\tlabel\t'a\tb'@en\tx", "5 columns where the header has 4"),
        ("Q1\tlabel\tpatient\tx", "a label must be written as 'text'@language"),
        ("Q1\tlabel\t'nurse's aide'@en\tx", "a label must be written as"),
        ("Q1\talias\t'open@en\tx", "a alias must be written as"),
        ("Q1\tdescription\t''@en\tx", "the description is empty"),
        ("Q1\tlabel\t' '@en\tx", "the label is empty"),
    ],
)
def test_one_bad_line_is_refused_and_loses_no_other(read: Read, line: str, reason: str) -> None:
    found = read("Q7\tlabel\t'before'@en\ta", line, "Q8\tP31\tQ7\tb")
    (rejected,) = found.rejected
    assert (rejected.file, rejected.row, rejected.content) == ("edges.tsv", 3, line)
    assert rejected.reason.startswith(reason)
    assert found.names["Q7"].label == "before"
    assert list(found.edges) == [("Q8", "P31", "Q7")]


def test_a_language_before_another_wins_in_any_order(read: Read) -> None:
    lines = ["Q1\tlabel\t'Kranker'@de\ta", "Q1\tlabel\t'patient'@en\tb", "Q1\tlabel\t'malade'@fr\tc"]
    for order in (lines, lines[::-1]):
        assert read(*order, languages=("en", "de")).names["Q1"].label == "patient"
        assert read(*order, languages=("de", "en")).names["Q1"].label == "Kranker"
    only_french = read(*lines, languages=("it",))
    assert (only_french.names, only_french.rejected) == ({}, [])


def test_escapes_are_undone(read: Read) -> None:
    found = read(r"Q1" + "\tlabel\t" + r"'nurse\'s \"aide\" a\|b c\\d'@en" + "\tx")
    assert found.names["Q1"].label == 'nurse\'s "aide" a|b c\\d'


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ('"plain"', "plain"),
        ("'text'@de", "text"),
        ("^2001-02-03T00:00:00Z/11", "2001-02-03T00:00:00Z"),
        ("+17.5Q11573", "+17.5Q11573"),
    ],
)
def test_literals_are_taken_where_wanted(read: Read, value: str, text: str) -> None:
    line = f"Q1\tP1\t{value}\tx"
    assert list(read(line, literals=True).literals) == [("Q1", "P1", text)]
    without = read(line)
    assert (list(without.literals), without.rejected) == ([], [])


def test_comments_blank_lines_and_windows_line_ends(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_bytes(b"\xef\xbb\xbfid\tnode1\tlabel\tnode2\r\n\r\n# a remark\r\n  \r\nx\tQ1\tP31\tQ5\r\n")
    found = read_kgtk([path], ["en"], literals=False)
    assert (list(found.edges), found.rejected) == ([("Q1", "P31", "Q5")], [])


def test_a_header_without_a_column_refuses_the_file(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("node1\tlabel\tid\nQ1\tP31\tx\n", encoding="utf-8")
    (tmp_path / "b.tsv").write_text("", encoding="utf-8")
    (tmp_path / "c.tsv").write_text(f"{HEADER}\nQ1\tP31\tQ5\tx\n", encoding="utf-8")
    found = read_kgtk([tmp_path / f"{name}.tsv" for name in "abc"], ["en"], literals=False)
    assert [(item.file, item.row) for item in found.rejected] == [("a.tsv", 1), ("b.tsv", None)]
    assert found.rejected[0].reason.startswith("the header lacks node2")
    assert list(found.edges) == [("Q1", "P31", "Q5")]


def test_a_line_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_bytes(f"{HEADER}\n".encode() + b"Q1\tlabel\t'caf\xe9'@en\tx\nQ2\tP31\tQ5\ty\n")
    found = read_kgtk([path], ["en"], literals=False)
    assert found.rejected == [Rejected("a.tsv", 2, "the line is not UTF-8", "Q1\tlabel\t'café'@en\tx")]
    assert list(found.edges) == [("Q2", "P31", "Q5")]


def damaged_files() -> list[tuple[str, bytes]]:
    lines = f"{HEADER}\n" + "".join(f"Q{number}\tP31\tQ5\tx{number * 7919 % 1009}\n" for number in range(20_000))
    packed = gzip.compress(lines.encode())
    middle = len(packed) // 2
    return [
        ("truncated", packed[:middle]),
        ("flipped", packed[:middle] + bytes(byte ^ 0xFF for byte in packed[middle : middle + 400]) + packed[-8:]),
        ("not gzip", b"node1\tlabel\tnode2\n"),
        ("wrong checksum", packed[:-8] + b"\0" * 8),
    ]


@pytest.mark.parametrize(("kind", "content"), damaged_files(), ids=[kind for kind, _content in damaged_files()])
def test_a_damaged_gzip_file_is_refused_and_loses_no_other(tmp_path: Path, kind: str, content: bytes) -> None:
    (tmp_path / "a.tsv.gz").write_bytes(content)
    (tmp_path / "b.tsv.gz").write_bytes(gzip.compress(f"{HEADER}\nQ1\tP279\tQ5\tx\n".encode()))
    found = read_kgtk([tmp_path / "a.tsv.gz", tmp_path / "b.tsv.gz"], ["en"], literals=False)
    last = found.rejected[-1]
    assert (last.file, last.row) == ("a.tsv.gz", None)
    assert "ends too early or is damaged" in last.reason, kind
    assert ("Q1", "P279", "Q5") in found.edges


@pytest.fixture(scope="module")
def arnold() -> Statements:
    if not ARNOLD.is_dir():
        pytest.skip("the extract of Wikidata is not on this machine")
    names = ("labels.en", "aliases.en", "descriptions.en", "derived.P31", "derived.P279", "claims.wikibase-property")
    return read_kgtk([ARNOLD / f"{name}.tsv.gz" for name in names], ["en"], literals=False)


def test_all_of_the_real_extract_is_taken(arnold: Statements) -> None:
    assert arnold.rejected == []
    assert sum(names.label is not None for names in arnold.names.values()) == 66_359
    assert arnold.names["P569"].label == "date of birth"
    assert ("P1001", "P1647", "P276") in arnold.edges
