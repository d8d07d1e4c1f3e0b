"""Reading speed of Wikidata's JSON dump: the reader of knowledge graphs beside plain loops that only parse.

Real entities, one a line as in the dump, are repeated to a size, each copy under ids of its own. Every way of reading
runs in a fresh process, so that its memory is its own. ``python bench/load_json.py --mb 1000 --forms plain gz bz2``
is the documented run; ``--profile`` shows where the reader's time goes.
"""

from __future__ import annotations

import argparse
import bz2
import cProfile
import json
import multiprocessing
import os
import platform
import pstats
import re
import resource
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import msgspec
import polars as pl

from kgrag_assets.knowledge.collector import Collector
from kgrag_assets.knowledge.extraction import extract
from kgrag_assets.knowledge.sources.blocks import BlockSource, ReadOptions, decompressed
from kgrag_assets.knowledge.sources.protocol import Unit
from kgrag_assets.knowledge.sources.wikidata_json import WikidataJsonReader

RESULTS = Path(__file__).parent / "results" / "load_json.md"
DATA = Path(__file__).parents[2] / "shared" / "data" / "wikidata_json" / "dump" / "entities"
SUFFIXES = {"plain": ".json", "gz": ".json.gz", "bz2": ".json.bz2"}
OPTIONS = ReadOptions(languages=("en", "mul"), literals=("all",))
NAMESPACE, BUCKETS = "wd", 16
_ID = re.compile(rb'"id":"([QP])([0-9]+)"')


@dataclass(frozen=True)
class Measured:
    """One way of reading one file; ``rows`` is what it kept of it, None where it keeps nothing.

    ``cpu_seconds`` is that of all processes: on a machine that does other things too it varies less than the clock.
    """

    seconds: float
    cpu_seconds: float
    entities: int
    rows: int | None
    peak_mb: float


def main() -> None:
    """Make the files, read them in every way, write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA, help="entities of a dump, one a line")
    parser.add_argument("--mb", type=int, default=200, help="size of the file that is read, unpacked")
    parser.add_argument("--cut", type=int, help="keep so many properties and languages of each entity, one sitelink")
    parser.add_argument("--forms", nargs="+", choices=sorted(SUFFIXES), default=["plain"])
    parser.add_argument("--repeat", type=int, default=1, help="the best of so many runs is shown")
    parser.add_argument("--folder", type=Path, default=None, help="where the files are made; a temporary folder")
    parser.add_argument("--profile", action="store_true", help="show where the reader's time goes, measure nothing")
    chosen = parser.parse_args()
    if not chosen.data.is_file():
        parser.error(f"{chosen.data} does not exist: --data names a file of entities, one a line")
    with tempfile.TemporaryDirectory(dir=chosen.folder) as folder:
        plain = Path(folder, "dump.json")
        entities = make(chosen.data, plain, chosen.mb * 1_000_000, chosen.cut)
        if chosen.profile:
            profile(plain)
            return
        size = plain.stat().st_size
        lines = [
            "| file | way of reading | MB/s | entities/s | MB per CPU second | rows kept | peak memory, MB |",
            "|---|---|---:|---:|---:|---:|---:|",
        ]
        for form in chosen.forms:
            path = packed(plain, form)
            for name, way in WAYS.items():
                best = min((alone(way, path) for _ in range(chosen.repeat)), key=lambda run: run.seconds)
                # Except when nothing is parsed, every way must have seen every entity.
                assert best.entities in (entities, 0), (name, best.entities, entities)
                lines.append(row(form, name, best, size, entities))
                print(lines[-1], flush=True)
            if path != plain:
                path.unlink()
    head = (
        f"{size / 1e6:.0f} MB of JSON, {entities} entities ({size / entities / 1000:.0f} kB each), read on "
        f"{os.cpu_count()} cores ({platform.machine()}), Python {platform.python_version()}, "
        f"msgspec {msgspec.__version__}. MB are of the unpacked file; memory is that of all processes together."
    )
    table = "\n".join(lines)
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(f"# Reading Wikidata's JSON\n\n{head}\n\n{table}\n")
    print(f"\n{head}\n\n{table}\n\nwritten to {RESULTS}")


def row(form: str, name: str, run: Measured, size: int, entities: int) -> str:
    """Return a line of the table."""
    speed = f"{size / 1e6 / run.seconds:.0f} | {entities / run.seconds:.0f} | {size / 1e6 / run.cpu_seconds:.0f}"
    return f"| {form} | {name} | {speed} | {'' if run.rows is None else run.rows} | {run.peak_mb:.0f} |"


def make(data: Path, path: Path, size: int, cut: int | None) -> int:
    """Write the dump's array form with copies of entities, each copy under its own ids; return how many."""
    lines = [line.strip().rstrip(b",") for line in data.read_bytes().splitlines()]
    lines = [shortened(line, cut) for line in lines if line not in (b"", b"[", b"]")]
    written, copy, number = 0, 0, 0
    with path.open("wb") as out:
        out.write(b"[\n")
        while written < size:
            for line in lines:
                ids = rb'"id":"\g<1>%d\g<2>"' % copy if copy else rb"\g<0>"
                # The entity's own id comes first in its line.
                renamed, found = _ID.subn(ids, line, count=1)
                assert found == 1
                out.write((b",\n" if number else b"") + renamed)
                written += len(renamed) + 2
                number += 1
            copy += 1
        out.write(b"\n]\n")
    return number


def shortened(line: bytes, cut: int | None) -> bytes:
    """Keep a part of an entity: the most of a dump says less than these do."""
    if cut is None:
        return line
    entity = json.loads(line)
    for name in ("labels", "descriptions", "aliases"):
        languages = ["en", *(language for language in entity[name] if language != "en")]
        entity[name] = {language: entity[name][language] for language in languages[:cut] if language in entity[name]}
    entity["claims"] = dict(list(entity["claims"].items())[:cut])
    entity["sitelinks"] = dict(list(entity["sitelinks"].items())[:1])
    return json.dumps(entity, separators=(",", ":")).encode()


