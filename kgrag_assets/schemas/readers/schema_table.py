"""The product's own layout, one row per column of the schema, from CSV, TSV or the sheets of a workbook."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Sequence

from kgrag_assets.schemas.errors import SchemaError
from kgrag_assets.schemas.found import FoundColumn, FoundSchema, Reject, as_samples, shown_row, trimmed
from kgrag_assets.schemas.grid import Grid, GridRow, header_name, places_of, width_problem

ALIASES: dict[str, str] = {
    "table": "table",
    "table_name": "table",
    "column": "column",
    "column_name": "column",
    "data_type": "data_type",
    "type": "data_type",
    "table_description": "table_description",
    "column_description": "column_description",
    "sample_values": "sample_values",
    "is_primary_key": "is_primary_key",
    "references_table": "references_table",
    "references_column": "references_column",
    "required": "required",
}

_HEADER_SEARCH = 10  # rows of a sheet that may stand above its header: a title, a date
_YES = frozenset({"yes", "y", "true", "t", "1", "x"})
_NO = frozenset({"no", "n", "false", "f", "0"})


def split_samples(text: str) -> tuple[str, ...]:
    """Split a cell of sample values: a JSON list, or values separated by ``|``, or else by ``;``."""
    if text.lstrip().startswith("["):
        try:
            values = json.loads(text)
        except (ValueError, RecursionError):
            values = None
        if isinstance(values, list):
            texts = (value if isinstance(value, str) else json.dumps(value) for value in values)
            # JSON can spell half a character (\ud800), which no table can hold.
            return as_samples(value.encode("utf-8", "replace").decode() for value in texts)
    separator = "|" if "|" in text else ";"
    return as_samples(value.strip() for value in text.split(separator))


def find_header(grid: Grid) -> tuple[int, dict[str, int]] | None:
    """Find the header of a grid: the row's index and the place of each known column, or None without one."""
    search = _HEADER_SEARCH if grid.sheet is not None else 1
    for index, row in enumerate(grid.rows[:search]):
        names = {ALIASES.get(header_name(cell)) for cell in row.values}
        if "column" in names and ("table" in names or grid.sheet is not None):
            return index, places_of(row, ALIASES, grid.shown)
    return None


def _typing_errors(grid: Grid, header: GridRow) -> Iterator[Reject]:
    for cell in header.values:
        name = header_name(cell)
        if name and name not in ALIASES:
            near = difflib.get_close_matches(name, ALIASES, n=1, cutoff=0.85)
            if near:
                yield Reject(
                    grid.shown, header.number, f"the column {cell!r} is not read: did you mean {near[0]!r}?", cell
                )


def _flag(text: str) -> bool | None:
    word = text.strip().lower()
    return True if word in _YES else False if word in _NO else None


def _read_row(
    grid: Grid, row: GridRow, header: GridRow, places: dict[str, int]
) -> tuple[FoundColumn | None, list[Reject]]:
    def cell(name: str) -> str:
        place = places.get(name)
        return "" if place is None else row.values[place]

    def reject(reason: str) -> Reject:
        return Reject(grid.shown, row.number, reason, shown_row(row.values))

    problem = width_problem(row, header)
    if problem:
        return None, [reject(problem)]
    table = trimmed(cell("table")) if "table" in places else grid.sheet or ""
    # A merged table cell names the table of all its rows; a merged column cell is still one column.
    column = "" if places["column"] in row.filled else trimmed(cell("column"))
    if not table or not column:
        missing = "table" if not table else "column"
        return None, [reject(f"the name of the {missing} is missing: fill it in")]
    notes: list[Reject] = []
    flags: dict[str, bool | None] = {}
    for name in ("is_primary_key", "required"):
        flags[name] = _flag(cell(name))
        if flags[name] is None and cell(name).strip():
            notes.append(reject(f"{name} is {cell(name)!r}, which is neither yes nor no: taken as unknown"))
    found = FoundColumn(
        table=table,
        column=column,
        origin=grid.shown,
        data_type=cell("data_type").strip(),
        nullable=None if flags["required"] is None else not flags["required"],
        is_primary_key=flags["is_primary_key"],
        references_table=trimmed(cell("references_table")) or None,
        references_column=trimmed(cell("references_column")) or None,
        table_description=cell("table_description").strip(),
        column_description=cell("column_description").strip(),
        sample_values=split_samples(cell("sample_values")),
        row=row.number,
    )
    return found, notes


def read_schema_table(grids: Sequence[Grid]) -> FoundSchema:
    """Read grids in the layout ``table,column,data_type,table_description,column_description,...``.

    Only ``table`` and ``column`` must be there; a sheet without ``table`` is a table of its sheet's name.
    A sheet without a header of this layout is skipped, with a reject row that says so.

    Args:
        grids: one for a text file; all sheets of a workbook.

    Raises:
        SchemaError: no grid has such a header, a header names a column twice, or there is no row below it.
    """
    columns: list[FoundColumn] = []
    rejects: list[Reject] = []
    headers = 0
    sheet_tables: set[str] = set()
    for grid in grids:
        rejects.extend(grid.rejects)
        header_at = find_header(grid)
        if header_at is None:
            names = shown_row(grid.rows[0].values)
            rejects.append(Reject(grid.shown, grid.rows[0].number, "no header with table and column: not read", names))
            continue
        index, places = header_at
        header = grid.rows[index]
        headers += 1
        rejects.extend(_typing_errors(grid, header))
        if "table" not in places and grid.sheet is not None:
            if grid.sheet in sheet_tables:
                rejects.append(
                    Reject(
                        grid.shown,
                        None,
                        "another sheet has the same name (Excel cuts names to 31 characters), so the table cannot be "
                        "told: add a column named table",
                    )
                )
                continue
            sheet_tables.add(grid.sheet)
        for row in grid.rows[index + 1 :]:
            column, notes = _read_row(grid, row, header, places)
            rejects.extend(notes)
            if column is not None:
                columns.append(column)
    shown = grids[0].shown.split("#", 1)[0] if len(grids) > 1 else grids[0].shown
    if not headers:
        raise SchemaError(
            f"{shown}: the first row must name the columns, at least table and column; found "
            f"{shown_row(grids[0].rows[0].values)[:120]!r}"
        )
    if not columns:
        first = f" The first rejected row: {rejects[0].reason}." if rejects else ""
        raise SchemaError(f"{shown}: has a header but no usable row below it: add a row per column.{first}")
    return FoundSchema(tuple(columns), tuple(rejects))
