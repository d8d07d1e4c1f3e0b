"""How much time is left for a piece of work."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from kgrag_assets.knowledge.changes.errors import TimeIsUpError


class Deadline:
    """A point in time (``end``), by a clock that only goes forward; none where ``seconds`` is None."""

    def __init__(self, seconds: float | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self.end = math.inf if seconds is None else clock() + seconds

    def left(self) -> float:
        """Return the seconds that are left, 0 where the time is up; infinite without a deadline."""
        return max(0.0, self.end - self._clock())

    def check(self) -> None:
        """Raise ``TimeIsUpError`` where the time is up."""
        if self.left() <= 0:
            raise TimeIsUpError("the time for this work is up")