def packed(plain: Path, form: str) -> Path:
    """Return the file in another form."""
    path = plain.with_suffix(SUFFIXES[form])
    if form == "plain":
        return plain
    squeeze = zlib.compressobj(6, wbits=31) if form == "gz" else bz2.BZ2Compressor()
    with path.open("wb") as out, plain.open("rb") as content:
        while piece := content.read(1 << 20):
            out.write(squeeze.compress(piece))
        out.write(squeeze.flush())
    return path


def alone(way: Callable[[Path], Measured], path: Path) -> Measured:
    """Measure in a fresh process."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(way, path).result()


def _lines(path: Path) -> Iterator[bytes]:
    with path.open("rb") as raw, decompressed(path, raw) as handle:
        for line in handle:
            entity = line.rstrip(b",\n")
            if entity not in (b"[", b"]"):
                yield entity


class _Clock:
    """Wall clock and CPU time of this process since it was made."""

    def __init__(self) -> None:
        self._begun, self._cpu = time.perf_counter(), time.process_time()

    def read(self) -> tuple[float, float]:
        return time.perf_counter() - self._begun, time.process_time() - self._cpu


def _loop(path: Path, parse: Callable[[bytes], object]) -> Measured:
    clock, entities = _Clock(), 0
    for line in _lines(path):
        parse(line)
        entities += 1
    return Measured(*clock.read(), entities, None, _peak_mb())


def unpack_only(path: Path) -> Measured:
    """Read the bytes and do nothing."""
    clock = _Clock()
    with path.open("rb") as raw, decompressed(path, raw) as handle:
        while handle.read(1 << 20):
            pass
    return Measured(*clock.read(), 0, None, _peak_mb())


def json_loop(path: Path) -> Measured:
    """``json.loads`` of each line, the result dropped."""
    return _loop(path, json.loads)


def msgspec_loop(path: Path) -> Measured:
    """``msgspec`` into plain dicts and lists of each line, the result dropped."""
    return _loop(path, msgspec.json.Decoder().decode)


def _source(path: Path) -> BlockSource:
    return BlockSource([path], path.parent, lambda _path: WikidataJsonReader(), OPTIONS)


@dataclass(frozen=True)
class _Part:
    """What was read of one unit, by which process."""

    entities: int
    rows: int
    process: int
    cpu_seconds: float
    peak_mb: float


def _read(unit: Unit | Collector) -> _Part:
    """Read a unit into frames."""
    clock = _Clock()
    assert not isinstance(unit, Collector), unit.rejects
    into = Collector(file=unit.file, first_row=unit.first_row)
    unit.read(into)
    frames = into.frames(NAMESPACE, BUCKETS)
    assert frames.rejects.is_empty(), frames.rejects
    rows = frames.names.height + frames.edges.height
    return _Part(frames.counts.height, rows, os.getpid(), clock.read()[1], _peak_mb())


def reader(path: Path) -> Measured:
    """Read all names, statements and literals into frames, in one process."""
    _warm(0)
    clock = _Clock()
    parts = [_read(unit) for unit in _source(path).units()]
    spent = clock.read()
    return Measured(*spent, sum(part.entities for part in parts), sum(part.rows for part in parts), _peak_mb())


def to_parts(path: Path) -> Measured:
    """Read into parts on disk in one process, as a load does."""
    return _extracted(path, 1)


def to_parts_in_two(path: Path) -> Measured:
    """Do the same with two processes that read; this one unpacks and hands out. Their start is counted."""
    return _extracted(path, 2)


def _extracted(path: Path, workers: int) -> Measured:
    _warm(0)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        clock, before = _Clock(), resource.getrusage(resource.RUSAGE_CHILDREN)
        found = extract(_source(path), Path(folder) / "parts", namespace=NAMESPACE, buckets=BUCKETS, workers=workers)
        seconds, cpu_seconds = clock.read()
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu_seconds += after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        counts = {name: [_rows_in(part.table(name)) for part in found.parts] for name in ("counts", "names", "edges")}
    children = workers * after.ru_maxrss / 1024 if workers > 1 else 0.0
    rows = sum(counts["names"]) + sum(counts["edges"])
    return Measured(seconds, cpu_seconds, sum(counts["counts"]), rows, children + _peak_mb())


def _rows_in(path: Path) -> int:
    return int(pl.scan_parquet(path).select(pl.len()).collect().item())


def _warm(number: int) -> None:
    """Load what reading needs."""
    into = Collector()
    entity = b'{"id":"Q%d","type":"item","labels":{"en":{"value":"x"}}}' % number
    WikidataJsonReader().read(entity, b"", OPTIONS, into, first=False)
    into.frames(NAMESPACE, BUCKETS)
    time.sleep(0.2)


def _peak_mb() -> float:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1e6 if platform.system() == "Darwin" else peak / 1e3


def profile(path: Path) -> None:
    """Print where the time goes, by function."""
    with cProfile.Profile() as watched:
        reader(path)
    pstats.Stats(watched).sort_stats("tottime").print_stats(20)


WAYS: dict[str, Callable[[Path], Measured]] = {
    "bytes only, nothing parsed": unpack_only,
    "json.loads of each line, nothing kept": json_loop,
    "msgspec of each line, nothing kept": msgspec_loop,
    "this reader, one process": reader,
    "to parts on disk, one process": to_parts,
    "to parts on disk, two processes": to_parts_in_two,
}

if __name__ == "__main__":
    main()
