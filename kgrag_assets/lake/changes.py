"""A large partition as its rows and, beside them, what changed since they were written whole."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import polars as pl

from kgrag_assets.lake.files import LakeError, replace_file
from kgrag_assets.rows.table import ROW_KEY, Table

# The changes of a partition name the rows they change by this mark in the Parquet footer: changes of rows that
# were replaced meanwhile are no changes any more.
MARK = "kgrag_rows"
_CHANGES_MARK = "kgrag_changes"
REMOVED = "removed_key"
# From this share of changed rows on, a partition is written whole again.
WHOLE_SHARE = 0.2


@dataclass(frozen=True)
class Written:
    """What a write did; ``changed`` is false where the rows were there already and no file was touched.

    ``added`` and ``removed`` count rows by their keys; an edited row is both.
    """

    path: Path
    data_version: str
    rows: int
    changed: bool
    added: int
    removed: int

    @property
    def kept(self) -> int:
        """Rows that were there before."""
        return self.rows - self.added


@dataclass(frozen=True)
class PartitionFiles:
    """The files of one partition: ``rows`` whole, and ``changes``, which may be missing."""

    rows: Path

    @property
    def changes(self) -> Path:
        """File of the rows that were added and the keys of those that went."""
        return self.rows.with_name("changes.parquet")

    def exists(self) -> bool:
        """Whether the partition was ever written."""
        return self.rows.exists()

    def has_changes(self) -> bool:
        """Whether there are changes that belong to the rows."""
        return self.changes.exists() and mark_of(self.changes) == mark_of(self.rows) is not None

    def state(self) -> tuple[str, str] | None:
        """Return what names the rows as they are: two states that are equal hold the same rows."""
        mark = mark_of(self.rows)
        if mark is None:
            return None
        return mark, (mark_of(self.changes, _CHANGES_MARK) or "") if self.has_changes() else ""

    def changed_keys(self) -> tuple[pl.Series, pl.Series]:
        """Return the keys of rows that the changes add, and of those that they remove."""
        if not self.has_changes():
            nothing = pl.Series(ROW_KEY, [], dtype=pl.String)
            return nothing, nothing
        changes = pl.read_parquet(self.changes, columns=[ROW_KEY, REMOVED], hive_partitioning=False)
        return changes[ROW_KEY].drop_nulls(), changes[REMOVED].drop_nulls().alias(ROW_KEY)

    def changed_rows(self, table: Table, columns: Sequence[str]) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Return some columns, and the keys, of rows that the changes add, and of those that they remove.

        Of a removed row whose key alone was known when it went, the other columns are null.
        """
        names = list(dict.fromkeys((ROW_KEY, *columns)))
        if not self.has_changes():
            return table.empty().select(names), table.empty().select(names)
        wanted = [*names, REMOVED]
        changes = pl.read_parquet(self.changes, columns=wanted, hive_partitioning=False)
        gone = changes.filter(pl.col(REMOVED).is_not_null()).with_columns(pl.col(REMOVED).alias(ROW_KEY))
        return changes.filter(pl.col(REMOVED).is_null()).select(names), gone.select(names)

    def scan(self, table: Table, columns: Sequence[str] | None = None) -> pl.LazyFrame:
        """Return the partition's rows as a query; nothing is read yet but the files' footers."""
        names = table.names if columns is None else list(columns)
        rows = pl.scan_parquet(self.rows, hive_partitioning=False)
        if not self.has_changes():
            return rows.select(names)
        changes = pl.scan_parquet(self.changes, hive_partitioning=False)
        gone = changes.filter(pl.col(REMOVED).is_not_null()).select(pl.col(REMOVED).alias(ROW_KEY))
        wanted = list(dict.fromkeys((*names, ROW_KEY)))
        left = rows.select(wanted).join(gone, on=ROW_KEY, how="anti")
        added = changes.filter(pl.col(REMOVED).is_null()).select(wanted)
        return pl.concat([left, added]).select(names)


def mark_of(path: Path, name: str = MARK) -> str | None:
    """Return the mark in a Parquet file's footer, or None where it has none or cannot be read."""
    try:
        return pl.read_parquet_metadata(path).get(name)
    except (pl.exceptions.PolarsError, OSError):
        return None


def write_parquet(frame: pl.DataFrame, path: Path, mark: str | None = None, *, changes: bool = False) -> None:
    """Write a frame, marked so that changes can refer to it."""
    # Through a handle of our own: polars turns "disk full" into an error without an errno.
    buffer = io.BytesIO()
    metadata = {MARK: mark or uuid4().hex}
    if changes:
        metadata[_CHANGES_MARK] = uuid4().hex
    frame.write_parquet(buffer, compression="zstd", statistics=True, metadata=metadata)
    path.write_bytes(buffer.getbuffer())


def replace_rows(files: PartitionFiles, write: Callable[[Path], None]) -> None:
    """Write a partition whole; changes of the rows before are removed.

    A kill between the two leaves changes that no longer carry the mark of the rows: they are ignored.
    """
    replace_file(files.rows, write)
    files.changes.unlink(missing_ok=True)


def lay_changes(files: PartitionFiles, table: Table, added: pl.DataFrame, removed: pl.DataFrame) -> None:
    """Write all that differs from ``rows``: rows that were added, and those that went.

    Args:
        files: the partition; its rows were written by this version.
        table: the table.
        added: rows that ``rows`` does not have.
        removed: rows in it that are no more: their keys, and what is known of their other columns.

    Raises:
        LakeError: the disk is full, or the rows carry no mark.
    """
    mark = mark_of(files.rows)
    if mark is None:
        raise LakeError(f"{files.rows} is of another version: delete it and run again")
    if added.is_empty() and removed.is_empty():
        files.changes.unlink(missing_ok=True)
        return
    unknown = [
        pl.lit(None, dtype=dtype).alias(name) for name, dtype in table.schema.items() if name not in removed.columns
    ]
    gone = removed.with_columns(pl.col(ROW_KEY).alias(REMOVED), *unknown)
    gone = gone.with_columns(pl.lit(None, dtype=pl.String).alias(ROW_KEY))
    new = added.with_columns(pl.lit(None, dtype=pl.String).alias(REMOVED))
    columns = [*table.names, REMOVED]
    rows = pl.concat([new.select(columns), gone.select(columns)])
    replace_file(files.changes, lambda path: write_parquet(rows, path, mark, changes=True))
