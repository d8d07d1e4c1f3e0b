"""Asking one site politely: spaced, within a time, again where that may help, and reading no more than is wanted."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import Self, TypeVar

import httpx

from kgrag_assets.knowledge.http.address import origin_of, place_of
from kgrag_assets.knowledge.http.errors import OutOfTimeError, SlowAnswer
from kgrag_assets.knowledge.http.throttle import Throttle, throttle_of
from kgrag_assets.models.endpoints import is_loopback, without_secrets
from kgrag_assets.models.errors import TransientFailure
from kgrag_assets.models.retrying import Pause, retry_after_seconds, with_retries

T = TypeVar("T")

# Statuses of an answer that may be another one next time.
PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})
_KINDS = {408: "timeout", 429: "rate_limited"}
_CONNECT_S = 10.0
_SHORTEST_S = 0.001


class Site:
    """One site. Threads may share it; all of one remote host in this process share its spacing.

    Redirects are not followed: they come as the answers they are.
    """

    def __init__(
        self,
        address: str,
        headers: Mapping[str, str],
        *,
        min_interval_s: float,
        max_retries: int,
        pause: Pause | None = None,
        clock: Callable[[], float] = time.monotonic,
        throttle: Throttle | None = None,
    ) -> None:
        """Prepare; nothing is sent.

        Args:
            address: as ``checked_address`` returns it.
            headers: of every request, with the user agent.
            min_interval_s: least seconds between the beginnings of two requests.
            max_retries: requests after the first that failed in a way that may pass.
            pause: how to wait; interrupting it ends all waits.
            clock: seconds that only go forward.
            throttle: spacing; None for the one that this process has for the host, or, on this machine, where ports
                change hands, for one of its own.
        """
        self.place = place_of(address)
        self.clock = clock
        self._pause = pause or Pause()
        self._min_interval_s = min_interval_s
        self._max_retries = max_retries
        local = is_loopback(address)
        self._throttle = throttle or (Throttle(clock) if local else throttle_of(origin_of(address) or address))
        # A proxy of the environment is the way out of many networks, and never the way to this machine.
        self._client = httpx.Client(headers=dict(headers), follow_redirects=False, trust_env=not local)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def patiently(self, once: Callable[[], T], until: float) -> T:
        """Call until it succeeds or the retries are used up, and no wait ends after ``until``.

        Raises:
            TransientFailure: the last one, when it did not pass.
            OutOfTimeError: it might have passed, but not in time.
        """
        patience = _Patience(self, until)
        try:
            return with_retries(once, self._max_retries, patience)
        except TransientFailure as failure:
            if not patience.too_long:
                raise
            raise OutOfTimeError(
                f"the time for this question is up before {self.place} may be asked again ({failure.message})"
            ) from failure

    def wait(self, seconds: float) -> bool:
        """Wait before asking again; return False where the wait was interrupted."""
        return self._throttle.sit_out(seconds, self._pause)

    def turn(self, until: float) -> None:
        """Wait until the site may be asked; for errors see ``Throttle.wait``."""
        self._throttle.believe(self._throttle.wait(self._min_interval_s, until, self._pause, self.place))

    @contextmanager
    def open(
        self,
        method: str,
        url: str | httpx.URL,
        end: float,
        *,
        params: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        data: Mapping[str, str] | None = None,
    ) -> Iterator[httpx.Response]:
        """Send a request after one's ``turn``, and give its answer before the body is read, whatever its status.

        A ``TransientFailure`` of the block that says how long to wait holds for all who ask this site.

        Args:
            method: GET, HEAD or POST.
            url: an address of this site.
            end: by the clock; sending, and each piece of the answer, may take until then.
            params: of the query.
            headers: further ones.
            data: fields of a form.

        Raises:
            TransientFailure: there is no connection, or it broke, also while the block reads the body.
            SlowAnswer: it took too long.
        """
        seconds = max(_SHORTEST_S, end - self.clock())
        timeout = httpx.Timeout(seconds, connect=min(_CONNECT_S, seconds))
        try:
            with self._client.stream(
                method, url, params=params, headers=dict(headers or {}), data=data, timeout=timeout
            ) as response:
                yield response
        except TransientFailure as failure:
            if failure.retry_after_s is not None:
                self._throttle.hold_off(failure.retry_after_s)
            raise
        except httpx.ConnectTimeout as error:
            raise TransientFailure("timeout", f"no connection within {seconds:.0f} s") from error
        except httpx.TimeoutException as error:
            raise SlowAnswer(f"no answer within {seconds:.0f} s") from error
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            detail = without_secrets(f"{type(error).__name__}: {error}")
            raise TransientFailure("error", f"the connection broke ({detail})") from error

    def read(self, response: httpx.Response, end: float, most: int) -> bytes:
        """Read a body, unpacked, but hardly more than ``most`` bytes: a longer result means that there is more.

        Raises:
            SlowAnswer: it is not whole at ``end``; a server that sends a byte now and then never runs into a
                timeout between two of them.
        """
        pieces: list[bytes] = []
        held = 0
        for piece in response.iter_bytes():
            pieces.append(piece)
            held += len(piece)
            if held > most:
                break
            if self.clock() >= end:
                raise SlowAnswer("no whole answer within the time for one request")
        return b"".join(pieces)


class AsksSite:
    """What asks through a site, and closes its connections at the end of a ``with`` block."""

    def __init__(self, site: Site) -> None:
        self._site = site

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._site.close()


def passing_failure(response: httpx.Response, said: str = "") -> TransientFailure:
    """Return what a status of ``PASSING`` means; ``said``: the server's own words."""
    status = response.status_code
    wait = retry_after_seconds(response.headers.get("retry-after"))
    return TransientFailure(_KINDS.get(status, "error"), f"HTTP {status}{said}", wait)


class _Patience(Pause):
    """Waits as the site's pause does, but not beyond the end of a time."""

    def __init__(self, site: Site, until: float) -> None:
        super().__init__()
        self._site = site
        self._until = until
        self.too_long = False

    def wait(self, seconds: float) -> bool:
        """Wait; False where that takes too long or the wait was interrupted."""
        if seconds >= self._until - self._site.clock():
            self.too_long = True
            return False
        return self._site.wait(seconds)
