"""Which endpoint is asked, as whom, and within which bounds; and what its refusals mean."""

from __future__ import annotations

from dataclasses import dataclass

import httpx

from kgrag_assets.knowledge.http.address import checked_address, origin_of, place_of, user_agent
from kgrag_assets.knowledge.http.site import PASSING, passing_failure
from kgrag_assets.knowledge.sparql.answers import says_timeout
from kgrag_assets.knowledge.sparql.errors import SparqlError, SparqlTimeoutError
from kgrag_assets.models.endpoints import without_secrets

WIKIDATA = "https://query.wikidata.org/sparql"
_PROGRAM = "kgrag-assets"


@dataclass(frozen=True)
class Endpoint:
    """One endpoint and how it is asked.

    ``contact`` is an e-mail address or the URL of a page about this installation: operators of public endpoints
    want to be able to reach whoever asks, and Wikimedia refuses requests without it.
    """

    url: str
    contact: str
    min_interval_s: float = 1.0
    timeout_s: float = 65.0
    max_retries: int = 3
    max_answer_bytes: int = 64 << 20

    def __post_init__(self) -> None:
        """Check address and contact.

        Raises:
            SparqlError: the URL is none, or carries a password; the contact is none; a bound is not positive.
        """
        checked_address(self.url, SparqlError, WIKIDATA)
        user_agent(_PROGRAM, self.contact, SparqlError, "contact")
        if self.timeout_s <= 0 or self.min_interval_s < 0 or self.max_retries < 0 or self.max_answer_bytes < 1:
            raise SparqlError(f"endpoint {self.place}: intervals, times and bounds must be positive")

    @property
    def place(self) -> str:
        """The URL as it may be shown."""
        return place_of(self.url)

    @property
    def origin(self) -> str:
        """``scheme://host:port``."""
        return origin_of(self.url) or ""

    @property
    def user_agent(self) -> str:
        """What requests say about who asks."""
        return user_agent(_PROGRAM, self.contact, SparqlError, "contact")


def failure_of(response: httpx.Response, body: bytes, place: str) -> Exception:
    """Say what a status other than 200 means.

    Args:
        response: the answer.
        body: its beginning.
        place: the endpoint, as it may be shown.

    Returns:
        A ``TransientFailure`` where asking again may help, else the ``SparqlError`` to raise.
    """
    status, said = response.status_code, said_by(body)
    # The same query would take as long again.
    if status == 504 or (status >= 500 and says_timeout(body)):
        return SparqlTimeoutError(
            f"{place} ran into its own time limit (HTTP {status}): ask for less, with a more selective query or a "
            f"smaller page"
        )
    if status in PASSING:
        return passing_failure(response, said)
    meanings = {
        400: "did not understand the query; correct it",
        401: "wants a login, which is not supported: use an endpoint that is open to you",
        403: "refuses to answer: check that the contact is right, and wait before you ask again",
        404: "has nothing at this address: check the URL of the endpoint",
        405: "does not take queries at this address: check the URL of the endpoint",
        413: "finds the query too long",
        414: "finds the query too long",
    }
    return SparqlError(f"{place} {meanings.get(status, 'does not answer')} (HTTP {status}){said}")


def said_by(body: bytes) -> str:
    """Return the beginning of a server's own words for an error message, on one line; empty for a page of HTML."""
    text = body[:2000].decode("utf-8", "replace").strip()
    if not text or text.lower().startswith(("<!doctype", "<html", "<?xml")):
        return ""
    shown = "".join(char if char.isprintable() else " " for char in text)
    return f": {without_secrets(shown[:300])}"
