"""The extract of a SPARQL endpoint as a graph's source: each page of the query's rows is a unit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from kgrag_assets.knowledge.collector import Collector
from kgrag_assets.knowledge.errors import KnowledgeError
from kgrag_assets.knowledge.relation_ids import is_relation_id
from kgrag_assets.knowledge.sources.blocks import ReadOptions
from kgrag_assets.knowledge.sources.iris import IriIds, iri_ids
from kgrag_assets.knowledge.sources.lines import shortened, wants_literal
from kgrag_assets.knowledge.sources.protocol import Unit
from kgrag_assets.knowledge.sparql.cache import AnswerCache
from kgrag_assets.knowledge.sparql.client import SparqlClient
from kgrag_assets.knowledge.sparql.endpoint import Endpoint
from kgrag_assets.knowledge.sparql.extract import ExtractReject, ExtractRow, extract_pages
from kgrag_assets.knowledge.sparql.query_text import checked_extract_query
from kgrag_assets.rows.keys import Part, key_of

READER = "sparql/1"
# An interrupted extract goes on with the pages that it has, for a day; a later one asks anew.
KEEP_PAGES_S = 24 * 3600.0
KEEP_PAGES_BYTES = 8 << 30


@dataclass(frozen=True)
class PageUnit:
    """The rows of one page. They were fetched in order, by one process: an endpoint is not asked from two."""

    key: str
    file: str
    first_row: int
    size: int
    rows: tuple[ExtractRow, ...]
    rejects: tuple[ExtractReject, ...]
    options: ReadOptions
    wikidata: bool

    def read(self, into: Collector) -> None:
        """Take the page's statements and names; literals and relations as the graph's settings want them."""
        for reject in self.rejects:
            into.reject(reject.row - self.first_row + 1, reject.reason, reject.content)
        named: set[tuple[str, str]] = set()
        for row in self.rows:
            if not self.options.wants_relation(row.relation):
                continue
            into.listed(row.head)
            if not self.wikidata or not is_relation_id(row.relation):
                into.relation(row.relation)
            for local, label in ((row.head, row.head_label), (row.relation, row.relation_label)):
                self._name(into, named, local, label)
            if row.head_description and (row.head, "") not in named:
                named.add((row.head, ""))
                into.describe(row.head, shortened(row.head_description))
            if row.tail is not None:
                into.edge(row.head, row.relation, row.tail)
                self._name(into, named, row.tail, row.tail_label)
            elif row.value is not None and wants_literal(row.value_kind or "string", self.options):
                into.literal(row.head, row.relation, row.value)

    @staticmethod
    def _name(into: Collector, named: set[tuple[str, str]], local: str, label: str) -> None:
        if label and (local, label) not in named:
            named.add((local, label))
            into.label(local, label)


@dataclass(frozen=True)
class SparqlSource:
    """A SELECT query to one endpoint. ``size`` counts rows and is not known before the end."""

    endpoint: Endpoint
    query: str
    origin: str
    page_size: int
    options: ReadOptions
    kept: Path

    @property
    def size(self) -> int:
        """Nobody knows how many rows there are."""
        return 0

    def units(self) -> Iterator[Unit | Collector]:
        """Fetch page after page.

        Raises:
            SparqlError: the endpoint gives no whole answer; pages that it gave are on disk for the next time.
            LakeError: pages cannot be kept on disk.
        """
        ids = self._ids()
        cache = AnswerCache(self.kept, max_bytes=KEEP_PAGES_BYTES, max_age_s=KEEP_PAGES_S)
        with SparqlClient(self.endpoint, cache) as client:
            for page in extract_pages(client, self.query, self.page_size, ids=ids, origin=self.origin):
                content: list[Part] = [list(_parts(row)) for row in page.rows]
                rejected: list[Part] = [[reject.row, reject.reason, reject.content] for reject in page.rejects]
                yield PageUnit(
                    key=key_of("page", READER, repr(self.options), content, rejected),
                    file=self.endpoint.place,
                    first_row=page.number * self.page_size + 1,
                    size=len(page.rows) + len(page.rejects),
                    rows=page.rows,
                    rejects=page.rejects,
                    options=self.options,
                    wikidata=ids.wikidata,
                )
        # All of it was taken: the next extract is to see what changed.
        cache.clear()

    def _ids(self) -> IriIds:
        return iri_ids(self.options.option("iri_prefixes"))


def sparql_source(
    endpoint: Endpoint, query_file: Path, page_size: int, options: ReadOptions, kept: Path
) -> SparqlSource:
    """Prepare an extract; nothing is sent yet.

    Args:
        endpoint: who is asked, and as whom.
        query_file: SPARQL with the columns ``?head ?relation ?tail`` (see ``knowledge.sparql.extract``).
        page_size: rows a page.
        options: the graph's settings; ``iri_prefixes`` among them.
        kept: a folder of its own below the lake, where fetched pages wait for the next run after an interrupted one.

    Raises:
        KnowledgeError: the file cannot be read, the query cannot be paged, or ``iri_prefixes`` are not usable.
    """
    try:
        query = query_file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise KnowledgeError(f"{query_file} cannot be read ({error}): it must hold a SELECT query as UTF-8") from error
    checked_extract_query(query, query_file.name)
    iri_ids(options.option("iri_prefixes"))
    return SparqlSource(endpoint, query, query_file.name, page_size, options, kept)


def _parts(row: ExtractRow) -> tuple[str | None, ...]:
    return (
        *(row.head, row.relation, row.tail, row.value, row.value_kind),
        *(row.head_label, row.relation_label, row.tail_label, row.head_description),
    )
