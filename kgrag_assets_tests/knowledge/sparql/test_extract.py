"""A bounded extract: every row of the query once, page by page, resumed where it ended; the rest with its reason."""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgrag_assets.knowledge.collector import Collector
from kgrag_assets.knowledge.errors import KnowledgeError
from kgrag_assets.knowledge.sources.blocks import ReadOptions
from kgrag_assets.knowledge.sources.iris import iri_ids
from kgrag_assets.knowledge.sources.sparql_extract import PageUnit, SparqlSource, sparql_source
from kgrag_assets.knowledge.sparql.endpoint import Endpoint
from kgrag_assets.knowledge.sparql.errors import QueryRefusedError, SparqlError
from kgrag_assets.knowledge.sparql.extract import ExtractReject, ExtractRow, extract_pages
from kgrag_assets.knowledge.sparql.query_text import checked_extract_query
from kgrag_assets_tests.knowledge.sparql.clients import CONTACT, client_of
from kgrag_assets_tests.servers.scripted import Reply
from kgrag_assets_tests.servers.sparql_server import DESCRIPTION, SparqlServer

QUERY = """
PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#>  # of labels
PREFIX schema: <http://schema.org/>
SELECT ?head ?relation ?tail ?headLabel ?relationLabel ?tailLabel ?headDescription WHERE {
  ?head ?relation ?tail . FILTER(CONTAINS(STR(?relation), "/prop/direct/"))
  OPTIONAL { ?head rdfs:label ?headLabel FILTER(LANG(?headLabel) = "en") }
  OPTIONAL { ?head schema:description ?headDescription }
  OPTIONAL { ?tail rdfs:label ?tailLabel }
  BIND(IRI(REPLACE(STR(?relation), "prop/direct", "entity")) AS ?property)
  OPTIONAL { ?property rdfs:label ?relationLabel }
}
ORDER BY ?head ?relation ?tail  # the end"""


@pytest.fixture
def server() -> Iterator[SparqlServer]:
    with SparqlServer() as running:
        running.state((f"Q{number}", "P31", f"Q{number % 3 + 100}") for number in range(1, 12))
        running.name("Q1", "one")
        running.name("Q1", "the first", "en", DESCRIPTION)
        running.name("Q101", "class")
        running.name("P31", "instance of")
        yield running


def test_each_row_comes_once_whatever_the_page_size(server: SparqlServer) -> None:
    def all_rows(page_size: int) -> list[ExtractRow]:
        with client_of(server.url) as client:
            pages = list(extract_pages(client, QUERY, page_size))
        assert [page.number for page in pages] == list(range(len(pages)))
        assert [page.last for page in pages] == [False] * (len(pages) - 1) + [True]
        assert len({page.key for page in pages}) == len(pages)
        return [row for page in pages for row in page.rows]

    whole = all_rows(1000)
    assert len(whole) == len(set(whole)) == 11
    for page_size in (1, 4, 11):
        assert all_rows(page_size) == whole
    assert whole[0] == ExtractRow("Q1", "P31", "Q101", None, None, "one", "instance of", "class", "the first")


def test_an_interrupted_extract_goes_on_with_the_page_that_is_missing(server: SparqlServer) -> None:
    with client_of(server.url) as client:
        whole = list(extract_pages(client, QUERY, 4))
        kept = list(itertools.islice(extract_pages(client, QUERY, 4), 1))
        rest = list(extract_pages(client, QUERY, 4, start_page=1))
    assert kept + rest == whole
    assert [page.number for page in rest] == [1, 2]


def test_kept_pages_are_not_asked_for_again_up_to_the_first_that_is_missing(
    server: SparqlServer, tmp_path: Path
) -> None:
    with client_of(server.url, kept=tmp_path) as client:
        list(itertools.islice(extract_pages(client, QUERY, 4), 2))
        assert len(server.asked) == 2
        pages = list(extract_pages(client, QUERY, 4))
        # The third page, and the look behind the last row.
        assert len(server.asked) == 4
        assert [len(page.rows) for page in pages] == [4, 4, 3]
        (first, *_others) = sorted(tmp_path.glob("*.json"), key=lambda path: path.stat().st_mtime_ns)
        first.unlink()
        list(extract_pages(client, QUERY, 4))
    # All of it anew: what was kept behind a page that is missing is of an older extract.
    assert len(server.asked) == 8


