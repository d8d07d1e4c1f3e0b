"""The sheet layout of the OMAP benchmark: a row per pair of attributes, which gives both schemas and the truth.

The layout is that of the data sets of Zhang et al., "SMAT: An Attention-based Deep Learning Solution to the
Automation of Schema Matching" (ADBIS 2021): ``omop`` and ``table`` name the target's and the source's attribute as
table and column joined by a hyphen; ``d1`` to ``d4`` are the descriptions of the target's table and column and of the
source's table and column; ``des1`` and ``des2`` hold each side's two descriptions joined by a semicolon.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from kgrag_assets.schemas.errors import SchemaError
from kgrag_assets.schemas.found import FoundColumn, FoundPair, FoundSchema, Reject, shown_row, trimmed
from kgrag_assets.schemas.grid import Grid, GridRow, header_name, places_of, width_problem

_NAMES = ("omop", "table", "des1", "des2", "label", "d1", "d2", "d3", "d4")
ALIASES = {name: name for name in _NAMES}
_LABELS = {"0": False, "1": True, "0.0": False, "1.0": True, "false": False, "true": True}


@dataclass(frozen=True)
class FoundOmap:
    """Both schemas and the true pairs of one sheet."""

    source: FoundSchema
    target: FoundSchema
    pairs: tuple[FoundPair, ...]
    rejects: tuple[Reject, ...]


@dataclass(frozen=True)
class _Line:
    number: int
    shown: str
    content: str
    target: str
    source: str
    target_text: tuple[str, str]
    source_text: tuple[str, str]
    label: bool


def is_omap(grid: Grid) -> bool:
    """Whether a grid's header is that of this layout."""
    return {"omop", "table", "label"} <= {header_name(cell) for cell in grid.rows[0].values}


def _texts(table: str, column: str, both: str) -> tuple[str, str]:
    if table.strip() or column.strip():
        return table.strip(), column.strip()
    first, separator, rest = both.partition(";")
    return (first.strip(), rest.strip()) if separator else ("", both.strip())


def _read_line(grid: Grid, row: GridRow, places: dict[str, int]) -> _Line | Reject:
    def cell(name: str) -> str:
        place = places.get(name)
        return "" if place is None else row.values[place]

    content = shown_row(row.values)
    problem = width_problem(row, grid.rows[0])
    if problem:
        return Reject(grid.shown, row.number, problem, content)
    label = _LABELS.get(cell("label").strip().lower())
    if label is None:
        return Reject(grid.shown, row.number, f"the label is {cell('label')!r}: it must be 0 or 1", content)
    target, source = trimmed(cell("omop")), trimmed(cell("table"))
    for name, value in (("omop", target), ("table", source)):
        head, hyphen, tail = value.partition("-")
        if not (hyphen and head.strip() and tail.strip()):
            return Reject(
                grid.shown, row.number, f"{name} is {value!r}: it must be a table and a column joined by '-'", content
            )
    return _Line(
        row.number,
        grid.shown,
        content,
        target,
        source,
        _texts(cell("d1"), cell("d2"), cell("des1")),
        _texts(cell("d3"), cell("d4"), cell("des2")),
        label,
    )


def split_names(names: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Split names of the form ``table-column``.

    A name with one hyphen says where it parts. One with several is parted after the longest table that
    such names show to exist, or else at its last hyphen.
    """
    distinct = list(dict.fromkeys(names))
    tables = {name.split("-")[0] for name in distinct if name.count("-") == 1}
    parts: dict[str, tuple[str, str]] = {}
    for name in distinct:
        cuts = [place for place, letter in enumerate(name) if letter == "-" and 0 < place < len(name) - 1]
        known = [cut for cut in cuts if name[:cut] in tables]
        cut = max(known) if known else cuts[-1]
        parts[name] = name[:cut].strip(), name[cut + 1 :].strip()
    return parts


def _schema(named: Sequence[tuple[str, tuple[str, str], _Line]], parts: dict[str, tuple[str, str]]) -> FoundSchema:
    columns: dict[str, FoundColumn] = {}
    for name, (table_text, column_text), line in named:
        known = columns.get(name)
        if known is None:
            table, column = parts[name]
            columns[name] = FoundColumn(
                table=table,
                column=column,
                origin=line.shown,
                table_description=table_text,
                column_description=column_text,
                row=line.number,
            )
        elif (table_text and not known.table_description) or (column_text and not known.column_description):
            columns[name] = replace(
                known,
                table_description=known.table_description or table_text,
                column_description=known.column_description or column_text,
            )
    return FoundSchema(tuple(columns.values()))


def read_omap(grids: Sequence[Grid]) -> FoundOmap:
    """Read the sheets of this layout.

    Args:
        grids: all sheets; those without this layout's header are skipped, with a reject row.

    Returns:
        Both schemas, each attribute once in order of first mention, and the pairs labelled 1.

    Raises:
        SchemaError: no sheet has this layout, or none of its rows can be used.
    """
    rejects: list[Reject] = []
    lines: list[_Line] = []
    for grid in grids:
        rejects.extend(grid.rejects)
        if not is_omap(grid):
            header = shown_row(grid.rows[0].values)
            rejects.append(Reject(grid.shown, grid.rows[0].number, "no header with omop, table and label", header))
            continue
        places = places_of(grid.rows[0], ALIASES, grid.shown)
        for row in grid.rows[1:]:
            line = _read_line(grid, row, places)
            if isinstance(line, Reject):
                rejects.append(line)
            else:
                lines.append(line)
    labels: dict[tuple[str, str], bool] = {}
    kept: list[_Line] = []
    for line in lines:
        if labels.setdefault((line.source, line.target), line.label) != line.label:
            reason = "this pair has the other label in an earlier row: keep one of them"
            rejects.append(Reject(line.shown, line.number, reason, line.content))
        else:
            kept.append(line)
    if not kept:
        reason = f": {rejects[0].reason}" if rejects else ""
        raise SchemaError(f"{grids[0].shown}: no usable row with omop, table and label{reason}")
    source_parts = split_names(line.source for line in lines)
    target_parts = split_names(line.target for line in lines)
    pairs = dict.fromkeys((line.source, line.target) for line in kept if line.label)
    first = {(line.source, line.target): line for line in reversed(kept)}
    return FoundOmap(
        source=_schema([(line.source, line.source_text, line) for line in kept], source_parts),
        target=_schema([(line.target, line.target_text, line) for line in kept], target_parts),
        pairs=tuple(
            FoundPair(*source_parts[s], *target_parts[t], file=first[s, t].shown, row=first[s, t].number)
            for s, t in pairs
        ),
        rejects=tuple(rejects),
    )
