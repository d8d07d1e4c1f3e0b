"""How a graph is kept fresh: what ``refresh`` in ``kg.yaml`` says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kgrag_assets.knowledge.errors import KnowledgeError

DEFAULT_API = "https://www.wikidata.org/w/api.php"
DEFAULT_STREAM = "https://stream.wikimedia.org/v2/stream/recentchange"
DEFAULT_DUMPS = "https://dumps.wikimedia.org/wikidatawiki/entities/"


@dataclass(frozen=True)
class RefreshOptions:
    """Where changes of a graph are learned, and how politely.

    ``contact`` is an address that the operators of the endpoint can write to; they ask for it in the user agent.
    ``seconds`` bounds one look, ``min_interval_s`` is kept between two requests. ``new_entities`` takes entities that
    the lake does not hold, as far as the graph's filter admits them. ``since`` is where the first look begins (the
    date of the dump, ``2026-11-30`` or with a time of day); without it changes are followed from the first look on.
    """

    contact: str
    api: str = DEFAULT_API
    feed: str = "recentchanges"
    stream: str = DEFAULT_STREAM
    dumps: str | None = None
    seconds: float = 40.0
    min_interval_s: float = 0.5
    new_entities: bool = False
    since: str | None = None


_TEXTS = ("contact", "api", "stream", "dumps", "since")


def read_refresh(values: object, origin: str) -> RefreshOptions | None:
    """Read the ``refresh`` section of ``kg.yaml``; without one the graph is not followed.

    Raises:
        KnowledgeError: an unknown or unusable setting, or no contact.
    """
    if values is None:
        return None
    known = set(RefreshOptions.__dataclass_fields__)
    if not isinstance(values, Mapping):
        raise KnowledgeError(f"{origin}: refresh must hold settings such as `contact: data-team@example.org`")
    unknown = sorted(str(name) for name in values if name not in known)
    if unknown:
        raise KnowledgeError(f"{origin}: unknown setting refresh.{unknown[0]}; use {', '.join(sorted(known))}")
    # YAML reads an unquoted date as a date.
    plain: dict[str, Any] = {name: str(value) if name == "since" else value for name, value in values.items()}
    for name in _TEXTS:
        if name in plain and (not isinstance(plain[name], str) or not plain[name].strip()):
            raise KnowledgeError(f"{origin}: refresh.{name} must be a text, not {plain[name]!r}")
    if "contact" not in plain:
        raise KnowledgeError(f"{origin}: refresh.contact is needed: an address the endpoint's operators can write to")
    for name in ("api", "stream", "dumps"):
        if name in plain and not plain[name].startswith(("http://", "https://")):
            raise KnowledgeError(f"{origin}: refresh.{name} must be an http address, not {plain[name]!r}")
    if plain.get("feed", "recentchanges") not in ("recentchanges", "eventstreams"):
        raise KnowledgeError(f"{origin}: refresh.feed must be recentchanges or eventstreams, not {plain['feed']!r}")
    for name in ("seconds", "min_interval_s"):
        value = plain.get(name, 1.0)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 3600:
            raise KnowledgeError(f"{origin}: refresh.{name} must be a number of seconds, not {value!r}")
    if not isinstance(plain.get("new_entities", False), bool):
        raise KnowledgeError(f"{origin}: refresh.new_entities must be true or false, not {plain['new_entities']!r}")
    return RefreshOptions(**plain)
