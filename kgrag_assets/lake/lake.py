"""Reading and writing the stages' tables."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, unquote

import polars as pl

from kgrag_assets.lake.files import LakeError, replace_file, sweep
from kgrag_assets.lake.locks import locked
from kgrag_assets.lake.paths import LakePaths
from kgrag_assets.rows.table import ROW_KEY, Table, TableError, data_version


@dataclass(frozen=True)
class Difference:
    """What a stage has to do: rows to keep as they are, wanted rows to compute, and how many go."""

    kept: pl.DataFrame
    missing: pl.DataFrame
    removed: int


@dataclass(frozen=True)
class Written:
    """What a write did; ``changed`` is false where the rows were there already and no file was touched."""

    path: Path
    data_version: str
    rows: int
    changed: bool


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


def _write_parquet(frame: pl.DataFrame, path: Path) -> None:
    # Through a handle of our own: polars turns "disk full" into an error without an errno.
    buffer = io.BytesIO()
    frame.write_parquet(buffer, compression="zstd", statistics=True)
    path.write_bytes(buffer.getbuffer())


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

    def read(self, table: Table, partition: str | None) -> pl.DataFrame:
        """Read one partition; a partition never written is an empty table.

        Raises:
            LakeError: the file is damaged or from another version of the table.
        """
        path = self.paths.rows(table.name, partition)
        if not path.exists():
            return table.empty()
        return self._load(table, path)

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
        replace_file(self.paths.partition(table.name, partition) / name, lambda path: _write_parquet(frame, path))

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
        path = self.paths.rows(table.name, partition)
        version = data_version(frame)
        changed = True
        if path.exists():
            try:
                changed = data_version(self._load(table, path)) != version
            except LakeError:
                changed = True  # what cannot be read is replaced
        if changed:
            ordered = frame.sort(table.key, nulls_last=True)
            replace_file(path, lambda temporary: _write_parquet(ordered, temporary))
        for part in self.paths.partition(table.name, partition).glob("part-*.parquet"):
            part.unlink(missing_ok=True)
        return Written(path=path, data_version=version, rows=frame.height, changed=changed)

    def _load(self, table: Table, path: Path) -> pl.DataFrame:
        try:
            return table.conform(pl.read_parquet(path, hive_partitioning=False))
        except TableError as error:
            raise LakeError(f"{path} was written by another version ({error}): delete it and run again") from error
        except (pl.exceptions.PolarsError, OSError) as error:
            raise LakeError(f"{path} cannot be read ({error}): delete it and run again") from error
