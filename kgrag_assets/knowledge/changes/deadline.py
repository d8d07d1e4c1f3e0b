"""How much time is left for a piece of work, and waiting that keeps within it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from kgrag_assets.knowledge.changes.errors import TimeIsUpError
from kgrag_assets.models.retrying import Pause


class Deadline:
    """A point in time, by a clock that only goes forward; none where ``seconds`` is None."""

    def __init__(self, seconds: float | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._end = math.inf if seconds is None else clock() + seconds

    def left(self) -> float:
        """Return the seconds that are left, 0 where the time is up; infinite without a deadline."""
        return max(0.0, self._end - self._clock())

    def check(self) -> None:
        """Raise ``TimeIsUpError`` where the time is up."""
        if self.left() <= 0:
            raise TimeIsUpError("the time for this work is up")


class PauseWithin(Pause):
    """Waits through another pause, and refuses at once a wait that would end after the deadline."""

    def __init__(self, pause: Pause, deadline: Deadline) -> None:
        super().__init__()
        self._pause = pause
        self._deadline = deadline

    def wait(self, seconds: float) -> bool:
        """Wait; return False where somebody interrupts.

        Raises:
            TimeIsUpError: the wait does not fit in the time that is left.
        """
        if seconds >= self._deadline.left():
            raise TimeIsUpError(f"a wait of {seconds:.1f} s does not fit in the time that is left")
        return self._pause.wait(seconds)
