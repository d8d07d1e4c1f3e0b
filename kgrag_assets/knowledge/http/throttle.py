"""Spacing requests to one host, for all threads of this process together."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from kgrag_assets.knowledge.errors import KnowledgeError
from kgrag_assets.knowledge.http.address import ErrorKind
from kgrag_assets.models.errors import TransientFailure
from kgrag_assets.models.retrying import LONGEST_RETRY_AFTER_S, Pause

_OF_ORIGIN: dict[str, Throttle] = {}
_LOCK = threading.Lock()


class Throttle:
    """Hands out the moments at which a host may be asked."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Take a clock in seconds; deadlines must be of the same."""
        self._clock = clock
        self._lock = threading.Lock()
        self._next = float("-inf")
        self._held_until = float("-inf")
        self._ahead = 0.0

    def wait(
        self, interval_s: float, until: float, pause: Pause, place: str, late: ErrorKind = KnowledgeError
    ) -> float:
        """Wait for the next free moment.

        Args:
            interval_s: at least so much lies between this request and the next.
            until: moment by the clock at which waiting is of no use any more.
            pause: how to wait.
            place: who is asked, for error messages.
            late: the class of error for the first of these:

        Returns:
            The moment, for ``believe``.

        Raises:
            KnowledgeError: the next free moment comes too late, or the wait was interrupted.
            TransientFailure: the host asked for a pause that is too long to sit out.
        """
        while True:
            with self._lock:
                now = self._now()
                held = self._held_until - now
                if held > LONGEST_RETRY_AFTER_S:
                    raise TransientFailure("rate_limited", "it asked not to be asked before that", held)
                slot = max(now, self._next, self._held_until)
                if slot - now >= until - self._clock():
                    raise late(
                        f"the time for this question is up before {place} may be asked again: "
                        f"give it more time, or ask less"
                    )
                self._next = slot + interval_s
            if slot > now and not pause.wait(slot - now):
                raise late(f"interrupted while waiting to ask {place}")
            with self._lock:
                # Another thread may have been told to hold off meanwhile.
                if self._held_until <= max(slot, self._now()):
                    return slot

    def hold_off(self, seconds: float) -> None:
        """Let nobody ask for a time: what ``Retry-After`` says holds for all threads."""
        with self._lock:
            self._held_until = max(self._held_until, self._now() + seconds)

    def sit_out(self, seconds: float, pause: Pause) -> bool:
        """Wait so long, whether or not the host asked for it; return False where the wait was interrupted."""
        end = self._now() + seconds
        done = pause.wait(seconds)
        if done:
            self.believe(end)
        return done

    def believe(self, moment: float) -> None:
        """Take it to be that late at least: who waited is not to wait again because a clock lags behind the wait."""
        with self._lock:
            self._ahead = max(self._ahead, moment - self._clock())

    def _now(self) -> float:
        return self._clock() + self._ahead


def throttle_of(origin: str) -> Throttle:
    """Return the throttle that all clients of one origin (``https://host:port``) in this process share."""
    with _LOCK:
        return _OF_ORIGIN.setdefault(origin, Throttle())
