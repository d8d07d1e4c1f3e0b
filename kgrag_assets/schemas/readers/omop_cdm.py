"""The field-level CSV of the OMOP Common Data Model, with its table-level CSV beside it where there is one."""

from __future__ import annotations

import re

from kgrag_assets.schemas.errors import SchemaError
from kgrag_assets.schemas.found import FoundColumn, FoundSchema, Reject, shown_row, trimmed
from kgrag_assets.schemas.grid import Grid, header_name, places_of, width_problem

FIELD_NAMES: dict[str, str] = {
    name.lower(): name
    for name in (
        "cdmTableName",
        "cdmFieldName",
        "isRequired",
        "cdmDatatype",
        "userGuidance",
        "etlConventions",
        "isPrimaryKey",
        "fkTableName",
        "fkFieldName",
    )
}
_TABLE_NAMES = {name.lower(): name for name in ("cdmTableName", "tableDescription", "userGuidance")}

_BREAK = re.compile(r"(\s*<br\s*/?>\s*)+", re.IGNORECASE)


def is_omop_cdm(grid: Grid) -> bool:
    """Whether a grid's header is that of the field-level file."""
    names = {header_name(cell) for cell in grid.rows[0].values}
    return {"cdmtablename", "cdmfieldname"} <= names


def _text(cell: str) -> str:
    # In these files NA stands for "nothing"; the names of tables and fields are never read through this.
    text = _BREAK.sub(" ", cell).strip()
    return "" if text == "NA" else text


def _name(cell: str) -> str:
    # A field named by a reserved word stands there with the quotes that it needs in SQL.
    name = trimmed(cell)
    return name[1:-1] if len(name) > 2 and name[0] == name[-1] == '"' else name


def _descriptions(tables: Grid | None) -> dict[str, str]:
    if tables is None:
        return {}
    places = places_of(tables.rows[0], _TABLE_NAMES, tables.shown)
    if not {"cdmTableName", "tableDescription"} <= set(places):
        raise SchemaError(f"{tables.shown}: must name the columns cdmTableName and tableDescription")
    found: dict[str, str] = {}
    for row in tables.rows[1:]:
        if width_problem(row, tables.rows[0]) is None:
            found[trimmed(row.values[places["cdmTableName"]]).lower()] = _text(row.values[places["tableDescription"]])
    return found


def read_omop_cdm(fields: Grid, tables: Grid | None = None) -> FoundSchema:
    """Read the field-level file.

    The description of a field is its user guidance, or its ETL conventions where there is none. Foreign
    keys are written in capitals there; they are brought to the spelling of the table they point to.

    Args:
        fields: the field-level file.
        tables: the table-level file, for the tables' descriptions.

    Raises:
        SchemaError: a header lacks a needed column, or there is no usable row.
    """
    header = fields.rows[0]
    places = places_of(header, FIELD_NAMES, fields.shown)
    missing = {"cdmTableName", "cdmFieldName"} - set(places)
    if missing:
        raise SchemaError(f"{fields.shown}: the header lacks {', '.join(sorted(missing))}")
    descriptions = _descriptions(tables)
    rejects: list[Reject] = [*fields.rejects, *(tables.rejects if tables else ())]
    rows: list[tuple[int, dict[str, str]]] = []
    for row in fields.rows[1:]:
        problem = width_problem(row, header)
        cells = {} if problem else {name: row.values[place] for name, place in places.items()}
        if not problem and not (_name(cells["cdmTableName"]) and _name(cells["cdmFieldName"])):
            problem = "the name of the table or field is missing: fill it in"
        if problem:
            rejects.append(Reject(fields.shown, row.number, problem, shown_row(row.values)))
        else:
            rows.append((row.number, cells))
    if not rows:
        raise SchemaError(f"{fields.shown}: has a header but no usable row below it")
    spelling: dict[str, str] = {}
    for _, cells in rows:
        for name in (_name(cells["cdmTableName"]), _name(cells["cdmFieldName"])):
            spelling.setdefault(name.lower(), name)

    def reference(name: str) -> str | None:
        return spelling.get(name.lower(), name) if name else None

    columns = tuple(
        FoundColumn(
            table=(table := _name(cells["cdmTableName"])),
            column=_name(cells["cdmFieldName"]),
            origin=fields.shown,
            data_type=_text(cells.get("cdmDatatype", "")),
            nullable={"yes": False, "no": True}.get(cells.get("isRequired", "").strip().lower()),
            is_primary_key={"yes": True, "no": False}.get(cells.get("isPrimaryKey", "").strip().lower()),
            references_table=reference(_text(cells.get("fkTableName", ""))),
            references_column=reference(_text(cells.get("fkFieldName", ""))),
            table_description=descriptions.get(table.lower(), ""),
            column_description=_text(cells.get("userGuidance", "")) or _text(cells.get("etlConventions", "")),
            row=number,
        )
        for number, cells in rows
    )
    return FoundSchema(columns, tuple(rejects))
