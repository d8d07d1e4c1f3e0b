"""Writing partitions too large to be written whole at every change: rows, changes beside them, files shared."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import polars as pl

from kgrag_assets.lake.changes import WHOLE_SHARE, PartitionFiles, Written, lay_changes, mark_of, replace_rows
from kgrag_assets.lake.changes import write_parquet as write_marked
from kgrag_assets.lake.files import LakeError, replace_file
from kgrag_assets.lake.key_sums import keep_key_sum, key_sum_of
from kgrag_assets.rows.table import ROW_KEY, KeySum, Table


@contextmanager
def explained_reading(path: Path) -> Iterator[None]:
    """Turn errors while reading ``path`` into a ``LakeError`` that says what to do."""
    try:
        yield
    except (pl.exceptions.PolarsError, FileNotFoundError) as error:
        raise LakeError(f"{path} cannot be read ({error}): delete it and run again") from error


def refuse_other_columns(table: Table, path: Path) -> None:
    """Refuse a file that does not have a table's columns.

    Raises:
        LakeError: it is of another version, or cannot be read.
    """
    try:
        schema = pl.read_parquet_schema(path)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise LakeError(f"{path} cannot be read ({error}): delete it and run again") from error
    if any(schema.get(name) != dtype for name, dtype in table.schema.items()):
        raise LakeError(f"{path} was written by another version of {table.name}: delete it and run again")


def keys_of(files: PartitionFiles, table: Table, *, whole: bool = False) -> pl.Series | None:
    """Return the row keys at hand (``whole``: without the changes), or None where they cannot be read."""
    if not files.exists():
        return None
    try:
        refuse_other_columns(table, files.rows)
        scan = pl.scan_parquet(files.rows, hive_partitioning=False) if whole else files.scan(table, [ROW_KEY])
        return scan.select(ROW_KEY).collect()[ROW_KEY]
    except (pl.exceptions.PolarsError, OSError, LakeError):
        return None


def differences(after: pl.Series, before: pl.Series | None) -> tuple[pl.Series, pl.Series]:
    """Return the keys that are new, and those that are gone."""
    if before is None:
        return after, after.clear()
    return _without(after, before), _without(before, after)


def take_rows(
    files: PartitionFiles,
    table: Table,
    keys: pl.Series,
    select: Callable[[pl.Series], pl.DataFrame],
    write: Callable[[Path], None],
) -> Written:
    """Make a partition hold other rows: as changes where they are few, else whole.

    Args:
        files: the partition.
        table: its table.
        keys: the row keys of all rows.
        select: returns the rows with some of these keys, in the table's order.
        write: writes all rows, sorted by the table's key, as a marked Parquet file to a path that exists, or moves
            one there.

    Raises:
        LakeError: the disk is full or cannot be written; the partition is untouched.
    """
    before = keys_of(files, table)
    added, removed = differences(keys, before)
    total = KeySum.of(keys)
    changed = before is None or bool(len(added) or len(removed))
    if changed:
        base = keys_of(files, table, whole=True) if before is not None and mark_of(files.rows) is not None else None
        past_added, past_removed = differences(keys, base)
        if base is not None and len(past_added) + len(past_removed) <= WHOLE_SHARE * len(base):
            lay_changes(files, table, select(past_added), past_removed.sort().to_frame())
        else:
            replace_rows(files, write)
        keep_key_sum(files, total)
    return Written(files.rows, total.data_version, len(keys), changed, len(added), len(removed))


def apply_changes(files: PartitionFiles, table: Table, added: pl.DataFrame, removed: pl.DataFrame) -> Written:
    """Add rows to a partition and remove others, without reading the rest.

    Args:
        files: the partition.
        table: its table.
        added: whole rows; those whose key is there already change nothing.
        removed: rows that go: ``row_key``, and other columns where they are known; unknown keys are left aside,
            those in ``added`` stay.
    """
    removed = removed.unique(ROW_KEY, maintain_order=True).join(added.select(ROW_KEY), on=ROW_KEY, how="anti")
    candidates = pl.concat([removed[ROW_KEY], added[ROW_KEY]]).to_frame().lazy()
    there = files.scan(table, [ROW_KEY]).join(candidates, on=ROW_KEY, how="semi").collect()
    gone = removed.join(there, on=ROW_KEY, how="semi")
    new = added.join(there, on=ROW_KEY, how="anti")
    total = key_sum_of(files) + KeySum.of(new[ROW_KEY]) - KeySum.of(gone[ROW_KEY])
    changed = bool(gone.height or new.height)
    if changed:
        _lay(files, table, new, gone)
        keep_key_sum(files, total)
    return Written(files.rows, total.data_version, total.count, changed, new.height, gone.height)


def _lay(files: PartitionFiles, table: Table, new: pl.DataFrame, gone: pl.DataFrame) -> None:
    earlier, were_removed = files.changed_rows(table, table.names)
    returning = new.select(ROW_KEY).join(were_removed, on=ROW_KEY, how="semi")
    added = pl.concat(
        [
            earlier.select(table.names).join(gone, on=ROW_KEY, how="anti"),
            new.join(returning, on=ROW_KEY, how="anti"),
        ]
    )
    of_base = gone.join(earlier, on=ROW_KEY, how="anti")
    removed = pl.concat([were_removed.join(returning, on=ROW_KEY, how="anti"), of_base], how="diagonal")
    rows_in_base = pl.scan_parquet(files.rows, hive_partitioning=False).select(pl.len()).collect().item()
    if added.height + removed.height > WHOLE_SHARE * rows_in_base:
        rest = files.scan(table).join(gone.lazy(), on=ROW_KEY, how="anti").collect()
        ordered = pl.concat([rest, new]).sort(table.key, nulls_last=True)
        replace_rows(files, lambda temporary: write_marked(ordered, temporary))
        return
    lay_changes(files, table, added.sort(table.key, nulls_last=True), removed.sort(ROW_KEY))


def share_files(ours: PartitionFiles, theirs: PartitionFiles, table: Table) -> Written:
    """Make a partition the same as another one, sharing its files on disk."""
    added, removed = _between(ours, theirs, table)
    changed = not ours.exists() or ours.state() != theirs.state() or theirs.state() is None
    total = key_sum_of(theirs)
    if changed:
        # The changes first: until the rows they belong to are in place they are ignored.
        if theirs.has_changes():
            replace_file(ours.changes, lambda temporary: _link(theirs.changes, temporary))
        else:
            ours.changes.unlink(missing_ok=True)
        if mark_of(ours.rows) != mark_of(theirs.rows) or mark_of(ours.rows) is None:
            replace_file(ours.rows, lambda temporary: _link(theirs.rows, temporary))
        keep_key_sum(ours, total)
    rows_changed = bool(added or removed or not ours.exists())
    return Written(ours.rows, total.data_version, total.count, rows_changed, added, removed)


def _between(ours: PartitionFiles, theirs: PartitionFiles, table: Table) -> tuple[int, int]:
    """Count the keys that theirs has and ours lacks, and the other way round."""
    mark = mark_of(ours.rows) if ours.exists() else None
    if mark is not None and mark == mark_of(theirs.rows):
        # The same rows below both: what differs stands in their changes.
        (our_added, our_removed), (their_added, their_removed) = ours.changed_keys(), theirs.changed_keys()
        added = len(_without(their_added, our_added)) + len(_without(our_removed, their_removed))
        removed = len(_without(our_added, their_added)) + len(_without(their_removed, our_removed))
        return added, removed
    keys = theirs.scan(table, [ROW_KEY]).collect()[ROW_KEY]
    added_keys, removed_keys = differences(keys, keys_of(ours, table))
    return len(added_keys), len(removed_keys)


def _without(keys: pl.Series, others: pl.Series) -> pl.Series:
    left, right = keys.alias(ROW_KEY).to_frame(), others.alias(ROW_KEY).to_frame()
    return left.join(right, on=ROW_KEY, how="anti", maintain_order="left")[ROW_KEY]


def _link(source: Path, target: Path) -> None:
    target.unlink(missing_ok=True)
    try:
        os.link(source, target)
    except OSError:  # another file system, or one without hard links
        shutil.copyfile(source, target)
