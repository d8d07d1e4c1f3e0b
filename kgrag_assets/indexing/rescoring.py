"""Search in two stages: a wide first stage over cheap vectors, and the full model's cosines for what it finds."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl

from kgrag_assets.indexing.port import Hits, VectorIndex
from kgrag_assets.lake.files import replace_file
from kgrag_assets.models.embedders import Embedder
from kgrag_assets.rows.keys import key_of

VERSION = "two-stage-1"

# Candidates that the first stage proposes for each question.
WIDE = 500
# Full vectors that are remembered: 384 numbers each, so some 300 MB.
CACHED_TEXTS = 200_000

# The texts of some ids, in their order; None for an id that has none.
TextsOf = Callable[[Sequence[str]], Sequence[str | None]]

_CACHE_SCHEMA = {"text": pl.String, "model_id": pl.String, "vector": pl.List(pl.Float32)}


class FullVectors:
    """An embedder that remembers the vectors of the texts it was asked for last.

    At most ``limit`` texts are remembered; the one that was not asked for the longest is forgotten first. Safe to
    use from several threads; the embedder is asked by one at a time.
    """

    def __init__(self, embedder: Embedder, limit: int = CACHED_TEXTS) -> None:
        """Take the embedder; nothing is embedded yet.

        Raises:
            ValueError: ``limit`` is below 0.
        """
        if limit < 0:
            raise ValueError(f"a cache cannot hold {limit} texts")
        self._embedder = embedder
        self._limit = limit
        self._known: OrderedDict[str, np.ndarray] = OrderedDict()
        self._lock = threading.Lock()
        self.embedded = 0

    def __len__(self) -> int:
        return len(self._known)

    @property
    def model_id(self) -> str:
        """The embedder's."""
        return self._embedder.model_id

    @property
    def dimension(self) -> int:
        """Length of the vectors."""
        return self._embedder.dimension

    def of(self, texts: Sequence[str]) -> np.ndarray:
        """Return the vectors of the texts, float32 of shape (texts, dimension); unknown ones are embedded.

        ``embedded`` counts the texts that were.

        Raises:
            EmbeddingError: the embedder gave something that is not one usable vector per text.
            ModelUnavailableError: the embedder cannot be used.
        """
        with self._lock:
            # Taken out first: this call's own texts may push each other out of a small cache.
            found = {text: self._known[text] for text in dict.fromkeys(texts) if text in self._known}
            missing = [text for text in dict.fromkeys(texts) if text not in found]
            if missing:
                made = np.asarray(self._embedder.embed(missing), dtype=np.float32)
                found.update(zip(missing, made, strict=True))
                self.embedded += len(missing)
            self._remember(found)
        if not texts:
            return np.zeros((0, self.dimension), dtype=np.float32)
        return np.stack([found[text] for text in texts])

    def warm(self, texts: Sequence[str], vectors: np.ndarray) -> None:
        """Remember vectors that are known already.

        Raises:
            ValueError: there is not one vector of the embedder's length per text.
        """
        if vectors.shape != (len(texts), self.dimension):
            raise ValueError(f"vectors of shape {vectors.shape} do not go with {len(texts)} texts of {self.model_id}")
        with self._lock:
            self._remember(dict(zip(texts, np.asarray(vectors, dtype=np.float32), strict=True)))

    def save(self, path: Path) -> None:
        """Write what is remembered to a Parquet file, whole or not at all.

        Raises:
            LakeError: the disk is full or the place cannot be written.
        """
        with self._lock:
            texts, vectors = list(self._known), list(self._known.values())
        flat = np.stack(vectors) if vectors else np.zeros((0, self.dimension), dtype=np.float32)
        frame = pl.DataFrame({"text": pl.Series(texts, dtype=pl.String)}).with_columns(
            pl.lit(self.model_id).alias("model_id"),
            pl.Series("vector", flat, dtype=pl.Array(pl.Float32, self.dimension)).arr.to_list(),
        )
        replace_file(path, frame.write_parquet)

    def load(self, path: Path) -> int:
        """Remember what ``save`` wrote, as far as it is of this model; return how many texts that were.

        A file that is missing, damaged or of something else is as good as an empty one: a cache costs time to lose,
        nothing else.
        """
        try:
            frame = pl.read_parquet(path, hive_partitioning=False)
        except (OSError, pl.exceptions.PolarsError):
            return 0
        if dict(frame.schema) != _CACHE_SCHEMA:
            return 0
        usable = (pl.col("model_id") == self.model_id) & (pl.col("vector").list.len() == self.dimension)
        frame = frame.filter(usable).tail(self._limit)
        if frame.is_empty():
            return 0
        flat = frame["vector"].explode(empty_as_null=True).to_numpy()
        self.warm(frame["text"].to_list(), flat.reshape(frame.height, self.dimension))
        return frame.height

    def _remember(self, found: dict[str, np.ndarray]) -> None:
        for text, vector in found.items():
            # A row of a larger array would keep all of it in memory.
            self._known[text] = vector if vector.base is None else vector.copy()
            self._known.move_to_end(text)
        while len(self._known) > self._limit:
            self._known.popitem(last=False)


