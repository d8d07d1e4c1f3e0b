"""Finding the attribute that somebody means by ``TABLE.COLUMN``."""

from __future__ import annotations

from typing import Any

import polars as pl
from rapidfuzz import process

from kgrag_assets.cli.plain_text import attribute_name, plain
from kgrag_assets.cli.task_view import ShowError
from kgrag_assets.rows.schema_attributes import SIDES

_SHOWN = 10

Row = dict[str, Any]


def find_attribute(attributes: pl.DataFrame, text: str) -> Row:
    """Find the one attribute that ``text`` names.

    Tried in this order, and in each step the source schema before the target: ``TABLE.COLUMN`` exactly
    (every way to split it where names hold dots; parts quoted as in SQL are understood), ``COLUMN``
    alone, then both again whatever the case. ``source:`` or ``target:`` before the name keeps to one schema.

    Args:
        attributes: rows of ``schema_attributes``.
        text: what was typed.

    Returns:
        The attribute's row.

    Raises:
        ShowError: nothing has that name (the message has the three nearest), or several have.
    """
    rows: list[Row] = attributes.sort("side", "position").to_dicts()
    found = _first_match(rows, text)
    for side in SIDES:
        if not found and text.startswith(f"{side}:"):
            found = _first_match([row for row in rows if row["side"] == side], text.removeprefix(f"{side}:"))
    if not found:
        raise ShowError(_nothing_found(rows, text))
    if len(found) > 1:
        raise ShowError(_several_found(found, text))
    return found[0]


def spelling(row: Row) -> str:
    """Write an attribute's name so that ``find_attribute`` understands it."""
    return attribute_name(row["table_name"], row["column_name"])


def _first_match(rows: list[Row], text: str) -> list[Row]:
    # Comparing whole spellings tries every split at once: a.b.c is table a with column b.c, and a.b with c.
    for fold in (str, str.casefold):
        wanted = fold(text)
        for spellings in (_full_spellings, _short_spellings):
            for side in SIDES:
                found = [row for row in rows if row["side"] == side and wanted in map(fold, spellings(row))]
                if found:
                    return found
    return []


def _full_spellings(row: Row) -> tuple[str, ...]:
    return (f"{row['table_name']}.{row['column_name']}", spelling(row))


def _short_spellings(row: Row) -> tuple[str, ...]:
    return (row["column_name"],)


def _nothing_found(rows: list[Row], text: str) -> str:
    shown = plain(text, 100)
    if not rows:
        return f"there is no column {shown}: the schemas of this task have no attributes"
    # A column typed without its table is compared with columns, so that its near namesakes are found.
    short = "." not in text
    names = [str(row["column_name"]) if short else spelling(row) for row in rows]
    nearest = process.extract(text.casefold(), [name.casefold() for name in names], limit=3)
    listed = ", ".join(_listed(rows[place]) for _name, _score, place in nearest)
    return f"there is no column {shown} in either schema; the nearest are {listed}"


def _several_found(rows: list[Row], text: str) -> str:
    listed = ", ".join(_listed(row) for row in rows[:_SHOWN])
    more = f" and {len(rows) - _SHOWN} more" if len(rows) > _SHOWN else ""
    return f"{plain(text, 100)} can mean several columns: {listed}{more}; name one of them with its table"


def _listed(row: Row) -> str:
    return f"{plain(spelling(row), 120)} ({row['side']})"
