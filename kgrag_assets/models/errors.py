"""What can go wrong with a model: the errors that leave this room, and the two failures its parts tell each other."""

from __future__ import annotations


class ModelUnavailableError(RuntimeError):
    """No call to this model can succeed until somebody changes something; the message says what.

    Raised for a missing or refused key, an unknown model, a setting that the server does not take: asking
    again for the next pair would only fail in the same way.
    """


class EmbeddingError(RuntimeError):
    """An embedder gave something that is not one usable vector per text; the message names the text's position."""


class TransientFailure(Exception):  # noqa: N818 - says what happened; not every one ends as an error
    """A call failed in a way that may pass.

    ``status`` is the call status it ends with if it does not pass: timeout, rate_limited or error.
    """

    def __init__(self, status: str, message: str, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.retry_after_s = retry_after_s


class PermanentFailure(Exception):  # noqa: N818 - how one call ended
    """The server refused one question for good, a prompt too long for it, say; other questions may pass."""
