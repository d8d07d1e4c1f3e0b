"""Which endpoint is asked, as whom, and within which bounds; and what its refusals mean."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

from kgrag_assets import __version__
from kgrag_assets.knowledge.sparql.answers import says_timeout
from kgrag_assets.knowledge.sparql.errors import SparqlError, SparqlTimeoutError
from kgrag_assets.models.endpoints import without_secrets
from kgrag_assets.models.errors import TransientFailure
from kgrag_assets.models.retrying import retry_after_seconds

WIKIDATA = "https://query.wikidata.org/sparql"
_DEFAULT_PORTS = {"http": 80, "https": 443}
# Statuses that may pass when asked again. A timeout (504) is not: the same query would take as long again.
_MAY_PASS = (408, 429, 500, 502, 503)


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
        parts = _split(self.url)
        if parts is None:
            raise SparqlError(f"endpoint {without_secrets(self.url)!r} is not a URL: use one such as {WIKIDATA}")
        if parts.username is not None or parts.password is not None:
            raise SparqlError(f"endpoint {self.place}: a URL must not carry a user name or password")
        contact = self.contact.strip()
        usable = contact.isascii() and contact.isprintable() and len(contact) <= 200 and not set("()<>") & set(contact)
        if not usable or ("@" not in contact and not contact.startswith(("http://", "https://"))):
            raise SparqlError(
                f"endpoint {self.place}: contact must be an e-mail address or a URL where whoever runs the endpoint "
                f"can reach you, not {self.contact[:60]!r}"
            )
        if self.timeout_s <= 0 or self.min_interval_s < 0 or self.max_retries < 0 or self.max_answer_bytes < 1:
            raise SparqlError(f"endpoint {self.place}: intervals, times and bounds must be positive")

    @property
    def place(self) -> str:
        """The URL as it may be shown."""
        return without_secrets(self.url.split("?")[0])

    @property
    def origin(self) -> str:
        """``scheme://host:port``."""
        return origin_of(self.url) or ""

    @property
    def user_agent(self) -> str:
        """What requests say about who asks."""
        return f"kgrag-assets/{__version__} ({self.contact.strip()})"


def origin_of(url: str) -> str | None:
    """Return ``scheme://host:port`` of an http(s) URL; None where it is none."""
    parts = _split(url)
    if parts is None:
        return None
    return f"{parts.scheme}://{(parts.hostname or '').lower()}:{parts.port or _DEFAULT_PORTS[parts.scheme]}"


def failure_of(status: int, retry_after: str | None, body: bytes, endpoint: Endpoint) -> Exception:
    """Say what a status other than 200 means.

    Returns:
        A ``TransientFailure`` where asking again may help, else the ``SparqlError`` to raise.
    """
    place = endpoint.place
    said = said_by(body)
    if status == 504 or (status >= 500 and says_timeout(body)):
        return SparqlTimeoutError(
            f"{place} ran into its own time limit (HTTP {status}): ask for less, with a more selective query or a "
            f"smaller page"
        )
    if status in _MAY_PASS:
        kinds = {429: "rate_limited", 408: "timeout"}
        return TransientFailure(kinds.get(status, "error"), f"HTTP {status}{said}", retry_after_seconds(retry_after))
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


def _split(url: str) -> SplitResult | None:
    try:
        parts = urlsplit(url)
        usable = parts.scheme in _DEFAULT_PORTS and bool(parts.hostname) and parts.port != 0 and url.isprintable()
    except ValueError:
        return None
    return parts if usable else None
