"""A query's rows page by page: LIMIT and OFFSET behind an order that is the same for every page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kgrag_assets.knowledge.sparql.answers import Answer, Row
from kgrag_assets.knowledge.sparql.client import NO_END, SparqlClient

PAGE_SIZE = 1000


def paged(query: str, number: int, page_size: int) -> str:
    """Return the query of one page, numbered from 0; the query must be ordered and have no limit of its own.

    Raises:
        ValueError: the number or the size is none.
    """
    if number < 0 or page_size < 1:
        raise ValueError(f"there is no page {number} of {page_size} rows")
    # On a line of its own: the query may end in a comment.
    return f"{query}\nLIMIT {page_size} OFFSET {number * page_size}"


def pages(
    client: SparqlClient, query: str, page_size: int = PAGE_SIZE, start_page: int = 0, until: float = NO_END
) -> Iterator[Answer]:
    """Yield the pages of a query up to the first that is not full.

    Args:
        client: who is asked.
        query: with ORDER BY, without LIMIT and OFFSET.
        page_size: rows a page.
        start_page: first page to ask for, from 0.
        until: deadline by the client's clock.

    Raises:
        SparqlTimeoutError: time is up; the pages yielded before are whole.
        SparqlError: there is no whole answer.
    """
    number = start_page
    while True:
        answer = client.select(paged(query, number, page_size), until)
        yield answer
        if len(answer.rows) < page_size:
            return
        number += 1


def rows(
    client: SparqlClient, query: str, order: Sequence[str], page_size: int = PAGE_SIZE, until: float = NO_END
) -> Iterator[Row]:
    """Yield all rows of one of our own queries, ordered by variables (``x`` for ``?x``)."""
    ordered = f"{query}\nORDER BY {' '.join(f'?{name}' for name in order)}"
    for answer in pages(client, ordered, page_size, until=until):
        yield from answer.rows