def test_a_page_has_its_name_before_and_after(server: SparqlServer) -> None:
    with client_of(server.url) as client:
        keys = [page.key for page in extract_pages(client, QUERY, 4)]
        server.state([("Q99", "P31", "Q5")])
        assert [page.key for page in extract_pages(client, QUERY, 4)][:3] == keys
        others = [page.key for page in extract_pages(client, QUERY, 5)]
    assert not set(keys) & set(others)


def test_what_cannot_be_taken_is_rejected_with_its_place(server: SparqlServer) -> None:
    server.clear()
    server.store.update(
        """
        PREFIX wd: <http://www.wikidata.org/entity/> PREFIX wdt: <http://www.wikidata.org/prop/direct/>
        INSERT DATA { wd:Q1 wdt:P1 wd:Q2 . <http://example.org/x> wdt:P1 wd:Q2 . wd:Q3 wdt:P1 _:b .
          wd:Q4 wdt:P1 <http://www.wikidata.org/.well-known/genid/f> . wd:Q5 wdt:P2 "text" . wd:Q5 wdt:P2 "  " .
          wd:Q6 wdt:P3 "1952-03-11T00:00:00Z"^^<http://www.w3.org/2001/XMLSchema#dateTime> .
          wd:Q7 wdt:P4 <https://example.org/> . wd:Q8 wdt:P5 "12"^^<http://www.w3.org/2001/XMLSchema#decimal> .
          wd:Q9 wdt:P6 "Wort"@de . }
        """
    )
    with client_of(server.url) as client:
        pages = list(extract_pages(client, QUERY, 3))
    rows = {(row.head, row.relation, row.tail, row.value, row.value_kind) for page in pages for row in page.rows}
    assert rows == {
        ("Q1", "P1", "Q2", None, None),
        ("Q5", "P2", None, "text", "string"),
        ("Q6", "P3", None, "1952-03-11", "time"),
        ("Q7", "P4", None, "https://example.org/", "url"),
        ("Q8", "P5", None, "12", "quantity"),
        ("Q9", "P6", None, "Wort", "monolingualtext"),
    }
    rejects = [reject for page in pages for reject in page.rejects]
    assert sorted(reject.reason.partition(" ")[0] for reject in rejects) == ["?head", "?tail", "?tail", "?tail"]
    with client_of(server.url) as client:
        ordered = client.select(QUERY).rows
    for reject in rejects:
        assert ordered[reject.row - 1]["head"].value in reject.content


def test_rows_without_a_value_are_rejected(server: SparqlServer) -> None:
    query = "SELECT ?head ?relation ?tail WHERE { ?head ?relation ?x } ORDER BY ?head ?relation ?tail"
    with client_of(server.url) as client:
        (page,) = extract_pages(client, query, 100)
    assert page.rows == ()
    assert page.rejects[0] == ExtractReject(1, "no value for ?tail", page.rejects[0].content)
    assert len(page.rejects) == len(client_rows(server, query))


def client_rows(server: SparqlServer, query: str) -> list[object]:
    with client_of(server.url) as client:
        return list(client.select(query).rows)


def test_the_id_that_a_label_service_gives_for_want_of_a_label_is_no_label(server: SparqlServer) -> None:
    query = (
        'SELECT ?head ?relation ?tail ("Q1" AS ?headLabel) ("P31" AS ?relationLabel) ("class" AS ?tailLabel) '
        "WHERE { ?head ?relation ?tail . FILTER(isIRI(?tail) && STRENDS(STR(?head), '/Q1')) } "
        "ORDER BY ?head ?relation ?tail"
    )
    with client_of(server.url) as client:
        ((row,),) = (page.rows for page in extract_pages(client, query, 100))
    assert (row.head_label, row.relation_label, row.tail_label) == ("", "", "class")


def test_an_endpoint_that_cuts_answers_silently_is_found_out(server: SparqlServer) -> None:
    server.most_rows = 3
    with client_of(server.url) as client:
        with pytest.raises(SparqlError, match="page size of at most 3"):
            list(extract_pages(client, QUERY, 4))
        assert sum(len(page.rows) for page in extract_pages(client, QUERY, 3)) == 11


def test_a_column_that_is_missing_is_told(server: SparqlServer) -> None:
    query = "SELECT ?head ?relation WHERE { ?head ?relation ?tail } ORDER BY ?head ?relation ?tail"
    with client_of(server.url) as client, pytest.raises(SparqlError, match=r"must select \?tail"):
        list(extract_pages(client, query))


