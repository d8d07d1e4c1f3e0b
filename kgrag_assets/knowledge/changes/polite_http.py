"""Asking a site what changed: requests within a deadline, what they cost, and what its refusals mean for a refresh."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar, Unpack

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
from kgrag_assets.knowledge.http.site import PASSING, Manners, Site, passing_failure
from kgrag_assets.models.endpoints import without_secrets

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


class PoliteHttp(Site):
    """Requests to one site: one at a time, within a deadline, again where that may help.

    Redirects are not followed: an address that leads elsewhere is an error that says where to.
    """

    late, unavailable, too_large = TimeIsUpError, UnavailableError, TooLargeError
    later = "the next refresh goes on from here, and nothing is lost"

    def __init__(self, address: str, user_agent: str, **manners: Unpack[Manners]) -> None:
        """Prepare; nothing is sent.

        Args:
            address: the site, ``https://…``.
            user_agent: as ``user_agent_of`` makes it.
            manners: as ``Site`` has them.

        Raises:
            ChangesError: the address or the user agent is not usable.
        """
        self.address = checked_address(address, ChangesError, "https://www.wikidata.org/w/api.php")
        if not user_agent.strip():
            raise ChangesError(f"{self.address}: no user agent is given: make one with user_agent_of(contact)")
        super().__init__(self.address, {"User-Agent": user_agent}, **manners)
        self.spent = Spent()
        self.deadline = Deadline(None, self._clock)

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
                return read(response, self._body(response, self._end(self.deadline.end)))

        return self.retrying(once)

    def retrying(self, once: Callable[[], T]) -> T:
        """Call until it succeeds or the retries are used up; for errors see ``ask``."""
        return self._patiently(once, self.deadline.end)

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
        end = self._turn(self.deadline.end, read_timeout_s)
        self.spent.requests += 1
        with self._send(method, url, end, params=params, headers=headers) as response:
            try:
                self._judge(response)
                yield response
            finally:
                self.spent.bytes += response.num_bytes_downloaded

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

    def _too_slow(self, why: str) -> Exception:
        self.deadline.check()
        return super()._too_slow(why)
