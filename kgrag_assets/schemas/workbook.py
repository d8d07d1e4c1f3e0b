"""Sheets of an Excel workbook into rows of text cells, merged ranges filled downwards."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

from python_calamine import (
    CalamineError,
    CalamineSheet,
    CalamineWorkbook,
    PasswordError,
    SheetTypeEnum,
)

from kgrag_assets.schemas.decoding import what_is
from kgrag_assets.schemas.errors import SchemaError
from kgrag_assets.schemas.grid import Grid, GridRow

_Cell = int | float | str | bool | dt.time | dt.date | dt.datetime | dt.timedelta


def cell_text(value: _Cell) -> str:
    """Write a cell as text: text as it is, whole numbers without a decimal point, dates in ISO form."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    if isinstance(value, dt.datetime):
        return value.isoformat(sep=" ")
    if isinstance(value, (dt.date, dt.time)):
        return value.isoformat()
    return str(value)


def _rows(sheet: CalamineSheet) -> tuple[GridRow, ...]:
    table = [[cell_text(value) for value in row] for row in sheet.to_python(skip_empty_area=False)]
    filled: dict[int, set[int]] = {}
    for (top, left), (bottom, _) in sheet.merged_cell_ranges or []:
        # Only downwards: a heading merged over several columns names none of them.
        for number in range(top + 1, min(bottom, len(table) - 1) + 1):
            if left < len(table[number]) and not table[number][left]:
                table[number][left] = table[top][left]
                filled.setdefault(number, set()).add(left)
    rows = (
        GridRow(number + 1, tuple(row), frozenset(filled.get(number, ())))
        for number, row in enumerate(table)
        # A row that is empty but for what a merged range fills is no row of its own.
        if any(cell.strip() for place, cell in enumerate(row) if place not in filled.get(number, ()))
    )
    return tuple(rows)


def read_workbook(path: Path, shown: str) -> list[Grid]:
    """Read every worksheet of an .xlsx file, in order; sheets are told apart by place, not by name.

    Raises:
        SchemaError: the file is no readable .xlsx workbook; the message says what it is instead.
    """
    try:
        kind = what_is(path)
        if kind != "an Excel workbook (.xlsx)":
            size = path.stat().st_size
            found = "empty" if size == 0 else kind or "a text file"
            raise SchemaError(f"{shown}: this is {found}, not an .xlsx workbook: save it as .xlsx, or as CSV")
        workbook = CalamineWorkbook.from_path(str(path))
    except OSError as error:
        raise SchemaError(f"{shown}: cannot be read: {error.strerror or error}") from error
    except PasswordError as error:
        raise SchemaError(f"{shown}: the workbook is protected by a password: save it without one") from error
    except CalamineError as error:
        raise SchemaError(f"{shown}: the workbook is damaged ({error}): save it again in Excel") from error
    grids: list[Grid] = []
    with workbook:
        for place, sheet in enumerate(workbook.sheets_metadata):
            if sheet.typ != SheetTypeEnum.WorkSheet:
                continue
            try:
                rows = _rows(workbook.get_sheet_by_index(place))
            except CalamineError as error:
                raise SchemaError(f"{shown}#{sheet.name}: the sheet is damaged ({error}): save it again") from error
            if rows:
                grids.append(Grid(f"{shown}#{sheet.name}", rows, sheet=sheet.name))
    if not grids:
        raise SchemaError(f"{shown}: every sheet is empty: put the rows into it")
    return grids
