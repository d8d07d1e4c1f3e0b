"""N-Triples: Wikidata's truthy dump and other graphs, what is refused and why, beside an independent parser."""

from __future__ import annotations

import bz2
import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import pyoxigraph
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from kgrag_assets.knowledge.collector import Collector
from kgrag_assets.knowledge.errors import KnowledgeError
from kgrag_assets.knowledge.sources.blocks import ReadOptions
from kgrag_assets.knowledge.sources.iris import iri_ids
from kgrag_assets.knowledge.sources.ntriples import NTriplesReader, files_of
from kgrag_assets.knowledge.sources.ntriples_line import (
    LineTerms,
    NotATripleError,
    Terms,
    terms_of,
    unescaped,
    unescaped_iri,
)
from kgrag_assets_tests.knowledge.sources.reading import Found, put_together, read_files

PLAIN = ReadOptions()
ALL = ReadOptions(literals=("all",))
ENTITY, DIRECT = "http://www.wikidata.org/entity/", "http://www.wikidata.org/prop/direct/"
RDFS, SKOS, SCHEMA = (
    "http://www.w3.org/2000/01/rdf-schema#",
    "http://www.w3.org/2004/02/skos/core#",
    "http://schema.org/",
)
XSD = "http://www.w3.org/2001/XMLSchema#"
TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
Q1, Q2, P31 = f"<{ENTITY}Q1>", f"<{ENTITY}Q2>", f"<{DIRECT}P31>"


class Read(Protocol):
    """Writes lines and reads the file."""

    def __call__(self, *lines: str, options: ReadOptions = ..., block_bytes: int = ...) -> Found: ...


@pytest.fixture
def read(tmp_path: Path) -> Read:
    def of(*lines: str, options: ReadOptions = PLAIN, block_bytes: int = 1 << 20) -> Found:
        path = tmp_path / "graph.nt"
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="")
        return read_files([path], lambda _: NTriplesReader(), options, root=tmp_path, block_bytes=block_bytes)

    return of


def test_names_statements_and_counts_of_the_truthy_dump(read: Read) -> None:
    data = "<https://www.wikidata.org/wiki/Special:EntityData/Q1>"
    found = read(
        f"{data} {TYPE} <http://schema.org/Dataset> .",
        f"{data} <{SCHEMA}about> {Q1} .",
        f'{data} <{SCHEMA}version> "1234"^^<{XSD}integer> .',
        f'{data} <{SCHEMA}dateModified> "2024-01-02T03:04:05Z"^^<{XSD}dateTime> .',
        f'{Q1} <http://wikiba.se/ontology#sitelinks> "7"^^<{XSD}integer> .',
        f'{Q1} <http://wikiba.se/ontology#statements> "21"^^<{XSD}integer> .',
        f"{Q1} {TYPE} <http://wikiba.se/ontology#Item> .",
        f'{Q1} <{RDFS}label> "patient"@en .',
        f'{Q1} <{SKOS}prefLabel> "patient"@en .',
        f'{Q1} <{SCHEMA}name> "patient"@en .',
        f'{Q1} <{RDFS}label> "Kranker"@de .',
        f'{Q1} <{SKOS}altLabel> "sick  person"@en .',
        f'{Q1} <{SCHEMA}description> "one who is cared for"@en .',
        f"{Q1} {P31} {Q2} .",
        f"{Q1} <{DIRECT}P279> _:somevalue .",
        f"{Q1} <{DIRECT}P361> <http://www.wikidata.org/.well-known/genid/0123> .",
        f"{Q1} <http://www.wikidata.org/prop/P31> <{ENTITY}statement/Q1-0123> .",
        f"{Q1} {TYPE} <http://www.wikidata.org/prop/novalue/P40> .",
        f"<https://en.wikipedia.org/wiki/Patient> {TYPE} <{SCHEMA}Article> .",
        f"<https://en.wikipedia.org/wiki/Patient> <{SCHEMA}about> {Q1} .",
        f'<https://en.wikipedia.org/wiki/Patient> <{SCHEMA}name> "Patient"@en .',
        f"<{ENTITY}P31> {TYPE} <http://wikiba.se/ontology#Property> .",
        f"<{ENTITY}P31> <http://wikiba.se/ontology#directClaim> {P31} .",
        f"{P31} {TYPE} <http://www.w3.org/2002/07/owl#ObjectProperty> .",
        f'<{ENTITY}P31> <{RDFS}label> "instance of"@en .',
        f'<{ENTITY}L7> <{RDFS}label> "a lexeme"@en .',
        options=ALL,
    )
    assert found.rejects == []
    assert found.labels == {"Q1": "patient", "P31": "instance of"}
    assert found.aliases == {"Q1": ["sick person"]}
    assert found.descriptions == {"Q1": "one who is cared for"}
    assert (found.edges, found.literals) == ([("Q1", "P31", "Q2")], [])
    assert (found.listed, found.relations) == ({"Q1", "P31"}, {"P31"})
    assert sorted(found.counts) == [("Q1", 0, 0, 1234), ("Q1", 0, 21, 0), ("Q1", 7, 0, 0)]