END = "ORDER BY ?head ?relation ?tail"
BODY = "SELECT ?head ?relation ?tail WHERE { ?head ?relation ?tail }"


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        (f"{BODY} {END} LIMIT 10", "LIMIT"),
        (f"{BODY} {END}\nlimit 10", "LIMIT"),
        (f"{BODY} {END} offset 5", "OFFSET"),
        (BODY, "ORDER BY"),
        (f"{BODY} ORDER BY ?head", r"\?relation \?tail"),
        (f"{BODY} # {END}", "ORDER BY"),
        ("SELECT * WHERE { { SELECT * WHERE { ?head ?relation ?tail } ORDER BY ?head ?relation ?tail } }", "ORDER BY"),
        (f"SELECT ?head WHERE {{ ?head ?relation '}} {END}' }}", "ORDER BY"),
        (f"CONSTRUCT {{ ?head ?relation ?tail }} WHERE {{ ?head ?relation ?tail }} {END}", "one SELECT"),
        ("ASK { ?head ?relation ?tail }", "one SELECT"),
        ("DELETE WHERE { ?head ?relation ?tail }", "one SELECT"),
        (f"{BODY} {END}; DROP ALL", "one SELECT"),
        (f"{BODY} {END} VALUES ?head {{ <http://x/> }}", "VALUES"),
        ("", "one SELECT"),
        (f"{BODY} }} {END}", "not open"),
        (f"SELECT * WHERE {{ ?head ?relation ?tail {END}", "not closed"),
        (f'SELECT * WHERE {{ ?head ?relation "x }} {END}', "quotation mark"),
        (f"{BODY} {END} #" + "x" * 100_000, "characters"),
    ],
)
def test_a_query_that_cannot_be_paged_is_refused_before_anything_is_sent(
    server: SparqlServer, query: str, reason: str
) -> None:
    with client_of(server.url) as client, pytest.raises(QueryRefusedError, match=f"extract.rq: .*{reason}"):
        extract_pages(client, query, origin="extract.rq")
    assert server.asked == []


@pytest.mark.parametrize(
    "query",
    [
        f"{BODY} {END}",
        f"{BODY.lower()} order by $head $relation $tail",
        f"{BODY} ORDER BY DESC(?tail) ASC(?head) ?relation ?x",
        f"SELECT (?s AS ?head) ?relation ?tail {{ ?s ?relation ?tail }} {END} # LIMIT 10",
        f"SELECT * WHERE {{ {{ SELECT * WHERE {{ ?head ?relation ?tail }} LIMIT 5 }} }} {END}",
        f"PREFIX limit: <http://x/limit#> PREFIX : <http://y/#> SELECT * {{ ?head limit:offset ?tail ; :b ?x }} {END}",
        f"SELECT * {{ ?head ?relation \"\"\"a \" LIMIT }} \\\"\"\"\" , 'LIMIT {{' , '''it's''' , ?tail }} {END}",
        f"SELECT * {{ ?head ?relation ?tail FILTER(?tail < 5 && 3 > 2) VALUES ?head {{ <http://x/#> }} }} {END}",
    ],
)
def test_a_query_that_can_be_paged_is_left_as_it_is(query: str) -> None:
    assert checked_extract_query(query, "q") == query


@given(st.text(alphabet="\"'\\{}<>#? LIMITorderby\n:", max_size=60))
def test_any_text_is_taken_or_refused_kindly(text: str) -> None:
    told = "q: "
    try:
        taken = checked_extract_query(text, "q")
    except QueryRefusedError as error:
        taken, told = text, str(error)
    assert taken == text
    assert told.startswith("q: ")


OPTIONS = ReadOptions(languages=("en", "mul"), literals=("string",))


def source_of(server: SparqlServer, folder: Path, query: str = QUERY, options: ReadOptions = OPTIONS) -> SparqlSource:
    file = folder / "extract.rq"
    file.write_text(query, encoding="utf-8")
    return sparql_source(Endpoint(server.url, CONTACT, min_interval_s=0.0), file, 4, options, folder / "kept")


def read(source: SparqlSource) -> tuple[list[PageUnit], list[Collector]]:
    units = [unit for unit in source.units() if isinstance(unit, PageUnit)]
    collectors = []
    for unit in units:
        # As another process would get it.
        again = pickle.loads(pickle.dumps(unit))  # noqa: S301 - what the line before wrote
        into = Collector(file=unit.file, first_row=unit.first_row)
        again.read(into)
        collectors.append(into)
    return units, collectors


