"""Embedding what changed: which rows want a vector, which have one, and computing the rest in checkpoints."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import polars as pl

from kgrag_assets.indexing.entity_text import entity_text, triple_text
from kgrag_assets.lake.lake import difference
from kgrag_assets.models.embedders import Embedder, EmbeddingError
from kgrag_assets.rows.embeddings import (
    ATTRIBUTE_EMBEDDINGS,
    ENTITY_EMBEDDINGS,
    TRIPLE_EMBEDDINGS,
    embedding_key,
    vectors_of,
)
from kgrag_assets.rows.keys import key_of
from kgrag_assets.rows.table import ROW_KEY, Table
from kgrag_assets.schemas.attribute import attributes_of
from kgrag_assets.schemas.attribute_text import ATTRIBUTE_VIEWS, attribute_text

# The texts of an attribute that are embedded.
VIEWS = ATTRIBUTE_VIEWS

# How far from 1 the length of a vector may be; float32 and bfloat16 round.
UNIT_TOLERANCE = 0.02

# Called with the number of texts to embed; what it returns is called with the texts done since.
StartProgress = Callable[[int], Callable[[int], None]]


@dataclass(frozen=True)
class EmbeddedRows:
    """The rows of an embeddings partition and how each came to its vector.

    ``kept``: rows that had their vector, from before or from an interrupted run. ``computed``: rows whose text
    went to the embedder in this run, which are ``texts_embedded`` different texts. ``vectors_reused``: new rows
    that took the vector of an equal text. ``removed``: rows that were there and are not wanted.
    """

    frame: pl.DataFrame
    kept: int
    computed: int
    vectors_reused: int
    removed: int
    texts_embedded: int


def wanted_entities(kg_entities: pl.DataFrame, model_id: str) -> pl.DataFrame:
    """Turn rows of ``kg_entities`` into the rows that ``entity_embeddings`` should have, without vectors."""
    columns = ("entity_id", "graph", "label", "aliases", "description")
    texts: list[str] = []
    keys: list[str] = []
    for entity_id, graph, label, aliases, description in kg_entities.select(columns).iter_rows():
        text = entity_text(label, aliases, description)
        texts.append(text)
        keys.append(embedding_key(key_of("entity", graph, entity_id), text, model_id))
    return _wanted(ENTITY_EMBEDDINGS, kg_entities.select("entity_id", "graph", "bucket"), texts, keys, model_id)


def wanted_triples(kg_triples: pl.DataFrame, model_id: str) -> pl.DataFrame:
    """Turn rows of ``kg_triples`` into the rows that ``triple_embeddings`` should have, without vectors."""
    columns = ("triple_id", "head_label", "relation_label", "tail_label")
    texts: list[str] = []
    keys: list[str] = []
    for triple_id, head, relation, tail in kg_triples.select(columns).iter_rows():
        text = triple_text(head, relation, tail)
        texts.append(text)
        keys.append(embedding_key(triple_id, text, model_id))
    return _wanted(TRIPLE_EMBEDDINGS, kg_triples.select("triple_id", "graph", "bucket"), texts, keys, model_id)


def wanted_attributes(attributes: pl.DataFrame, model_id: str) -> pl.DataFrame:
    """Turn rows of ``schema_attributes`` into the rows that ``attribute_embeddings`` should have, without vectors.

    Each attribute has one row per view of ``ATTRIBUTE_VIEWS``.
    """
    tasks = dict(attributes.select("attribute_id", "task").iter_rows())
    subjects: list[dict[str, str]] = []
    texts: list[str] = []
    keys: list[str] = []
    for attribute in attributes_of(attributes).values():
        task = tasks[attribute.attribute_id]
        for view in VIEWS:
            text = attribute_text(attribute, view)
            subjects.append({"task": task, "attribute_id": attribute.attribute_id, "view": view})
            texts.append(text)
            # The task is part of the subject: two tasks may have a column of the same name.
            keys.append(embedding_key(key_of("attribute", task, attribute.attribute_id, view), text, model_id))
    schema = {"task": pl.String, "attribute_id": pl.String, "view": pl.String}
    return _wanted(ATTRIBUTE_EMBEDDINGS, pl.DataFrame(subjects, schema=schema), texts, keys, model_id)


def _wanted(table: Table, subjects: pl.DataFrame, texts: list[str], keys: list[str], model_id: str) -> pl.DataFrame:
    frame = subjects.with_columns(
        pl.Series("text", texts, dtype=pl.String),
        pl.lit(model_id).alias("model_id"),
        pl.Series(ROW_KEY, keys, dtype=pl.String),
    )
    return frame.select([name for name in table.names if name != "vector"])


def embed_rows(
    wanted: pl.DataFrame,
    existing: pl.DataFrame,
    parts: pl.DataFrame,
    embedder: Embedder,
    *,
    table: Table,
    checkpoint: int,
    save_part: Callable[[pl.DataFrame], None] | None = None,
    start_progress: StartProgress | None = None,
) -> EmbeddedRows:
    """Give every wanted row a vector, computing only texts that have none.

    Args:
        wanted: rows by one of the ``wanted_…`` functions: subject columns, ``text``, ``model_id``, ``row_key``.
        existing: the partition as it is, of the same table.
        parts: rows that an interrupted run had finished (``Lake.read_parts``).
        embedder: makes the vectors; its ``model_id`` must be the wanted rows'.
        table: the embeddings table that the rows are of.
        checkpoint: after this many texts the finished rows go to ``save_part``, so that a kill loses little.
        save_part: keeps finished rows (``Lake.write_part``).
        start_progress: called with the number of texts to embed; its result with the texts done since.

    Returns:
        All wanted rows in their order, with counts. The vectors are of one model: a row of another model
        has another key and is embedded again.

    Raises:
        EmbeddingError: the embedder returned a wrong number of vectors, a wrong dimension, NaN or vectors
            that are not of unit length; or the stored vectors under this model's id have another dimension.
        ValueError: the wanted rows name another model than the embedder, or ``checkpoint`` is below 1.
    """
    if checkpoint < 1:
        raise ValueError(f"checkpoint must be at least 1, not {checkpoint}")
    models = wanted["model_id"].unique().to_list()
    if models and models != [embedder.model_id]:
        raise ValueError(f"rows are wanted for model {', '.join(sorted(models))}, the embedder is {embedder.model_id}")
    at_hand = pl.concat([existing, parts.select(table.names)]).unique(ROW_KEY, keep="first", maintain_order=True)
    vectors = _VectorsByText(at_hand.filter(pl.col("model_id") == embedder.model_id), embedder)
    todo = difference(wanted, at_hand)
    removed = existing.join(wanted.select(ROW_KEY), on=ROW_KEY, how="anti").height

    texts = todo.missing["text"]
    reused = sum(1 for text in texts if text in vectors)
    unknown = [text for text in texts.unique(maintain_order=True) if text not in vectors]
    vectors.reserve(len(unknown))
    tell = start_progress(len(unknown)) if start_progress is not None else None
    # Texts of like length together: less padding in each batch. Sorted, so that the order of rows decides nothing.
    unknown.sort(key=lambda text: (len(text), text))
    for start in range(0, len(unknown), checkpoint):
        batch = unknown[start : start + checkpoint]
        vectors.add(batch, _checked(embedder, batch, np.asarray(embedder.embed(batch, tell), dtype=np.float32)))
        if save_part is not None and start + len(batch) < len(unknown):
            finished = todo.missing.filter(pl.col("text").is_in(batch))
            save_part(_with_vectors(finished, vectors, table.names))
    frame = _with_vectors(wanted, vectors, table.names)
    return EmbeddedRows(
        frame=frame,
        kept=todo.kept.height,
        computed=todo.missing.height - reused,
        vectors_reused=reused,
        removed=removed,
        texts_embedded=len(unknown),
    )


def _checked(embedder: Embedder, texts: list[str], vectors: np.ndarray) -> np.ndarray:
    shape = (len(texts), embedder.dimension)
    if vectors.shape != shape:
        raise EmbeddingError(f"{embedder.model_id} returned vectors of shape {vectors.shape} where {shape} was asked")
    norms = np.linalg.norm(vectors, axis=1)
    # Written so that NaN, which compares false with everything, is caught.
    bad = np.flatnonzero(~(np.abs(norms - 1.0) <= UNIT_TOLERANCE))
    if bad.size:
        raise EmbeddingError(
            f"{embedder.model_id} returned a vector of length {norms[bad[0]]} for the text {texts[bad[0]][:80]!r}: "
            "vectors must be finite and of unit length; nothing of this batch was kept"
        )
    return vectors


class _VectorsByText:
    """Vectors of one model by their text."""

    def __init__(self, rows: pl.DataFrame, embedder: Embedder) -> None:
        self.dimension = embedder.dimension
        rows = rows.unique("text", keep="first", maintain_order=True)
        if not rows.is_empty():
            lengths = rows["vector"].list.len().unique().sort().to_list()
            if lengths != [embedder.dimension]:
                raise EmbeddingError(
                    f"stored vectors of {embedder.model_id} have {lengths} dimensions, the embedder makes "
                    f"{embedder.dimension}: give the model another name or revision, or delete the stored vectors"
                )
        self._place = {text: place for place, text in enumerate(rows["text"])}
        self._array = vectors_of(rows) if not rows.is_empty() else np.zeros((0, self.dimension), dtype=np.float32)

    def __contains__(self, text: str) -> bool:
        return text in self._place

    def reserve(self, texts: int) -> None:
        """Make room for so many more texts, in one copy for all of them."""
        room = np.zeros((texts, self.dimension), dtype=np.float32)
        self._array = np.concatenate([self._array, room]) if texts else self._array

    def add(self, texts: list[str], vectors: np.ndarray) -> None:
        start = len(self._place)
        self._array[start : start + len(texts)] = vectors
        self._place.update({text: start + offset for offset, text in enumerate(texts)})

    def of(self, texts: pl.Series) -> np.ndarray:
        return np.asarray(self._array[np.array([self._place[text] for text in texts], dtype=np.int64)])


def _with_vectors(rows: pl.DataFrame, vectors: _VectorsByText, columns: list[str]) -> pl.DataFrame:
    array = pl.Series("vector", vectors.of(rows["text"]), dtype=pl.Array(pl.Float32, vectors.dimension))
    return rows.with_columns(array.arr.to_list()).select(columns)
