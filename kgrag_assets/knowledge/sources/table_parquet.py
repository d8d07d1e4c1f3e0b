"""Tables in Parquet files as units of reading: one for each row group."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from kgrag_assets.knowledge.collector import Collector
from kgrag_assets.knowledge.sources.blocks import ReadOptions
from kgrag_assets.knowledge.sources.protocol import Unit
from kgrag_assets.knowledge.sources.table_rows import Cell, Layout, TableRows, layout_of
from kgrag_assets.knowledge.sources.wikidata_values import one_line
from kgrag_assets.rows.keys import key_of

_VERSION = "triples_table_parquet/1"
_DAMAGED = "the file is no Parquet file or is damaged ({}): write it again"
_MAX_SHOWN = 500
# Rows that are turned into Python values at a time.
_BATCH = 1 << 14


@dataclass(frozen=True)
class ParquetUnit:
    """One row group of a file, which is read again where the unit is read: the unit itself holds no data.

    ``identity`` is size and time of the file when it was listed; one that was exchanged since is refused.
    """

    key: str
    file: str
    first_row: int
    size: int
    path: Path
    group: int
    identity: tuple[int, int]
    options: ReadOptions

    def read(self, into: Collector) -> None:
        """Read the row group."""
        try:
            if _identity(self.path) != self.identity:
                into.reject(None, "the file was exchanged while it was read: load again", "")
                return
            with pq.ParquetFile(self.path) as file:
                layout = _layout(file)
                if isinstance(layout, str):
                    into.reject(None, layout, "")
                    return
                self._read(file, layout, into)
        except (OSError, pa.ArrowException, UnicodeDecodeError) as error:
            into.reject(None, _DAMAGED.format(_brief(error)), "")

    def _read(self, file: pq.ParquetFile, layout: Layout, into: Collector) -> None:
        names = {file.schema_arrow.names[place]: name for name, place in layout.places.items()}
        known = list(layout.places)
        take = TableRows(Layout(layout.kind, {name: at for at, name in enumerate(known)}), self.options, into).take
        row = 0
        for batch in file.iter_batches(_BATCH, row_groups=[self.group], columns=list(names)):
            columns = {
                names[spelled]: _cells(column)
                for spelled, column in zip(batch.schema.names, batch.columns, strict=True)
            }
            none = [None] * batch.num_rows
            for cells in zip(*(columns[name] for name in known), none, strict=True):
                row += 1
                reason = take(cells)
                if reason is not None:
                    into.reject(row, reason, _shown(dict(zip((*known, ""), cells, strict=True))))


def parquet_units(path: Path, root: Path, options: ReadOptions) -> Iterator[Unit | Collector]:
    """Yield a file's row groups, or the reason why it cannot be read."""
    name = str(path.relative_to(root)) if path.is_relative_to(root) else path.name
    problems = Collector(file=name)
    try:
        identity = _identity(path)
        footer = _footer(path)
        with pq.ParquetFile(path) as file:
            layout = _layout(file)
            groups = [file.metadata.row_group(at).num_rows for at in range(file.metadata.num_row_groups)]
    except (OSError, pa.ArrowException, UnicodeDecodeError) as error:
        problems.reject(None, _DAMAGED.format(_brief(error)), "")
        yield problems
        return
    if isinstance(layout, str):
        problems.reject(None, layout, "")
        yield problems
        return
    total, before, told = max(sum(groups), 1), 0, 0
    for group, count in enumerate(groups):
        done = identity[0] * (before + count) // total
        key = key_of("parquet", _VERSION, repr(options), name, group, list(identity), footer)
        yield ParquetUnit(key, name, before + 1, done - told, path, group, identity, options)
        before, told = before + count, done


def _identity(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_size, found.st_mtime_ns


def _footer(path: Path) -> bytes:
    """Return the bytes of a file's metadata, which has the place, size and statistics of every column."""
    with path.open("rb") as handle:
        handle.seek(0, os.SEEK_END)
        size = handle.tell()
        handle.seek(max(size - 8, 0))
        length = int.from_bytes(handle.read(8)[:4], "little")
        handle.seek(max(size - 8 - length, 0))
        return handle.read(length + 8)


def _layout(file: pq.ParquetFile) -> Layout | str:
    layout = layout_of(file.schema_arrow.names)
    if isinstance(layout, str):
        return layout
    for name, place in layout.places.items():
        kind = file.schema_arrow.field(place).type
        if not (_is_scalar(kind) or (_is_list(kind) and name.endswith("aliases"))):
            return f"the column {name} must hold texts or numbers, not {kind}"
    return layout


def _is_scalar(kind: Any) -> bool:  # noqa: ANN401  (pyarrow ships no types)
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return any(
        test(kind)
        for test in (
            pa.types.is_string,
            pa.types.is_large_string,
            pa.types.is_string_view,
            pa.types.is_integer,
            pa.types.is_floating,
            pa.types.is_decimal,
            pa.types.is_boolean,
            pa.types.is_temporal,
            pa.types.is_null,
        )
    )


def _is_list(kind: Any) -> bool:  # noqa: ANN401  (pyarrow ships no types)
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind)) and _is_scalar(kind.value_type)


def _cells(column: Any) -> list[Cell]:  # noqa: ANN401  (pyarrow ships no types)
    """Return a column's values as texts, or lists of texts."""
    values: list[Any] = column.to_pylist()
    return [
        value
        if value is None or isinstance(value, str)
        else [str(part) for part in value if part is not None]
        if isinstance(value, list)
        else str(value)
        for value in values
    ]


def _shown(cells: dict[str, Cell]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in cells.items() if value)[:_MAX_SHOWN]


def _brief(error: BaseException) -> str:
    return one_line(str(error))[:200]