def test_lexemes_are_read_where_they_are_wanted(read: Read) -> None:
    line = f"<{ENTITY}L7> {P31} {Q2} ."
    assert read(line).edges == []
    assert read(line, options=ReadOptions(lexemes=True)).edges == [("L7", "P31", "Q2")]


def test_a_language_before_another_wins(read: Read) -> None:
    lines = [f'{Q1} <{RDFS}label> "Kranker"@DE .', f'{Q1} <{RDFS}label> "patient"@en .', f'{Q1} <{RDFS}label> "p" .']
    for order in (lines, lines[::-1]):
        assert read(*order, options=ReadOptions(languages=("en", "de"))).labels == {"Q1": "patient"}
        assert read(*order, options=ReadOptions(languages=("de", "en"))).labels == {"Q1": "Kranker"}
        assert read(*order, options=ReadOptions(languages=("fr",))).labels == {"Q1": "p"}


def test_a_graph_of_other_addresses(read: Read) -> None:
    dbr, dbo = "http://dbpedia.org/resource/", "http://dbpedia.org/ontology/"
    lines = (
        f"<{dbr}Berlin_Wall> {TYPE} <{dbo}Place> .",
        f"<{dbr}Berlin_Wall> <{dbo}builtBy> <{dbr}East_Germany> .",
        f"<{dbr}Berlin_Wall> <http://www.w3.org/2002/07/owl#sameAs> {Q1} .",
        f'<{dbr}East_Germany> <{RDFS}label> "GDR"@en .',
        f"<{dbo}builtBy> {TYPE} <http://www.w3.org/1999/02/22-rdf-syntax-ns#Property> .",
    )
    whole = read(*lines)
    wall = f"{dbr}Berlin_Wall"
    assert whole.edges == [
        (wall, "rdf:type", f"{dbo}Place"),
        (wall, f"{dbo}builtBy", f"{dbr}East_Germany"),
        (wall, "owl:sameAs", "Q1"),
    ]
    assert whole.labels == {
        wall: "Berlin Wall",
        f"{dbr}East_Germany": "GDR",
        f"{dbo}builtBy": "built by",
        "rdf:type": "type",
        "owl:sameAs": "same as",
    }
    assert whole.relations == {"rdf:type", "owl:sameAs", f"{dbo}builtBy"}
    prefixes = (("iri_prefixes", (f"{dbr}=", f"{dbo}=dbo:")),)
    short = read(*lines, options=ReadOptions(extra=prefixes))
    assert short.edges == [
        ("Berlin_Wall", "rdf:type", "dbo:Place"),
        ("Berlin_Wall", "dbo:builtBy", "East_Germany"),
        ("Berlin_Wall", "owl:sameAs", f"{ENTITY}Q1"),
    ]
    assert short.rejects == whole.rejects == []


