"""Vectors of the lake's embedding rows by row number: a few are looked up, all are laid out on disk once."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import polars as pl

from kgrag_assets.indexing.hnsw_base import SLICE
from kgrag_assets.lake.files import explained
from kgrag_assets.lake.lake import Lake
from kgrag_assets.rows.embeddings import vectors_of
from kgrag_assets.rows.table import ROW_KEY, Table

# So many vectors at a time are looked up by key; for more, all are laid out in order, which is one pass. Less than
# the slices in which a base is built: those must never be looked up.
LOOKED_UP = SLICE // 2
_SCRATCH = "index_scratch"


class StoredVectors:
    """The vectors of ids, in their order; a function from row numbers to float32 of shape (rows, dimension).

    ``ids`` and ``row_keys`` are columns: one row for each id, sorted, that of the first graph where several have it.
    """

    def __init__(self, lake: Lake, table: Table, partitions: Sequence[str], id_column: str, scratch: Path) -> None:
        """Read ids and keys; no vector yet. Use ``stored_vectors``, which removes what is laid out."""
        frames = [
            lake.read(table, name, [id_column, "graph", ROW_KEY]).with_columns(pl.lit(name).alias("partition"))
            for name in partitions
        ]
        rows = pl.concat(
            [table.empty().select(id_column, "graph", ROW_KEY).with_columns(partition=pl.lit("")), *frames]
        )
        rows = rows.sort(id_column, "graph").unique(id_column, keep="first", maintain_order=True)
        self._lake, self._table, self._partitions = lake, table, partitions
        self._rows = rows.select(id_column, ROW_KEY, "partition").with_row_index("place")
        self._path = scratch / "vectors.bin"
        self._laid_out: np.ndarray | None = None
        self.ids = rows[id_column]
        self.row_keys = rows[ROW_KEY]

    def __len__(self) -> int:
        return self._rows.height

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        """Return the vectors of some rows."""
        if self._laid_out is None and len(rows) > LOOKED_UP:
            self._laid_out = self._lay_out()
        if self._laid_out is not None:
            return np.asarray(self._laid_out[rows])
        return self._look_up(rows)

    def sample(self, size: int) -> np.ndarray:
        """Return the vectors of evenly spread rows."""
        if not len(self):
            return np.zeros((0, 0), dtype=np.float32)
        return self(np.unique(np.linspace(0, len(self) - 1, min(size, len(self))).astype(np.int64)))

    def _look_up(self, rows: np.ndarray) -> np.ndarray:
        wanted = pl.DataFrame({"asked": np.arange(len(rows)), "place": rows.astype(np.uint32)})
        named = wanted.join(self._rows, on="place", how="left", maintain_order="left")
        found: np.ndarray | None = None
        for (partition,), group in named.group_by("partition"):
            some = self._read(str(partition), group.select(ROW_KEY).unique())
            joined = group.select("asked", ROW_KEY).join(some, on=ROW_KEY, how="inner")
            vectors = vectors_of(joined)
            if found is None:
                found = np.zeros((len(rows), vectors.shape[1]), dtype=np.float32)
            found[joined["asked"].to_numpy()] = vectors
        return np.zeros((0, 0), dtype=np.float32) if found is None else found

    def _read(self, partition: str, keys: pl.DataFrame) -> pl.DataFrame:
        rows = self._lake.scan(self._table, partition, [ROW_KEY, "model_id", "vector"])
        return rows.join(keys.lazy(), on=ROW_KEY, how="semi").collect()

    def _lay_out(self) -> np.ndarray:
        target: np.memmap | None = None
        with explained(self._path):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            for name in self._partitions:
                places = self._rows.filter(pl.col("partition") == name).select("place", ROW_KEY)
                if places.is_empty():
                    continue
                rows = self._lake.read(self._table, name, [ROW_KEY, "model_id", "vector"])
                joined = places.join(rows, on=ROW_KEY, how="inner")
                vectors = vectors_of(joined)
                if target is None:
                    shape = (len(self), vectors.shape[1])
                    target = np.memmap(self._path, dtype=np.float32, mode="w+", shape=shape)
                target[joined["place"].to_numpy()] = vectors
        return np.zeros((0, 0), dtype=np.float32) if target is None else target


@contextmanager
def stored_vectors(lake: Lake, table: Table, partitions: Sequence[str], id_column: str) -> Iterator[StoredVectors]:
    """Open the vectors of a table; what was laid out on disk is removed at the end."""
    scratch = lake.paths.stage(_SCRATCH) / table.name
    shutil.rmtree(scratch, ignore_errors=True)
    try:
        yield StoredVectors(lake, table, partitions, id_column, scratch)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