def texts_in(frame: pl.DataFrame, id_column: str, text_column: str = "text") -> TextsOf:
    """Return a function that looks up the texts of ids in a frame, such as rows of ``entity_embeddings``."""
    held = frame.select(pl.col(id_column).alias("id"), pl.col(text_column).alias("text"))

    def texts_of(ids: Sequence[str]) -> list[str | None]:
        wanted = pl.Series("id", sorted(set(ids)), dtype=pl.String).implode()
        found = dict(held.filter(pl.col("id").is_in(wanted)).iter_rows())
        return [found.get(entry) for entry in ids]

    return texts_of


@dataclass(frozen=True)
class TwoStageIndex:
    """A ``VectorIndex`` of the full model's cosines over an index of vectors that only approximate the full ones.

    Questions are vectors of the full model. They are compared with the first stage's vectors as they are, for these
    lie in the full model's space (``fit_static``); the texts of the ``wide`` rows found are then embedded in full.
    ``imitates`` is the model that the first stage's vectors were fitted to.
    """

    first: VectorIndex
    full: FullVectors
    texts: TextsOf
    imitates: str | None
    wide: int = WIDE

    def __post_init__(self) -> None:
        """Refuse what does not go together.

        Raises:
            ValueError: the first stage's vectors may not be compared with the full model's, or ``wide`` is below 1.
        """
        if self.wide < 1:
            raise ValueError(f"wide must be at least 1, not {self.wide}")
        if self.imitates != self.full.model_id or (self.first.size and self.first.dimension != self.full.dimension):
            raise ValueError(
                f"the first stage's vectors ({self.first.model_id}) were fitted to {self.imitates or 'no model'}, the "
                f"questions are of {self.full.model_id}: fit the first stage to that model and embed the graph again"
            )

    @property
    def model_id(self) -> str:
        """The full model: questions must be its vectors, and the cosines returned are of it."""
        return self.full.model_id

    @property
    def dimension(self) -> int:
        """Length of the full model's vectors."""
        return self.full.dimension

    @property
    def size(self) -> int:
        """Number of rows that a search can return."""
        return self.first.size

    @property
    def data_version(self) -> str:
        """Hash of the first stage, the full model and the number of candidates."""
        return key_of(VERSION, self.first.data_version, self.full.model_id, self.wide)

    def search(self, queries: np.ndarray, k: int) -> Hits:
        """Return the k nearest rows of each query among its candidates, with the full model's cosines.

        The candidates are the ``wide`` nearest of the first stage, or k where that is more. A row whose text is not
        known is left out. Equal cosines stand in the order of their ids.

        Args:
            queries: unit vectors of the full model, shape (m, dimension).
            k: neighbours wanted, at least 1.

        Raises:
            ValueError: the queries' shape does not fit, or k is below 1.
            EmbeddingError: the full model gave something that is not one usable vector per text.
            ModelUnavailableError: the full model cannot be used.
        """
        queries = np.ascontiguousarray(queries, dtype=np.float32)
        if k < 1:
            raise ValueError(f"k must be at least 1, not {k}")
        if queries.ndim != 2 or queries.shape[1] != self.dimension:
            raise ValueError(f"queries have shape {queries.shape}, the index holds vectors of length {self.dimension}")
        scores = np.full((len(queries), k), np.nan, dtype=np.float32)
        if not self.first.size or not len(queries):
            return Hits([[] for _ in range(len(queries))], scores)
        proposed = self.first.search(queries, min(max(self.wide, k), self.first.size)).ids
        vectors, place = self._full_vectors(proposed)
        ids: list[list[str]] = []
        for row, candidates in enumerate(proposed):
            known = [entry for entry in candidates if entry in place]
            cosines = vectors[[place[entry] for entry in known]] @ queries[row] if known else np.zeros(0)
            best = sorted(zip((-cosines).tolist(), known, strict=True))[:k]
            ids.append([entry for _, entry in best])
            scores[row, : len(best)] = [-negative for negative, _ in best]
        return Hits(ids, scores)

    def restricted_to(self, ids: Iterable[str]) -> TwoStageIndex:
        """Return a view that finds only these ids; it shares the memory of vectors. Unknown ids are ignored."""
        return replace(self, first=self.first.restricted_to(ids))

    def _full_vectors(self, proposed: Sequence[Sequence[str]]) -> tuple[np.ndarray, dict[str, int]]:
        """Return the full vectors of all candidates, and where each id's stands; all are embedded in one go."""
        ids = list(dict.fromkeys(entry for candidates in proposed for entry in candidates))
        known = [(entry, text) for entry, text in zip(ids, self.texts(ids), strict=True) if text is not None]
        vectors = self.full.of([text for _, text in known])
        return vectors, {entry: row for row, (entry, _) in enumerate(known)}
