"""Asking another site politely: who asks, how often, how long, how much, and when to ask again."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self, TypeVar
from urllib.parse import urlsplit

import httpx

from kgrag_assets import __version__
from kgrag_assets.knowledge.changes.deadline import Deadline, PauseWithin
from kgrag_assets.knowledge.changes.errors import (
    ChangesError,
    RefusedError,
    TimeIsUpError,
    TooLargeError,
    UnavailableError,
)
from kgrag_assets.models.endpoints import is_loopback, without_secrets
from kgrag_assets.models.errors import TransientFailure
from kgrag_assets.models.retrying import Pause, retry_after_seconds, with_retries

T = TypeVar("T")

_PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})
_REACHABLE = re.compile(r"[^@\s()<>]+@[^@\s()<>]+\.[^@\s()<>]+|https?://[^\s()<>]+")


def user_agent_of(contact: str) -> str:
    """Say who asks, as Wikimedia wants to know: the program, its version, and how its user can be reached.

    Args:
        contact: a mail address or the address of a page.

    Raises:
        ChangesError: there is none in the text, or it cannot be sent in a header.
    """
    contact = contact.strip()
    if not contact.isascii() or not contact.isprintable() or len(contact) > 200 or not _REACHABLE.search(contact):
        raise ChangesError(
            f"the contact {contact[:60]!r} has no mail address or web page: Wikimedia refuses programs whose user "
            f"cannot be reached. Set refresh.contact, to your mail address for instance"
        )
    return f"kgrag/{__version__} ({contact}) httpx/{httpx.__version__}"


@dataclass
class Spent:
    """What was asked so far: requests, and bytes that came over the wire."""

    requests: int = 0
    bytes: int = 0


class PoliteHttp:
    """Requests to one site: one at a time, with a pause between them, within a deadline, again where that may help.

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
        self.address = checked_address(address)
        if not user_agent.strip():
            raise ChangesError(f"{self.address}: no user agent is given: make one with user_agent_of(contact)")
        self.spent = Spent()
        self.deadline = Deadline(None, clock)
        self.pause = pause or Pause()
        self._min_interval_s = min_interval_s
        self._timeout_s = timeout_s
        self._max_retries = max_retries
        self._max_response_bytes = max_response_bytes
        self._clock = clock
        self._last: float | None = None
        # A proxy of the environment is the way out of many networks, and never the way to this machine.
        self._client = httpx.Client(
            headers={"User-Agent": user_agent}, follow_redirects=False, trust_env=not is_loopback(self.address)
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

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
                body = self._body(response)
            return read(response, body)

        return self.retrying(once)

    def retrying(self, once: Callable[[], T]) -> T:
        """Call until it succeeds or the retries are used up; for errors see ``ask``."""
        try:
            return with_retries(once, self._max_retries, PauseWithin(self.pause, self.deadline))
        except TransientFailure as failure:
            asked = "" if failure.retry_after_s is None else f" (it asks for {failure.retry_after_s:.0f} s of patience)"
            raise UnavailableError(
                f"{self.address} does not answer as it should: {failure.message}{asked}. "
                f"Nothing is lost; the next refresh goes on from here"
            ) from failure

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
        self._keep_distance()
        wait = min(self._timeout_s if read_timeout_s is None else read_timeout_s, self.deadline.left())
        self.spent.requests += 1
        response: httpx.Response | None = None
        try:
            with self._client.stream(
                method, url, params=params, headers=dict(headers or {}), timeout=httpx.Timeout(max(wait, 0.05))
            ) as response:
                self._judge(response)
                yield response
        except httpx.TimeoutException as error:
            self.deadline.check()
            raise TransientFailure("timeout", f"no answer within {wait:.0f} s") from error
        except (httpx.TransportError, httpx.DecodingError) as error:
            raise TransientFailure("error", f"the connection broke ({without_secrets(str(error))})") from error
        except httpx.InvalidURL as error:
            raise ChangesError(f"{self.address}: {without_secrets(url)} is not an address: {error}") from error
        finally:
            if response is not None:
                self.spent.bytes += response.num_bytes_downloaded

    def _keep_distance(self) -> None:
        self.deadline.check()
        if self._last is not None:
            wait = self._last + self._min_interval_s - self._clock()
            if wait > 0 and not PauseWithin(self.pause, self.deadline).wait(wait):
                raise TimeIsUpError("the work was interrupted")
        self._last = self._clock()

    def _judge(self, response: httpx.Response) -> None:
        status = response.status_code
        if status in _PASSING:
            raise TransientFailure(
                "rate_limited" if status == 429 else "error",
                f"HTTP {status}",
                retry_after_seconds(response.headers.get("retry-after")),
            )
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
        end = Deadline(self._timeout_s, self._clock)
        parts: list[bytes] = []
        size = 0
        for part in response.iter_bytes():
            size += len(part)
            if size > self._max_response_bytes:
                raise TooLargeError(f"{self.address} sent an answer of more than {self._max_response_bytes:,} bytes")
            parts.append(part)
            self.deadline.check()
            if end.left() <= 0:
                # A server that sends a byte now and then never runs into a timeout between two of them.
                raise TransientFailure("timeout", f"no whole answer within {self._timeout_s:.0f} s")
        return b"".join(parts)


def checked_address(address: str) -> str:
    """Return an address without a slash at its end, or say what is wrong with it.

    Raises:
        ChangesError: not http(s), no host, or with a user name or key inside.
    """
    try:
        parts = urlsplit(address.strip())
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        usable = usable and parts.username is None and parts.password is None
    except ValueError:
        usable = False
    if not usable:
        raise ChangesError(
            f"{without_secrets(address)!r} is not an address: use one like https://www.wikidata.org/w/api.php"
        )
    return address.strip().rstrip("/")


def json_object(body: bytes) -> dict[str, Any]:
    """Read a body as one JSON object.

    Raises:
        TransientFailure: it is none; servers in trouble send error pages with status 200.
    """
    try:
        value = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise TransientFailure("error", "the answer is not JSON") from error
    if not isinstance(value, dict):
        raise TransientFailure("error", "the answer is not a JSON object")
    return value
