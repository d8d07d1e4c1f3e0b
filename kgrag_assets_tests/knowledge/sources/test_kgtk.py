"""KGTK edge files in blocks: what is taken, what is refused and why, and the real extract of Wikidata."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Protocol

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgrag_assets.knowledge.collector import Collector
from kgrag_assets.knowledge.sources.blocks import ReadOptions
from kgrag_assets.knowledge.sources.kgtk import KgtkReader, files_of
from kgrag_assets_tests.knowledge.sources.reading import Found, put_together, read_files

ARNOLD = Path(__file__).parents[3].parent / "shared" / "data" / "wikidata_arnold"
HEADER = "node1\tlabel\tnode2\tid"
PLAIN = ReadOptions()


class Read(Protocol):
    """Writes lines below a header and reads the file, in blocks of so many bytes."""

    def __call__(
        self, *lines: str, options: ReadOptions = ..., header: str = HEADER, block_bytes: int = 1 << 20
    ) -> Found: ...


@pytest.fixture
def read(tmp_path: Path) -> Read:
    def of(*lines: str, options: ReadOptions = PLAIN, header: str = HEADER, block_bytes: int = 1 << 20) -> Found:
        path = tmp_path / "edges.tsv"
        path.write_text("\n".join([header, *lines]) + "\n", encoding="utf-8", newline="")
        return read_files([path], lambda _: KgtkReader(), options, root=tmp_path, block_bytes=block_bytes)

    return of


def test_names_and_statements_are_taken(read: Read) -> None:
    found = read(
        "Q1\tlabel\t'patient'@en\ta",
        "Q1\talias\t'case'@en\tb",
        "Q1\talias\t'sick  person'@en\tc",
        "Q1\tdescription\t'one who is cared for'@en\td",
        "Q1\tP279\tQ5\te",
    )
    assert (found.labels, found.descriptions) == ({"Q1": "patient"}, {"Q1": "one who is cared for"})
    assert found.aliases == {"Q1": ["case", "sick person"]}
    assert found.edges == [("Q1", "P279", "Q5")]
    assert found.relations == {"P279"}
    assert (found.rejects, found.literals) == ([], [])


def test_an_entity_with_statements_of_its_own_is_listed_without_a_label(read: Read) -> None:
    found = read("Q1\tP31\tQ5\ta", "Q2\talias\t'only this'@en\tb")
    assert found.listed == {"Q1"}


@pytest.mark.parametrize("block_bytes", [1, 40, 1 << 20])
@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("\tP31\tQ5\tx", "node1 is not an id: ''"),
        ("not an id\tP31\tQ5\tx", "node1 is not an id: 'not an id'"),
        ("'text'@en\tP31\tQ5\tx", "node1 is not an id"),
        ("Q1|Q2\tP31\tQ5\tx", "node1 is not an id"),
        (f"{'Q' * 201}\tP31\tQ5\tx", "node1 is not an id"),
        ("Q1\t\tQ5\tx", "label is not a relation's id"),
        ("Q1\tsome words\tQ5\tx", "label is not a relation's id: 'some words'"),
        ("Q1\tP31\t\tx", "node2 is empty"),
        ("Q1\tP31\tQ5|Q6\tx", "node2 is a list"),
        ("Q1\tP31\tsome words\tx", "node2 is not an id"),
        ("Q1\tP31", "2 columns where the header has 4"),
        ("Q1\tP31\tQ5", "3 columns where the header has 4"),
        ("Q1\tlabel\t'a\tb'@en\tx", "5 columns where the header has 4"),
        ("Q1\tlabel\tpatient\tx", "a label must be written as 'text'@language"),
        ("Q1\tlabel\t'nurse's aide'@en\tx", "a label must be written as"),
        ("Q1\talias\t'open@en\tx", "a alias must be written as"),
        ("Q1\talias\t'open'@\tx", "a alias must be written as"),
        ('Q1\talias\t"half\tx', "a alias must be written as"),
        ("Q1\tdescription\t''@en\tx", "the description is empty"),
        ("Q1\tlabel\t' '@en\tx", "the label is empty"),
    ],
)
def test_one_bad_line_is_refused_and_loses_no_other(read: Read, line: str, reason: str, block_bytes: int) -> None:
    found = read("Q7\tlabel\t'before'@en\ta", line, "Q8\tP31\tQ7\tb", block_bytes=block_bytes)
    ((file, row, why, content),) = found.rejects
    assert (file, row, content) == ("edges.tsv", 3, line)
    assert why.startswith(reason)
    assert found.labels == {"Q7": "before"}
    assert found.edges == [("Q8", "P31", "Q7")]
    assert "Q1" not in found.listed


def test_a_language_before_another_wins_in_any_order(read: Read) -> None:
    lines = ["Q1\tlabel\t'Kranker'@de\ta", "Q1\tlabel\t'patient'@en\tb", "Q1\tlabel\t'malade'@fr\tc"]
    for order in (lines, lines[::-1]):
        assert read(*order, options=ReadOptions(languages=("en", "de"))).labels["Q1"] == "patient"
        assert read(*order, options=ReadOptions(languages=("de", "en"))).labels["Q1"] == "Kranker"
    only_french = read(*lines, options=ReadOptions(languages=("it",)))
    assert (only_french.labels, only_french.listed, only_french.rejects) == ({}, set(), [])


def test_a_text_of_no_language_comes_last(read: Read) -> None:
    found = read('Q1\tlabel\t"1600"\ta', "Q1\tlabel\t'sixteen hundred'@en\tb", 'Q2\tlabel\t"a \\"b\\""\tc')
    assert found.labels == {"Q1": "sixteen hundred", "Q2": 'a "b"'}


def test_escapes_are_undone(read: Read) -> None:
    found = read(r"Q1" + "\tlabel\t" + r"'nurse\'s \"aide\" a\|b c\\d\te'@en" + "\tx")
    assert found.labels["Q1"] == 'nurse\'s "aide" a|b c\\d e'


LITERALS = [
    ("string", '"plain  text"', "plain text", None),
    ("string", "True", "True", None),
    ("string", "!1000^^dbpedia:USD", "1000", None),
    ("monolingualtext", "'text'@en", "text", None),
    ("time", "^2001-02-03T00:00:00Z/11", "3 February 2001", None),
    ("time", "^1839-00-00T00:00:00Z/9", "1839", None),
    ("time", "^1801-00-00T00:00:00Z/7/Q1985727", "19th century", None),
    ("time", "^-0300-00-00T00:00:00Z/9", "300 BC", None),
    ("quantity", "+17.5Q11573", "17.5", "Q11573"),
    ("quantity", "+10[+9.5,+10.5]Q4917", "10", "Q4917"),
    ("quantity", "-1.2e+2[-1.0,+1.0]kg.m/s2", "-1.2e+2 kg.m/s2", None),
    ("quantity", "42", "42", None),
    ("quantity", "0xff", "0xff", None),
    ("globe-coordinate", "@043.26193/010.92708", "43.26193, 10.92708", None),
]


@pytest.mark.parametrize(("kind", "value", "text", "unit"), LITERALS)
def test_literals_of_wanted_kinds_are_taken(read: Read, kind: str, value: str, text: str, unit: str | None) -> None:
    line = f"Q1\tP1\t{value}\tx"
    taken: list[tuple[str, ...]] = [(kind,), ("all",)]
    for literals in taken:
        found = read(line, options=ReadOptions(literals=literals))
        assert found.literals == [("Q1", "P1", text, unit)]
        assert (found.listed, found.relations, found.edges, found.rejects) == ({"Q1"}, {"P1"}, [], [])
    others = tuple({each for each, *_ in LITERALS} - {kind})
    for literals in [(), others]:
        without = read(line, options=ReadOptions(literals=literals))
        assert (without.literals, without.rejects, without.listed) == ([], [], set())


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ('"half', "node2: a string must be written"),
        ("'half@en", "node2 must be written as 'text'@language"),
        ("^2001/x", "node2: the precision of a time is a number"),
        ("@1/2/3", "node2: a place must be written"),
        ("@1.2.3/4", "node2: a place must be written"),
        ("@999/4", "node2: no place is at"),
        ("+five", "node2: not a quantity"),
        ('" "', "node2 is a text without words"),
    ],
)
def test_a_wanted_literal_that_is_none_is_refused(read: Read, value: str, reason: str) -> None:
    found = read(f"Q1\tP1\t{value}\tx", options=ReadOptions(literals=("all",)))
    assert [row for row, _ in found.reasons] == [2]
    assert found.reasons[0][1].startswith(reason)
    assert (found.literals, found.edges) == ([], [])


def test_a_text_in_another_language_is_no_fact(read: Read) -> None:
    found = read("Q1\tP1\t'Text'@de\tx", options=ReadOptions(literals=("all",)))
    assert (found.literals, found.rejects) == ([], [])


def test_the_datatype_of_wikidata_tells_kinds_of_strings_apart(read: Read) -> None:
    lines = ('Q1\tP1\t"0000 0001"\texternal-id', 'Q1\tP2\t"a word"\tstring', "Q1\tP3\tQ5\twikibase-item")
    header = "node1\tlabel\tnode2\tnode2;wikidatatype"
    found = read(*lines, header=header, options=ReadOptions(literals=("string",)))
    assert found.literals == [("Q1", "P2", "a word", None)]
    ids = read(*lines, header=header, options=ReadOptions(literals=("external-id",)))
    assert ids.literals == [("Q1", "P1", "0000 0001", None)]
    assert found.edges == ids.edges == [("Q1", "P3", "Q5")]


def test_what_kgtk_notes_about_nodes_is_no_statement(read: Read) -> None:
    found = read(
        "P10\tdatatype\tcommonsMedia\ta",
        "Q1\ttype\titem\tb",
        "Q1\twikipedia_sitelink\thttp://en.wikipedia.org/wiki/X\tc",
        "Q1\tvertex_pagerank\t0.5\td",
        "Q1-P31-Q5-1234abcd-0\tP580\tQ7\te",
        "Q1\tP31\tnovalue\tf",
        "Q1\tP31\tsomevalue\tg",
        options=ReadOptions(literals=("all",)),
    )
    assert (found.edges, found.literals, found.listed, found.rejects) == ([], [], set(), [])
    assert found.relations == {"P10"}


def test_a_type_of_a_graph_of_ones_own_is_a_statement(read: Read) -> None:
    assert read("moe\ttype\tPerson\ta").edges == [("moe", "type", "Person")]


def test_only_wanted_relations_are_read(read: Read) -> None:
    lines = ("Q1\tP31\tQ5\ta", "Q1\tP279\tQ6\tb", "Q2\tP18\tQ7\tc")
    chosen = read(*lines, options=ReadOptions(relations=("P279",), always_relations=("P31",)))
    assert chosen.edges == [("Q1", "P31", "Q5"), ("Q1", "P279", "Q6")]
    assert chosen.listed == {"Q1"}
    without = read(*lines, options=ReadOptions(without_relations=("P31",)))
    assert without.edges == [("Q1", "P279", "Q6"), ("Q2", "P18", "Q7")]


def test_deprecated_statements_are_left_aside_where_the_file_has_ranks(read: Read) -> None:
    lines = ("Q1\tP31\tQ5\tnormal", "Q1\tP31\tQ6\tdeprecated", "Q1\tlabel\t'x'@en\t")
    header = "node1\tlabel\tnode2\trank"
    assert read(*lines, header=header).edges == [("Q1", "P31", "Q5")]
    everything = read(*lines, header=header, options=ReadOptions(ranks="all"))
    assert everything.edges == [("Q1", "P31", "Q5"), ("Q1", "P31", "Q6")]


def test_other_names_of_columns_in_any_order(read: Read) -> None:
    found = read("Q5\tsubclassOf\tx\tQ1", header="object\tpredicate\tid\tsubject")
    assert (found.edges, found.relations) == ([("Q1", "subclassOf", "Q5")], {"subclassOf"})


def test_comments_blank_lines_and_windows_line_ends(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_bytes(b"\xef\xbb\xbf# one\r\n\r\nid\tnode1\tlabel\tnode2\r\n\r\n# a remark\r\n  \r\nx\tQ1\tP31\tQ5\r\n")
    for block_bytes in (1, 1 << 20):
        found = read_files([path], lambda _: KgtkReader(), ReadOptions(), root=tmp_path, block_bytes=block_bytes)
        if block_bytes == 1:
            # The header must stand in the first block: this one has only a comment.
            assert found.reasons == [(None, "the file is empty")]
        else:
            assert (found.edges, found.rejects) == ([("Q1", "P31", "Q5")], [])


def test_a_header_without_a_column_refuses_the_file(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("node1\tlabel\tid\nQ1\tP31\tx\n", encoding="utf-8")
    (tmp_path / "b.tsv").write_text("", encoding="utf-8")
    (tmp_path / "c.tsv").write_text(f"{HEADER}\nQ1\tP31\tQ5\tx\n", encoding="utf-8")
    (tmp_path / "d.tsv").write_bytes(b"node1\tlabel\tnode2\t\xe9\n")
    found = read_files(files_of(tmp_path), lambda _: KgtkReader(), ReadOptions(), root=tmp_path)
    assert [(file, row) for file, row, *_ in found.rejects] == [("a.tsv", 1), ("b.tsv", None), ("d.tsv", 1)]
    assert found.reasons[0][1].startswith("the header lacks node2")
    assert found.edges == [("Q1", "P31", "Q5")]


def test_a_line_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_bytes(f"{HEADER}\n".encode() + b"Q1\tlabel\t'caf\xe9'@en\tx\nQ2\tP31\tQ5\ty\n")
    found = read_files([path], lambda _: KgtkReader(), ReadOptions(), root=tmp_path)
    assert found.rejects == [("a.tsv", 2, "the line is not UTF-8", "Q1\tlabel\t'café'@en\tx")]
    assert found.edges == [("Q2", "P31", "Q5")]


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
    found = read_files(files_of(tmp_path), lambda _: KgtkReader(), ReadOptions(), root=tmp_path)
    assert found.rejects[-1][0] == "a.tsv.gz"
    assert "ends too early or is damaged" in found.reasons[-1][1], kind
    assert ("Q1", "P279", "Q5") in found.edges


@given(st.lists(st.text(alphabet="Q1P|'\"@en^+-. \\\tlabel", max_size=24), max_size=6), st.integers(1, 60))
def test_no_line_fails_and_block_sizes_do_not_matter(lines: list[str], block: int) -> None:
    text = "".join(f"{line}\n" for line in lines)
    reader, options = KgtkReader(), ReadOptions(literals=("all",))
    whole, parts = Collector(), []
    reader.read(text.encode(), HEADER.encode(), options, whole, first=False)
    rows = text.splitlines(keepends=True)
    for start in range(0, len(rows), block):
        part = Collector(first_row=start + 1)
        reader.read("".join(rows[start : start + block]).encode(), HEADER.encode(), options, part, first=False)
        parts.append(part)
    assert put_together(parts) == put_together([whole])


@pytest.fixture(scope="module")
def arnold() -> Found:
    if not ARNOLD.is_dir():
        pytest.skip("the extract of Wikidata is not on this machine")
    return read_files(files_of(ARNOLD), lambda _: KgtkReader(), ReadOptions(), root=ARNOLD, block_bytes=1 << 20)


def test_all_of_the_real_extract_is_taken(arnold: Found) -> None:
    # The file of datatypes, written by hand in parts, lacks a column here and there.
    assert {file for file, *_ in arnold.rejects} == {"metadata.property.datatypes.tsv.gz"}
    assert [reason for _, reason in arnold.reasons] == ["3 columns where the header has 4"] * 18
    # It also names relations of its own, such as Pisa.
    assert sum(local[0] == "Q" or local[1:].isdigit() for local in arnold.labels) == 66_359
    assert arnold.labels["P569"] == "date of birth"
    assert "P569" in arnold.relations
    assert ("P1001", "P1647", "P276") in arnold.edges
    assert {tail for _, _, tail in arnold.edges}.isdisjoint(("wikibase-item", "external-id"))
