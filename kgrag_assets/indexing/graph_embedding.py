"""Embedding the graph's rows: what changed upstream is told by keys, and only that is read, worded and embedded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import polars as pl

from kgrag_assets.indexing.entity_text import TEXT_VERSION, entity_text, triple_text
from kgrag_assets.indexing.vectors_by_text import StartProgress, VectorsByText, embed_texts
from kgrag_assets.lake.changes import Written
from kgrag_assets.lake.lake import Lake
from kgrag_assets.models.embedders import Embedder
from kgrag_assets.rows.embeddings import ENTITY_EMBEDDINGS, TRIPLE_EMBEDDINGS, embedding_key
from kgrag_assets.rows.keys import key_of
from kgrag_assets.rows.knowledge_graph import KG_ENTITIES, KG_TRIPLES
from kgrag_assets.rows.reachable_entities import REACHABLE_ENTITIES
from kgrag_assets.rows.table import ROW_KEY, Table

UPSTREAM: Mapping[str, Table] = {ENTITY_EMBEDDINGS.name: KG_ENTITIES, TRIPLE_EMBEDDINGS.name: KG_TRIPLES}


@dataclass(frozen=True)
class EmbeddedPartition:
    """What was done: new rows of ``written`` took ``texts_embedded`` texts to the embedder.

    ``vectors_reused`` counts new rows whose text had a vector already.
    """

    written: Written
    texts_embedded: int
    vectors_reused: int


def embed_partition(
    lake: Lake,
    table: Table,
    partition: str,
    embedder: Embedder,
    *,
    checkpoint: int,
    start_progress: StartProgress | None = None,
    chosen: Callable[[pl.LazyFrame], pl.LazyFrame] | None = None,
) -> EmbeddedPartition:
    """Bring one bucket of ``entity_embeddings`` or ``triple_embeddings`` up to the graph's rows.

    Args:
        lake: hold the lock of this partition.
        table: one of the two tables.
        partition: the bucket.
        embedder: makes the vectors; rows of another model are replaced.
        checkpoint: texts after which finished rows are kept, so that a kill loses little.
        start_progress: called with the number of texts to embed; its result with the texts done since.
        chosen: narrows the graph's rows to those that are to be embedded; all without it.

    Raises:
        EmbeddingError: the embedder returned something else than unit vectors, or stored ones have another dimension.
        LakeError: rows cannot be read, or the disk is full.
    """
    if checkpoint < 1:
        raise ValueError(f"checkpoint must be at least 1, not {checkpoint}")
    upstream = UPSTREAM[table.name]
    source = pl.format("{}:{}", pl.lit(TEXT_VERSION), pl.col(ROW_KEY)).alias("source_key")
    rows = lake.scan(upstream, partition)
    rows = (chosen(rows) if chosen is not None else rows).with_columns(source)
    wanted = rows.select("source_key").collect()
    # Rows of another version are made anew: their texts tell nothing that the graph does not.
    usable = lake.fits(table, partition)
    columns = [ROW_KEY, "source_key", "model_id"]
    there = lake.read(table, partition, columns) if usable else table.empty().select(columns)
    of_model = there.filter(pl.col("model_id") == embedder.model_id)
    missing = wanted.join(of_model, on="source_key", how="anti")
    kept = of_model.join(wanted, on="source_key", how="semi")
    removed = there.join(kept, on=ROW_KEY, how="anti")[ROW_KEY]
    new = _worded(rows.join(missing.lazy(), on="source_key", how="semi").collect(), table, embedder.model_id)
    parts = lake.read_parts(table, partition)
    vectors = VectorsByText(_known(lake, table, partition, parts, new, embedder.model_id, usable=usable), embedder)
    reused = sum(1 for text in new["text"] if text in vectors)

    def keep(batch: list[str]) -> None:
        lake.write_part(table, partition, vectors.laid_on(new.filter(pl.col("text").is_in(batch)), table.names))

    embedded = embed_texts(new["text"], vectors, embedder, checkpoint, keep, start_progress)
    frame = vectors.laid_on(new, table.names)
    if kept.is_empty():
        written = lake.write(table, partition, frame)
    else:
        written = lake.apply(table, partition, frame, removed)
        lake.drop_parts(table, partition)
    return EmbeddedPartition(written, embedded, reused)


def _known(
    lake: Lake,
    table: Table,
    partition: str,
    parts: pl.DataFrame,
    new: pl.DataFrame,
    model_id: str,
    *,
    usable: bool,
) -> pl.DataFrame:
    """Return rows that have a vector for the text of a new row."""
    columns = ["text", "model_id", "vector"]
    texts = new.select("text").unique().lazy()
    at_hand = parts.lazy().filter(pl.col("model_id") == model_id).join(texts, on="text", how="semi").select(columns)
    if not usable:
        return at_hand.collect()
    # Most new texts are new altogether: vectors, which are nearly all of the file, are read only where one is known.
    known = lake.scan(table, partition, ["text", "model_id"]).filter(pl.col("model_id") == model_id)
    found = known.join(texts, on="text", how="semi").select("text").unique().collect()
    if found.is_empty():
        return at_hand.collect()
    rows = lake.scan(table, partition, columns).filter(pl.col("model_id") == model_id)
    return pl.concat([rows.join(found.lazy(), on="text", how="semi").collect(), at_hand.collect()])


def _worded(rows: pl.DataFrame, table: Table, model_id: str) -> pl.DataFrame:
    """Return the rows that the table should have, without vectors."""
    texts: list[str] = []
    keys: list[str] = []
    if table.name == ENTITY_EMBEDDINGS.name:
        for entity_id, graph, label, aliases, description in rows.select(
            "entity_id", "graph", "label", "aliases", "description"
        ).iter_rows():
            texts.append(entity_text(label, aliases, description))
            keys.append(embedding_key(key_of("entity", graph, entity_id), texts[-1], model_id))
    else:
        for triple_id, head, relation, tail in rows.select(
            "triple_id", "head_label", "relation_label", "tail_label"
        ).iter_rows():
            texts.append(triple_text(head, relation, tail))
            keys.append(embedding_key(triple_id, texts[-1], model_id))
    frame = rows.with_columns(
        pl.Series("text", texts, dtype=pl.String),
        pl.lit(model_id).alias("model_id"),
        pl.Series(ROW_KEY, keys, dtype=pl.String),
    )
    return frame.select([name for name in table.names if name != "vector"])


def reachable_triples(lake: Lake) -> Callable[[pl.LazyFrame], pl.LazyFrame]:
    """Return what narrows rows of ``kg_triples`` to those about entities that some task reaches.

    A triple is about its head, its tail and its relation: a column is as often linked to a relation.
    """
    ids = lake.read(REACHABLE_ENTITIES, None, ["entity_id", "linked"])
    reached, linked = ids["entity_id"].implode(), ids.filter("linked")["entity_id"].implode()

    def narrow(rows: pl.LazyFrame) -> pl.LazyFrame:
        about = pl.col("head").is_in(reached) | pl.col("tail").is_in(linked) | pl.col("relation").is_in(linked)
        return rows.filter(about.fill_null(value=False))

    return narrow