def test_a_relation_without_a_label_is_called_by_its_address(read: Read) -> None:
    found = read("<http://a.org/x> <http://a.org/birthPlace> <http://a.org/y> .")
    assert found.labels["http://a.org/birthPlace"] == "birth place"


@pytest.mark.parametrize("pair", ["http://a.org/", "a=b", "http://a.org/ b=c"])
def test_prefixes_that_are_none(pair: str) -> None:
    with pytest.raises(KnowledgeError, match="iri_prefixes"):
        iri_ids([pair])


def test_only_wanted_relations_are_read(read: Read) -> None:
    lines = (f"{Q1} {P31} {Q2} .", f"{Q2} <{DIRECT}P279> {Q1} .", f"{Q1} {TYPE} <http://a.org/Thing> .")
    assert read(*lines, options=ReadOptions(relations=("P31",))).edges == [("Q1", "P31", "Q2")]
    without = read(*lines, options=ReadOptions(without_relations=("P31", "rdf:type")))
    assert (without.edges, without.listed) == ([("Q2", "P279", "Q1")], {"Q2"})


LITERALS = [
    ("string", '"0000 0001"', "0000 0001", None),
    ("string", f'"a  b"^^<{XSD}string>', "a b", None),
    ("string", f'"true"^^<{XSD}boolean>', "true", None),
    ("monolingualtext", '"text"@en', "text", None),
    ("time", f'"1952-03-11T00:00:00Z"^^<{XSD}dateTime>', "11 March 1952", None),
    ("time", f'"1952-03-11T04:05:06Z"^^<{XSD}dateTime>', "11 March 1952 04:05:06", None),
    ("time", f'"-0044-03-15T00:00:00Z"^^<{XSD}dateTime>', "15 March 44 BC", None),
    ("time", f'"1952-03-11"^^<{XSD}date>', "11 March 1952", None),
    ("time", f'"1952-03"^^<{XSD}gYearMonth>', "March 1952", None),
    ("time", f'"1952"^^<{XSD}gYear>', "1952", None),
    ("quantity", f'"+17.5"^^<{XSD}decimal>', "17.5", None),
    ("quantity", f'"-3"^^<{XSD}integer>', "-3", None),
    (
        "globe-coordinate",
        '"Point(4.668 50.641)"^^<http://www.opengis.net/ont/geosparql#wktLiteral>',
        "50.641, 4.668",
        None,
    ),
    (
        "globe-coordinate",
        f'"<{ENTITY}Q405> Point(1.5 -2)"^^<http://www.opengis.net/ont/geosparql#wktLiteral>',
        "-2, 1.5",
        "Q405",
    ),
    ("url", "<https://example.org/a>", "https://example.org/a", None),
    ("commons-media", "<http://commons.wikimedia.org/wiki/Special:FilePath/A%20b.jpg>", "A b.jpg", None),
]


@pytest.mark.parametrize(("kind", "value", "text", "unit"), LITERALS)
def test_literals_of_wanted_kinds_are_taken(read: Read, kind: str, value: str, text: str, unit: str | None) -> None:
    line = f"{Q1} <{DIRECT}P1> {value} ."
    taken: list[tuple[str, ...]] = [(kind,), ("all",)]
    for literals in taken:
        found = read(line, options=ReadOptions(literals=literals))
        assert found.literals == [("Q1", "P1", text, unit)]
        assert (found.listed, found.relations, found.edges, found.rejects) == ({"Q1"}, {"P1"}, [], [])
    others = tuple({each for each, *_ in LITERALS} - {kind})
    for literals in [(), others]:
        without = read(line, options=ReadOptions(literals=literals))
        assert (without.literals, without.edges, without.rejects, without.listed) == ([], [], [], set())


def test_a_text_in_another_language_is_no_fact(read: Read) -> None:
    found = read(f'{Q1} <{DIRECT}P1> "Text"@de .', options=ALL)
    assert (found.literals, found.rejects) == ([], [])


