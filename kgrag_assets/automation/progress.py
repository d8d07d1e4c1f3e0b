"""How a running stage says how far it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class Progress(Protocol):
    """Somebody who is told about progress."""

    def track(self, what: str, total: int) -> Callable[[int], None]:
        """Begin a piece of work of ``total`` steps; call the result with the steps done since."""


class SilentProgress:
    """Tells nobody: for the daemon and for tests, where the event log says enough."""

    def track(self, what: str, total: int) -> Callable[[int], None]:  # noqa: ARG002  (the protocol's names)
        """Begin a piece of work and say nothing about it."""
        return lambda _steps: None
