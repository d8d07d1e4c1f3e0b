"""What an attribute is called in running text: for embedding, and for linking it to entities."""

from __future__ import annotations

import re
from typing import Literal

from kgrag_assets.schemas.attribute import Attribute
from kgrag_assets.schemas.words import STOP_WORDS, name_words

# Part of the embeddings' code version: a change of wording embeds every attribute again.
TEXT_VERSION = "attribute-text-1"

View = Literal["name", "full"]

MAX_DESCRIPTION = 400
MAX_TABLE_DESCRIPTION = 160

# Words that say how a value is kept, not what it is of.
_GENERIC = frozenset(
    [
        "identifier",
        "code",
        "value",
        "number",
        "name",
        "type",
        "flag",
        "indicator",
        "key",
        "source",
        "concept",
        "text",
        "string",
    ]
)
_CLAUSE = re.compile(r"[.;:(,]| that | which | for | of the ")


def attribute_text(attribute: Attribute, view: str) -> str:
    """Write an attribute as text.

    Args:
        attribute: the attribute.
        view: ``name``: the words of table and column, abbreviations spelled out; ``full``: these with the
            descriptions of column and table, each cut at a bound.

    Raises:
        ValueError: an unknown view.
    """
    column, table = " ".join(name_words(attribute.column_name)), " ".join(name_words(attribute.table_name))
    name = f"{column or attribute.column_name} of {table or attribute.table_name}"
    if view == "name":
        return name
    if view != "full":
        raise ValueError(f"unknown view {view!r}: name or full")
    parts = [name]
    description = _clean(attribute.column_description, MAX_DESCRIPTION)
    about_table = _clean(attribute.table_description, MAX_TABLE_DESCRIPTION)
    if description:
        parts.append(description)
    if about_table:
        parts.append(f"({about_table})")
    return ". ".join(parts[:2]) + (f" {parts[2]}" if len(parts) > 2 else "")


def query_phrases(attribute: Attribute) -> list[str]:
    """Write the short phrases by which an attribute may be found among the names of a graph, likeliest first.

    The column's words; these without the table's words; without words that only say how a value is kept
    (identifier, code, value); and the beginning of the description, up to its first clause.
    """
    words = name_words(attribute.column_name)
    table_words = set(name_words(attribute.table_name))
    table_words |= {word.removesuffix("s") for word in table_words}
    own = [word for word in words if word not in table_words]
    subject = [word for word in words if word not in _GENERIC]
    both = [word for word in own if word not in _GENERIC]
    phrases = [" ".join(part) for part in (words, own, subject, both)]
    if len(both) > 2:
        phrases.append(" ".join(both[-2:]))
    phrases.append(_head(attribute.column_description))
    seen: dict[str, None] = {}
    for phrase in phrases:
        if phrase:
            seen.setdefault(phrase)
    return list(seen)


def _head(description: str) -> str:
    """Return the first clause of a description without its leading articles, if it is short enough to be a name."""
    clause = _CLAUSE.split(" ".join(description.split()).lower(), maxsplit=1)[0].strip()
    words = clause.split()
    while words and words[0] in STOP_WORDS:
        words = words[1:]
    return " ".join(words) if 0 < len(words) <= 5 else ""


def _clean(text: str, limit: int) -> str:
    cleaned = " ".join(text.split())
    return cleaned if len(cleaned) <= limit else cleaned[: limit - 1].rsplit(" ", 1)[0] + "…"
