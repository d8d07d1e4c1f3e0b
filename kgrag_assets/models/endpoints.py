"""Where a server is and what may be said about it: loopback or not, which key, and texts without keys."""

from __future__ import annotations

import ipaddress
import os
import re
from urllib.parse import urlsplit

from kgrag_assets.models.errors import ModelUnavailableError

# Servers on this machine usually want no key, but the client insists on sending one.
NO_KEY = "no-key-needed"

_ERROR_LENGTH = 500
_KEY_SHAPES = re.compile(r"\b(?:sk|pk|rk)-[\w*.-]{4,}|\bBearer\s+\S+|\bgsk_\w{8,}|\bhf_\w{8,}", re.IGNORECASE)
_USER_INFO = re.compile(r"(?<=://)[^/\s@]+@")


def host_of(url: str) -> str:
    """Return the host name of a URL in lower case; empty text where it has none."""
    try:
        return (urlsplit(url).hostname or "").lower()
    except ValueError:
        return ""


def is_loopback(url: str | None) -> bool:
    """Say whether a URL points at this machine."""
    if not url:
        return False
    host = host_of(url)
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def is_http_url(url: str) -> bool:
    """Say whether a text is an http(s) URL with a host, and with nothing in it that no URL has."""
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0 and url.isprintable()
    except ValueError:
        return False


def checked_url(url: str, setting: str) -> str:
    """Return the URL, or say what is wrong with it.

    Raises:
        ModelUnavailableError: not an http(s) URL with a host.
    """
    if not is_http_url(url):
        raise ModelUnavailableError(
            f"{setting}={without_secrets(url)!r} is not a URL: use one like http://host:port/v1"
        )
    return url


def key_from_environment(variable: str, base_url: str | None, what: str) -> str:
    """Read a key from an environment variable.

    Args:
        variable: its name.
        base_url: the server; one on loopback needs no key.
        what: who wants it, for the error message.

    Raises:
        ModelUnavailableError: the variable is not set, and the server is not on this machine.
    """
    key = os.environ.get(variable, "").strip()
    if key:
        return key
    if is_loopback(base_url):
        return NO_KEY
    raise ModelUnavailableError(
        f"{what} needs a key, and the environment variable {variable} is not set: "
        f"set it (in the environment, not in a file of the task), or use a model that runs on this machine"
    )


def without_secrets(text: str, *secrets: str) -> str:
    """Return an error text fit for a table or a log: without keys, on one line, of bounded length."""
    for secret in secrets:
        if secret and secret != NO_KEY:
            text = text.replace(secret, "[key]")
    text = _USER_INFO.sub("[user]@", _KEY_SHAPES.sub("[key]", text))
    text = " ".join(storable(text).split())
    return text if len(text) <= _ERROR_LENGTH else text[: _ERROR_LENGTH - 6] + " [cut]"


def storable(text: str) -> str:
    """Return text that UTF-8 can write: a lone surrogate, as JSON escapes may bring, becomes ``?``."""
    return text.encode("utf-8", "replace").decode("utf-8")
