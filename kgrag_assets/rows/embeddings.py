"""``*_embeddings``: one vector per text, for entities, triples and attributes."""

from __future__ import annotations

import numpy as np
import polars as pl

from kgrag_assets.rows.keys import key_of
from kgrag_assets.rows.pairs import ROW_KEY_COLUMN, TASK
from kgrag_assets.rows.table import Column, Table, TableError

_EMBEDDED = (
    Column("text", pl.String, "The text that was embedded."),
    Column("model_id", pl.String, "The embedder: name and revision."),
    Column("vector", pl.List(pl.Float32), "The embedding, of unit length."),
    ROW_KEY_COLUMN,
)

# By it a stage of millions of rows sees what changed upstream without writing any text anew.
_SOURCE_KEY = Column("source_key", pl.String, "Row key of the graph's row that was embedded.")

ENTITY_EMBEDDINGS = Table(
    name="entity_embeddings",
    description="Vectors of the entities' names and descriptions.",
    columns=(
        Column("entity_id", pl.String, "Entity id with its namespace."),
        Column("graph", pl.String, "The knowledge graph."),
        Column("bucket", pl.Int32, "Bucket of the entity id."),
        _SOURCE_KEY,
        *_EMBEDDED,
    ),
    key=("entity_id", "graph"),
    deltas=True,
)

TRIPLE_EMBEDDINGS = Table(
    name="triple_embeddings",
    description="Vectors of the verbalised triples.",
    columns=(
        Column("triple_id", pl.String, "The statement."),
        Column("graph", pl.String, "The knowledge graph."),
        Column("bucket", pl.Int32, "Bucket of the head's entity id."),
        _SOURCE_KEY,
        *_EMBEDDED,
    ),
    key=("triple_id",),
    deltas=True,
)

ATTRIBUTE_EMBEDDINGS = Table(
    name="attribute_embeddings",
    description="Vectors of the attributes, one per view (words of its name, its description, both).",
    columns=(
        TASK,
        Column("attribute_id", pl.String, "The attribute."),
        Column("view", pl.String, "Which text of the attribute: name, column, description or full."),
        *_EMBEDDED,
    ),
    key=("task", "attribute_id", "view"),
)


def embedding_key(subject: str, text: str, model_id: str) -> str:
    """Key of an embedded row: its subject's id (and view), its text and its model decide it."""
    return key_of("embedding", subject, text, model_id)


def vectors_of(frame: pl.DataFrame) -> np.ndarray:
    """Return the ``vector`` column as a float32 array of shape (rows, dimension).

    Raises:
        TableError: the vectors differ in length, or more than one model made them.
    """
    if frame.is_empty():
        return np.zeros((0, 0), dtype=np.float32)
    models = frame["model_id"].unique().sort().to_list()
    if len(models) > 1:
        raise TableError(f"vectors of several models must not be mixed: {', '.join(models)}; re-embed the older ones")
    lengths = frame["vector"].list.len().unique()
    if len(lengths) != 1:
        raise TableError(f"vectors differ in length: {sorted(lengths.to_list())}")
    flat = frame["vector"].explode(empty_as_null=True).to_numpy()
    return np.ascontiguousarray(flat, dtype=np.float32).reshape(frame.height, int(lengths[0]))
