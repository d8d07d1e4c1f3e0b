"""Asking an endpoint over HTTP: spaced, bounded in time and size, repeated where that helps, kept on disk."""

from __future__ import annotations

import time
from collections.abc import Callable
from urllib.parse import quote_plus, urljoin

import httpx

from kgrag_assets.knowledge.http.address import origin_of, place_of
from kgrag_assets.knowledge.http.site import Site
from kgrag_assets.knowledge.http.throttle import Throttle
from kgrag_assets.knowledge.sparql.answers import (
    MEDIA_TYPE,
    Answer,
    BrokenAnswerError,
    EndedByServerError,
    decode_answer,
)
from kgrag_assets.knowledge.sparql.cache import AnswerCache
from kgrag_assets.knowledge.sparql.endpoint import Endpoint, failure_of, said_by
from kgrag_assets.knowledge.sparql.errors import SparqlError, SparqlTimeoutError
from kgrag_assets.models.errors import TransientFailure
from kgrag_assets.models.retrying import Pause
from kgrag_assets.rows.keys import key_of

# Longer queries go as POST: servers and proxies take URLs of some 8,000 characters, and only GET is cached by them.
GET_LENGTH = 2000
MAX_REDIRECTS = 3
_ERROR_BYTES = 1 << 16
_FOLLOWED = (301, 302, 307, 308)
_JSON_TYPES = (MEDIA_TYPE, "application/json")
NO_END = float("inf")


class SparqlClient(Site):
    """One endpoint. Threads may share a client; all clients of one remote host in this process share its spacing."""

    late, unavailable, too_large = SparqlTimeoutError, SparqlError, SparqlError
    later = "run again"

    def __init__(
        self,
        endpoint: Endpoint,
        cache: AnswerCache | None = None,
        pause: Pause | None = None,
        clock: Callable[[], float] = time.monotonic,
        throttle: Throttle | None = None,
    ) -> None:
        """Prepare a client; nothing is sent yet.

        Args:
            endpoint: who is asked, and how.
            cache: where answers are kept; None to keep none.
            pause: how to wait; interrupting it ends all waits.
            clock: seconds, for deadlines.
            throttle: spacing; None for the one of the host (``http.site``).
        """
        self.endpoint = endpoint
        self._cache = cache
        super().__init__(
            endpoint.url,
            {"User-Agent": endpoint.user_agent, "Accept": MEDIA_TYPE},
            min_interval_s=endpoint.min_interval_s,
            timeout_s=endpoint.timeout_s,
            max_retries=endpoint.max_retries,
            max_response_bytes=endpoint.max_answer_bytes,
            pause=pause,
            clock=clock,
            throttle=throttle,
        )

    def deadline(self, seconds: float) -> float:
        """Return the moment, by this client's clock, at which a question that begins now is out of time."""
        return self._clock() + seconds

    def select(self, query: str, until: float = NO_END, *, fresh: bool = False) -> Answer:
        """Send a SELECT query and return all its rows.

        Args:
            query: SPARQL; text and ids in it were written by ``sparql.terms``.
            until: deadline of the question that this query is a part of (``deadline``).
            fresh: ask the endpoint also where an answer is kept; the new one is kept instead.

        Raises:
            SparqlTimeoutError: time is up: the question's, the request's, or the endpoint's own limit.
            SparqlError: there is no whole answer; the message names the endpoint and what to do.
            LakeError: the answer cannot be kept on disk.
        """
        key = key_of("sparql answer", self.endpoint.url, query)
        if self._cache is not None and not fresh:
            raw = self._cache.get(key)
            if raw is not None:
                try:
                    return decode_answer(raw, kept=True)
                except BrokenAnswerError:
                    self._cache.forget(key)
        raw, answer = self._patiently(lambda: self._ask(query, until), until)
        if self._cache is not None:
            self._cache.put(key, raw)
        return answer

    def _ask(self, query: str, until: float) -> tuple[bytes, Answer]:
        end = self._turn(until)
        form = {"query": query}
        is_long = len(quote_plus(query)) > GET_LENGTH
        url = httpx.URL(self.endpoint.url)
        for _hop in range(MAX_REDIRECTS + 1):
            method, asked = ("POST", url) if is_long else ("GET", url.copy_merge_params(form))
            with self._send(method, asked, end, data=form if is_long else None) as response:
                if response.status_code not in _FOLLOWED:
                    return self._taken(response, end)
                url = self._redirected(response, url)
        raise SparqlError(f"{self.place} redirects in a circle: check the URL of the endpoint")

    def _redirected(self, response: httpx.Response, url: httpx.URL) -> httpx.URL:
        target = urljoin(str(url), response.headers.get("location", ""))
        if origin_of(target) is None or origin_of(target) != origin_of(str(url)):
            raise SparqlError(
                f"{self.place} sends its visitors on to {place_of(target)}: it was not followed to another "
                f"host; if you trust that one, make it the endpoint"
            )
        # The query travels with the request, not with the place it is sent on to.
        return httpx.URL(target).copy_remove_param("query")

    def _taken(self, response: httpx.Response, end: float) -> tuple[bytes, Answer]:
        if response.status_code != 200:
            raise failure_of(response, self._body(response, end, _ERROR_BYTES), self.place)
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind not in _JSON_TYPES:
            body = self._body(response, end, _ERROR_BYTES)
            raise SparqlError(
                f"{self.place} answered with {kind[:60] or 'something unnamed'} and not with SPARQL results: check "
                f"that the URL is the endpoint's and not that of its web page{said_by(body)}"
            )
        if response.headers.get("x-sql-state") is not None:
            # Virtuoso ends a query in time and returns the rows it has, with status 200.
            raise SparqlTimeoutError(
                f"{self.place} returned only a part of the rows, for lack of time: ask for less, with a more selective "
                f"query or a smaller page"
            )
        raw = self._body(response, end)
        try:
            answer = decode_answer(raw)
        except EndedByServerError as error:
            raise SparqlTimeoutError(
                f"{self.place}: {error}; ask for less, with a more selective query or a smaller page"
            ) from error
        except BrokenAnswerError as error:
            raise TransientFailure("error", str(error)) from error
        limit = response.headers.get("x-sparql-maxrows", "")
        if limit.isascii() and limit.isdigit() and len(answer.rows) >= int(limit):
            raise SparqlError(f"{self.place} cuts answers at {limit} rows: use a page size below that")
        return raw, answer

    def _too_slow(self, why: str) -> Exception:
        # No failure that may pass: the same query would take as long again.
        return SparqlTimeoutError(
            f"{self.place} did not answer in time ({why}): ask for less, or give the question more time"
        )
