"""Text from files and models, made safe to print: what belongs here changes how text is shown, never what is stored."""

from __future__ import annotations

import re
import unicodedata
from typing import Any

# Whole terminal sequences (colours, cursor moves, window titles and links); what is left of a broken
# one loses its control characters below.
_SEQUENCE = re.compile(r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]|(?:\x1b\]|\x9d)[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)")
_LINE_BREAKS = re.compile("[\t\n\v\f\r\x85\u2028\u2029]+")
# These are invisible or reorder what stands after them, so that a name could look like another one. The
# joiners (200C, 200D) stay: scripts and emoji are written with them.
_HIDDEN = frozenset("\u200b\u2060\ufeff\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def plain(text: str, limit: int | None = None) -> str:
    """Return text on one line without terminal sequences, control characters and invisible marks.

    Args:
        text: untrusted text.
        limit: longest result, in characters; a longer one is cut and ends in an ellipsis.
    """
    one_line = _LINE_BREAKS.sub(" ", _SEQUENCE.sub("", text))
    kept = "".join(
        letter for letter in one_line if letter not in _HIDDEN and unicodedata.category(letter) not in ("Cc", "Cs")
    )
    if limit is not None and len(kept) > limit:
        return kept[: limit - 1].rstrip() + "…"
    return kept


def attribute_name(table: str, column: str) -> str:
    """Write an attribute as ``table.column``; parts that hold a dot or a quote are quoted as in SQL."""
    return f"{_part(table)}.{_part(column)}"


def _part(name: str) -> str:
    if "." in name or '"' in name:
        return '"' + name.replace('"', '""') + '"'
    return name


def number(value: Any, digits: int = 2) -> str:  # noqa: ANN401  (a cell of a frame: float, int or None)
    """Write a number for a table; an absent one (None or NaN) as a dash."""
    if value is None or value != value:  # noqa: PLR0124  (only NaN differs from itself)
        return "-"
    return f"{value:,}" if isinstance(value, int) else f"{value:.{digits}f}"


def counted(count: int, noun: str) -> str:
    """Write a count with its noun in the singular or plural."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
