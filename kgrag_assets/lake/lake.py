"""Reading and writing the stages' tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, unquote

import polars as pl

from kgrag_assets.lake.changes import PartitionFiles, Written, mark_of, write_parquet
from kgrag_assets.lake.files import LakeError, explained, replace_file, sweep
from kgrag_assets.lake.key_sums import key_sum_of
from kgrag_assets.lake.large import (
    apply_changes,
    differences,
    explained_reading,
    keys_of,
    refuse_other_columns,
    share_files,
    take_rows,
)
from kgrag_assets.lake.locks import locked
from kgrag_assets.lake.paths import LakePaths
from kgrag_assets.rows.table import ROW_KEY, Table, TableError, data_version


@dataclass(frozen=True)
class Difference:
    """What a stage has to do: rows to keep as they are, wanted rows to compute, and how many go."""

    kept: pl.DataFrame
    missing: pl.DataFrame
    removed: int


def difference(wanted: pl.DataFrame, existing: pl.DataFrame) -> Difference:
    """Compare wanted keys with the rows at hand.

    Args:
        wanted: a frame with ``row_key``, one row per row that should be there, with whatever is needed
            to compute it. Keys are unique.
        existing: the stage's rows as they are.

    Returns:
        ``kept``: the existing rows that are wanted; ``missing``: the wanted rows that do not exist;
        ``removed``: the number of existing rows that nobody wants.
    """
    kept = existing.join(wanted.select(ROW_KEY), on=ROW_KEY, how="semi")
    missing = wanted.join(existing.select(ROW_KEY), on=ROW_KEY, how="anti", maintain_order="left")
    return Difference(kept=kept, missing=missing, removed=existing.height - kept.height)


@dataclass(frozen=True)
class Lake:
    """The folder in which all stages lie."""

    paths: LakePaths

    @classmethod
    def at(cls, root: Path) -> Lake:
        """Open the lake at ``root``; nothing is read or made yet."""
        return cls(LakePaths(root))

    @contextmanager
    def lock(self, name: str, partition: str | None = None, wait_s: float = 3600.0) -> Iterator[None]:
        """Hold the lock of one partition of a stage, and clear what killed writers left in it.

        Raises:
            LakeError: another process still writes it after ``wait_s`` seconds.
        """
        safe = name if partition is None else f"{name}@{quote(partition, safe='')}"
        with locked(self.paths.root / "locks" / f"{safe}.lock", wait_s):
            sweep(self.paths.partition(name, partition))
            sweep(self.paths.stage(name))
            yield

    def has(self, table: Table, partition: str | None) -> bool:
        """Whether this partition was ever written."""
        return self.paths.rows(table.name, partition).exists()

    def files(self, table: Table, partition: str | None) -> PartitionFiles:
        """Return where the rows of one partition lie."""
        return PartitionFiles(self.paths.rows(table.name, partition))

    def fits(self, table: Table, partition: str | None) -> bool:
        """Whether a partition can be read as it is: False where it is missing, damaged or of another version."""
        files = self.files(table, partition)
        try:
            refuse_other_columns(table, files.rows)
        except LakeError:
            return False
        return True

    def outdated(self, table: Table, partition: str | None) -> bool:
        """Whether a partition was written by a version of the table that has other columns.

        Raises:
            LakeError: the file cannot be read.
        """
        files = self.files(table, partition)
        if not files.exists():
            return False
        with explained_reading(files.rows):
            return dict(pl.read_parquet_schema(files.rows)) != dict(table.schema)

    def reusable(self, table: Table, partition: str | None) -> pl.DataFrame:
        """Read the rows that a stage may keep: none where an earlier version wrote them, for they lack something.

        Raises:
            LakeError: the file is damaged.
        """
        return table.empty() if self.outdated(table, partition) else self.read(table, partition)

    def read(self, table: Table, partition: str | None, columns: Sequence[str] | None = None) -> pl.DataFrame:
        """Read one partition, or some of its columns; a partition never written is an empty table.

        Raises:
            LakeError: the file is damaged or from another version of the table.
        """
        files = self.files(table, partition)
        if not files.exists():
            return table.empty() if columns is None else table.empty().select(columns)
        if table.deltas or columns is not None:
            return self._collect(table, files, columns)
        return self._load(table, files.rows)

    def scan(self, table: Table, partition: str | None, columns: Sequence[str] | None = None) -> pl.LazyFrame:
        """Return one partition as a query, for what is larger than memory; a damaged file shows when it is run."""
        files = self.files(table, partition)
        if not files.exists():
            return table.empty().lazy().select(columns or table.names)
        return files.scan(table, columns)

    def version(self, table: Table, partition: str | None) -> str:
        """Return the data version of one partition, without reading its rows where its files say it."""
        files = self.files(table, partition)
        if not files.exists():
            return data_version(table.empty())
        with explained_reading(files.rows):
            return key_sum_of(files).data_version

    def read_parts(self, table: Table, partition: str | None) -> pl.DataFrame:
        """Read the rows that an interrupted run had finished, besides those of ``read``.

        A damaged part is dropped: its rows are computed again.
        """
        frames = [table.empty()]
        for path in sorted(self.paths.partition(table.name, partition).glob("part-*.parquet")):
            try:
                frames.append(self._load(table, path))
            except LakeError:
                path.unlink(missing_ok=True)
        return pl.concat(frames).unique(ROW_KEY, keep="first", maintain_order=True)

    def write_part(self, table: Table, partition: str | None, frame: pl.DataFrame) -> None:
        """Keep finished rows of work that goes on; ``write`` takes their place.

        Raises:
            LakeError: the disk is full or cannot be written.
            TableError: the rows do not fit the table.
        """
        frame = table.conform(frame)
        name = f"part-{data_version(frame)}.parquet"
        replace_file(self.paths.partition(table.name, partition) / name, lambda path: write_parquet(frame, path))

    def drop_parts(self, table: Table, partition: str | None) -> None:
        """Remove the parts of work that is finished."""
        for part in self.paths.partition(table.name, partition).glob("part-*.parquet"):
            part.unlink(missing_ok=True)

    def partitions(self, table: Table) -> list[str]:
        """Names of the partitions that were written, sorted."""
        found = self.paths.stage(table.name).glob("p_*/rows.parquet")
        return sorted(unquote(path.parent.name.removeprefix("p_")) for path in found)

    def read_all(self, table: Table, partitions: list[str] | None = None) -> pl.DataFrame:
        """Read the named partitions, or all that were written, as one frame."""
        names = self.partitions(table) if partitions is None else partitions
        return pl.concat([table.empty(), *(self.read(table, name) for name in names)])

    def write(self, table: Table, partition: str | None, frame: pl.DataFrame) -> Written:
        """Write one partition whole, unless it holds the same rows already.

        Args:
            table: the table; its ``conform`` is applied.
            partition: the partition's name, None for an unpartitioned stage.
            frame: all rows of the partition, in any order; stored sorted by the table's key.

        Raises:
            LakeError: the disk is full or cannot be written; the old file is untouched.
            TableError: the rows do not fit the table.
        """
        frame = table.conform(frame)
        files = self.files(table, partition)
        if table.deltas:
            ordered = frame.sort(table.key, nulls_last=True)
            written = take_rows(
                files,
                table,
                frame[ROW_KEY],
                select=lambda keys: ordered.join(keys.to_frame(), on=ROW_KEY, how="semi", maintain_order="left"),
                write=lambda path: write_parquet(ordered, path),
            )
        else:
            written = self._write(table, files, frame)
        self.drop_parts(table, partition)
        return written

    def _write(self, table: Table, files: PartitionFiles, frame: pl.DataFrame) -> Written:
        before = keys_of(files, table)
        added, removed = differences(frame[ROW_KEY], before)
        changed = before is None or bool(len(added) or len(removed))
        if changed:
            ordered = frame.sort(table.key, nulls_last=True)
            replace_file(files.rows, lambda temporary: write_parquet(ordered, temporary))
        return Written(files.rows, data_version(frame), frame.height, changed, len(added), len(removed))

    def write_file(self, table: Table, partition: str | None, write: Callable[[Path], None]) -> Written:
        """As ``write``, of rows that are too many to be held: they come as a Parquet file.

        Args:
            table: the table.
            partition: the partition's name.
            write: writes all rows to the path it is given, sorted by the table's key, which is unique. Without
                ``changes.MARK`` in the footer the next write of the partition is a whole one.

        Raises:
            LakeError: the disk is full, or the rows do not fit the table; the old file is untouched.
        """
        files = self.files(table, partition)
        with explained(files.rows):
            files.rows.parent.mkdir(parents=True, exist_ok=True)
        fresh = files.rows.with_name(".fresh.parquet.tmp")
        try:
            with explained(files.rows):
                write(fresh)
            refuse_other_columns(table, fresh)
            keys = pl.read_parquet(fresh, columns=[ROW_KEY], hive_partitioning=False)[ROW_KEY]
            if keys.n_unique() != len(keys):
                raise TableError(f"{table.name}: a row key stands in more than one row")
            rows = pl.scan_parquet(fresh, hive_partitioning=False)
            return take_rows(
                files,
                table,
                keys,
                select=lambda some: rows.join(some.to_frame().lazy(), on=ROW_KEY, how="semi").collect(),
                write=lambda path: _move(fresh, path),
            )
        finally:
            fresh.unlink(missing_ok=True)

    def apply(
        self, table: Table, partition: str | None, added: pl.DataFrame, removed: pl.DataFrame | pl.Series
    ) -> Written:
        """Add rows to a partition and remove others, without touching the rest.

        Args:
            table: a table with ``deltas``.
            partition: the partition's name.
            added: whole rows; those whose key is there already change nothing.
            removed: rows that go: their keys, or a frame of keys and other columns, which whoever follows the
                changes then need not look up; unknown ones are left aside, those in ``added`` stay.

        Raises:
            LakeError: the disk is full or the rows at hand cannot be read.
            TableError: the rows do not fit the table.
        """
        added = table.conform(added)
        removed = removed.alias(ROW_KEY).to_frame() if isinstance(removed, pl.Series) else removed
        files = self.files(table, partition)
        if not files.exists() or mark_of(files.rows) is None:
            rest = self.read(table, partition).join(removed, on=ROW_KEY, how="anti")
            return self.write(table, partition, pl.concat([rest, added]).unique(ROW_KEY, keep="last"))
        refuse_other_columns(table, files.rows)
        with explained_reading(files.rows):
            return apply_changes(files, table, added, removed)

    def adopt(self, table: Table, partition: str | None, other: Table) -> Written:
        """Make a partition the same as that of another table with the same columns, sharing its files on disk.

        Raises:
            LakeError: the disk is full or cannot be written, or the other table's rows are missing.
        """
        ours, theirs = self.files(table, partition), self.files(other, partition)
        if not theirs.exists():
            # Not an empty table: what follows would drop all its rows.
            raise LakeError(f"{theirs.rows} is missing: run again, it is then written anew")
        refuse_other_columns(table, theirs.rows)
        with explained_reading(theirs.rows):
            return share_files(ours, theirs, table)

    def _collect(self, table: Table, files: PartitionFiles, columns: Sequence[str] | None) -> pl.DataFrame:
        refuse_other_columns(table, files.rows)
        with explained_reading(files.rows):
            return files.scan(table, columns).collect()

    def _load(self, table: Table, path: Path) -> pl.DataFrame:
        try:
            return table.conform(pl.read_parquet(path, hive_partitioning=False))
        except TableError as error:
            raise LakeError(f"{path} was written by another version ({error}): delete it and run again") from error
        except (pl.exceptions.PolarsError, OSError) as error:
            raise LakeError(f"{path} cannot be read ({error}): delete it and run again") from error


def _move(source: Path, target: Path) -> None:
    source.replace(target)
