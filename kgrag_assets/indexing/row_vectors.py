"""Reading the vectors of rows from an array or a function, and refusing what is no vector."""

from __future__ import annotations

import numpy as np
import polars as pl

from kgrag_assets.indexing.hnsw_base import VectorsOf


class RowVectors:
    """The vectors of rows that ``index_rows.frame_of`` sorted: asked for by a row's number in that order.

    ``dimension`` is their length; of a function it is None until a row was asked for.

    Raises:
        ValueError: there are not as many vectors as rows.
    """

    def __init__(self, vectors: np.ndarray | VectorsOf, rows: pl.DataFrame) -> None:
        self.rows = rows
        self._places = rows["place"].to_numpy()
        self._vectors = vectors
        self.dimension: int | None = None
        if isinstance(vectors, np.ndarray):
            if vectors.ndim != 2 or len(vectors) != rows.height:
                raise ValueError(f"{rows.height} ids do not go with vectors of shape {vectors.shape}")
            self.dimension = int(vectors.shape[1]) if rows.height else None

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        """Return the vectors of rows, float32 of shape (rows, dimension).

        Raises:
            ValueError: a vector is not finite, or others came back than were asked for.
        """
        places = self._places[rows]
        read = self._vectors[places] if isinstance(self._vectors, np.ndarray) else self._vectors(places)
        read = np.ascontiguousarray(read, dtype=np.float32)
        if (
            read.ndim != 2
            or len(read) != len(rows)
            or (len(rows) and read.shape[1] != (self.dimension or read.shape[1]))
        ):
            raise ValueError(f"{len(rows)} rows were asked for and vectors of shape {read.shape} came back")
        finite = np.isfinite(read).all(axis=1)
        if not finite.all():
            bad = self.rows["id"][int(rows[np.flatnonzero(~finite)[0]])]
            raise ValueError(f"the vector of {bad!r} is not finite: embed it again")
        if len(rows):
            self.dimension = int(read.shape[1])
        return read
