"""Bringing an index up to date: what is new, what is dead, and when the base is built anew."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl

from kgrag_assets.indexing.distinct_vectors import distinct
from kgrag_assets.indexing.hnsw import HnswIndex
from kgrag_assets.indexing.hnsw_base import VectorsOf, build_base
from kgrag_assets.indexing.hnsw_files import version_of_rows
from kgrag_assets.indexing.index_rows import IndexRows, Strings, found_in, frame_of
from kgrag_assets.indexing.manifest import HnswParameters
from kgrag_assets.indexing.row_vectors import RowVectors
from kgrag_assets.settings import IndexSettings


@dataclass(frozen=True)
class UpdateReport:
    """Rows by what happened to them; ``rebuilt`` is true where the base was built anew."""

    added: int
    removed: int
    changed: int
    kept: int
    rebuilt: bool


@dataclass(frozen=True)
class UpdatedIndex:
    """An index up to date. ``changed`` is false where it is the previous object itself: nothing is to be saved."""

    index: HnswIndex
    report: UpdateReport
    changed: bool


@dataclass(frozen=True)
class _Comparison:
    """New rows, sorted by id, beside the previous index: where each stands, -1 for nowhere."""

    rows: pl.DataFrame
    in_base: np.ndarray
    in_delta: np.ndarray
    report: UpdateReport


def update_index(
    previous: HnswIndex | None,
    ids: Strings,
    row_keys: Strings,
    vectors: np.ndarray | VectorsOf,
    settings: IndexSettings,
    *,
    model_id: str,
    threads: int = 1,
    start_progress: Callable[[int], Callable[[int], None]] | None = None,
) -> UpdatedIndex:
    """Bring an index up to the given rows.

    Args:
        previous: the index as it is, None for none.
        ids: the row's subject (entity or triple id), unique; a column or a sequence of strings.
        row_keys: key of each row; an equal id and key means an equal vector.
        vectors: unit vectors, float32 of shape (rows, dimension); or a function from row numbers (int64) to
            theirs. It is asked for new and changed rows only, and for all of them, twice and in slices, where
            the base is built anew.
        settings: parameters, and the share of delta and dead rows at which the base is built anew.
        model_id: the embedder of all the vectors.
        threads: used for building. With more than one the graph, not its recall, differs from run to run.
        start_progress: called with the number of rows when a base is built; what it returns is told the rows
            done since.

    Raises:
        ValueError: lengths differ, an id stands twice, a vector is not finite, or ``previous`` is a restricted view.
    """
    if previous is not None and previous.restricted:
        raise ValueError("a view that is restricted to some ids cannot be updated: update the whole index")
    rows = frame_of(ids, row_keys)
    read = RowVectors(vectors, rows)
    parameters = HnswParameters(settings.hnsw_m, settings.ef_construction, settings.ef_search, settings.storage)
    compared = _compared(previous, rows)
    report = compared.report
    if previous is not None and _fits(previous, read.dimension, parameters, model_id):
        if report.kept == rows.height == previous.size:
            effort = replace(previous, parameters=parameters)
            same = previous.parameters == parameters
            return UpdatedIndex(previous if same else effort, report, changed=not same)
        updated = _laid_over(previous, compared, read, parameters, settings)
        if updated is not None:
            return UpdatedIndex(updated, report, changed=True)
    built = _built(read, parameters, model_id, settings, threads, start_progress)
    return UpdatedIndex(built, replace(report, rebuilt=True), changed=True)


def open_previous(folder: Path) -> HnswIndex | None:
    """Open the index in a folder, or return None where none was ever saved.

    Raises:
        IndexFileError: there is one, and its files do not agree.
    """
    return HnswIndex.open(folder) if folder.exists() or folder.is_symlink() else None


def _compared(previous: HnswIndex | None, rows: pl.DataFrame) -> _Comparison:
    nowhere = np.full(rows.height, -1, dtype=np.int64)
    if previous is None:
        return _Comparison(rows, nowhere, nowhere, UpdateReport(rows.height, 0, 0, 0, rebuilt=False))
    in_base, same_in_base = found_in(rows, previous.base_rows)
    in_delta, same_in_delta = found_in(rows, previous.delta_rows)
    lives = np.zeros(rows.height, dtype=bool)
    lives[in_base >= 0] = previous.alive[in_base[in_base >= 0]]
    known = int(np.count_nonzero(lives | (in_delta >= 0)))
    kept = int(np.count_nonzero((lives & same_in_base) | same_in_delta))
    report = UpdateReport(
        added=rows.height - known, removed=previous.size - known, changed=known - kept, kept=kept, rebuilt=False
    )
    return _Comparison(rows, np.where(same_in_base, in_base, -1), np.where(same_in_delta, in_delta, -1), report)


def _fits(previous: HnswIndex, dimension: int | None, parameters: HnswParameters, model_id: str) -> bool:
    if previous.model_id != model_id or dimension not in (None, previous.dimension):
        return False
    return replace(previous.parameters, ef_search=parameters.ef_search) == parameters


def _laid_over(
    previous: HnswIndex, compared: _Comparison, read: RowVectors, parameters: HnswParameters, settings: IndexSettings
) -> HnswIndex | None:
    """Keep the base; a row it has with this key is alive there, every other row stands in the delta.

    Returns:
        None where delta and dead rows have become too many, or vectors have another length: build anew.
    """
    rows = compared.rows
    alive = np.zeros(len(previous.base_rows), dtype=bool)
    alive[compared.in_base[compared.in_base >= 0]] = True
    of_delta = np.flatnonzero(compared.in_base < 0)
    burden = len(of_delta) + len(alive) - int(np.count_nonzero(alive))
    # Without a base a delta of any size below exact_below is what is wanted.
    stays = burden <= settings.rebuild_share * len(alive) if len(alive) else rows.height < settings.exact_below
    if not stays:
        return None
    delta = np.empty((len(of_delta), previous.dimension), dtype=np.float32)
    known = compared.in_delta[of_delta]
    delta[known >= 0] = previous.delta[known[known >= 0]]
    fresh = read(of_delta[known < 0]) if (known < 0).any() else delta[:0]
    if fresh.shape[1] != previous.dimension:
        return None
    delta[known < 0] = fresh
    return replace(
        previous,
        parameters=parameters,
        alive=alive,
        delta=delta,
        delta_rows=IndexRows.of(rows[of_delta]),
        rows_version=version_of_rows(rows),
    )


def _built(
    read: RowVectors,
    parameters: HnswParameters,
    model_id: str,
    settings: IndexSettings,
    threads: int,
    start_progress: Callable[[int], Callable[[int], None]] | None,
) -> HnswIndex:
    """Build from nothing; rows go in by their id, so that the graph does not depend on the order they came in."""
    rows = read.rows
    everything = np.arange(rows.height)
    if rows.height < max(settings.exact_below, 1):
        delta = read(everything)
        return HnswIndex(
            model_id=model_id,
            dimension=delta.shape[1],
            parameters=parameters,
            base=None,
            base_rows=IndexRows.none(),
            nodes=np.zeros(0, dtype=np.int64),
            alive=np.zeros(0, dtype=bool),
            delta=delta,
            delta_rows=IndexRows.of(rows),
            rows_version=version_of_rows(rows),
        )
    different = distinct(read, rows.height)
    progress = None if start_progress is None else start_progress(len(different.first))
    base = build_base(read, different.first, different.bounds, parameters, threads=threads, progress=progress)
    return HnswIndex(
        model_id=model_id,
        dimension=different.bounds.shape[1],
        parameters=parameters,
        base=base,
        base_rows=IndexRows.of(rows),
        nodes=different.nodes,
        alive=np.ones(rows.height, dtype=bool),
        delta=np.zeros((0, different.bounds.shape[1]), dtype=np.float32),
        delta_rows=IndexRows.none(),
        rows_version=version_of_rows(rows),
    )
