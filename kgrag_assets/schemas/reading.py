"""A task's inputs into its three tables: attributes, reference correspondences, rejected rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import polars as pl

from kgrag_assets.rows.keys import attribute_id_of, pair_id_of
from kgrag_assets.rows.reference_correspondences import REFERENCE_CORRESPONDENCES
from kgrag_assets.rows.reference_entity_links import REFERENCE_ENTITY_LINKS
from kgrag_assets.rows.rejects import SCHEMA_REJECTS
from kgrag_assets.rows.schema_attributes import SCHEMA_ATTRIBUTES
from kgrag_assets.rows.table import ROW_KEY, Table, with_row_key
from kgrag_assets.schemas.errors import SchemaError
from kgrag_assets.schemas.found import FoundColumn, FoundPair, FoundSchema, Reject
from kgrag_assets.schemas.readers.entity_links import FoundLink, read_entity_links
from kgrag_assets.schemas.readers.name_lookup import Name
from kgrag_assets.schemas.readers.omap import read_omap
from kgrag_assets.schemas.readers.reference import read_reference, resolve
from kgrag_assets.schemas.sources import read_grids, read_input
from kgrag_assets.schemas.task_folder import SchemaInput, Side, TaskFolder
from kgrag_assets.schemas.types import type_family


@dataclass(frozen=True)
class TaskSchemas:
    """What is read of one task: attributes, reference correspondences, reference entity links, rejected rows."""

    attributes: pl.DataFrame
    reference: pl.DataFrame
    entity_links: pl.DataFrame
    rejects: pl.DataFrame


@dataclass(frozen=True)
class _SideRead:
    columns: dict[Name, FoundColumn]
    left_out: frozenset[Name]
    rejects: tuple[Reject, ...]


def _distinct(columns: Iterable[FoundColumn]) -> tuple[dict[Name, FoundColumn], list[Reject]]:
    kept: dict[Name, FoundColumn] = {}
    rejects: list[Reject] = []
    for column in columns:
        earlier = kept.setdefault((column.table, column.column), column)
        if earlier is not column:
            where = f" in row {earlier.row}" if earlier.row is not None and earlier.row != column.row else ""
            reason = f"the table has this column already{where}: rename or remove one"
            rejects.append(Reject(column.origin, column.row, reason, f"{column.table} | {column.column}"))
    return kept, rejects


def _filtered(given: SchemaInput | None, found: FoundSchema, side: Side) -> _SideRead:
    columns, repeated = _distinct(found.columns)
    rejects = [*found.rejects, *repeated]
    left_out: frozenset[Name] = frozenset()
    if given is not None and given.tables is not None:
        wanted = set(given.tables)
        tables = {table for table, _ in columns}
        rejects.extend(
            Reject("task.yaml", None, f"{side}.tables: {given.shown} has no such table: correct the name", name)
            for name in given.tables
            if name not in tables
        )
        left_out = frozenset(name for name in columns if name[0] not in wanted)
        columns = {name: column for name, column in columns.items() if name not in left_out}
        if not columns:
            raise SchemaError(
                f"task.yaml: {side}.tables: none of {', '.join(given.tables)} is in {given.shown}; it has "
                f"{', '.join(sorted(tables)[:8])}"
            )
    if not columns:
        raise SchemaError(f"{given.shown if given else side}: the {side} has no usable column")
    return _SideRead(columns, left_out, tuple(rejects))


def _attribute_row(task: str, side: Side, position: int, column: FoundColumn) -> dict[str, object]:
    return {
        "task": task,
        "attribute_id": attribute_id_of(side, column.table, column.column),
        "side": side,
        "table_name": column.table,
        "column_name": column.column,
        "position": position,
        "data_type": column.data_type,
        "type_family": type_family(column.data_type, column.sample_values),
        "nullable": column.nullable,
        "is_primary_key": column.is_primary_key,
        "references_table": column.references_table,
        "references_column": column.references_column,
        "table_description": column.table_description,
        "column_description": column.column_description,
        "sample_values": list(column.sample_values),
        "distinct_count": column.distinct_count,
        "null_share": column.null_share,
        "profile": column.values.row() if column.values is not None else None,
        "origin": column.origin,
    }


def _reference_row(task: str, source: Name, target: Name) -> dict[str, object]:
    return {
        "task": task,
        "pair_id": pair_id_of(attribute_id_of("source", *source), attribute_id_of("target", *target)),
        "source_table": source[0],
        "source_column": source[1],
        "target_table": target[0],
        "target_column": target[1],
    }


def _link_row(task: str, link: FoundLink) -> dict[str, object]:
    return {
        "task": task,
        "side": link.side,
        "attribute_id": attribute_id_of(link.side, *link.name),
        "table_name": link.name[0],
        "column_name": link.name[1],
        "entity_id": link.entity_id,
        "label": link.label,
    }


def _frame(table: Table, rows: Sequence[dict[str, object]]) -> pl.DataFrame:
    if not rows:
        return table.empty()
    schema = {name: dtype for name, dtype in table.schema.items() if name != ROW_KEY}
    return table.conform(with_row_key(pl.DataFrame(rows, schema=schema)))


def _rejects_frame(task: str, rejects: Iterable[Reject]) -> pl.DataFrame:
    # A frame's rows are told apart by their content: the same reject said twice is one.
    distinct = dict.fromkeys(rejects)
    rows: list[dict[str, object]] = [
        {"task": task, "file": reject.file, "row": reject.row, "reason": reject.reason, "content": reject.content}
        for reject in distinct
    ]
    return _frame(SCHEMA_REJECTS, rows)


def read_side(given: SchemaInput) -> int:
    """Read one side alone, to see whether it can be used; return its number of attributes.

    Raises:
        SchemaError: it cannot.
    """
    return len(_filtered(given, read_input(given), given.side).columns)


def read_task(folder: TaskFolder) -> TaskSchemas:
    """Read both schemas, the reference and the entity links of a task.

    Args:
        folder: the task as ``load_task`` found it.

    Returns:
        Frames of ``SCHEMA_ATTRIBUTES`` (source first, in the order of the input), of
        ``REFERENCE_CORRESPONDENCES`` and ``REFERENCE_ENTITY_LINKS`` (without rows where there is no such file) and
        of ``SCHEMA_REJECTS``.

    Raises:
        SchemaError: a file cannot be read, or a side has no usable attribute.
    """
    pairs: Sequence[FoundPair] = ()
    rejects: list[Reject] = []
    if folder.sheet is not None:
        omap = read_omap(read_grids(folder.sheet, folder.sheet.name))
        source, target = _filtered(None, omap.source, "source"), _filtered(None, omap.target, "target")
        pairs = omap.pairs
        rejects.extend(omap.rejects)
    elif folder.source is None or folder.target is None:
        raise SchemaError(f"{folder.path}: a side has no input")
    else:
        source = _filtered(folder.source, read_input(folder.source), "source")
        target = _filtered(folder.target, read_input(folder.target), "target")
        if folder.reference is not None:
            grids = read_grids(folder.reference, folder.reference.relative_to(folder.path).as_posix())
            pairs, reference_rejects = read_reference(grids)
            rejects.extend(reference_rejects)
    left_out = {"source": source.left_out, "target": target.left_out}
    found, unresolved = resolve(pairs, source.columns, target.columns, left_out)
    links: list[FoundLink] = []
    if folder.entity_links is not None:
        grids = read_grids(folder.entity_links, folder.entity_links.relative_to(folder.path).as_posix())
        names = {"source": source.columns, "target": target.columns}
        links, link_rejects = read_entity_links(grids, names, left_out)
        rejects.extend(link_rejects)
    sides: tuple[tuple[Side, _SideRead], ...] = (("source", source), ("target", target))
    attributes = [
        _attribute_row(folder.name, side, position, column)
        for side, read in sides
        for position, column in enumerate(read.columns.values())
    ]
    return TaskSchemas(
        attributes=_frame(SCHEMA_ATTRIBUTES, attributes),
        reference=_frame(REFERENCE_CORRESPONDENCES, [_reference_row(folder.name, *pair) for pair in found]),
        entity_links=_frame(REFERENCE_ENTITY_LINKS, [_link_row(folder.name, link) for link in links]),
        rejects=_rejects_frame(folder.name, [*source.rejects, *target.rejects, *rejects, *unresolved]),
    )
