"""Embedding the attributes of a task: which rows want a vector, which have one, and computing the rest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import polars as pl

from kgrag_assets.indexing.vectors_by_text import StartProgress, VectorsByText, embed_texts
from kgrag_assets.lake.lake import difference
from kgrag_assets.models.embedders import Embedder
from kgrag_assets.rows.embeddings import (
    ATTRIBUTE_EMBEDDINGS,
    embedding_key,
)
from kgrag_assets.rows.keys import key_of
from kgrag_assets.rows.table import ROW_KEY, Table
from kgrag_assets.schemas.attribute import attributes_of
from kgrag_assets.schemas.attribute_text import ATTRIBUTE_VIEWS, attribute_text

# The texts of an attribute that are embedded.
VIEWS = ATTRIBUTE_VIEWS


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
    vectors = VectorsByText(at_hand.filter(pl.col("model_id") == embedder.model_id), embedder)
    todo = difference(wanted, at_hand)
    removed = existing.join(wanted.select(ROW_KEY), on=ROW_KEY, how="anti").height

    texts = todo.missing["text"]
    reused = sum(1 for text in texts if text in vectors)

    def keep(batch: list[str]) -> None:
        if save_part is not None:
            finished = todo.missing.filter(pl.col("text").is_in(batch))
            save_part(vectors.laid_on(finished, table.names))

    unknown = embed_texts(texts, vectors, embedder, checkpoint, keep, start_progress)
    frame = vectors.laid_on(wanted, table.names)
    return EmbeddedRows(
        frame=frame,
        kept=todo.kept.height,
        computed=todo.missing.height - reused,
        vectors_reused=reused,
        removed=removed,
        texts_embedded=unknown,
    )