def test_statements_with_blank_nodes_are_left_out_and_counted(read: Read) -> None:
    found = read(
        f"_:b1 {P31} {Q2} .",
        f"{Q1} <http://a.org/p> _:b1 .",
        f'_:b1 <{RDFS}label> "Namenlos"@de .',
        f'_:b1 <{RDFS}label> "nameless"@en .',
        f"{Q1} {P31} {Q2} .",
    )
    assert found.edges == [("Q1", "P31", "Q2")]
    ((row, reason),) = found.reasons
    assert row is None
    assert reason.startswith("3 statements of this block have a blank node")


BAD = [
    (f"{Q1} {P31} {Q2}", "the line does not end with a dot"),
    (f"{Q1} {P31} .", "the object is not well formed"),
    (f"{Q1} {P31}", "the object is missing"),
    (f"{Q1}", "the predicate is missing"),
    (f"{Q1} {P31} {Q2} . {Q1}", "something stands behind the dot"),
    (f"<{ENTITY}Q 1> {P31} {Q2} .", "the subject is not well formed"),
    (f"<Q1> {P31} {Q2} .", "the subject is not well formed"),
    (f"<{ENTITY}Q1 {P31} {Q2} .", "the subject is not well formed"),
    (f'"text" {P31} {Q2} .', "the subject is not well formed"),
    (f"{Q1} _:b {Q2} .", "the predicate is not well formed"),
    (f'{Q1} {P31} "open .', "the text has a wrong escape or does not end"),
    (f'{Q1} {P31} "\\x" .', "the text has a wrong escape or does not end"),
    (f'{Q1} <{RDFS}label> "\\uD83D" .', "the escape \\uD83D stands for no character"),
    (f'{Q1} <{RDFS}label> "\\UFFFFFFFF" .', "the escape \\UFFFFFFFF stands for no character"),
    (f"<{ENTITY}Q\\u0020> {P31} {Q2} .", "an IRI has a character that it must not have"),
    (f"<http://a.org/{'x' * 200}> {P31} {Q2} .", "an id has more than 200 characters"),
    (f"{Q1} {P31} <http://www.wikidata.org/entity/Q1\u00ad> .", None),
    (f"{Q1} <http://a.org/p> <http://a.org/\u200b> .", "an id must be one printable word"),
    (f"<< {Q1} {P31} {Q2} >> {P31} {Q2} .", "the subject is a statement itself"),
    ("@prefix wd: <http://www.wikidata.org/entity/> .", "this is Turtle"),
    (f'{Q1} <{RDFS}label> "  " .', "the text is empty"),
    (f"{Q1} <{RDFS}label> {Q2} .", "a name must be a text"),
    (f'{Q1} <http://wikiba.se/ontology#sitelinks> "-1" .', "a count must be a number"),
    (f'{Q1} {P31} "x"^^<{XSD}integer> .', "not a number"),
    (f'{Q1} {P31} "Point(1 1e9)"^^<http://www.opengis.net/ont/geosparql#wktLiteral> .', "no place is at"),
    (f'{Q1} {P31} "Point(1 1.1.1)"^^<http://www.opengis.net/ont/geosparql#wktLiteral> .', "not a point"),
]


@pytest.mark.parametrize("block_bytes", [1, 1 << 20])
@pytest.mark.parametrize(("line", "reason"), [(line, reason) for line, reason in BAD if reason])
def test_one_bad_line_is_refused_and_loses_no_other(read: Read, line: str, reason: str, block_bytes: int) -> None:
    good = f"<{ENTITY}Q8> {P31} <{ENTITY}Q7> ."
    found = read(good, line, f"<{ENTITY}Q9> {P31} <{ENTITY}Q7> .", options=ALL, block_bytes=block_bytes)
    ((file, row, why, content),) = found.rejects
    assert (file, row, content) == ("graph.nt", 2, line)
    assert why.startswith(reason)
    assert found.edges == [("Q8", "P31", "Q7"), ("Q9", "P31", "Q7")]
    assert (found.literals, found.listed, found.labels) == ([], {"Q8", "Q9"}, {})