def test_pages_are_units_of_the_graphs_source(server: SparqlServer, tmp_path: Path) -> None:
    server.value("Q1", "P2", "word")
    server.value("Q1", "P3", "7", "http://www.w3.org/2001/XMLSchema#integer")
    server.store.update("INSERT DATA { <http://example.org/x> <http://www.wikidata.org/prop/direct/P1> 'y' }")
    units, collectors = read(source_of(server, tmp_path))
    assert [unit.first_row for unit in units] == [1, 5, 9, 13]
    assert [unit.size for unit in units] == [4, 4, 4, 2]
    edges = [edge for one in collectors for edge in one.edges]
    assert ("Q1", "P31", "Q101", None, None) in edges
    assert ("Q1", "P2", None, "word", None) in edges
    # Of literals only the kinds that the settings name.
    assert not any(edge[3] == "7" for edge in edges)
    assert len(edges) == 12
    names = [name[:3] for one in collectors for name in one.names]
    assert {(0, "one"), (2, "the first")} <= {name[1:] for name in names if name[0] == "Q1"}
    assert ("P31", 0, "instance of") in names
    ((file, row, reason, _content),) = [reject for one in collectors for reject in one.rejects]
    assert file == server.url
    assert row == 1
    assert "?head" in reason


def test_a_unit_is_known_again_by_its_content(server: SparqlServer, tmp_path: Path) -> None:
    first, _collectors = read(source_of(server, tmp_path))
    asked = len(server.asked)
    server.state([("Q9", "P31", "Q999")])
    second, _collectors = read(source_of(server, tmp_path))
    # A whole extract keeps nothing back: the next one sees what changed.
    assert len(server.asked) == 2 * asked
    assert [unit.key for unit in first[:2]] == [unit.key for unit in second[:2]]
    assert first[-1].key != second[-1].key


def test_after_an_interruption_only_missing_pages_are_asked_for(server: SparqlServer, tmp_path: Path) -> None:
    whole, _collectors = read(source_of(server, tmp_path))
    server.asked.clear()

    def fail(number: int) -> None:
        if number == 2:
            server.then(Reply(400, b"down", content_type="text/plain"))

    server.on_asked = fail
    units = source_of(server, tmp_path).units()
    assert [next(units), next(units)] == whole[:2]
    with pytest.raises(SparqlError):
        next(units)
    server.on_asked = None
    server.script.clear()
    server.asked.clear()
    again, _collectors = read(source_of(server, tmp_path))
    assert again == whole
    assert len(server.asked) == 2


def test_relations_that_the_settings_leave_out_are_not_read(server: SparqlServer, tmp_path: Path) -> None:
    server.state([("Q1", "P279", "Q2")])
    _units, collectors = read(source_of(server, tmp_path, options=ReadOptions(relations=("P279",))))
    assert [edge[:3] for one in collectors for edge in one.edges] == [("Q1", "P279", "Q2")]


def test_another_graph_has_the_ids_of_its_prefixes(server: SparqlServer, tmp_path: Path) -> None:
    server.clear()
    server.store.update(
        "INSERT DATA { <http://dbpedia.org/resource/Berlin> <http://dbpedia.org/ontology/country> "
        "<http://dbpedia.org/resource/Germany> , <http://elsewhere.org/x> }"
    )
    prefixes = ("http://dbpedia.org/resource/=", "http://dbpedia.org/ontology/=dbo:")
    query = "SELECT ?head ?relation ?tail { ?head ?relation ?tail } ORDER BY ?head ?relation ?tail"
    options = ReadOptions(extra=(("iri_prefixes", prefixes),))
    _units, (into,) = read(source_of(server, tmp_path, query, options))
    assert sorted(str(edge[2]) for edge in into.edges) == ["Germany", "http://elsewhere.org/x"]
    assert {edge[:2] for edge in into.edges} == {("Berlin", "dbo:country")}
    assert ("dbo:country", 4, "", 0) in into.names
    with client_of(server.url) as client:
        (page,) = extract_pages(client, query, ids=iri_ids(prefixes))
    assert len(page.rows) == 2


def test_a_query_file_that_cannot_be_used_is_told_at_once(server: SparqlServer, tmp_path: Path) -> None:
    with pytest.raises(QueryRefusedError, match=r"extract\.rq: .*LIMIT"):
        source_of(server, tmp_path, f"{QUERY}\nLIMIT 5")
    (tmp_path / "bad.rq").write_bytes(b"\xff\xfe")
    endpoint = Endpoint(server.url, CONTACT)
    for name in ("bad.rq", "missing.rq"):
        with pytest.raises(KnowledgeError, match=name):
            sparql_source(endpoint, tmp_path / name, 4, OPTIONS, tmp_path / "kept")
    assert server.asked == []
