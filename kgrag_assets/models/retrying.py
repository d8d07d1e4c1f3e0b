"""Asking a server again: after which failures, how long to wait, and how a waiting call is interrupted."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TypeVar

from kgrag_assets.models.errors import TransientFailure

T = TypeVar("T")

FIRST_WAIT_S = 0.5
LONGEST_WAIT_S = 30.0
# A server that asks for a longer pause than this is not waited for: the call ends as rate_limited.
LONGEST_RETRY_AFTER_S = 60.0


class Pause:
    """Waiting that another thread can end, so that Ctrl-C does not sit out everybody's back-off."""

    def __init__(self) -> None:
        self._interrupted = threading.Event()

    def wait(self, seconds: float) -> bool:
        """Wait; return False where the wait was interrupted, now or before."""
        return not self._interrupted.wait(seconds)

    def interrupt(self) -> None:
        """End all waits, and let the calls that wait give up."""
        self._interrupted.set()

    def reset(self) -> None:
        """Let waits be waits again."""
        self._interrupted.clear()


def retry_after_seconds(header: str | None, now: datetime | None = None) -> float | None:
    """Read a ``Retry-After`` header: seconds, or an HTTP date. None where it is absent or not readable."""
    if header is None:
        return None
    text = header.strip()
    try:
        seconds = float(text)
    except ValueError:
        try:
            when = parsedate_to_datetime(text)
        except (ValueError, TypeError):
            return None
        if when.tzinfo is None:
            when = when.replace(tzinfo=UTC)
        seconds = (when - (now or datetime.now(UTC))).total_seconds()
    # Not a number (nan) compares false with everything and counts as unreadable; inf is "too long".
    return max(0.0, seconds) if seconds == seconds else None  # noqa: PLR0124 - the test for nan


def with_retries(
    call: Callable[[], T], max_retries: int, pause: Pause, on_wait: Callable[[float], None] | None = None
) -> T:
    """Call until it succeeds, fails for good, or the retries are used up.

    Waits double from half a second up to 30 s, with some chance in them so that threads that were refused
    together do not come back together; a server's own ``Retry-After`` goes before that, up to a bound.

    Args:
        call: raises ``TransientFailure`` for what may pass; any other exception ends it.
        max_retries: calls after the first.
        pause: how to wait.
        on_wait: told of a pause, in seconds, that the server itself asked for: others should wait, too.

    Raises:
        TransientFailure: the last one, when the retries are used up, the server asks for too long a pause,
            or the wait was interrupted.
    """
    for attempt in range(max_retries + 1):
        try:
            return call()
        except TransientFailure as failure:
            if attempt == max_retries:
                raise
            if failure.retry_after_s is None:
                full = min(LONGEST_WAIT_S, FIRST_WAIT_S * 2**attempt)
                wait = full * random.uniform(0.5, 1.0)  # noqa: S311 - spreads waits, guards nothing
            elif failure.retry_after_s > LONGEST_RETRY_AFTER_S:
                raise
            else:
                wait = failure.retry_after_s
                if on_wait is not None:
                    on_wait(wait)
            if not pause.wait(wait):
                raise
    raise AssertionError("unreachable: the last attempt returns or raises")