def test_comments_blank_lines_and_windows_line_ends(tmp_path: Path) -> None:
    path = tmp_path / "a.nt"
    path.write_bytes(f"\ufeff# one\r\n\r\n  # two\r\n{Q1}\t{P31}  {Q2}.# end\r\n{Q2}{P31}{Q1}.".encode())
    found = read_files([path], lambda _: NTriplesReader(), PLAIN, root=tmp_path)
    assert (found.edges, found.rejects) == ([("Q1", "P31", "Q2"), ("Q2", "P31", "Q1")], [])


def test_packed_files_and_lines_that_are_not_utf8(tmp_path: Path) -> None:
    (tmp_path / "a.nt.gz").write_bytes(gzip.compress(f"{Q1} {P31} {Q2} .\n".encode()))
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "b.nt.bz2").write_bytes(
        bz2.compress(f"{Q2} {P31} {Q1} .\n".encode() + f'{Q1} <{RDFS}label> "caf'.encode() + b'\xe9"@en .\n')
    )
    (tmp_path / "notes.txt").write_text("no")
    found = read_files(files_of(tmp_path), lambda _: NTriplesReader(), PLAIN, root=tmp_path)
    assert found.edges == [("Q1", "P31", "Q2"), ("Q2", "P31", "Q1")]
    assert [(file, row, reason) for file, row, reason, _ in found.rejects] == [
        ("deep/b.nt.bz2", 2, "the line is not UTF-8")
    ]


# An independent parser as oracle: each line is a statement for both or for neither, and says the same.

Parsed = tuple[str | None, str, str | None, str | None, str | None]


def ours(line: str) -> Parsed | str | None:
    """Subject, predicate, object (None: blank), language and datatype; None for no statement; "bad"."""
    try:
        terms = terms_of(line)
        if terms is None:
            return None
        subject, _, predicate, iri, text, language, datatype, _ = terms
        obj = unescaped_iri(iri) if iri is not None else None if text is None else f'"{unescaped(text)}'
        return (
            None if subject is None else unescaped_iri(subject),
            unescaped_iri(predicate or ""),
            obj,
            None if language is None else language.lower(),
            None if datatype is None or datatype == f"{XSD}string" else unescaped_iri(datatype),
        )
    except NotATripleError:
        return "bad"


def theirs(line: str, *, lenient: bool) -> Parsed | str | None:
    try:
        found = list(pyoxigraph.parse(line.encode(), format=pyoxigraph.RdfFormat.N_TRIPLES, lenient=lenient))
    except SyntaxError:
        return "bad"
    if not found:
        return None
    (quad,) = found
    subject, obj = quad.subject, quad.object
    if isinstance(subject, pyoxigraph.Triple) or isinstance(obj, pyoxigraph.Triple):
        return "bad"  # a statement about a statement, which is refused here
    language = datatype = value = None
    if isinstance(obj, pyoxigraph.Literal):
        value, language = f'"{obj.value}', obj.language
        if language is None and obj.datatype.value != f"{XSD}string":
            datatype = obj.datatype.value
    elif isinstance(obj, pyoxigraph.NamedNode):
        value = obj.value
    return (
        subject.value if isinstance(subject, pyoxigraph.NamedNode) else None,
        quad.predicate.value,
        value,
        None if language is None else language.lower(),
        datatype,
    )


