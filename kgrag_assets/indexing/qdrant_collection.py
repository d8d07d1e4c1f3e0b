"""One collection of a Qdrant server as plain values: each call to the server that the served index makes."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from kgrag_assets.indexing.qdrant_server import IndexServerError, QdrantPlace

if TYPE_CHECKING:
    from qdrant_client import QdrantClient

FORMAT = 1
# Points in one request that sends, and in one that lists.
SENT, LISTED = 512, 8192
# Ids of rows become ids of points by this name: Qdrant takes UUIDs and numbers only.
_NAMESPACE = uuid.UUID("7d0f2a52-6f0e-5a53-9d52-5f6f3f1c3b9e")
_OURS = "kgrag_assets"


@dataclass(frozen=True)
class Noted:
    """What a collection says of itself; ``rows_version`` is empty while an update has not ended."""

    model_id: str
    dimension: int
    rows_version: str


@dataclass(frozen=True)
class QdrantCollection:
    """A collection by name. Every method raises ``IndexServerError`` where the server is away or refuses."""

    client: QdrantClient
    place: QdrantPlace
    name: str

    def __str__(self) -> str:
        return f"the collection {self.name!r} of {self.place.shown}"

    def noted(self) -> Noted | None:
        """Return what the collection says of itself, None where there is none of this name."""
        with self.place.explained(f"opening the collection {self.name!r}"):
            if not self.client.collection_exists(self.name):
                return None
            config = self.client.get_collection(self.name).config
        ours = (config.metadata or {}).get(_OURS)
        vectors: Any = config.params.vectors
        if not isinstance(ours, dict) or ours.get("format") != FORMAT or not hasattr(vectors, "size"):
            raise IndexServerError(f"{self} was not made by this version: use another collection, or delete this one")
        return Noted(str(ours.get("model_id")), int(vectors.size), str(ours.get("rows_version") or ""))

    def make(self, model_id: str, dimension: int) -> None:
        """Make the collection, without rows. Vectors are of unit length, so their product is the cosine."""
        from qdrant_client import models

        with self.place.explained(f"making the collection {self.name!r}"):
            self.client.create_collection(
                self.name,
                vectors_config=models.VectorParams(size=dimension, distance=models.Distance.DOT),
                metadata=_metadata(model_id, ""),
            )

    def note(self, model_id: str, rows_version: str) -> None:
        """Write what the collection says of itself."""
        with self.place.explained("noting the collection's version"):
            self.client.update_collection(self.name, metadata=_metadata(model_id, rows_version))

    def count(self) -> int:
        """Count the points."""
        with self.place.explained("counting rows"):
            return int(self.client.count(self.name, exact=True).count)

    def ask(
        self, queries: np.ndarray, limit: int, *, effort: int, exact: bool, only: Sequence[str] | None
    ) -> list[list[tuple[float, str]]]:
        """Return (score, id) of the nearest points of each query, best first.

        Args:
            queries: float32 of shape (m, d); they go in one request.
            limit: points wanted for each.
            effort: how many neighbours the server's graph keeps in view.
            exact: have the server compare every point.
            only: the points that may be returned, None for all.
        """
        from qdrant_client import models

        chosen = None if only is None else models.Filter(must=[models.HasIdCondition(has_id=list(only))])
        # The client's own engine compares every point and has nothing to be set.
        options = models.SearchParams(hnsw_ef=max(effort, limit), exact=exact) if self.place.is_server else None
        requests = [
            models.QueryRequest(
                query=query,
                limit=limit,
                filter=chosen,
                params=options,
                with_payload=["id"],
            )
            for query in queries.tolist()
        ]
        with self.place.explained("searching"):
            answers = self.client.query_batch_points(self.name, requests=requests)
        return [[(float(point.score), _id_of(point.payload)) for point in answer.points] for answer in answers]

    def known(self, points: Sequence[str]) -> list[str]:
        """Return the ids of the rows that there are of these points."""
        found: list[str] = []
        for start in range(0, len(points), LISTED):
            with self.place.explained("looking up ids"):
                records = self.client.retrieve(
                    self.name, list(points[start : start + LISTED]), with_payload=["id"], with_vectors=False
                )
            found.extend(_id_of(record.payload) for record in records)
        return found

    def rows(self) -> pl.DataFrame:
        """Return the columns ``id`` and ``row_key`` of all points, sorted by id.

        Raises:
            IndexServerError: also where a point is none of this product's.
        """
        frame = pl.DataFrame(self._listed(), schema={"id": pl.String, "row_key": pl.String}, orient="row")
        return frame.sort("id")

    def _listed(self) -> Iterator[tuple[str, str]]:
        offset: Any = None
        while True:
            with self.place.explained("listing rows"):
                records, offset = self.client.scroll(
                    self.name, limit=LISTED, offset=offset, with_payload=["id", "row_key"], with_vectors=False
                )
            for record in records:
                entry = _id_of(record.payload)
                if str(record.id) != point_id(entry):
                    raise IndexServerError(
                        f"{self} holds the point {record.id}, which is none of this product's: use another collection"
                    )
                yield entry, str((record.payload or {}).get("row_key"))
            if offset is None:
                return

    def send(self, rows: pl.DataFrame, vectors: np.ndarray) -> None:
        """Write or overwrite rows (``id``, ``row_key``) with their vectors, in one request."""
        from qdrant_client import models

        ids, keys = rows["id"].to_list(), rows["row_key"].to_list()
        batch = models.Batch(
            ids=[point_id(entry) for entry in ids],
            vectors=vectors.tolist(),
            payloads=[{"id": entry, "row_key": key} for entry, key in zip(ids, keys, strict=True)],
        )
        with self.place.explained("sending rows"):
            self.client.upsert(self.name, batch, wait=True)

    def delete(self, ids: Sequence[str]) -> None:
        """Delete rows by their ids."""
        from qdrant_client import models

        for start in range(0, len(ids), SENT):
            points: list[int | str | uuid.UUID] = [point_id(entry) for entry in ids[start : start + SENT]]
            with self.place.explained("deleting rows"):
                self.client.delete(self.name, models.PointIdsList(points=points), wait=True)


def point_id(entry: str) -> str:
    """Return the id of the point that stands for a row."""
    return str(uuid.uuid5(_NAMESPACE, entry))


def _metadata(model_id: str, rows_version: str) -> dict[str, Any]:
    return {_OURS: {"format": FORMAT, "model_id": model_id, "rows_version": rows_version}}


def _id_of(payload: dict[str, Any] | None) -> str:
    return str((payload or {}).get("id"))
