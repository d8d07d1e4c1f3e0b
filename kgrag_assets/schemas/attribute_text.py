"""What an attribute is called in running text: for embedding, and for linking it to entities."""

from __future__ import annotations

import re

from kgrag_assets.schemas.attribute import Attribute
from kgrag_assets.schemas.words import STOP_WORDS, WORDS_VERSION, name_words

# Part of the embeddings' code version: a change of wording embeds every attribute again.
TEXT_VERSION = f"attribute-text-2/{WORDS_VERSION}"

# name and full speak of the attribute in its table. column and description hold one side of it each, so that
# the words of one schema's name can meet the words of the other schema's description.
ATTRIBUTE_VIEWS = ("name", "column", "description", "full")

MAX_DESCRIPTION = 400

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

    The table's description is in none of the views: it is the same for all columns of a table and would make
    them alike; it speaks through the similarity of the tables.

    Args:
        attribute: the attribute.
        view: ``name``: the words of column and table, abbreviations spelled out; ``column``: the column's words;
            ``description``: the column's description, or its words where it has none; ``full``: the words of
            table and column, and the description. Descriptions are cut at ``MAX_DESCRIPTION`` characters.

    Raises:
        ValueError: an unknown view.
    """
    column = " ".join(name_words(attribute.column_name)) or attribute.column_name
    table = " ".join(name_words(attribute.table_name)) or attribute.table_name
    description = _clean(attribute.column_description, MAX_DESCRIPTION)
    if view == "name":
        return f"{column} of {table}"
    if view == "column":
        return column
    if view == "description":
        return description or column
    if view == "full":
        return f"{table} {column}. {description}".strip()
    raise ValueError(f"unknown view {view!r}: use one of {', '.join(ATTRIBUTE_VIEWS)}")


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
