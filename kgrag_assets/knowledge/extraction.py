"""Reading a graph's units into parts on disk: on several cores, in bounded memory, resumed where a kill ended it."""

from __future__ import annotations

import dataclasses
import gc
import multiprocessing
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from multiprocessing import connection
from pathlib import Path
from uuid import uuid4

import polars as pl

from kgrag_assets.knowledge.collector import REJECTS_SCHEMA, Collector, ExtractedRows
from kgrag_assets.knowledge.sources.blocks import BlockUnit
from kgrag_assets.knowledge.sources.protocol import Source, Unit
from kgrag_assets.lake.files import explained, sync_folder, write_whole
from kgrag_assets.lake.large import explained_reading
from kgrag_assets.rows.keys import key_of

# Starting a process costs about a second, of which a small graph takes a fraction.
POOL_FROM_BYTES = 48 << 20
# Units that wait for a process, besides those being read: bounds the memory of a fast disk and slow readers.
WAITING = 2
_ORDER = "order.txt"
# With these bytes a Parquet file begins and ends.
_PARQUET = b"PAR1"
_BLOCKS = ".blocks"
TABLES = ("names", "edges", "counts", "rejects")


@dataclass(frozen=True)
class Part:
    """What one unit found, on disk: ``names.parquet``, ``edges.parquet``, ``counts.parquet``, ``rejects.parquet``."""

    folder: Path

    def table(self, name: str) -> Path:
        """Return the file of one of ``TABLES``."""
        return self.folder / f"{name}.parquet"

    def is_whole(self) -> bool:
        """Whether every table is there from its first to its last byte; bytes between them are not looked at."""
        return all(_ends_as_parquet(self.table(name)) for name in TABLES)


def _ends_as_parquet(path: Path) -> bool:
    try:
        with path.open("rb") as handle:
            size = handle.seek(0, os.SEEK_END)
            handle.seek(max(0, size - len(_PARQUET)))
            return handle.read() == _PARQUET
    except OSError:
        return False


@dataclass(frozen=True)
class Extraction:
    """All parts of a graph, in the order of its units, and how many of them were there already."""

    parts: tuple[Part, ...]
    read: int
    kept: int


def extract(
    source: Source,
    folder: Path,
    *,
    namespace: str,
    buckets: int,
    workers: int,
    tell: Callable[[int], None] = lambda _size: None,
) -> Extraction:
    """Read every unit of a source into a part below ``folder``; parts that are there already are kept.

    A part appears whole or not at all. Parts of units that the source no longer has are removed at the end.

    Args:
        source: the graph.
        folder: where the parts of this graph lie.
        namespace: prefix of its ids, which with ``buckets`` decides the bucket of each row.
        buckets: number of buckets.
        workers: processes that read; 1 reads in this one. A small graph is read in this process anyway.
        tell: called with the size of each finished unit.

    Raises:
        LakeError: the disk is full or cannot be written; what was read stays.
    """
    with explained(folder):
        folder.mkdir(parents=True, exist_ok=True)
        for left in folder.glob(".*"):  # of a run that was killed
            if left.is_dir():
                shutil.rmtree(left, ignore_errors=True)
    task = _Task(folder, namespace, buckets)
    if workers > 1 and source.size >= POOL_FROM_BYTES:
        extraction = _with_processes(source, task, workers, tell)
    else:
        extraction = _alone(source, task, tell)
    names = [part.folder.name for part in extraction.parts]
    wanted = set(names)
    write_whole(folder / _ORDER, "\n".join(names))
    for old in folder.iterdir():
        if old.is_dir() and old.name not in wanted:
            shutil.rmtree(old, ignore_errors=True)
    return extraction


def parts_at(folder: Path) -> tuple[Part, ...] | None:
    """Return the parts below a folder in the order of the last ``extract``, or None where none ended."""
    listed = folder / _ORDER
    if not listed.is_file():
        return None
    return tuple(Part(folder / name) for name in listed.read_text(encoding="ascii").split())


@dataclass(frozen=True)
class _Task:
    """What a process needs to know to write parts."""

    folder: Path
    namespace: str
    buckets: int

    def part(self, unit: Unit | Collector) -> Part:
        if isinstance(unit, Collector):
            return Part(self.folder / key_of("problems", unit.file, [list(row) for row in unit.rejects]))
        # The place of a unit in its file is part of what it says about rejected lines.
        return Part(self.folder / key_of("part", unit.key, unit.file, unit.first_row, self.namespace, self.buckets))

    def run_spilled(self, unit: BlockUnit, spilled: Path) -> None:
        """Read a unit whose block lies in a file, in another process than the one that wrote it."""
        # The part is named by the key, which stands for the block.
        self.run(dataclasses.replace(unit, block=_block(spilled)))

    def run(self, unit: Unit | Collector) -> None:
        part = self.part(unit)
        if isinstance(unit, Collector):
            collector = unit
        else:
            collector = Collector(file=unit.file, first_row=unit.first_row)
            # A unit makes millions of small objects and no circles: looking for circles takes a tenth of the time.
            gc.disable()
            try:
                unit.read(collector)
            finally:
                gc.enable()
        _write(part, collector.frames(self.namespace, self.buckets), self.buckets)


