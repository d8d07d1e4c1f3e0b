"""Asking an endpoint over HTTP: spaced, bounded in time and size, repeated where that helps, kept on disk."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from types import TracebackType
from typing import Self
from urllib.parse import quote_plus, urljoin

import httpx

from kgrag_assets.knowledge.sparql.answers import (
    MEDIA_TYPE,
    Answer,
    BrokenAnswerError,
    EndedByServerError,
    decode_answer,
)
from kgrag_assets.knowledge.sparql.cache import AnswerCache
from kgrag_assets.knowledge.sparql.endpoint import Endpoint, failure_of, origin_of, said_by
from kgrag_assets.knowledge.sparql.errors import SparqlError, SparqlTimeoutError
from kgrag_assets.knowledge.sparql.throttle import Throttle, throttle_of
from kgrag_assets.models.endpoints import is_loopback, without_secrets
from kgrag_assets.models.errors import TransientFailure
from kgrag_assets.models.retrying import LONGEST_RETRY_AFTER_S, Pause, with_retries
from kgrag_assets.rows.keys import key_of

# Longer queries go as POST: servers and proxies take URLs of some 8,000 characters, and only GET is cached by them.
GET_LENGTH = 2000
MAX_REDIRECTS = 3
_CONNECT_S = 10.0
_ERROR_BYTES = 1 << 16
_FOLLOWED = (301, 302, 307, 308)
_JSON_TYPES = (MEDIA_TYPE, "application/json")
NO_END = float("inf")


class SparqlClient:
    """One endpoint. Threads may share a client; all clients of one host in this process share its spacing."""

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
            throttle: spacing; None for the one that this process has for the host.
        """
        self.endpoint = endpoint
        self._cache = cache
        self._pause = pause or Pause()
        self._clock = clock
        self._throttle = throttle or throttle_of(endpoint.origin)
        self._http = httpx.Client(
            headers={"User-Agent": endpoint.user_agent, "Accept": MEDIA_TYPE},
            follow_redirects=False,
            # A server on this machine is not behind the company's proxy.
            trust_env=not is_loopback(endpoint.url),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

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
        raw, answer = self._asked_with_patience(query, until)
        if self._cache is not None:
            self._cache.put(key, raw)
        return answer

    def _asked_with_patience(self, query: str, until: float) -> tuple[bytes, Answer]:
        within = _PauseWithin(self._pause, lambda: until - self._clock())
        place = self.endpoint.place
        try:
            return with_retries(lambda: self._ask(query, until), self.endpoint.max_retries, within)
        except TransientFailure as failure:
            if within.too_long:
                raise SparqlTimeoutError(
                    f"the time for this question is up before {place} may be asked again ({failure.message}): "
                    f"give it more time, or run again later"
                ) from failure
            if failure.retry_after_s is not None and failure.retry_after_s > LONGEST_RETRY_AFTER_S:
                raise SparqlError(
                    f"{place} asks to wait {failure.retry_after_s:.0f} s ({failure.message}): run again after that"
                ) from failure
            raise SparqlError(
                f"{place} did not answer, also when asked again: {failure.message}; run again later"
            ) from failure

    def _ask(self, query: str, until: float) -> tuple[bytes, Answer]:
        self._throttle.wait(self.endpoint.min_interval_s, until, self._pause, self.endpoint.place)
        end = min(until, self._clock() + self.endpoint.timeout_s)
        url = self.endpoint.url
        for _hop in range(MAX_REDIRECTS + 1):
            seconds = max(0.001, end - self._clock())
            timeout = httpx.Timeout(seconds, connect=min(_CONNECT_S, seconds))
            try:
                with closing(self._http.send(self._request(url, query, timeout), stream=True)) as response:
                    if response.status_code not in _FOLLOWED:
                        return self._taken(response, end)
                    url = self._redirected(response, url)
            except httpx.ConnectTimeout as error:
                raise TransientFailure("timeout", "no connection in time") from error
            except httpx.TimeoutException as error:
                raise self._too_slow() from error
            except (httpx.HTTPError, httpx.InvalidURL) as error:
                detail = without_secrets(f"{type(error).__name__}: {error}")
                raise TransientFailure("error", f"the connection failed ({detail})") from error
        raise SparqlError(f"{self.endpoint.place} redirects in a circle: check the URL of the endpoint")

    def _request(self, url: str, query: str, timeout: httpx.Timeout) -> httpx.Request:
        if len(quote_plus(query)) > GET_LENGTH:
            return self._http.build_request("POST", url, data={"query": query}, timeout=timeout)
        return self._http.build_request("GET", httpx.URL(url).copy_merge_params({"query": query}), timeout=timeout)

    def _redirected(self, response: httpx.Response, url: str) -> str:
        target = urljoin(url, response.headers.get("location", ""))
        if origin_of(target) is None or origin_of(target) != origin_of(url):
            shown = without_secrets(target.split("?")[0])
            raise SparqlError(
                f"{self.endpoint.place} sends its visitors on to {shown}: it was not followed to another host; if you "
                f"trust that one, make it the endpoint"
            )
        # The query travels with the request, not with the place it is sent on to.
        return str(httpx.URL(target).copy_remove_param("query"))

    def _taken(self, response: httpx.Response, end: float) -> tuple[bytes, Answer]:
        place = self.endpoint.place
        if response.status_code != 200:
            body = self._read(response, end, _ERROR_BYTES, cut=True)
            failure = failure_of(response.status_code, response.headers.get("retry-after"), body, self.endpoint)
            if isinstance(failure, TransientFailure) and failure.retry_after_s is not None:
                self._throttle.hold_off(failure.retry_after_s)
            raise failure
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind not in _JSON_TYPES:
            body = self._read(response, end, _ERROR_BYTES, cut=True)
            raise SparqlError(
                f"{place} answered with {kind[:60] or 'something unnamed'} and not with SPARQL results: check that the "
                f"URL is the endpoint's and not that of its web page{said_by(body)}"
            )
        if response.headers.get("x-sql-state") is not None:
            # Virtuoso ends a query in time and returns the rows it has, with status 200.
            raise SparqlTimeoutError(
                f"{place} returned only a part of the rows, for lack of time: ask for less, with a more selective "
                f"query or a smaller page"
            )
        raw = self._read(response, end, self.endpoint.max_answer_bytes, cut=False)
        try:
            answer = decode_answer(raw)
        except EndedByServerError as error:
            raise SparqlTimeoutError(
                f"{place}: {error}; ask for less, with a more selective query or a smaller page"
            ) from error
        except BrokenAnswerError as error:
            raise TransientFailure("error", str(error)) from error
        limit = response.headers.get("x-sparql-maxrows", "")
        if limit.isascii() and limit.isdigit() and len(answer.rows) >= int(limit):
            raise SparqlError(f"{place} cuts answers at {limit} rows: use a page size below that")
        return raw, answer

    def _read(self, response: httpx.Response, end: float, most: int, *, cut: bool) -> bytes:
        pieces, held = [], 0
        for piece in response.iter_bytes():
            pieces.append(piece)
            held += len(piece)
            if held > most:
                if cut:
                    break
                raise SparqlError(
                    f"{self.endpoint.place} sent more than {most >> 20} MB for one query: ask for fewer rows a page"
                )
            if self._clock() > end:
                raise self._too_slow()
        return b"".join(pieces)

    def _too_slow(self) -> SparqlTimeoutError:
        return SparqlTimeoutError(
            f"{self.endpoint.place} did not answer in time: ask for less, or give the question more time"
        )


class _PauseWithin(Pause):
    """Waits as the client's pause does, but not beyond the end of the question."""

    def __init__(self, outer: Pause, left: Callable[[], float]) -> None:
        super().__init__()
        self._outer = outer
        self._left = left
        self.too_long = False

    def wait(self, seconds: float) -> bool:
        """Wait; False where that takes too long or the wait was interrupted."""
        if seconds >= self._left():
            self.too_long = True
            return False
        return self._outer.wait(seconds)
