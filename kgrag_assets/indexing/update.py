"""Bringing an index up to date: what is new, what is dead, and when the base is built anew."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl

from kgrag_assets.indexing.hnsw import HnswIndex, version_of
from kgrag_assets.indexing.hnsw_base import base_vectors, build_base
from kgrag_assets.indexing.manifest import HnswParameters
from kgrag_assets.settings import IndexSettings

# Below this many rows there is no base and every search is exact: scanning 2,000 vectors of 384 dimensions
# takes about as long as a walk through the graph.
EXACT_BELOW = 2000


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


def update_index(
    previous: HnswIndex | None,
    ids: Sequence[str],
    row_keys: Sequence[str],
    vectors: np.ndarray,
    settings: IndexSettings,
    *,
    model_id: str,
) -> UpdatedIndex:
    """Bring an index up to the given rows.

    Args:
        previous: the index as it is, None for none.
        ids: the row's subject (entity or triple id), unique.
        row_keys: key of each row; an equal id and key means an equal vector.
        vectors: unit vectors, float32 of shape (rows, dimension).
        settings: parameters, and the share of delta and dead rows at which the base is built anew.
        model_id: the embedder of all the vectors.

    Raises:
        ValueError: lengths differ, an id stands twice, or a vector is not finite.
    """
    vectors = _checked(ids, row_keys, vectors)
    parameters = HnswParameters(settings.hnsw_m, settings.ef_construction, settings.ef_search)
    before = {} if previous is None else previous.live_keys()
    same = _fits(previous, vectors, parameters, model_id)
    kept = sum(1 for entry, key in zip(ids, row_keys, strict=True) if before.get(entry) == key)
    known = sum(1 for entry in ids if entry in before)
    report = UpdateReport(
        added=len(ids) - known, removed=len(before) - known, changed=known - kept, kept=kept, rebuilt=False
    )
    if previous is not None and same:
        if kept == len(ids) == len(before):
            return _with_search_effort(previous, parameters, report)
        updated = _laid_over(previous, ids, row_keys, vectors, parameters)
        burden = len(updated.delta_ids) + int((~updated.alive).sum())
        # Without a base a delta of any size below EXACT_BELOW is what is wanted.
        stays = burden <= settings.rebuild_share * len(updated.base_ids) if updated.base_ids else len(ids) < EXACT_BELOW
        if stays:
            return UpdatedIndex(updated, report, changed=True)
    return UpdatedIndex(
        _built(ids, row_keys, vectors, parameters, model_id), replace(report, rebuilt=True), changed=True
    )


def open_previous(folder: Path) -> HnswIndex | None:
    """Open the index in a folder, or return None where none was ever saved.

    Raises:
        IndexFileError: there is one, and its files do not agree.
    """
    return HnswIndex.open(folder) if folder.exists() or folder.is_symlink() else None


def distinct_rows(rows: pl.DataFrame, id_column: str) -> pl.DataFrame:
    """Keep one embedded row per id, sorted by id: of an id that several graphs have, the first graph's."""
    return rows.sort(id_column, "graph").unique(id_column, keep="first", maintain_order=True)


def _checked(ids: Sequence[str], row_keys: Sequence[str], vectors: np.ndarray) -> np.ndarray:
    vectors = np.ascontiguousarray(vectors, dtype=np.float32)
    if vectors.ndim != 2 or not len(ids) == len(row_keys) == len(vectors):
        raise ValueError(f"{len(ids)} ids and {len(row_keys)} keys do not go with vectors of shape {vectors.shape}")
    if len(set(ids)) != len(ids):
        seen: set[str] = set()
        twice = next(entry for entry in ids if entry in seen or seen.add(entry))  # type: ignore[func-returns-value]
        raise ValueError(f"{twice!r} stands twice: an index holds one row for each id")
    if not np.isfinite(vectors).all():
        bad = int(np.flatnonzero(~np.isfinite(vectors).all(axis=1))[0])
        raise ValueError(f"the vector of {ids[bad]!r} is not finite: embed it again")
    return vectors