def _block(spilled: Path) -> bytes:
    block = spilled.read_bytes()
    spilled.unlink()
    return block


def _write(part: Part, rows: ExtractedRows, buckets: int) -> None:
    fresh = part.folder.with_name(f".{part.folder.name}.{uuid4().hex}")
    with explained(part.folder):
        fresh.mkdir()
        try:
            for name in TABLES:
                frame: pl.DataFrame = getattr(rows, name)
                with (fresh / f"{name}.parquet").open("wb") as handle:
                    # Rows are sorted by bucket: with a group of rows per bucket a reader of one skips the others.
                    frame.write_parquet(handle, compression="zstd", row_group_size=max(2048, frame.height // buckets))
            sync_folder(fresh)
            shutil.rmtree(part.folder, ignore_errors=True)  # a damaged one
            fresh.rename(part.folder)
        except BaseException:
            shutil.rmtree(fresh, ignore_errors=True)
            raise


def _alone(source: Source, task: _Task, tell: Callable[[int], None]) -> Extraction:
    parts: list[Part] = []
    read = 0
    for unit in source.units():
        part = task.part(unit)
        if not part.is_whole():
            task.run(unit)
            read += 1
        parts.append(part)
        tell(_size(unit))
    return Extraction(_distinct(parts), read, len(parts) - read)


def _with_processes(source: Source, task: _Task, workers: int, tell: Callable[[int], None]) -> Extraction:
    parts: list[Part] = []
    read = 0
    running: dict[Future[None], int] = {}
    # Spawned, not forked: the daemon that runs this has threads.
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(workers, mp_context=context, initializer=_end_with_parent)
    try:
        for unit in source.units():
            part = task.part(unit)
            parts.append(part)
            if part.is_whole():
                tell(_size(unit))
                continue
            if len(running) >= workers + WAITING:
                _finish(running, tell)
            running[_submit(pool, task, unit, read)] = _size(unit)
            read += 1
        while running:
            _finish(running, tell)
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
        shutil.rmtree(task.folder / _BLOCKS, ignore_errors=True)
    return Extraction(_distinct(parts), read, len(parts) - read)


def _submit(pool: ProcessPoolExecutor, task: _Task, unit: Unit | Collector, number: int) -> Future[None]:
    if not isinstance(unit, BlockUnit):
        return pool.submit(task.run, unit)
    # A block goes through a file that never reaches the disk: sent through a pipe, 64 kB at a time, it would hold up
    # the reading of the next one.
    folder = task.folder / _BLOCKS
    spilled = folder / str(number)
    with explained(spilled):
        folder.mkdir(exist_ok=True)
        spilled.write_bytes(unit.block)
    return pool.submit(task.run_spilled, dataclasses.replace(unit, block=b""), spilled)


def _end_with_parent() -> None:
    """Let a process end when the one that started it was killed; it would wait for work forever."""
    parent = multiprocessing.parent_process()
    if parent is None:
        return
    sentinel = parent.sentinel

    def watch() -> None:
        connection.wait([sentinel])
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _finish(running: dict[Future[None], int], tell: Callable[[int], None]) -> None:
    done, _ = wait(running, return_when=FIRST_COMPLETED)
    for future in done:
        size = running.pop(future)
        future.result()
        tell(size)


def _size(unit: Unit | Collector) -> int:
    return 0 if isinstance(unit, Collector) else unit.size


def _distinct(parts: list[Part]) -> tuple[Part, ...]:
    # Two files of the same content at the same place in the list are one part.
    return tuple(dict.fromkeys(parts))


def rejects_of(parts: tuple[Part, ...]) -> Iterator[pl.DataFrame]:
    """Yield the rejected lines of each part that has any.

    Raises:
        LakeError: a part is damaged.
    """
    for part in parts:
        with explained_reading(part.table("rejects")):
            frame = pl.read_parquet(part.table("rejects"), hive_partitioning=False)
        if frame.height:
            yield frame.select(REJECTS_SCHEMA.names())
