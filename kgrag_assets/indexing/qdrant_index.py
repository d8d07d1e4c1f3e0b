"""The served vector index: the same port over a Qdrant collection, with real deletes.

What differs from the embedded index: the server's own graph decides which rows it finds (``exact=True`` compares
all); readers see rows as an update sends them, and ``data_version`` changes when the last has arrived; a view
restricted to some ids sends these ids with each search, so a graph that tasks choose by itself is better a
collection of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from kgrag_assets.indexing.hnsw_base import VectorsOf
from kgrag_assets.indexing.hnsw_files import version_of_rows
from kgrag_assets.indexing.index_rows import IndexRows, Strings, as_series, found_in, frame_of, hash_of
from kgrag_assets.indexing.port import Hits
from kgrag_assets.indexing.qdrant_collection import SENT, QdrantCollection, point_id
from kgrag_assets.indexing.qdrant_server import IndexServerError, QdrantPlace
from kgrag_assets.indexing.row_vectors import RowVectors
from kgrag_assets.indexing.update import UpdateReport
from kgrag_assets.rows.keys import key_of

if TYPE_CHECKING:
    from qdrant_client import QdrantClient

# Queries in one request.
_ASKED = 64
# Rows asked for beyond k, so that rows as near as the k-th can be told apart by their ids; and where that ends.
_SPARE, _MOST = 8, 4096


@dataclass(frozen=True)
class QdrantIndex:
    """A collection of a Qdrant server, opened by ``open`` for searching or ``prepare`` for being brought up to date.

    ``rows_version`` hashes the rows that the last complete update sent. ``only`` are the points of a restricted view.
    """

    collection: QdrantCollection
    model_id: str
    dimension: int
    rows_version: str
    search_effort: int = 128
    exact: bool = False
    only: tuple[str, ...] | None = None

    @property
    def size(self) -> int:
        """Number of rows that a search can return."""
        return self.collection.count() if self.only is None else len(self.only)

    @property
    def data_version(self) -> str:
        """Hash of the rows, the model and how the server is asked."""
        return key_of("qdrant", self.rows_version, self.model_id, self.search_effort, self.exact)

    @classmethod
    def open(
        cls,
        place: QdrantPlace,
        name: str,
        *,
        model_id: str,
        search_effort: int = 128,
        exact: bool = False,
        client: QdrantClient | None = None,
    ) -> QdrantIndex:
        """Open a collection for searching.

        Args:
            place: the server, or this process.
            name: the collection's name.
            model_id: the embedder of the queries.
            search_effort: how many neighbours the server's graph keeps in view (its ``hnsw_ef``).
            exact: have the server compare every row.
            client: one that is open already: what is ``:memory:`` lives in its client.

        Raises:
            IndexServerError: the server cannot be reached or refuses, there is no such collection, its vectors are
                of another model, or an update of it never ended.
        """
        collection = QdrantCollection(client or place.client(), place, name)
        index = cls._found(collection, model_id)
        if index is None:
            raise IndexServerError(
                f"{place.shown} has no collection {name!r}: bring the index up to date first, or correct its name"
            )
        if not index.rows_version:
            raise IndexServerError(
                f"{collection} was not brought up to date to the end: run the update again; it sends what is missing"
            )
        return replace(index, search_effort=search_effort, exact=exact)

    @classmethod
    def prepare(
        cls,
        place: QdrantPlace,
        name: str,
        *,
        model_id: str,
        dimension: int,
        search_effort: int = 128,
        exact: bool = False,
        client: QdrantClient | None = None,
    ) -> QdrantIndex:
        """Open a collection for being brought up to date; it is made where it is missing. Arguments as of ``open``.

        Raises:
            IndexServerError: the server cannot be reached or refuses, or its vectors are of another model or length.
        """
        collection = QdrantCollection(client or place.client(), place, name)
        index = cls._found(collection, model_id)
        if index is None:
            collection.make(model_id, dimension)
            index = cls(collection, model_id, dimension, "")
        if index.dimension != dimension:
            raise IndexServerError(
                f"{collection} holds vectors of length {index.dimension}, not {dimension}: use another collection, "
                f"or delete this one"
            )
        return replace(index, search_effort=search_effort, exact=exact)

    @classmethod
    def _found(cls, collection: QdrantCollection, model_id: str) -> QdrantIndex | None:
        noted = collection.noted()
        if noted is None:
            return None
        if noted.model_id != model_id:
            raise IndexServerError(
                f"{collection} holds vectors of the model {noted.model_id}, not of {model_id}: vectors of different "
                f"models cannot be compared; use another collection, or delete this one"
            )
        return cls(collection, model_id, noted.dimension, noted.rows_version)

    def search(self, queries: np.ndarray, k: int) -> Hits:
        """Return the k nearest rows of each query; rows of one score, as the server gives it, in the order of ids.

        Args:
            queries: unit vectors, shape (m, dimension).
            k: neighbours wanted, at least 1.

        Raises:
            ValueError: the queries' shape does not fit, or k is below 1.
            IndexServerError: the server cannot be reached or refuses.
        """
        queries = np.ascontiguousarray(queries, dtype=np.float32)
        if k < 1:
            raise ValueError(f"k must be at least 1, not {k}")
        if queries.ndim != 2 or queries.shape[1] != self.dimension:
            raise ValueError(f"queries have shape {queries.shape}, the index holds vectors of length {self.dimension}")
        ids: list[list[str]] = []
        scores = np.full((len(queries), k), np.nan, dtype=np.float32)
        for start in range(0, len(queries), _ASKED):
            for hits in self._asked(queries[start : start + _ASKED], k):
                best = sorted((-score, entry) for score, entry in hits)[:k]
                scores[len(ids), : len(best)] = [-negative for negative, _ in best]
                ids.append([entry for _, entry in best])
        return Hits(ids=ids, scores=scores)

    def _asked(self, queries: np.ndarray, k: int) -> list[list[tuple[float, str]]]:
        """Return (score, id) of at least the k nearest of each query, and of all as near as the k-th."""
        found: list[list[tuple[float, str]]] = [[] for _ in queries]
        waiting = [] if self.only == () else list(range(len(queries)))
        limit = k + _SPARE
        while waiting:
            answers = self.collection.ask(
                queries[waiting], limit, effort=self.search_effort, exact=self.exact, only=self.only
            )
            for row, answer in zip(waiting, answers, strict=True):
                found[row] = answer
            # A tie that reaches the end of what came back may go on behind it.
            waiting = [
                row
                for row in waiting
                if len(found[row]) == limit and found[row][-1][0] == found[row][k - 1][0] and limit < _MOST
            ]
            limit *= 4
        return found

    def restricted_to(self, ids: Iterable[str]) -> QdrantIndex:
        """Return a view that finds only these ids; unknown ones are ignored.

        Raises:
            IndexServerError: the server cannot be reached or refuses.
        """
        points = {point_id(entry) for entry in as_series(ids).to_list()}
        if self.only is not None:
            points &= set(self.only)
        known = sorted(self.collection.known(sorted(points)))
        if len(known) == self.size:
            return self
        version = key_of("restricted", self.rows_version, hash_of(as_series(known)))
        return replace(self, only=tuple(point_id(entry) for entry in known), rows_version=version)

    def bring_up_to_date(
        self,
        ids: Strings,
        row_keys: Strings,
        vectors: np.ndarray | VectorsOf,
        start_progress: Callable[[int], Callable[[int], None]] | None = None,
    ) -> tuple[QdrantIndex, UpdateReport]:
        """Send what the collection does not have, and delete what is not wanted any more.

        A run that was stopped goes on where it was: each row carries its key. Rows are written before others are
        deleted.

        Args:
            ids: the row's subject, unique.
            row_keys: key of each row; an equal id and key means an equal vector.
            vectors: unit vectors, float32 of shape (rows, dimension), or a function from row numbers to theirs.
            start_progress: called with the number of rows to be sent; what it returns is told the rows sent since.

        Returns:
            The index with its new version, and what happened to its rows.

        Raises:
            ValueError: the rows do not go together, a vector is not finite, or this is a restricted view.
            IndexServerError: the server cannot be reached or refuses, or the collection holds foreign points.
        """
        if self.only is not None:
            raise ValueError("a view that is restricted to some ids cannot be updated: update the whole index")
        rows = frame_of(ids, row_keys)
        read = RowVectors(vectors, rows)
        if read.dimension not in (None, self.dimension):
            raise ValueError(f"vectors have length {read.dimension}, the collection takes {self.dimension}")
        version = version_of_rows(rows)
        if version == self.rows_version and self.size == rows.height:
            return self, UpdateReport(added=0, removed=0, changed=0, kept=rows.height, rebuilt=False)
        there = self.collection.rows()
        found, same = found_in(rows, IndexRows.of(there))
        missing = np.flatnonzero(~same)
        gone = there.join(rows, on="id", how="anti")["id"].to_list()
        # Until the last row has arrived, nobody takes the collection for complete.
        self.collection.note(self.model_id, "")
        progress = start_progress(len(missing)) if start_progress is not None and len(missing) else None
        for start in range(0, len(missing), SENT):
            part = missing[start : start + SENT]
            sent = read(part)
            if sent.shape[1] != self.dimension:
                raise ValueError(f"vectors have length {sent.shape[1]}, the collection takes {self.dimension}")
            self.collection.send(rows[part], sent)
            if progress is not None:
                progress(len(part))
        self.collection.delete(gone)
        self.collection.note(self.model_id, version)
        known, kept = int(np.count_nonzero(found >= 0)), int(np.count_nonzero(same))
        report = UpdateReport(
            added=rows.height - known, removed=len(gone), changed=known - kept, kept=kept, rebuilt=False
        )
        return replace(self, rows_version=version), report
