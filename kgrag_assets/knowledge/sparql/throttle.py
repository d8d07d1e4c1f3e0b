"""Spacing requests to one endpoint, for all threads of this process together."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from kgrag_assets.knowledge.sparql.errors import SparqlError, SparqlTimeoutError
from kgrag_assets.models.retrying import LONGEST_RETRY_AFTER_S, Pause

_OF_ORIGIN: dict[str, Throttle] = {}
_LOCK = threading.Lock()


class Throttle:
    """Hands out the moments at which an endpoint may be asked."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Take a clock in seconds; the client's deadlines must be of the same."""
        self._clock = clock
        self._lock = threading.Lock()
        self._next = float("-inf")
        self._held_until = float("-inf")

    def wait(self, interval_s: float, until: float, pause: Pause, endpoint: str) -> None:
        """Wait for the next free moment.

        Args:
            interval_s: at least so much lies between this request and the next.
            until: moment by the clock at which waiting is of no use any more.
            pause: how to wait.
            endpoint: for error messages.

        Raises:
            SparqlTimeoutError: the next free moment comes too late.
            SparqlError: the endpoint asked for a pause that is too long to sit out, or the wait was interrupted.
        """
        while True:
            with self._lock:
                now = self._clock()
                held = self._held_until - now
                if held > LONGEST_RETRY_AFTER_S:
                    raise SparqlError(
                        f"{endpoint} asked not to be asked for another {held:.0f} s: run again after that"
                    )
                slot = max(now, self._next, self._held_until)
                if slot >= until:
                    raise SparqlTimeoutError(
                        f"the time for this question is up before {endpoint} may be asked again: "
                        f"give it more time, or ask less"
                    )
                self._next = slot + interval_s
            if slot > now and not pause.wait(slot - now):
                raise SparqlError(f"interrupted while waiting to ask {endpoint}")
            with self._lock:
                # Another thread may have been told to hold off meanwhile.
                if self._held_until <= max(slot, self._clock()):
                    return

    def hold_off(self, seconds: float) -> None:
        """Let nobody ask for a time: what ``Retry-After`` says holds for all threads."""
        with self._lock:
            self._held_until = max(self._held_until, self._clock() + seconds)


def throttle_of(origin: str) -> Throttle:
    """Return the throttle that all clients of one origin (``https://host:port``) in this process share."""
    with _LOCK:
        return _OF_ORIGIN.setdefault(origin, Throttle())
