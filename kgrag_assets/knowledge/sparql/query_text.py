"""Looking at a query that a person wrote: whether it can be fetched page by page."""

from __future__ import annotations

import re

from kgrag_assets.knowledge.sparql.errors import QueryRefusedError

COLUMNS = ("head", "relation", "tail")
MAX_QUERY = 100_000

# What can hold a brace, a hash sign or a word that is none, longest quotes first.
_TOKEN = re.compile(
    r"""
      (?P<comment>\#[^\r\n]*)
    | (?P<quoted>\"\"\"(?:[^"\\]|\\.|"(?!""))*\"\"\" | '''(?:[^'\\]|\\.|'(?!''))*'''
               | "(?:[^"\\\r\n]|\\.)*" | '(?:[^'\\\r\n]|\\.)*')
    | (?P<iri><[^<>"{}|^`\\\x00-\x20]*>)
    | (?P<variable>[?$]\w+)
    | (?P<name>(?:[\w.-]*:)(?:[\w.:-]|%[0-9A-Fa-f]{2}|\\.)*)
    | (?P<word>\w+)
    | (?P<sign>\S)
    """,
    re.VERBOSE | re.DOTALL,
)


def checked_extract_query(query: str, origin: str) -> str:
    """Return a query that can be paged as it is given, or say why it cannot.

    It must be one SELECT with ORDER BY over ``?head``, ``?relation`` and ``?tail`` (in any order, among others)
    at its end: without a full order the endpoint may give a row on two pages or on none.

    Args:
        query: SPARQL as a person wrote it, comments and prefixes and all.
        origin: where it comes from, for the error message.

    Raises:
        QueryRefusedError: it is no SELECT, has a LIMIT or OFFSET of its own, or lacks the order.
    """
    if len(query) > MAX_QUERY:
        raise QueryRefusedError(f"{origin}: the query has more than {MAX_QUERY} characters")
    outer = _outer_tokens(query, origin)
    words = [text.upper() if kind == "word" else text for kind, text in outer]
    form = next((word for word in words if word in ("SELECT", "ASK", "CONSTRUCT", "DESCRIBE")), None)
    changes = [word for word in words if word in ("INSERT", "DELETE", "LOAD", "CLEAR", "DROP", "CREATE", "WITH")]
    if form != "SELECT" or changes or ";" in words:
        raise QueryRefusedError(f"{origin}: an extract is one SELECT query, with the columns ?head ?relation ?tail")
    for word in ("LIMIT", "OFFSET"):
        if word in words:
            raise QueryRefusedError(
                f"{origin}: take {word} out: the pages get theirs; to bound the extract, make the query more selective "
                f"or put the bound into a sub-select"
            )
    if "VALUES" in words:
        raise QueryRefusedError(f"{origin}: put the VALUES block into WHERE {{ … }}: nothing may follow the order")
    ordered = _ordered_by(words)
    missing = [f"?{name}" for name in COLUMNS if f"?{name}" not in ordered]
    if missing:
        raise QueryRefusedError(
            f"{origin}: end the query with ORDER BY ?head ?relation ?tail (missing: {' '.join(missing)}): without a "
            f"full order a row may be on two pages or on none"
        )
    return query


def _outer_tokens(query: str, origin: str) -> list[tuple[str, str]]:
    """Return kind and text of what stands outside braces; what ORDER BY has in parentheses stays."""
    outer: list[tuple[str, str]] = []
    depth, place = 0, 0
    while place < len(query):
        found = _TOKEN.match(query, place)
        if found is None:
            place += 1
            continue
        place = found.end()
        kind, text = str(found.lastgroup), found.group()
        if kind == "sign" and text in "{}":
            depth += 1 if text == "{" else -1
            if depth < 0:
                raise QueryRefusedError(f"{origin}: the query closes a brace that is not open")
        elif depth == 0 and kind not in ("comment", "quoted", "iri", "name"):
            outer.append((kind, text.replace("$", "?") if kind == "variable" else text))
        if kind == "sign" and text in "\"'":
            raise QueryRefusedError(f"{origin}: the query has a quotation mark that is not closed")
    if depth:
        raise QueryRefusedError(f"{origin}: the query has a brace that is not closed")
    return outer


def _ordered_by(words: list[str]) -> set[str]:
    """Return the variables behind the last ORDER BY."""
    for place in range(len(words) - 1, 0, -1):
        if words[place] == "BY" and words[place - 1] == "ORDER":
            return {word for word in words[place + 1 :] if word.startswith("?")}
    return set()
