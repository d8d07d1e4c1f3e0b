"""The scan report of OHDSI WhiteRabbit: an overview of all fields, and a sheet of values per table."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence

from kgrag_assets.schemas.errors import SchemaError
from kgrag_assets.schemas.found import FoundColumn, FoundSchema, Reject, as_samples, shown_row, trimmed
from kgrag_assets.schemas.grid import Grid, header_name, places_of
from kgrag_assets.schemas.value_profile import describe_values

_OVERVIEWS = ("Field Overview", "Overview")  # the second is what releases before 0.10 call it
_SHEET_NAME_LENGTH = 31
_INDEXED = re.compile(r"\d+_(?=.{32})", re.DOTALL)

_FIELD_NAMES = {
    header_name(name): name
    for name in ("Table", "Field", "Description", "Type", "N rows checked", "Fraction empty", "N unique values")
}
_TABLE_NAMES = {header_name(name): name for name in ("Table", "Description")}


def overview_of(grids: Sequence[Grid]) -> Grid | None:
    """Return the sheet with the fields of a scan report, or None where this is no scan report."""
    for grid in grids:
        if grid.sheet in _OVERVIEWS:
            names = {header_name(cell) for cell in grid.rows[0].values}
            if {"table", "field"} <= names:
                return grid
    return None


def _number(text: str) -> float | None:
    # A count of a cut list is written "<= 120": a bound, not a count.
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _share(text: str) -> float | None:
    share = _number(text.rstrip("%").strip())
    if share is None:
        return None
    share = share / 100 if text.strip().endswith("%") else share
    return share if 0 <= share <= 1 else None


def _table_descriptions(grids: Sequence[Grid]) -> dict[str, str]:
    for grid in grids:
        if grid.sheet == "Table Overview":
            places = places_of(grid.rows[0], _TABLE_NAMES, grid.shown)
            if set(places) == {"Table", "Description"}:
                return {
                    trimmed(row.values[places["Table"]]): row.values[places["Description"]].strip()
                    for row in grid.rows[1:]
                }
    return {}


def _sheet_name(table: str) -> str:
    return table[:_SHEET_NAME_LENGTH].replace("/", "_")


def _real_names(tables: Sequence[str]) -> dict[str, str]:
    # Names too long for a sheet get a running number in front, all of them with numbers of their own.
    long = [table for table in tables if len(table) > _SHEET_NAME_LENGTH]
    heads = [match.group() if (match := _INDEXED.match(table)) else None for table in long]
    if long and None not in heads and len(set(heads)) == len(heads):
        return {table: table[len(head) :] for table, head in zip(long, heads, strict=True) if head}
    return {}


def _values(grid: Grid, field: str) -> list[tuple[str, float]]:
    """Return a field's values with their frequencies, the most frequent first; nothing where none are told."""
    header = grid.rows[0].values
    places = [place for place, cell in enumerate(header) if place % 2 == 0 and trimmed(cell) == field]
    if not places or places[0] + 1 >= len(header) or header_name(header[places[0] + 1]) != "frequency":
        return []  # "Word count": words of free text, not values
    place = places[0]
    # An entry without a frequency is a remark ("List truncated..."), not a value.
    counted = [
        (count, row.values[place]) for row in grid.rows[1:] if (count := _number(row.values[place + 1])) is not None
    ]
    return [(value, count) for count, value in sorted(counted, key=lambda entry: -entry[0])]


def read_white_rabbit(grids: Sequence[Grid], shown: str) -> FoundSchema:
    """Read a scan report.

    Sheet names are cut to 31 characters; where two tables share them, their values cannot be told apart
    and are left out with a reject row, while their fields are kept.

    Args:
        grids: all sheets.
        shown: the file's name for messages.

    Raises:
        SchemaError: there is no sheet of fields, or it has no usable row.
    """
    overview = overview_of(grids)
    if overview is None:
        raise SchemaError(f"{shown}: has no sheet named 'Field Overview' with the columns Table and Field")
    places = places_of(overview.rows[0], _FIELD_NAMES, overview.shown)
    descriptions = _table_descriptions(grids)
    tables = list(dict.fromkeys(trimmed(row.values[places["Table"]]) for row in overview.rows[1:]))
    names = _real_names(tables)
    sheets: dict[str, list[Grid]] = {}
    for grid in grids:
        sheets.setdefault(grid.sheet or "", []).append(grid)
    wanted = Counter(_sheet_name(table) for table in tables)
    rejects: list[Reject] = []
    for sheet, count in wanted.items():
        if (count > 1 and sheet in sheets) or len(sheets.get(sheet, ())) > 1:
            reason = f"{count} tables share this sheet's name of 31 characters: their values are not used"
            rejects.append(Reject(f"{shown}#{sheet}", None, reason))
    columns: list[FoundColumn] = []
    for row in overview.rows[1:]:

        def cell(name: str, values: tuple[str, ...] = row.values) -> str:
            place = places.get(name)
            return "" if place is None else values[place]

        table, field = trimmed(cell("Table")), trimmed(cell("Field"))
        if not table or not field:
            reason = "the name of the table or field is missing: fill it in"
            rejects.append(Reject(overview.shown, row.number, reason, shown_row(row.values)))
            continue
        sheet = _sheet_name(table)
        values = sheets.get(sheet, [])
        usable = len(values) == 1 and wanted[sheet] == 1
        counted = _values(values[0], field) if usable else []
        unique = _number(cell("N unique values"))
        columns.append(
            FoundColumn(
                table=names.get(table, table),
                column=field,
                origin=overview.shown,
                data_type=cell("Type").strip(),
                table_description=descriptions.get(table, ""),
                column_description=cell("Description").strip(),
                sample_values=as_samples(value for value, _ in counted),
                values=describe_values(counted),
                # Without a scan of values both figures are blank or stand at 0 of 0 rows.
                distinct_count=int(unique) if unique is not None and unique >= 0 else None,
                null_share=_share(cell("Fraction empty")) if (_number(cell("N rows checked")) or 0) > 0 else None,
                row=row.number,
            )
        )
    if not columns:
        raise SchemaError(f"{overview.shown}: has a header but no usable row below it")
    return FoundSchema(tuple(columns), tuple(rejects))
