"""The embedded vector index: an immutable FAISS HNSW base, an exact delta, and the set of dead base rows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import polars as pl

from kgrag_assets.indexing.hnsw_base import IndexHNSW, base_vectors, read_base, search_base, write_base
from kgrag_assets.indexing.manifest import (
    FORMAT,
    MANIFEST_NAME,
    HnswParameters,
    IndexFileError,
    Manifest,
    file_entry,
    read_manifest,
    write_manifest,
)
from kgrag_assets.indexing.port import Hits
from kgrag_assets.rows.keys import data_version_of, key_of

BASE_FILE, DELTA_FILE, IDS_FILE = "base.faiss", "delta.npy", "ids.parquet"

_IDS_SCHEMA = pl.Schema({"id": pl.String, "row_key": pl.String, "part": pl.String, "place": pl.Int64})


@dataclass(frozen=True)
class HnswIndex:
    """An index in memory. Rows of the base that are not ``alive`` were changed or removed since it was built.

    ``base`` is a ``faiss.IndexHNSWFlat`` or None where all rows lie in the delta. Rows with equal vectors share one
    node of it, given by ``nodes``: a graph of many equal vectors falls into islands that a search never leaves
    (80 copies of each of 100 vectors: recall@10 of 0.68).
    """

    model_id: str
    dimension: int
    parameters: HnswParameters
    base: IndexHNSW
    base_ids: tuple[str, ...]
    base_keys: tuple[str, ...]
    nodes: np.ndarray
    alive: np.ndarray
    delta: np.ndarray
    delta_ids: tuple[str, ...]
    delta_keys: tuple[str, ...]
    data_version: str

    @property
    def size(self) -> int:
        """Number of rows that a search can return."""
        return int(self.alive.sum()) + len(self.delta_ids)

    @cached_property
    def _rows_by_node(self) -> tuple[np.ndarray, np.ndarray]:
        """Rows of the base ordered by their node, and where each node's rows begin."""
        order = np.argsort(self.nodes, kind="stable")
        starts = np.searchsorted(self.nodes[order], np.arange(int(self.base.ntotal) + 1))
        return order, starts

    def live_keys(self) -> dict[str, str]:
        """Return the row key of every live row by its id."""
        live = {self.base_ids[place]: self.base_keys[place] for place in np.flatnonzero(self.alive)}
        live.update(zip(self.delta_ids, self.delta_keys, strict=True))
        return live

    def search(self, queries: np.ndarray, k: int) -> Hits:
        """Return the k nearest live rows of each query; equal scores stand in the order of their ids.

        Args:
            queries: unit vectors, shape (m, dimension).
            k: neighbours wanted, at least 1.

        Raises:
            ValueError: the queries' shape does not fit, or k is below 1.
        """
        queries = np.ascontiguousarray(queries, dtype=np.float32)
        if k < 1:
            raise ValueError(f"k must be at least 1, not {k}")
        if queries.ndim != 2 or queries.shape[1] != self.dimension:
            raise ValueError(f"queries have shape {queries.shape}, the index holds vectors of length {self.dimension}")
        found: list[list[tuple[float, str]]] = [[] for _ in range(len(queries))]
        self._search_base(queries, k, found)
        self._search_delta(queries, k, found)
        scores = np.full((len(queries), k), np.nan, dtype=np.float32)
        ids: list[list[str]] = []
        for row, hits in enumerate(found):
            best = sorted(hits)[:k]
            ids.append([hit for _, hit in best])
            scores[row, : len(best)] = [-negative for negative, _ in best]
        return Hits(ids=ids, scores=scores)

    def _search_base(self, queries: np.ndarray, k: int, found: list[list[tuple[float, str]]]) -> None:
        if not self.alive.any() or not len(queries):
            return
        rows = np.flatnonzero(self.alive)
        if 2 * len(rows) < len(self.alive):
            # The walk through a graph of mostly dead rows ends before it has met k live ones.
            vectors = base_vectors(self.base)[self.nodes[rows]]
            _exact(queries, vectors, [self.base_ids[row] for row in rows], min(k, len(rows)), found)
            return
        living = np.zeros(int(self.base.ntotal), dtype=bool)
        living[self.nodes[rows]] = True
        wanted = min(k, int(living.sum()))
        order, starts = self._rows_by_node
        similarity, nodes = search_base(self.base, queries, wanted, living, self.parameters.ef_search)
        for query in range(len(queries)):
            for score, node in zip(similarity[query], nodes[query], strict=True):
                if node >= 0:  # FAISS fills up with -1 where it found fewer
                    of_node = order[starts[node] : starts[node + 1]]
                    found[query].extend((-float(score), self.base_ids[row]) for row in of_node if self.alive[row])

    def _search_delta(self, queries: np.ndarray, k: int, found: list[list[tuple[float, str]]]) -> None:
        if self.delta_ids:
            _exact(queries, self.delta, self.delta_ids, min(k, len(self.delta_ids)), found)

    def restricted_to(self, ids: Iterable[str]) -> HnswIndex:
        """Return a view that finds only these ids, sharing this index's memory; it cannot be saved or updated."""
        wanted = set(ids)
        alive = self.alive & np.array([entry in wanted for entry in self.base_ids], dtype=bool)
        kept = [place for place, entry in enumerate(self.delta_ids) if entry in wanted]
        if int(alive.sum()) + len(kept) == self.size:
            return self
        found = [self.base_ids[place] for place in np.flatnonzero(alive)] + [self.delta_ids[place] for place in kept]
        version = key_of("restricted", self.data_version, sorted(found))
        return HnswIndex(
            model_id=self.model_id,
            dimension=self.dimension,
            parameters=self.parameters,
            base=self.base,
            base_ids=self.base_ids,
            base_keys=self.base_keys,
            nodes=self.nodes,
            alive=alive,
            delta=self.delta[kept],
            delta_ids=tuple(self.delta_ids[place] for place in kept),
            delta_keys=tuple(self.delta_keys[place] for place in kept),
            data_version=version,
        )

    def save(self, folder: Path) -> None:
        """Write the index's files and manifest into an empty folder; wrap with ``lake.files.replace_folder``.

        Raises:
            OSError: the disk is full or cannot be written.
        """
        names = [DELTA_FILE, IDS_FILE]
        with (folder / DELTA_FILE).open("wb") as handle:
            np.save(handle, self.delta, allow_pickle=False)
        with (folder / IDS_FILE).open("wb") as handle:
            self._ids_frame().write_parquet(handle, compression="zstd")
        if self.base is not None:
            names.append(BASE_FILE)
            write_base(self.base, folder / BASE_FILE)
        manifest = Manifest(
            format=FORMAT,
            model_id=self.model_id,
            dimension=self.dimension,
            base_rows=len(self.base_ids),
            delta_rows=len(self.delta_ids),
            dead_rows=len(self.base_ids) - int(self.alive.sum()),
            live_rows=self.size,
            parameters=self.parameters,
            data_version=self.data_version,
            files={name: file_entry(folder / name) for name in names},
        )
        write_manifest(folder, manifest)

    def _ids_frame(self) -> pl.DataFrame:
        parts = ["base" if living else "dead" for living in self.alive] + ["delta"] * len(self.delta_ids)
        places = [*self.nodes.tolist(), *range(len(self.delta_ids))]
        columns = {
            "id": [*self.base_ids, *self.delta_ids],
            "row_key": [*self.base_keys, *self.delta_keys],
            "part": parts,
            "place": places,
        }
        return pl.DataFrame(columns, schema=_IDS_SCHEMA)

    @classmethod
    def open(cls, folder: Path) -> HnswIndex:
        """Open a saved index.

        Raises:
            IndexFileError: a file is missing, damaged, or does not agree with the others.
        """
        manifest = read_manifest(folder)
        ids = _read_ids(folder / IDS_FILE)
        delta = _read_delta(folder / DELTA_FILE)
        base = read_base(folder / BASE_FILE) if BASE_FILE in manifest.files else None
        of_base, of_delta = ids.filter(pl.col("part") != "delta"), ids.filter(pl.col("part") == "delta")
        index = cls(
            model_id=manifest.model_id,
            dimension=manifest.dimension,
            parameters=manifest.parameters,
            base=base,
            base_ids=tuple(of_base["id"]),
            base_keys=tuple(of_base["row_key"]),
            nodes=of_base["place"].to_numpy().astype(np.int64),
            alive=(of_base["part"] == "base").to_numpy().astype(bool),
            delta=delta,
            delta_ids=tuple(of_delta["id"]),
            delta_keys=tuple(of_delta["row_key"]),
            data_version=manifest.data_version,
        )
        index._refuse_disagreement(folder, manifest, ids)
        return index

    def _refuse_disagreement(self, folder: Path, manifest: Manifest, ids: pl.DataFrame) -> None:
        in_base = 0 if self.base is None else int(self.base.ntotal)
        named = np.unique(self.nodes)
        base_dimension = self.dimension if self.base is None else int(self.base.d)
        dead = len(self.base_ids) - int(self.alive.sum())
        of_delta = ids.filter(pl.col("part") == "delta")["place"].to_list()
        live = self.live_keys()
        checks = (
            (np.array_equal(named, np.arange(in_base)), BASE_FILE, "has other nodes than its ids name"),
            (len(self.base_ids) == manifest.base_rows, IDS_FILE, "does not have the base's rows"),
            (base_dimension == self.dimension, BASE_FILE, "holds vectors of another length"),
            (self.delta.shape == (len(self.delta_ids), self.dimension), DELTA_FILE, "has another shape than its ids"),
            (len(self.delta_ids) == manifest.delta_rows, IDS_FILE, "does not have the delta's rows"),
            (dead == manifest.dead_rows and self.size == manifest.live_rows, IDS_FILE, "counts other rows as dead"),
            (of_delta == list(range(len(of_delta))), IDS_FILE, "is not in the order of the vectors"),
            (len(live) == self.size, IDS_FILE, "has an id twice"),
            (
                version_of(live.values(), self.model_id, self.parameters) == self.data_version,
                MANIFEST_NAME,
                "names another data version than the ids have",
            ),
        )
        for good, name, problem in checks:
            if not good:
                raise IndexFileError(folder / name, problem)


