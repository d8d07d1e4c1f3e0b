"""The embedded vector index: an immutable FAISS HNSW base, an exact delta, and the set of dead base rows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import polars as pl

from kgrag_assets.indexing.hnsw_base import Selection, base_vectors, exact_base, search_base
from kgrag_assets.indexing.hnsw_files import IndexParts, open_parts, save_parts
from kgrag_assets.indexing.index_rows import IndexRows, as_series, hash_of
from kgrag_assets.indexing.port import Hits
from kgrag_assets.rows.keys import key_of

# Queries compared with the delta at once: bounds the memory to this many rows of similarities.
_BLOCK = 64


@dataclass(frozen=True)
class HnswIndex(IndexParts):
    """An index that can be searched. Its base has one node for rows with equal vectors.

    A graph of many equal vectors falls into islands that a search never leaves (80 copies of each of 100 vectors:
    recall@10 of 0.68). A ``restricted`` view can neither be saved nor updated.
    """

    restricted: bool = False

    def search(self, queries: np.ndarray, k: int) -> Hits:
        """Return the k nearest live rows of each query; equal scores stand in the order of their ids.

        Args:
            queries: unit vectors, shape (m, dimension).
            k: neighbours wanted, at least 1.

        Raises:
            ValueError: the queries' shape does not fit, or k is below 1.
        """
        return self._search(queries, k, exact=False)

    def search_exact(self, queries: np.ndarray, k: int) -> Hits:
        """Compare every live row, as the index keeps it, with each query; arguments as of ``search``."""
        return self._search(queries, k, exact=True)

    def _search(self, queries: np.ndarray, k: int, *, exact: bool) -> Hits:
        queries = np.ascontiguousarray(queries, dtype=np.float32)
        if k < 1:
            raise ValueError(f"k must be at least 1, not {k}")
        if queries.ndim != 2 or queries.shape[1] != self.dimension:
            raise ValueError(f"queries have shape {queries.shape}, the index holds vectors of length {self.dimension}")
        of_base, of_delta = self._base_hits(queries, k, exact=exact), self._delta_hits(queries, k)
        ids: list[list[str]] = []
        scores: list[list[float]] = []
        for of_query, (likeness, rows) in enumerate(of_base):
            found = self.base_rows.texts(rows)
            # FAISS gives the best first: where no two are alike and nothing joins them, that is the order.
            if not of_delta and len(set(likeness)) == len(likeness):
                ids.append(found)
                scores.append(likeness)
                continue
            hits = [(-score, entry) for score, entry in zip(likeness, found, strict=True)]
            best = sorted(hits + of_delta[of_query] if of_delta else hits)[:k]
            ids.append([entry for _, entry in best])
            scores.append([-score for score, _ in best])
        # Every query has found as many: all live rows, or k.
        table = np.array(scores, dtype=np.float32).reshape(len(queries), min(k, self.size))
        if k > self.size:
            table = np.pad(table, ((0, 0), (0, k - self.size)), constant_values=np.nan)
        return Hits(ids=ids, scores=table)

    @cached_property
    def _selection(self) -> Selection:
        if self._one_row_each:
            return Selection.of(self.alive)
        living = np.zeros(int(self.base.ntotal), dtype=bool)
        living[self.nodes[self.alive]] = True
        return Selection.of(living)

    @cached_property
    def _one_row_each(self) -> bool:
        """Whether node i is row i, as it is where no vector stands twice."""
        return self.base is not None and int(self.base.ntotal) == len(self.base_rows)

    @cached_property
    def _rows_by_node(self) -> tuple[np.ndarray, np.ndarray]:
        """Live rows of the base ordered by their node, and where each node's rows begin."""
        live = np.flatnonzero(self.alive)
        order = live[np.argsort(self.nodes[live], kind="stable")]
        return order, np.searchsorted(self.nodes[order], np.arange(int(self.base.ntotal) + 1))

    @cached_property
    def _single_rows(self) -> memoryview:
        """The live row of each node, -1 where it has none or several: one look for what nearly every hit asks."""
        order, starts = self._rows_by_node
        single = np.full(int(self.base.ntotal), -1, dtype=np.int64)
        alone = np.flatnonzero(np.diff(starts) == 1)
        single[alone] = order[starts[alone]]
        return single.data

    def _base_hits(self, queries: np.ndarray, k: int, *, exact: bool) -> list[tuple[list[float], list[int]]]:
        """Return similarities, best first, and rows of the base for each query."""
        if self.base is None or not len(queries) or not self._selection.chosen:
            return [([], []) for _ in queries]
        wanted = min(k, self._selection.chosen)
        if exact:
            similarity, nodes = exact_base(self.base, queries, wanted, self._selection)
        else:
            similarity, nodes = search_base(self.base, queries, wanted, self._selection, self.parameters.ef_search)
        found = list(zip(similarity.tolist(), nodes.tolist(), strict=True))
        return found if self._one_row_each else [self._spread(scores, places, k) for scores, places in found]

    def _spread(self, scores: list[float], nodes: list[int], k: int) -> tuple[list[float], list[int]]:
        """Put the first k live rows of each node in its place; rows of a node stand in the order of their ids."""
        single = self._single_rows
        rows = [single[node] for node in nodes]
        if -1 not in rows:
            return scores, rows
        order, starts = self._rows_by_node
        likeness: list[float] = []
        rows = []
        for score, node in zip(scores, nodes, strict=True):
            of_node = order[starts[node] : min(starts[node + 1], starts[node] + k)].tolist()
            rows += of_node
            likeness += [score] * len(of_node)
            if len(rows) >= k and likeness[-1] < likeness[k - 1]:
                break
        return likeness, rows

    def _delta_hits(self, queries: np.ndarray, k: int) -> list[list[tuple[float, str]]]:
        """Return (negative similarity, id) of the rows of the delta that may be among the k nearest of each query."""
        found: list[list[tuple[float, str]]] = []
        count = len(self.delta)
        for start in range(0, len(queries) if count else 0, _BLOCK):
            for scores in queries[start : start + _BLOCK] @ self.delta.T:
                # Everything as good as the k-th, so that ties are broken by id, not by chance.
                least = np.partition(scores, -k)[-k] if k < count else -np.inf
                places = np.flatnonzero(scores >= least)
                found.append(list(zip((-scores[places]).tolist(), self.delta_rows.texts(places.tolist()), strict=True)))
        return found

    def restricted_to(self, ids: Iterable[str]) -> HnswIndex:
        """Return a view that finds only these ids, sharing this index's memory; it cannot be saved or updated."""
        wanted = as_series(ids)
        alive = self.alive & self._among(self.base_rows, wanted)
        kept = np.flatnonzero(self._among(self.delta_rows, wanted))
        if int(np.count_nonzero(alive)) + len(kept) == self.size:
            return self
        view = replace(
            self, alive=alive, delta=self.delta[kept], delta_rows=self.delta_rows.take(kept), restricted=True
        )
        return replace(view, rows_version=key_of("restricted", self.rows_version, hash_of(view.live_rows()["id"])))

    @staticmethod
    def _among(rows: IndexRows, wanted: pl.Series) -> np.ndarray:
        return rows.frame()["id"].is_in(wanted.implode()).to_numpy().astype(bool)

    def vectors_of(self, rows: np.ndarray) -> np.ndarray:
        """Return the vectors of some rows of the base as it keeps them, float32 of shape (rows, dimension)."""
        return base_vectors(self.base, self.nodes[rows])

    def save(self, folder: Path, previous_folder: Path | None = None) -> None:
        """Write the index's files and manifest into an empty folder; wrap with ``lake.files.replace_folder``.

        A base that lies on disk already is linked, not copied.

        Args:
            folder: an empty folder.
            previous_folder: where the base lies now, if it was moved since it was opened.

        Raises:
            OSError: the disk is full or cannot be written.
            ValueError: the index is a restricted view.
        """
        if self.restricted:
            raise ValueError("a view that is restricted to some ids cannot be saved: save the whole index")
        saved = self.saved_base
        if saved is not None and previous_folder is not None:
            saved = replace(saved, folder=previous_folder.resolve())
        save_parts(replace(self, saved_base=saved), folder)

    @classmethod
    def open(cls, folder: Path) -> HnswIndex:
        """Open a saved index, mapped into memory: its files' sizes, ends and counts must agree.

        Raises:
            IndexFileError: a file is missing, damaged, or does not agree with the others.
        """
        parts = open_parts(folder)
        return cls(**{field.name: getattr(parts, field.name) for field in fields(parts)})
