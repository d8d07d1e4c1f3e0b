"""The text by which an entity or a triple is embedded, and the version of that wording."""

from __future__ import annotations

from collections.abc import Sequence

# What the two functions below write is part of every embedding: the text is hashed into its row key, so a
# change of wording re-embeds by itself. The version is for the assets' code_version.
TEXT_VERSION = "entity-text-1"

MAX_ALIASES = 3
# The embedders read some 256 word pieces; more than this adds time and no meaning.
MAX_TEXT = 600


def _words(text: str) -> str:
    return " ".join(text.split())


def entity_text(label: str, aliases: Sequence[str], description: str) -> str:
    """Write an entity as ``label (alias, alias): description``.

    Args:
        label: the preferred name; where a graph has none it is the id.
        aliases: other names in order; the first three that say something new are used. More of them
            pull the vector towards rare spellings.
        description: may be empty.

    Returns:
        One line of at most 600 characters.
    """
    name = _words(label)
    seen = {name.casefold()}
    others: list[str] = []
    for alias in aliases:
        cleaned = _words(alias)
        if cleaned and cleaned.casefold() not in seen:
            seen.add(cleaned.casefold())
            others.append(cleaned)
        if len(others) == MAX_ALIASES:
            break
    text = f"{name} ({', '.join(others)})" if others else name
    about = _words(description)
    return (f"{text}: {about}" if about else text)[:MAX_TEXT]


def triple_text(head_label: str, relation_label: str, tail_label: str) -> str:
    """Write a triple as ``head relation tail``, one line of at most 600 characters."""
    return _words(f"{head_label} {relation_label} {tail_label}")[:MAX_TEXT]
