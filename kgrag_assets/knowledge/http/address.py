"""Whom we ask, and who we say asks: addresses that can be asked, their origin, and the user agent with its contact."""

from __future__ import annotations

import re
from collections.abc import Callable
from urllib.parse import urlsplit

import httpx

from kgrag_assets import __version__
from kgrag_assets.knowledge.errors import KnowledgeError
from kgrag_assets.models.endpoints import is_http_url, without_secrets

_DEFAULT_PORTS = {"http": 80, "https": 443}
_REACHABLE = re.compile(r"[^@\s()<>]+@[^@\s()<>]+\.[^@\s()<>]+|https?://[^\s()<>]+")

ErrorKind = Callable[[str], KnowledgeError]


def checked_address(address: str, error: ErrorKind, example: str) -> str:
    """Return an address without a slash at its end, or say what is wrong with it.

    Args:
        address: what somebody set.
        error: the class of error that is raised.
        example: an address of this sort, for the message.

    Raises:
        KnowledgeError: of the kind ``error``: not http(s), no host, or with a user name or password inside.
    """
    address = address.strip()
    if not is_http_url(address) or "@" in urlsplit(address).netloc or not _is_usable(address):
        raise error(
            f"{without_secrets(address)!r} is not an address that can be asked (not a URL of http or https, or one "
            f"with a user name or password): use one such as {example}"
        )
    return address.rstrip("/")


def origin_of(url: str) -> str | None:
    """Return ``scheme://host:port`` of an http(s) URL; None where it is none."""
    if not is_http_url(url):
        return None
    parts = urlsplit(url)
    return f"{parts.scheme}://{(parts.hostname or '').lower()}:{parts.port or _DEFAULT_PORTS[parts.scheme]}"


def place_of(url: str) -> str:
    """Return a URL as it may be shown: without query and secrets."""
    return without_secrets(url.split("?", maxsplit=1)[0])


def user_agent(program: str, contact: str, error: ErrorKind, setting: str) -> str:
    """Say who asks, as operators of public sites want to know: the program, its version, how to reach its user.

    Args:
        program: how the program calls itself.
        contact: a mail address or the address of a page.
        error: the class of error that is raised.
        setting: where the contact is set, for the message.

    Raises:
        KnowledgeError: of the kind ``error``: the text has neither, or it cannot be sent in a header.
    """
    contact = contact.strip()
    if not contact.isascii() or not contact.isprintable() or len(contact) > 200 or not _REACHABLE.search(contact):
        raise error(
            f"the contact {contact[:60]!r} has no mail address or web page: Wikimedia, for one, refuses programs whose "
            f"user cannot be reached. Set {setting}, to your mail address for instance"
        )
    return f"{program}/{__version__} ({contact}) httpx/{httpx.__version__}"


def _is_usable(address: str) -> bool:
    try:
        httpx.URL(address)
    except httpx.InvalidURL:
        return False
    return True