def version_of(row_keys: Iterable[str], model_id: str, parameters: HnswParameters) -> str:
    """Hash what decides an index's answers: its rows, its model and its parameters."""
    return key_of(
        "hnsw",
        data_version_of(row_keys),
        model_id,
        parameters.m,
        parameters.ef_construction,
        parameters.ef_search,
    )


def _exact(
    queries: np.ndarray,
    vectors: np.ndarray,
    ids: tuple[str, ...] | list[str],
    k: int,
    found: list[list[tuple[float, str]]],
) -> None:
    similarity = queries @ vectors.T
    for row, scores in enumerate(similarity):
        if k < len(scores):
            # Everything as good as the k-th, so that ties are broken by id, not by chance.
            least = np.partition(scores, -k)[-k]
            places = np.flatnonzero(scores >= least)
        else:
            places = np.arange(len(scores))
        found[row].extend((-float(scores[place]), ids[place]) for place in places)


def _read_delta(path: Path) -> np.ndarray:
    try:
        with path.open("rb") as handle:
            delta = np.load(handle, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise IndexFileError(path, f"cannot be read ({error})") from error
    if delta.dtype != np.float32 or delta.ndim != 2:
        raise IndexFileError(path, "is not a table of 32-bit floats")
    return np.asarray(delta)


def _read_ids(path: Path) -> pl.DataFrame:
    try:
        ids = pl.read_parquet(path, hive_partitioning=False)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise IndexFileError(path, f"cannot be read ({error})") from error
    if ids.schema != _IDS_SCHEMA or ids["part"].is_in(["base", "dead", "delta"]).not_().any():
        raise IndexFileError(path, "does not have the columns of this version")
    return ids
