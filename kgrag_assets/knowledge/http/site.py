"""Asking one site politely: spaced, within a time, again where that may help, and reading no more than is wanted."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import Self, TypedDict, TypeVar

import httpx

from kgrag_assets.knowledge.errors import KnowledgeError
from kgrag_assets.knowledge.http.address import ErrorKind, origin_of, place_of
from kgrag_assets.knowledge.http.throttle import Throttle, throttle_of
from kgrag_assets.models.endpoints import is_loopback, without_secrets
from kgrag_assets.models.errors import TransientFailure
from kgrag_assets.models.retrying import Pause, retry_after_seconds, with_retries

T = TypeVar("T")

# Statuses of an answer that may be another one next time.
PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})
_KINDS = {408: "timeout", 429: "rate_limited"}
_CONNECT_S = 10.0


class Manners(TypedDict, total=False):
    """How a site is asked; for its keys see ``Site``."""

    min_interval_s: float
    timeout_s: float
    max_retries: int
    max_response_bytes: int
    pause: Pause | None
    clock: Callable[[], float]
    throttle: Throttle | None


class Site:
    """One site. Threads may share it; all that ask one remote host in this process share its spacing.

    Redirects are not followed: they come as the answers they are.
    """

    # The errors of who asks: time ends before the site may be asked, it does not answer, or with too much; and what
    # happens later where it did not answer.
    late: ErrorKind = KnowledgeError
    unavailable: ErrorKind = KnowledgeError
    too_large: ErrorKind = KnowledgeError
    later = "ask again"

    def __init__(
        self,
        address: str,
        headers: Mapping[str, str],
        *,
        min_interval_s: float = 0.5,
        timeout_s: float = 30.0,
        max_retries: int = 4,
        max_response_bytes: int = 64 << 20,
        pause: Pause | None = None,
        clock: Callable[[], float] = time.monotonic,
        throttle: Throttle | None = None,
    ) -> None:
        """Prepare; nothing is sent.

        Args:
            address: one that ``checked_address`` takes.
            headers: of every request, with the user agent.
            min_interval_s: least seconds between the beginnings of two requests.
            timeout_s: seconds for a request as a whole; a stream has no such end.
            max_retries: requests after the first that failed in a way that may pass.
            max_response_bytes: bound on an answer, unpacked.
            pause: how to wait; interrupting it ends all waits.
            clock: seconds that only go forward.
            throttle: spacing; None for the one that this process has for the host, or, on this machine, where ports
                change hands, for one of its own.
        """
        self.place = place_of(address)
        self._timeout_s = timeout_s
        self._clock = clock
        self._pause = pause or Pause()
        self._min_interval_s = min_interval_s
        self._max_retries = max_retries
        self._max_response_bytes = max_response_bytes
        local = is_loopback(address)
        self._throttle = throttle or (Throttle(clock) if local else throttle_of(origin_of(address) or address))
        # A proxy of the environment is the way out of many networks, and never the way to this machine.
        self._client = httpx.Client(headers=dict(headers), follow_redirects=False, trust_env=not local)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def wait(self, seconds: float) -> bool:
        """Wait before asking again; return False where somebody interrupts."""
        return self._throttle.sit_out(seconds, self._pause)

    def _patiently(self, once: Callable[[], T], until: float) -> T:
        """Call until it succeeds or the retries are used up, and no wait ends after ``until``.

        Raises:
            KnowledgeError: of the kind ``unavailable``: it did not pass; ``late``: it might have, but not in time.
        """
        patience = _Patience(self, lambda: until - self._clock())
        try:
            return with_retries(once, self._max_retries, patience)
        except TransientFailure as failure:
            what = failure.message
            if patience.too_long:
                raise self.late(
                    f"the time for this question is up before {self.place} may be asked again ({what}): "
                    f"give it more time, or run again later"
                ) from failure
            if failure.retry_after_s:
                asked = f"{failure.retry_after_s:.0f} s"
                problem = f"asks to wait {asked} ({what}): after {asked} of patience {self.later}"
            else:
                problem = f"did not answer, also when asked again: {what}; later {self.later}"
            raise self.unavailable(f"{self.place} {problem}") from failure

    def _turn(self, until: float, seconds: float | None = None) -> float:
        """Wait until the site may be asked, and return when a request must end that begins now.

        For errors see ``Throttle.wait``.
        """
        moment = self._throttle.wait(self._min_interval_s, until, self._pause, self.place, self.late)
        self._throttle.believe(moment)
        return self._end(until, seconds)

    def _end(self, until: float, seconds: float | None = None) -> float:
        return min(until, self._clock() + (self._timeout_s if seconds is None else seconds))

    @contextmanager
    def _send(
        self,
        method: str,
        url: str | httpx.URL,
        end: float,
        *,
        params: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        data: Mapping[str, str] | None = None,
    ) -> Iterator[httpx.Response]:
        """Send a request, ``end`` as ``_turn`` gave it, and give its answer before the body is read.

        A ``TransientFailure`` of the block that says how long to wait holds for all who ask this host.

        Raises:
            TransientFailure: there is no connection, or it broke, also while the block reads the body.
            Exception: it took too long (``_too_slow``).
        """
        seconds = max(0.001, end - self._clock())
        timeout = httpx.Timeout(seconds, connect=min(_CONNECT_S, seconds))
        try:
            with self._client.stream(
                method, url, params=params, headers=headers, data=data, timeout=timeout
            ) as response:
                yield response
        except TransientFailure as failure:
            if failure.retry_after_s is not None:
                self._throttle.hold_off(failure.retry_after_s)
            raise
        except httpx.ConnectTimeout as error:
            raise TransientFailure("timeout", f"no connection within {seconds:.0f} s") from error
        except httpx.TimeoutException as error:
            raise self._too_slow(f"no answer within {seconds:.0f} s") from error
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            detail = without_secrets(f"{type(error).__name__}: {error}")
            raise TransientFailure("error", f"the connection broke ({detail})") from error

    def _body(self, response: httpx.Response, end: float, cut: int | None = None) -> bytes:
        """Read a body, unpacked: all of it within the bound, or little more than ``cut`` bytes."""
        most = self._max_response_bytes if cut is None else cut
        pieces: list[bytes] = []
        held = 0
        for piece in response.iter_bytes():
            pieces.append(piece)
            held += len(piece)
            if held > most:
                if cut is not None:
                    break
                size = f"{most >> 20} MB" if most >= 1 << 20 else f"{most:,} bytes"
                raise self.too_large(f"{self.place} sent an answer of more than {size}: ask for less at once")
            if self._clock() >= end:
                # A server that sends a byte now and then never runs into a timeout between two of them.
                raise self._too_slow(f"no whole answer within {self._timeout_s:.0f} s")
        return b"".join(pieces)

    def _too_slow(self, why: str) -> Exception:
        """Return what to raise where a request was taken and not answered in time."""
        return TransientFailure("timeout", why)


def passing_failure(response: httpx.Response, said: str = "") -> TransientFailure:
    """Return what a status of ``PASSING`` means; ``said``: the server's own words."""
    status = response.status_code
    wait = retry_after_seconds(response.headers.get("retry-after"))
    return TransientFailure(_KINDS.get(status, "error"), f"HTTP {status}{said}", wait)


class _Patience(Pause):
    """Waits as the site does, but no longer than there is time."""

    def __init__(self, site: Site, left: Callable[[], float]) -> None:
        super().__init__()
        self._site = site
        self._left = left
        self.too_long = False

    def wait(self, seconds: float) -> bool:
        """Wait; False where that takes too long or the wait was interrupted."""
        self.too_long = seconds >= self._left()
        return not self.too_long and self._site.wait(seconds)
