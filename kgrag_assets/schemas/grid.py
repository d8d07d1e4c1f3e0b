"""Rows of text cells with their row numbers, and finding the columns of a layout in a header."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kgrag_assets.schemas.errors import SchemaError
from kgrag_assets.schemas.found import Reject, trimmed


@dataclass(frozen=True)
class GridRow:
    """One row.

    ``number`` counts from 1 as an editor does; ``filled`` holds the places of cells that a merged range
    fills from its first row.
    """

    number: int
    values: tuple[str, ...]
    filled: frozenset[int] = frozenset()

    @property
    def blank(self) -> bool:
        """Whether every cell is empty or white space."""
        return not any(value.strip() for value in self.values)


@dataclass(frozen=True)
class Grid:
    """The non-blank rows of a text file or of one sheet; ``shown`` is how messages name it."""

    shown: str
    rows: tuple[GridRow, ...]
    rejects: tuple[Reject, ...] = ()
    sheet: str | None = None


def header_name(cell: str) -> str:
    """Bring a header cell to the form in which names are compared: ends cut, lower case, blanks as ``_``."""
    return "_".join(trimmed(cell).lower().replace("\u00a0", " ").split())


def places_of(row: GridRow, aliases: Mapping[str, str], shown: str) -> dict[str, int]:
    """Find the columns of a layout in a header row.

    Args:
        row: the header.
        aliases: the layout's name for each name that a header may use, both as ``header_name`` gives them.
        shown: the file for the error message.

    Returns:
        The place of each of the layout's columns that the header has.

    Raises:
        SchemaError: two header cells name the same column.
    """
    places: dict[str, int] = {}
    for place, cell in enumerate(row.values):
        name = aliases.get(header_name(cell))
        if name is None:
            continue
        if name in places:
            raise SchemaError(
                f"{shown}, row {row.number}: the header names the column {name!r} twice "
                f"({row.values[places[name]]!r} and {cell!r}): remove one"
            )
        places[name] = place
    return places


def width_problem(row: GridRow, header: GridRow) -> str | None:
    """Say what is wrong with the number of cells of a row, or return None; blank cells too many are nothing."""
    width = len(header.values)
    surplus = row.values[width:]
    if len(row.values) < width:
        return f"{len(row.values)} fields where the header has {width}: add the missing ones"
    if any(cell.strip() for cell in surplus):
        return (
            f"{len(row.values)} fields where the header has {width}: put quotes around a text that has the delimiter "
            "in it"
        )
    return None
