"""The parts of an embedded index and their files: written together, opened by memory map, verified whole on request."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import polars as pl
import pyarrow as pa

from kgrag_assets.indexing.hnsw_base import IndexHNSW, read_base, storage_of, write_base
from kgrag_assets.indexing.index_rows import IndexRows, hash_of
from kgrag_assets.indexing.manifest import (
    FORMAT,
    MANIFEST_NAME,
    FileEntry,
    HnswParameters,
    IndexFileError,
    Manifest,
    file_entry,
    looks_like,
    read_manifest,
    write_manifest,
)
from kgrag_assets.rows.keys import key_of

BASE_FILE, BASE_ROWS_FILE = "base.faiss", "base_rows.arrow"
DEAD_FILE, DELTA_FILE, DELTA_ROWS_FILE = "dead.npy", "delta.npy", "delta_rows.arrow"

_COLUMNS = (("id", pa.large_string()), ("row_key", pa.large_string()), ("node", pa.int64()))


@dataclass(frozen=True)
class SavedBase:
    """Where the two files of a base lie, and what they are."""

    folder: Path
    files: dict[str, FileEntry]


@dataclass(frozen=True)
class IndexParts:
    """What an index is made of. Rows of the base that are not ``alive`` were changed or removed since it was built.

    ``base`` is a FAISS HNSW graph or None where all rows lie in the delta; ``nodes`` (int64) gives the node of each
    row of ``base_rows``: rows with equal vectors share one. ``rows_version`` hashes the live rows. ``saved_base``
    says where the base lies on disk, so that saving it again needs no copy.
    """

    model_id: str
    dimension: int
    parameters: HnswParameters
    base: IndexHNSW
    base_rows: IndexRows
    nodes: np.ndarray
    alive: np.ndarray
    delta: np.ndarray
    delta_rows: IndexRows
    rows_version: str
    saved_base: SavedBase | None = None

    @cached_property
    def size(self) -> int:
        """Number of rows that a search can return."""
        return int(np.count_nonzero(self.alive)) + len(self.delta_rows)

    @cached_property
    def data_version(self) -> str:
        """Hash of what decides the answers: the rows, the model and the parameters."""
        of = self.parameters
        return key_of("hnsw", self.rows_version, self.model_id, of.m, of.ef_construction, of.ef_search, of.storage)

    def live_rows(self) -> pl.DataFrame:
        """Return the columns ``id`` and ``row_key`` of all live rows, sorted by id."""
        of_base = self.base_rows.frame().filter(pl.Series(self.alive, dtype=pl.Boolean))
        return pl.concat([of_base, self.delta_rows.frame()]).sort("id") if len(self.delta_rows) else of_base


def version_of_rows(rows: pl.DataFrame) -> str:
    """Hash the columns ``id`` and ``row_key`` of rows that are sorted by id."""
    return hash_of(rows["id"], rows["row_key"])


def save_parts(parts: IndexParts, folder: Path) -> None:
    """Write all files and the manifest into an empty folder; a base that lies on disk already is linked, not copied.

    Raises:
        OSError: the disk is full or cannot be written.
    """
    files: dict[str, FileEntry] = {}
    if parts.base is not None:
        files |= _linked(parts.saved_base, folder) or _written_base(parts, folder)
    for name, array in ((DEAD_FILE, np.flatnonzero(~parts.alive)), (DELTA_FILE, parts.delta)):
        with (folder / name).open("wb") as handle:
            np.save(handle, array, allow_pickle=False)
    _write_rows(folder / DELTA_ROWS_FILE, parts.delta_rows, np.arange(len(parts.delta_rows)))
    files |= {name: file_entry(folder / name) for name in (DEAD_FILE, DELTA_FILE, DELTA_ROWS_FILE)}
    manifest = Manifest(
        format=FORMAT,
        model_id=parts.model_id,
        dimension=parts.dimension,
        base_rows=len(parts.base_rows),
        base_nodes=0 if parts.base is None else int(parts.base.ntotal),
        delta_rows=len(parts.delta_rows),
        dead_rows=len(parts.alive) - int(np.count_nonzero(parts.alive)),
        live_rows=parts.size,
        parameters=parts.parameters,
        rows_version=parts.rows_version,
        data_version=parts.data_version,
        files=files,
    )
    write_manifest(folder, manifest)


def open_parts(folder: Path, *, whole: bool = False) -> IndexParts:
    """Open the files of an index, mapped into memory.

    Args:
        folder: the index's folder.
        whole: read every file from end to end; without it only sizes and the files' ends are compared.

    Raises:
        IndexFileError: a file is missing, damaged, or does not agree with the others.
    """
    folder = folder.resolve() if (folder / MANIFEST_NAME).exists() else folder
    manifest = read_manifest(folder, whole=whole)
    base, base_rows, nodes, saved = None, IndexRows.none(), np.zeros(0, dtype=np.int64), None
    if BASE_FILE in manifest.files:
        base = read_base(folder / BASE_FILE)
        base_rows, nodes = _read_rows(folder / BASE_ROWS_FILE)
        saved = SavedBase(folder, {name: manifest.files[name] for name in (BASE_FILE, BASE_ROWS_FILE)})
    delta_rows, _ = _read_rows(folder / DELTA_ROWS_FILE)
    delta = _read_array(folder / DELTA_FILE, np.float32, 2)
    dead = _read_array(folder / DEAD_FILE, np.int64, 1)
    checks = (
        (len(base_rows) == manifest.base_rows, BASE_ROWS_FILE, "does not have the base's rows"),
        (len(delta_rows) == manifest.delta_rows, DELTA_ROWS_FILE, "does not have the delta's rows"),
        (delta.shape == (len(delta_rows), manifest.dimension), DELTA_FILE, "has another shape than its rows"),
        (base is None or int(base.ntotal) == manifest.base_nodes, BASE_FILE, "has another number of nodes"),
        (base is None or int(base.d) == manifest.dimension, BASE_FILE, "holds vectors of another length"),
        (base is None or storage_of(base) == manifest.parameters.storage, BASE_FILE, "keeps vectors in another form"),
        (len(dead) == manifest.dead_rows and _rising(dead, len(base_rows)), DEAD_FILE, "names other rows as dead"),
    )
    _refuse(folder, checks)
    alive = np.ones(len(base_rows), dtype=bool)
    alive[dead] = False
    parts = IndexParts(
        model_id=manifest.model_id,
        dimension=manifest.dimension,
        parameters=manifest.parameters,
        base=base,
        base_rows=base_rows,
        nodes=nodes,
        alive=alive,
        delta=delta,
        delta_rows=delta_rows,
        rows_version=manifest.rows_version,
        saved_base=saved,
    )
    versions = parts.size == manifest.live_rows and parts.data_version == manifest.data_version
    _refuse(folder, ((versions, MANIFEST_NAME, "does not agree with itself"),))
    return parts


def verify(folder: Path) -> None:
    """Read a saved index from end to end and check that its files agree in every row.

    Opening does not: it would read gigabytes. Ask after a copy, a crash of the disk, or an answer that looks wrong.

    Raises:
        IndexFileError: a file is missing, damaged, or does not agree with the others.
    """
    parts = open_parts(folder, whole=True)
    live = parts.live_rows()
    in_base = 0 if parts.base is None else int(parts.base.ntotal)
    checks = (
        (np.array_equal(np.unique(parts.nodes), np.arange(in_base)), BASE_FILE, "has other nodes than its rows name"),
        (_each_once(parts.base_rows), BASE_ROWS_FILE, "is not sorted or has an id twice"),
        (_each_once(parts.delta_rows), DELTA_ROWS_FILE, "is not sorted or has an id twice"),
        (live["id"].n_unique() == live.height, DELTA_ROWS_FILE, "has an id that is alive in the base"),
        (version_of_rows(live) == parts.rows_version, MANIFEST_NAME, "names another data version than the rows have"),
    )
    _refuse(folder, checks)


def _refuse(folder: Path, checks: tuple[tuple[bool, str, str], ...]) -> None:
    for good, name, problem in checks:
        if not good:
            raise IndexFileError(folder / name, problem)


def _rising(rows: np.ndarray, end: int) -> bool:
    return bool((np.diff(rows) > 0).all()) and (not len(rows) or (int(rows[0]) >= 0 and int(rows[-1]) < end))


def _each_once(rows: IndexRows) -> bool:
    ids = rows.frame()["id"]
    return ids.is_sorted() and ids.n_unique() == len(ids)


def _linked(saved: SavedBase | None, folder: Path) -> dict[str, FileEntry] | None:
    """Give the saved base's files a second name in ``folder``; None where they are not there any more."""
    if saved is None or not all(looks_like(saved.folder / name, entry) for name, entry in saved.files.items()):
        return None
    for name in saved.files:
        try:
            os.link(saved.folder / name, folder / name)
        except OSError:  # not every file system has hard links
            shutil.copyfile(saved.folder / name, folder / name)
    return dict(saved.files)