def _fits(previous: HnswIndex | None, vectors: np.ndarray, parameters: HnswParameters, model_id: str) -> bool:
    if previous is None or previous.model_id != model_id:
        return False
    if len(vectors) and previous.dimension != vectors.shape[1]:
        return False
    old = previous.parameters
    return (old.m, old.ef_construction) == (parameters.m, parameters.ef_construction)


def _with_search_effort(previous: HnswIndex, parameters: HnswParameters, report: UpdateReport) -> UpdatedIndex:
    if previous.parameters == parameters:
        return UpdatedIndex(previous, report, changed=False)
    version = version_of(previous.live_keys().values(), previous.model_id, parameters)
    return UpdatedIndex(replace(previous, parameters=parameters, data_version=version), report, changed=True)


def _laid_over(
    previous: HnswIndex,
    ids: Sequence[str],
    row_keys: Sequence[str],
    vectors: np.ndarray,
    parameters: HnswParameters,
) -> HnswIndex:
    """Keep the base; a row it has with this key is alive there, every other row stands in the delta."""
    place_of = {pair: place for place, pair in enumerate(zip(previous.base_ids, previous.base_keys, strict=True))}
    alive = np.zeros(len(previous.base_ids), dtype=bool)
    in_delta: list[int] = []
    for row, pair in enumerate(zip(ids, row_keys, strict=True)):
        place = place_of.get(pair)
        if place is None:
            in_delta.append(row)
        else:
            alive[place] = True
    in_delta.sort(key=lambda row: ids[row])
    dimension = previous.dimension
    return HnswIndex(
        model_id=previous.model_id,
        dimension=dimension,
        parameters=parameters,
        base=previous.base,
        base_ids=previous.base_ids,
        base_keys=previous.base_keys,
        nodes=previous.nodes,
        alive=alive,
        delta=vectors[in_delta] if len(vectors) else np.zeros((0, dimension), dtype=np.float32),
        delta_ids=tuple(ids[row] for row in in_delta),
        delta_keys=tuple(row_keys[row] for row in in_delta),
        data_version=version_of(row_keys, previous.model_id, parameters),
    )


def _built(
    ids: Sequence[str], row_keys: Sequence[str], vectors: np.ndarray, parameters: HnswParameters, model_id: str
) -> HnswIndex:
    """Build from nothing; rows go in by their id, so that the graph does not depend on the order they came in."""
    order = sorted(range(len(ids)), key=lambda row: ids[row])
    ordered = vectors[order]
    sorted_ids, sorted_keys = tuple(ids[row] for row in order), tuple(row_keys[row] for row in order)
    small = len(ids) < EXACT_BELOW
    first, nodes = (np.zeros(0, dtype=np.int64),) * 2 if small else _distinct(ordered)
    nothing = np.zeros((0, vectors.shape[1]), dtype=np.float32)
    return HnswIndex(
        model_id=model_id,
        dimension=vectors.shape[1],
        parameters=parameters,
        base=None if small else build_base(ordered[first], parameters),
        base_ids=() if small else sorted_ids,
        base_keys=() if small else sorted_keys,
        nodes=nodes,
        alive=np.ones(0 if small else len(ids), dtype=bool),
        delta=ordered if small else nothing,
        delta_ids=sorted_ids if small else (),
        delta_keys=sorted_keys if small else (),
        data_version=version_of(row_keys, model_id, parameters),
    )


def _distinct(vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the first row of each different vector, in order, and for each row which of these it is."""
    node_of: dict[bytes, int] = {}
    first: list[int] = []
    nodes = np.empty(len(vectors), dtype=np.int64)
    for row, vector in enumerate(vectors):
        node = node_of.setdefault(vector.tobytes(), len(first))
        if node == len(first):
            first.append(row)
        nodes[row] = node
    return np.array(first, dtype=np.int64), nodes


def live_vectors(index: HnswIndex) -> tuple[list[str], np.ndarray]:
    """Return the ids and vectors of all live rows, float32 of shape (size, dimension)."""
    places = np.flatnonzero(index.alive)
    ids = [index.base_ids[place] for place in places] + list(index.delta_ids)
    if index.base is None:
        return ids, index.delta
    return ids, np.concatenate([base_vectors(index.base)[index.nodes[places]], index.delta])
