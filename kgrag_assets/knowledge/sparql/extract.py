"""A bounded part of a remote graph, fetched page by page through a query that a person wrote."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kgrag_assets.knowledge.collector import id_problem
from kgrag_assets.knowledge.relation_ids import is_relation_id
from kgrag_assets.knowledge.sources.iris import WIKIDATA, IriIds, iri_ids
from kgrag_assets.knowledge.sparql.answers import Answer, Row, Term
from kgrag_assets.knowledge.sparql.client import NO_END, SparqlClient
from kgrag_assets.knowledge.sparql.errors import SparqlError
from kgrag_assets.knowledge.sparql.paging import paged
from kgrag_assets.knowledge.sparql.query_text import COLUMNS, checked_extract_query
from kgrag_assets.knowledge.sparql.vocabulary import Vocabulary
from kgrag_assets.models.endpoints import storable
from kgrag_assets.rows.keys import key_of

EXTRACT_PAGE_SIZE = 5000
# Changes whenever the same answer gives other rows.
VERSION = "1"

_XSD = "http://www.w3.org/2001/XMLSchema#"
_KINDS = {
    **dict.fromkeys(("dateTime", "date", "gYear", "gYearMonth", "time", "dateTimeStamp"), "time"),
    **dict.fromkeys(("decimal", "integer", "double", "float", "int", "long", "nonNegativeInteger"), "quantity"),
    "http://www.opengis.net/ont/geosparql#wktLiteral": "globe-coordinate",
    "http://www.w3.org/1998/Math/MathML": "math",
}


@dataclass(frozen=True)
class ExtractRow:
    """A statement, by local ids (``Q42``); texts are empty where the query does not give them.

    One of ``tail`` and ``value`` is set; ``value_kind`` names a value's kind as the setting ``literals`` does.
    """

    head: str
    relation: str
    tail: str | None
    value: str | None
    value_kind: str | None
    head_label: str
    relation_label: str
    tail_label: str
    head_description: str


@dataclass(frozen=True)
class ExtractReject:
    """A row that was not taken: its number within the extract from 1, why, and its content."""

    row: int
    reason: str
    content: str


@dataclass(frozen=True)
class ExtractPage:
    """One page, numbered from 0. ``key`` names it before it is fetched; ``last`` says that none follows."""

    number: int
    key: str
    rows: tuple[ExtractRow, ...]
    rejects: tuple[ExtractReject, ...]
    last: bool


def page_key(client: SparqlClient, query: str, page_size: int, number: int, ids: IriIds) -> str:
    """Name a page by all that decides what it asks for and how it is read."""
    return key_of("sparql page", VERSION, client.endpoint.url, query, page_size, number, repr(ids))


def extract_pages(
    client: SparqlClient,
    query: str,
    page_size: int = EXTRACT_PAGE_SIZE,
    start_page: int = 0,
    *,
    ids: IriIds | None = None,
    origin: str = "the extract's query",
) -> Iterator[ExtractPage]:
    """Run a SELECT query page by page.

    The query has the columns ``?head ?relation ?tail`` and, where wanted, ``?headLabel ?relationLabel ?tailLabel
    ?headDescription``. The caller keeps each page as it comes; an interrupted extract goes on with ``start_page``,
    or, where the client keeps answers on disk, from the first page: kept pages are not asked for again, up to the
    first one that is missing; from there on all are new.

    Args:
        client: who is asked.
        query: SPARQL; it was written by the owner of this installation, not by the graph.
        page_size: rows a page; below the endpoint's own limit of rows.
        start_page: first page to fetch, from 0.
        ids: how IRIs become local ids (``sources.iris``); None for Wikidata's way.
        origin: where the query comes from, for error messages.

    Raises:
        QueryRefusedError: the query cannot be paged; nothing was sent.
        SparqlError: there is no whole answer, a column is missing, or the endpoint cuts answers below the page
            size; the pages yielded before are good.
    """
    checked_extract_query(query, origin)
    paged(query, start_page, page_size)
    return _fetched(client, query, page_size, start_page, ids or iri_ids(()), origin)


def _fetched(
    client: SparqlClient, query: str, page_size: int, start_page: int, ids: IriIds, origin: str
) -> Iterator[ExtractPage]:
    number, fresh = start_page, False
    while True:
        answer = client.select(paged(query, number, page_size), NO_END, fresh=fresh)
        # Behind a page that was not kept, kept ones would be of an older extract.
        fresh = fresh or not answer.kept
        missing = [f"?{name}" for name in COLUMNS if name not in answer.variables]
        if missing:
            raise SparqlError(f"{origin}: the query must select {', '.join(missing)} too")
        last = len(answer.rows) < page_size
        if last and answer.rows:
            _make_sure(client, query, number * page_size + len(answer.rows), len(answer.rows), fresh=fresh)
        yield _page(answer, number, page_key(client, query, page_size, number, ids), page_size, ids, last=last)
        if last:
            return
        number += 1


def _make_sure(client: SparqlClient, query: str, end: int, on_page: int, *, fresh: bool) -> None:
    """Ask for the row behind the last one: an endpoint that cuts long answers does not say so."""
    behind = client.select(f"{query}\nLIMIT 1 OFFSET {end}", NO_END, fresh=fresh)
    if behind.rows:
        raise SparqlError(
            f"{client.endpoint.place} ended a page after {on_page} rows although there are more: use a page size of at "
            f"most {max(on_page, 1)}, or run again if the graph is changing"
        )


def _page(answer: Answer, number: int, key: str, page_size: int, ids: IriIds, *, last: bool) -> ExtractPage:
    taken: list[ExtractRow] = []
    rejects: list[ExtractReject] = []
    for place, row in enumerate(answer.rows, start=number * page_size + 1):
        found = _row(row, ids)
        if isinstance(found, str):
            content = " | ".join(f"{name}={term.value}" for name, term in row.items())
            rejects.append(ExtractReject(place, found, storable(content[:500])))
        else:
            taken.append(found)
    return ExtractPage(number, key, tuple(taken), tuple(rejects), last)


def _row(row: Row, ids: IriIds) -> ExtractRow | str:
    """Return a row as a statement, or why it is none."""
    for name in COLUMNS:
        if name not in row:
            return f"no value for ?{name}"
        if row[name].type == "bnode" or (row[name].is_iri and Vocabulary.is_unknown_value(row[name].value)):
            return f"?{name} is a value that nobody knows (a blank node)"
    head, relation, tail = (_local(row[name], ids) for name in COLUMNS)
    if head is None:
        return "?head is no entity of this graph: check its IRI, and iri_prefixes in kg.yaml"
    if relation is None or (ids.wikidata and not is_relation_id(relation)):
        return "?relation is no relation of this graph: check its IRI, and iri_prefixes in kg.yaml"
    value, kind = (None, None) if tail is not None else _literal(row["tail"])
    if value is not None and not value.strip():
        return "?tail is an empty text"
    return ExtractRow(
        head=head,
        relation=relation,
        tail=tail,
        value=value,
        value_kind=kind,
        head_label=_name(row, "headLabel", head),
        relation_label=_name(row, "relationLabel", relation),
        tail_label=_name(row, "tailLabel", tail or "") if tail is not None else "",
        head_description=_name(row, "headDescription", ""),
    )


def _local(term: Term, ids: IriIds) -> str | None:
    """Return the local id of an IRI; None for a literal, and for what is no entity of the graph."""
    if not term.is_iri or ids.is_note(term.value):
        return None
    if ids.wikidata and not term.value.startswith(WIKIDATA):
        return None
    local = ids.id_of(term.value)
    return local if id_problem(local) is None else None


def _literal(term: Term) -> tuple[str, str]:
    """Return a literal, or an IRI that is no entity, as text, and its kind."""
    if term.is_iri:
        return term.value, "url"
    if term.language:
        return term.value, "monolingualtext"
    kind = _KINDS.get((term.datatype or "").removeprefix(_XSD), "string")
    if kind == "time":
        # A day is written as its first second.
        return term.value.removesuffix("T00:00:00Z"), kind
    return term.value, kind


def _name(row: Row, column: str, local: str) -> str:
    """Return a name; empty where there is none, or where a label service gave the id for want of one."""
    term = row.get(column)
    return "" if term is None or not term.is_literal or term.value == local else term.value
