"""What the parts of this package tell each other and those who use it, beside ``TransientFailure``."""

from __future__ import annotations

from kgrag_assets.knowledge.errors import KnowledgeError
from kgrag_assets.models.errors import TransientFailure


class OutOfTimeError(KnowledgeError):
    """The caller's time ends before the site may be asked, or somebody interrupted the wait; nothing was sent."""


class SlowAnswer(TransientFailure):
    """A site took the request, and its answer did not come, or not whole, within the time for one request."""

    def __init__(self, message: str) -> None:
        super().__init__("timeout", message)
