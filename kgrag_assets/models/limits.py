"""Keeping calls within a number of requests and tokens a minute."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable

from kgrag_assets.models.retrying import Pause

MINUTE_S = 60.0


class RateLimit:
    """Lets calls go as long as the last minute holds fewer requests and tokens than allowed; else they wait.

    A sliding window: what was let go more than a minute ago does not count. One call of more tokens than a minute
    allows goes alone, when the window is empty: it could never go otherwise.
    """

    def __init__(
        self,
        requests_per_minute: int | None,
        tokens_per_minute: int | None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._requests = requests_per_minute
        self._tokens = tokens_per_minute
        self._clock = clock
        self._lock = threading.Lock()
        self._gone: deque[tuple[float, int]] = deque()
        self._sum = 0
        self._closed_until = 0.0

    def wait(self, tokens: int, pause: Pause) -> bool:
        """Wait until a call of so many tokens may go, and count it.

        Returns:
            False where the wait was interrupted: then the call must not go.
        """
        while True:
            with self._lock:
                seconds = self._seconds_to_wait(tokens)
                if seconds <= 0.0:
                    self._gone.append((self._clock(), tokens))
                    self._sum += tokens
                    return True
            if not pause.wait(seconds):
                return False

    def close_for(self, seconds: float) -> None:
        """Let nothing go for so many seconds: the server asked one call to wait, and means all."""
        with self._lock:
            self._closed_until = max(self._closed_until, self._clock() + seconds)

    def _seconds_to_wait(self, tokens: int) -> float:
        now = self._clock()
        while self._gone and self._gone[0][0] <= now - MINUTE_S:
            self._sum -= self._gone.popleft()[1]
        waits = [self._closed_until - now]
        if self._requests is not None and len(self._gone) >= self._requests:
            waits.append(self._gone[len(self._gone) - self._requests][0] + MINUTE_S - now)
        if self._tokens is not None and self._gone and self._sum + tokens > self._tokens:
            freed, needed = 0, self._sum + tokens - self._tokens
            last = self._gone[-1][0]
            for when, count in self._gone:
                freed += count
                if freed >= needed:
                    last = when
                    break
            waits.append(last + MINUTE_S - now)
        return max(waits)
