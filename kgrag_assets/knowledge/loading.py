"""From the graphs' files to staged rows by bucket: read into parts, then joined, bucket by bucket."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import polars as pl

from kgrag_assets.knowledge.extraction import Extraction, extract, rejects_of
from kgrag_assets.knowledge.graph_folder import GraphFolder
from kgrag_assets.knowledge.opening import open_source
from kgrag_assets.knowledge.overlay import applied_rows, overlay_of
from kgrag_assets.knowledge.staging import Staging
from kgrag_assets.lake.changes import Written
from kgrag_assets.lake.files import explained, sweep
from kgrag_assets.lake.lake import Lake
from kgrag_assets.rows.graph_changes import KG_CHANGES
from kgrag_assets.rows.keys import data_version_of
from kgrag_assets.rows.knowledge_graph import (
    KG_APPLIED_CHANGES,
    STAGED_ENTITIES,
    STAGED_TRIPLES,
)
from kgrag_assets.rows.rejects import KG_REJECTS
from kgrag_assets.rows.table import with_row_key
from kgrag_assets.settings import GraphSettings

PARTS = "kg_parts"
SCRATCH = "kg_scratch"
SPARQL_PAGES = "sparql_pages"


@dataclass(frozen=True)
class StagedBucket:
    """What was written of one bucket."""

    entities: Written
    triples: Written

    @property
    def data_version(self) -> str:
        """Hash of both."""
        return data_version_of([self.entities.data_version, self.triples.data_version])


@dataclass(frozen=True)
class LoadReport:
    """What a load did. ``units_read`` were parsed now, ``units_kept`` by an earlier run."""

    buckets: Mapping[int, StagedBucket]
    rejects: pl.DataFrame
    units_read: int
    units_kept: int
    bytes_read: int

    def total(self, of: Callable[[Written], int]) -> int:
        """Sum something over everything that was written."""
        return sum(of(staged.entities) + of(staged.triples) for staged in self.buckets.values())


# Begins a piece of work of so many steps; the result is called with the steps done since.
Track = Callable[[str, int], Callable[[int], None]]


def load_graphs(
    lake: Lake, folders: Sequence[GraphFolder], settings: GraphSettings, bucket_names: Sequence[str], track: Track
) -> LoadReport:
    """Read every graph and write the staged rows of every bucket.

    Every entity that has a label or statements of its own gets a row. A statement whose end or relation has
    no label shows its id instead. Entities that changed since the files were written (``kg_changes``) stand as the
    change says, unless the files have a later revision of them.

    Args:
        lake: where parts and rows lie; hold the lock of ``kg_source_rows``.
        folders: all graphs of the lake.
        settings: number of buckets, processes and memory.
        bucket_names: partition names of the buckets, in order.
        track: tells about progress.

    Raises:
        KnowledgeError: a graph cannot be read at all, or needs more memory than it may have.
        LakeError: the disk is full or cannot be written; parts that were read stay for the next run.
    """
    _forget_other_graphs(lake, folders)
    for name in bucket_names:
        for table in (STAGED_ENTITIES, STAGED_TRIPLES):
            sweep(lake.paths.partition(table.name, name))
    rejects, units, size = [KG_REJECTS.empty()], [0, 0], 0
    with staging_of(lake, settings) as staging:
        for folder in folders:
            source = open_source(folder, lake.paths.partition(SPARQL_PAGES, folder.name))
            size += source.size
            extraction = extract(
                source,
                parts_folder(lake, folder.name),
                namespace=folder.namespace,
                buckets=settings.buckets,
                workers=settings.workers,
                tell=track(f"reading {folder.name}", max(1, source.size)),
            )
            units = [units[0] + extraction.read, units[1] + extraction.kept]
            rejects.append(_rejects(folder.name, extraction))
            changes = lake.read(KG_CHANGES, folder.name)
            overlay = overlay_of(lake, folder, changes, extraction.parts, settings)
            staging.add(folder, extraction.parts, overlay)
            lake.write(KG_APPLIED_CHANGES, folder.name, applied_rows(changes, overlay, folder.filter.subclass_relation))
        tell = track("sorting into buckets", len(bucket_names))
        buckets: dict[int, StagedBucket] = {}
        for bucket, name in enumerate(bucket_names):
            buckets[bucket] = _stage(lake, staging, bucket, name)
            tell(1)
    return LoadReport(buckets, pl.concat(rejects), units[0], units[1], size)


def parts_folder(lake: Lake, graph: str) -> Path:
    """Return where the parts of a graph's files lie."""
    return lake.paths.partition(PARTS, graph)


@contextmanager
def staging_of(lake: Lake, settings: GraphSettings) -> Iterator[Staging]:
    """Open a staging file in a scratch folder of the lake; what a killed run left there is removed."""
    scratch = lake.paths.stage(SCRATCH)
    shutil.rmtree(scratch, ignore_errors=True)
    with explained(scratch):
        scratch.mkdir(parents=True)
    try:
        with Staging(scratch, memory_mb=settings.memory_mb, threads=settings.workers) as staging:
            yield staging
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _stage(lake: Lake, staging: Staging, bucket: int, name: str) -> StagedBucket:
    mark = uuid4().hex
    return StagedBucket(
        entities=lake.write_file(STAGED_ENTITIES, name, lambda path: staging.write_entities(bucket, path, mark)),
        triples=lake.write_file(STAGED_TRIPLES, name, lambda path: staging.write_triples(bucket, path, mark)),
    )


def _forget_other_graphs(lake: Lake, folders: Sequence[GraphFolder]) -> None:
    wanted = {parts_folder(lake, folder.name) for folder in folders}
    root = lake.paths.stage(PARTS)
    for old in root.iterdir() if root.is_dir() else ():
        if old not in wanted:
            shutil.rmtree(old, ignore_errors=True)


def _rejects(graph: str, extraction: Extraction) -> pl.DataFrame:
    columns = [name for name in KG_REJECTS.names if name not in ("graph", "row_key")]
    found = [frame.select(columns) for frame in rejects_of(extraction.parts)]
    if not found:
        return KG_REJECTS.empty()
    frame = pl.concat(found).unique(maintain_order=True).with_columns(pl.lit(graph).alias("graph"))
    return with_row_key(frame.select("graph", *columns)).select(KG_REJECTS.names)
