"""Asking a site what changed: requests within a deadline, what they cost, and what its refusals mean for a refresh."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import httpx

from kgrag_assets.knowledge.changes.deadline import Deadline
from kgrag_assets.knowledge.changes.errors import (
    ChangesError,
    RefusedError,
    TimeIsUpError,
    TooLargeError,
    UnavailableError,
)
from kgrag_assets.knowledge.http.address import checked_address, user_agent
from kgrag_assets.knowledge.http.errors import OutOfTimeError, SlowAnswer
from kgrag_assets.knowledge.http.site import PASSING, AsksSite, Site, passing_failure
from kgrag_assets.knowledge.json_object import json_object_of
from kgrag_assets.models.endpoints import without_secrets
from kgrag_assets.models.errors import TransientFailure
from kgrag_assets.models.retrying import Pause

T = TypeVar("T")


def user_agent_of(contact: str) -> str:
    """Say who asks; the contact is a mail address or the address of a page.

    Raises:
        ChangesError: there is none in the text, or it cannot be sent in a header.
    """
    return user_agent("kgrag", contact, ChangesError, "refresh.contact")


@dataclass
class Spent:
    """What was asked so far: requests, and bytes that came over the wire."""

    requests: int = 0
    bytes: int = 0


class PoliteHttp(AsksSite):
    """Requests to one site: one at a time, within a deadline, again where that may help.

    Redirects are not followed: an address that leads elsewhere is an error that says where to.
    """

    def __init__(
        self,
        address: str,
        user_agent: str,
        *,
        min_interval_s: float = 0.5,
        timeout_s: float = 30.0,
        max_retries: int = 4,
        max_response_bytes: int = 64 << 20,
        pause: Pause | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Prepare; nothing is sent.

        Args:
            address: the site, ``https://…``.
            user_agent: as ``user_agent_of`` makes it.
            min_interval_s: least seconds between the beginnings of two requests.
            timeout_s: seconds for a request as a whole; a stream has no such end.
            max_retries: requests after the first that failed in a way that may pass.
            max_response_bytes: bound on an answer, unpacked.
            pause: how to wait.
            clock: seconds that only go forward.

        Raises:
            ChangesError: the address or the user agent is not usable.
        """
        self.address = checked_address(address, ChangesError, "https://www.wikidata.org/w/api.php")
        if not user_agent.strip():
            raise ChangesError(f"{self.address}: no user agent is given: make one with user_agent_of(contact)")
        self.spent = Spent()
        self.deadline = Deadline(None, clock)
        self._timeout_s = timeout_s
        self._max_response_bytes = max_response_bytes
        super().__init__(
            Site(
                self.address,
                {"User-Agent": user_agent},
                min_interval_s=min_interval_s,
                max_retries=max_retries,
                pause=pause,
                clock=clock,
            )
        )

    @contextmanager
    def within(self, deadline: Deadline) -> Iterator[None]:
        """Keep requests and waits within a deadline while the block runs."""
        before, self.deadline = self.deadline, deadline
        try:
            yield
        finally:
            self.deadline = before

    def ask(
        self,
        url: str,
        params: Mapping[str, str] | None = None,
        *,
        method: str = "GET",
        headers: Mapping[str, str] | None = None,
        read: Callable[[httpx.Response, bytes], T],
    ) -> T:
        """Ask, and again where a failure may pass.

        Args:
            url: an address of this site.
            params: query parameters.
            method: GET or HEAD.
            headers: further headers.
            read: makes a result of the answer and its whole body; raises ``TransientFailure`` to ask again.

        Raises:
            UnavailableError: it did not pass.
            TimeIsUpError: the deadline passed, or would while waiting.
            TooLargeError: the answer is larger than the bound.
            ChangesError: the site refused.
        """

        def once() -> T:
            with self.open(url, params, method=method, headers=headers) as response:
                return read(response, self._body(response))

        return self.retrying(once)

    def retrying(self, once: Callable[[], T]) -> T:
        """Call until it succeeds or the retries are used up; for errors see ``ask``."""
        try:
            return self._site.patiently(once, self.deadline.end)
        except OutOfTimeError as error:
            raise TimeIsUpError(str(error)) from error
        except TransientFailure as failure:
            asked = "" if failure.retry_after_s is None else f" (it asks for {failure.retry_after_s:.0f} s of patience)"
            raise UnavailableError(
                f"{self.address} does not answer as it should: {failure.message}{asked}. "
                f"Nothing is lost; the next refresh goes on from here"
            ) from failure

    def wait(self, seconds: float) -> bool:
        """Wait before asking again; return False where somebody interrupts."""
        return self._site.wait(seconds)

    @contextmanager
    def open(
        self,
        url: str,
        params: Mapping[str, str] | None = None,
        *,
        method: str = "GET",
        headers: Mapping[str, str] | None = None,
        read_timeout_s: float | None = None,
    ) -> Iterator[httpx.Response]:
        """Send one request, and give its answer before the body is read.

        Raises:
            TransientFailure: it failed in a way that may pass, also while the block reads the body.
            TimeIsUpError: the deadline passed.
            ChangesError: the site refused, or leads to another address.
        """
        try:
            self._site.turn(self.deadline.end)
            self.spent.requests += 1
            end = self._end(self._timeout_s if read_timeout_s is None else read_timeout_s)
            with self._site.open(method, url, end, params=params, headers=headers) as response:
                try:
                    self._judge(response)
                    yield response
                finally:
                    self.spent.bytes += response.num_bytes_downloaded
        except OutOfTimeError as error:
            raise TimeIsUpError(str(error)) from error
        except SlowAnswer:
            self.deadline.check()
            raise

    def _judge(self, response: httpx.Response) -> None:
        status = response.status_code
        if status in PASSING:
            raise passing_failure(response)
        if 300 <= status < 400:
            to = without_secrets(response.headers.get("location", "nowhere"))
            raise ChangesError(
                f"{self.address} leads to {to}, and redirects are not followed: "
                f"if that is the right place, set it as the address"
            )
        # 416 belongs to a download that is asked to go on after its end; who asks for ranges understands it.
        if status >= 400 and status != 416:
            hint = "is the contact in refresh.contact right?" if status in (401, 403) else "is the address right?"
            raise RefusedError(f"{response.url.copy_with(query=None)} was refused with HTTP {status}: {hint}", status)

    def _body(self, response: httpx.Response) -> bytes:
        body = self._site.read(response, self._end(self._timeout_s), self._max_response_bytes)
        if len(body) > self._max_response_bytes:
            raise TooLargeError(f"{self.address} sent an answer of more than {self._max_response_bytes:,} bytes")
        return body

    def _end(self, seconds: float) -> float:
        return min(self.deadline.end, self._site.clock() + seconds)


def json_object(body: bytes) -> dict[str, Any]:
    """Read a body as one JSON object.

    Raises:
        TransientFailure: it is none; servers in trouble send error pages with status 200.
    """
    value = json_object_of(body)
    if value is None:
        raise TransientFailure("error", "the answer is not a JSON object")
    return value