addresses = st.text(alphabet="abQ17/#?=&%-_.~é中", max_size=8).map(lambda text: f"<http://a.org/{text}>")
escapes = st.sampled_from(
    [r"\n", r"\t", r"\"", r"\\", r"\'", r"\b", r"\f", r"\r", r"\u00e9", r"\U0001F600", r"\uD800", r"\x"]
)
characters = st.characters(exclude_characters='"\\\r\n', exclude_categories=["Cs"])
texts = st.lists(st.one_of(characters, escapes), max_size=6).map(lambda parts: f'"{"".join(parts)}"')
literals = st.tuples(texts, st.sampled_from(["", "@en", "@de-at", f"^^<{XSD}date>", "@", "^^", "@1", "^^x"])).map(
    "".join
)
blanks = st.sampled_from(["_:b", "_:b1.c", "_:1"])
spaces = st.sampled_from([" ", "\t", "  ", ""])
ends = st.sampled_from([".", " .", " . ", " . # remark", "", ". .", " .x"])
statements = st.tuples(
    st.one_of(addresses, blanks), spaces, addresses, spaces, st.one_of(addresses, literals, blanks), ends
).map("".join)


@settings(max_examples=400, deadline=None)
@given(statements)
@example(f'{Q1} {P31} "a\\u0022b"@en .')
@example("# only a remark")
@example("")
def test_a_line_says_the_same_to_an_independent_parser(line: str) -> None:
    # The grammar is open where a blank node's name or a language ends just before the dot; both read it their way.
    assume(not any(f"{name}." in line for name in ("_:b", "_:b1.c", "_:1")))
    assert ours(line) == theirs(line, lenient=True)


@settings(max_examples=300, deadline=None)
@given(statements, st.integers(0, 60), st.sampled_from(list('<>"\\. _:@^#\x00x\t')))
def test_a_spoilt_line_is_never_another_statement(line: str, at: int, char: str) -> None:
    """Whatever is taken says the same to the other parser; whatever its strict form takes is taken.

    Its lenient form does not look into IRIs, its strict form knows more rules of them than the grammar of N-Triples.
    """
    spoilt = line[:at] + char + line[at:]
    assume("_:" not in spoilt)
    mine = ours(spoilt)
    if mine != "bad":
        assert mine == theirs(spoilt, lenient=True)
    strict = theirs(spoilt, lenient=False)
    if strict != "bad":
        assert mine == strict


subjects = st.sampled_from([Q1, "<http://a.org/s>", "_:b", "<a b>", "<http://a.org/\\u00e9>"])
verbs = st.sampled_from([P31, f"<{RDFS}label>", "<http://a.org/\\u00e9>", "_:p"])
objects = st.one_of(
    addresses,
    literals,
    st.sampled_from([Q2, "<x>", "_:b", '"a"b"@en', '"a" . # "b"@en', '"a"@en # x', "<http://a.org/> <http://a.org/>"]),
)
repeating = st.tuples(subjects, verbs, objects, st.sampled_from([" .", ".", " . # x", ""])).map(
    lambda parts: f"{parts[0]} {parts[1]} {parts[2]}{parts[3]}"
)


def terms_or_problem(find: Callable[[str], Terms | None], line: str) -> Terms | str | None:
    try:
        return find(line)
    except NotATripleError as problem:
        return str(problem)


@settings(max_examples=400, deadline=None)
@given(st.lists(repeating, max_size=12))
def test_what_was_seen_before_changes_nothing(lines: list[str]) -> None:
    seen = LineTerms()
    for line in [*lines, *lines[::-1]]:
        assert terms_or_problem(seen.of, line) == terms_or_problem(terms_of, line)


@settings(max_examples=100, deadline=None)
@given(st.lists(statements, max_size=8), st.integers(1, 9))
def test_block_sizes_do_not_matter(lines: list[str], size: int) -> None:
    assume(not any("_:" in line for line in lines))  # those are counted block by block
    rows = [f"{line}\n".encode() for line in lines]
    whole, parts = Collector(), []
    NTriplesReader().read(b"".join(rows), b"", ALL, whole, first=True)
    for start in range(0, len(rows), size):
        part = Collector(first_row=start + 1)
        NTriplesReader().read(b"".join(rows[start : start + size]), b"", ALL, part, first=not start)
        parts.append(part)
    assert put_together(parts) == put_together([whole])
