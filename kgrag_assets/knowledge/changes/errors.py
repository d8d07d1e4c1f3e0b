"""What can go wrong when another site is asked what changed."""

from __future__ import annotations

from kgrag_assets.knowledge.errors import KnowledgeError


class ChangesError(KnowledgeError):
    """The site cannot be asked like this; the message names the address and what to do."""


class UnavailableError(ChangesError):
    """The site does not answer now, or asks to be left alone; a later try may succeed."""


class TimeIsUpError(ChangesError):
    """The time that was given for the work is over; what was done so far holds."""


class CursorError(ChangesError):
    """The remembered place in the feed of changes cannot be read; the message says how to begin anew."""


class ApiError(ChangesError):
    """The MediaWiki API refused a request; ``code`` is its word for why."""

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code


class TooLargeError(ChangesError):
    """An answer is larger than the bound on answers."""


class RefusedError(ChangesError):
    """The site refused a request for good; ``status`` is the HTTP status."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status