def _written_base(parts: IndexParts, folder: Path) -> dict[str, FileEntry]:
    _write_rows(folder / BASE_ROWS_FILE, parts.base_rows, parts.nodes)
    entry = write_base(parts.base, folder / BASE_FILE)
    return {BASE_FILE: entry, BASE_ROWS_FILE: file_entry(folder / BASE_ROWS_FILE)}


def _write_rows(path: Path, rows: IndexRows, nodes: np.ndarray) -> None:
    # Uncompressed Arrow, so that it can be mapped into memory.
    columns = (rows.ids, rows.row_keys, pa.array(nodes, pa.int64()))
    table = pa.table(list(columns), schema=pa.schema(list(_COLUMNS)))
    with path.open("wb") as handle:
        _write_table(handle, table)


def _write_table(handle: BinaryIO, table: Any) -> None:  # noqa: ANN401 - pyarrow ships no types
    with pa.ipc.new_file(handle, table.schema) as writer:
        writer.write_table(table)


def _read_rows(path: Path) -> tuple[IndexRows, np.ndarray]:
    try:
        table = pa.ipc.open_file(pa.memory_map(str(path))).read_all()
    except (pa.ArrowException, OSError) as error:
        raise IndexFileError(path, f"cannot be read ({error})") from error
    if not table.schema.equals(pa.schema(list(_COLUMNS))) or any(column.null_count for column in table.columns):
        raise IndexFileError(path, "does not have the columns of this version")
    # One batch was written: taking it as it is keeps it in the file.
    ids, row_keys, nodes = (
        column.chunk(0) if column.num_chunks == 1 else column.combine_chunks() for column in table.columns
    )
    return IndexRows(ids=ids, row_keys=row_keys), nodes.to_numpy()


def _read_array(path: Path, kind: type[np.generic], axes: int) -> np.ndarray:
    try:
        # A file without values cannot be mapped; it is small.
        small = path.stat().st_size < 1 << 16
        array = np.load(path, mmap_mode=None if small else "r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise IndexFileError(path, f"cannot be read ({error})") from error
    if array.dtype != kind or array.ndim != axes:
        raise IndexFileError(path, f"is not a table of {np.dtype(kind)} in {axes} dimensions")
    return np.asarray(array)
