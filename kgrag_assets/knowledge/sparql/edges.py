"""Statements between entities as an endpoint has them, by the lake's ids."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kgrag_assets.knowledge.sparql.answers import Row, value
from kgrag_assets.knowledge.sparql.client import SparqlClient
from kgrag_assets.knowledge.sparql.errors import SparqlError
from kgrag_assets.knowledge.sparql.paging import PAGE_SIZE, rows
from kgrag_assets.knowledge.sparql.templates import OUT, Templates
from kgrag_assets.knowledge.sparql.vocabulary import Vocabulary

# (from, relation, to, whether the statement points that way), all by id.
Hop = tuple[str, str, str, bool]

# Nodes in one query: two lists of so many ids are some 20 kB of query, and their product 10,000 look-ups.
LINKED_NODES = 100
COUNTED_NODES = 25


class EdgeQueries:
    """Asks one endpoint for statements. Ids given must be this graph's (``Vocabulary.local_of``)."""

    def __init__(self, client: SparqlClient, vocabulary: Vocabulary, page_size: int = PAGE_SIZE) -> None:
        """Take the endpoint and how its graph writes ids."""
        self._client = client
        self._words = vocabulary
        self._templates = Templates(vocabulary)
        self._page_size = page_size

    def rings(self, entities: Sequence[str], limit: int, until: float, *, loops: bool = True) -> dict[str, list[Hop]]:
        """Return the statements around entities, at most ``limit`` of each direction; a loop counts in both.

        Raises:
            SparqlTimeoutError: time is up.
            SparqlError: there is no whole answer.
        """
        found: dict[str, list[Hop]] = {}
        query = self._templates.rings([self._node(entity) for entity in entities], limit, loops=loops)
        for row in self._client.select(query, until).rows:
            hop = self._hop(row, "seed", "p", "other")
            if hop is not None:
                found.setdefault(hop[0], []).append(hop)
        return found

    def links(self, ones: Sequence[str], others: Sequence[str], until: float) -> Iterator[Hop]:
        """Yield the statements between two sets of entities, as hops from the first to the second; no loops.

        Raises:
            SparqlTimeoutError: time is up.
            SparqlError: there is no whole answer.
        """
        for one in _chunks(sorted(ones), LINKED_NODES):
            for two in _chunks(sorted(others), LINKED_NODES):
                query = self._templates.links([self._node(node) for node in one], [self._node(node) for node in two])
                for row in rows(self._client, query, ("x", "y", "p", "way"), self._page_size, until):
                    hop = self._hop(row, "x", "p", "y")
                    if hop is not None and hop[0] != hop[2]:
                        yield hop

    def common(self, one: str, two: str, until: float) -> Iterator[tuple[Hop, Hop]]:
        """Yield each way over a common neighbour as a hop from the one entity and a hop from the other.

        Raises:
            SparqlTimeoutError: time is up.
            SparqlError: there is no whole answer.
        """
        query = self._templates.common(self._node(one), self._node(two))
        for row in rows(self._client, query, ("m", "p1", "way1", "p2", "way2"), self._page_size, until):
            middle = self._words.entity_id(value(row, "m"))
            first, second = (self._words.relation_id(value(row, name)) for name in ("p1", "p2"))
            if middle is not None and first is not None and second is not None:
                yield (
                    (one, first, middle, value(row, "way1") == OUT),
                    (two, second, middle, value(row, "way2") == OUT),
                )

    def hubs(self, entities: Sequence[str], cap: int, until: float) -> Iterator[tuple[str, bool]]:
        """Yield each entity with whether it has more than ``cap`` statements; no more than these are counted.

        Raises:
            SparqlTimeoutError: time is up.
            SparqlError: there is no whole answer.
        """
        for some in _chunks(sorted(entities), COUNTED_NODES):
            query = self._templates.degrees([self._node(node) for node in some], cap + 1)
            for row in self._client.select(query, until).rows:
                entity_id, count = self._words.entity_id(value(row, "node")), value(row, "n")
                if not (count.isascii() and count.isdigit()):
                    raise SparqlError(f"the endpoint counted {count[:40]!r} statements, which is no number")
                if entity_id is not None:
                    yield entity_id, int(count) > cap

    def _node(self, entity_id: str) -> str:
        return self._words.entity(entity_id.partition(":")[2])

    def _hop(self, row: Row, here: str, relation: str, there: str) -> Hop | None:
        start, end = self._words.entity_id(value(row, here)), self._words.entity_id(value(row, there))
        by = self._words.relation_id(value(row, relation))
        if start is None or end is None or by is None:
            # An IRI below the prefix that cannot be an id of the lake.
            return None
        return start, by, end, value(row, "way") == OUT


def _chunks(items: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]
