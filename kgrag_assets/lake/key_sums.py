"""The sum of a partition's row keys, kept beside it: its data version without reading millions of keys."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl

from kgrag_assets.lake.changes import PartitionFiles
from kgrag_assets.lake.files import write_whole
from kgrag_assets.rows.table import ROW_KEY, KeySum


def key_sum_of(files: PartitionFiles) -> KeySum:
    """Return the sum of the row keys of a partition that exists.

    The one that is kept is used where it names the files as they are now; otherwise the keys are read.
    """
    state = files.state()
    kept = _read(_path(files)) if state is not None else None
    if kept is not None and kept[0] == state:
        return kept[1]
    added, removed = files.changed_keys()
    rows = pl.read_parquet(files.rows, columns=[ROW_KEY], hive_partitioning=False)[ROW_KEY]
    return KeySum.of(rows) + KeySum.of(added) - KeySum.of(removed)


def keep_key_sum(files: PartitionFiles, total: KeySum) -> None:
    """Keep the sum for the files as they are now."""
    state = files.state()
    if state is None:
        return
    text = json.dumps({"state": state, "count": total.count, "low": total.low, "high": total.high})
    write_whole(_path(files), text)


def _path(files: PartitionFiles) -> Path:
    return files.rows.with_name("keys.json")


def _read(path: Path) -> tuple[tuple[str, str], KeySum] | None:
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
        rows, changes = kept["state"]
        return (rows, changes), KeySum(int(kept["count"]), int(kept["low"]), int(kept["high"]))
    except (OSError, ValueError, TypeError, KeyError):
        return None
