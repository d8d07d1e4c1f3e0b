"""``kg_entities`` and ``kg_triples``: the knowledge graphs of the lake, split by bucket of the entity id."""

from __future__ import annotations

import dataclasses
import hashlib
import struct
from collections.abc import Sequence

import polars as pl

from kgrag_assets.rows.keys import KEY_BYTES, text_key, text_key_sql
from kgrag_assets.rows.pairs import ROW_KEY_COLUMN
from kgrag_assets.rows.table import Column, Table

_GRAPH = Column("graph", pl.String, "The knowledge graph: its folder below input/knowledge_graphs.")
_BUCKET = Column("bucket", pl.Int32, "Bucket of the (head) entity id, from 0.")

KG_ENTITIES = Table(
    name="kg_entities",
    description="Entities and relations of the knowledge graphs, with their names.",
    columns=(
        Column("entity_id", pl.String, "Id with its namespace, such as wd:Q42 or wd:P569."),
        _GRAPH,
        _BUCKET,
        Column("kind", pl.String, "entity or relation (a Wikidata property is a relation)."),
        Column("label", pl.String, "Preferred name in the graph's language; the id where there is none."),
        Column("aliases", pl.List(pl.String), "Other names, in order; may be an empty list."),
        Column("description", pl.String, "Short description; may be empty text."),
        ROW_KEY_COLUMN,
    ),
    key=("entity_id", "graph"),
    deltas=True,
)

KG_TRIPLES = Table(
    name="kg_triples",
    description="Statements of the knowledge graphs in their true direction, with labels for reading.",
    columns=(
        Column("triple_id", pl.String, "Hash of graph, head, relation and tail."),
        _GRAPH,
        _BUCKET,
        Column("head", pl.String, "Entity id of the head."),
        Column("relation", pl.String, "Entity id of the relation."),
        Column("tail", pl.String, "Entity id of the tail; empty where the tail is a literal.", nullable=True),
        Column("tail_value", pl.String, "Literal tail as text; empty where the tail is an entity.", nullable=True),
        Column("head_label", pl.String, "Label of the head."),
        Column("relation_label", pl.String, "Label of the relation."),
        Column("tail_label", pl.String, "Label of the tail, or the literal."),
        ROW_KEY_COLUMN,
    ),
    key=("triple_id",),
    deltas=True,
)


# The rows as a load or a refresh found them, before the buckets' own assets take them.
STAGED_ENTITIES = dataclasses.replace(KG_ENTITIES, name="kg_staged_entities")
STAGED_TRIPLES = dataclasses.replace(KG_TRIPLES, name="kg_staged_triples")

KG_APPLIED_CHANGES = Table(
    name="kg_applied_changes",
    description="Which change of each entity the staged rows hold.",
    columns=(
        _GRAPH,
        Column("local_id", pl.String, "Id of the entity at the source, such as Q42."),
        Column("change_key", pl.String, "Row key of its change."),
        Column("redirect_to", pl.String, "Id that took its place; empty unless it was merged.", nullable=True),
        Column("label", pl.String, "Its label after the change; empty where it has none.", nullable=True),
        Column("superclasses", pl.String, "Ids of its superclasses after the change, sorted."),
        ROW_KEY_COLUMN,
    ),
    key=("graph", "local_id"),
)

# ``key_of("bucket", id)`` begins with these bytes: a graph has millions of ids, each is hashed once.
_BUCKET_SEED = hashlib.blake2b(b"s" + struct.pack("<Q", 6) + b"bucket" + b"s", digest_size=KEY_BYTES)


def bucket_of(entity_id: str, buckets: int) -> int:
    """Return the bucket, in 0..buckets-1, that an entity id always falls into."""
    raw = entity_id.encode("utf-8", "surrogatepass")
    digest = _BUCKET_SEED.copy()
    digest.update(struct.pack("<Q", len(raw)) + raw)
    return int.from_bytes(digest.digest()[:4], "big") % buckets


def triple_id_of(graph: str, head: str, relation: str, tail: str | None, tail_value: str | None) -> str:
    """Identify a statement by its graph and its three parts."""
    return text_key("triple", graph, head, relation, tail, tail_value)


def triple_key_of(triple_id: str, head_label: str, relation_label: str, tail_label: str) -> str:
    """Key of a row of ``kg_triples``: the statement and the labels it is read by."""
    return text_key("kg_triple", triple_id, head_label, relation_label, tail_label)


def entity_key_of(entity_id: str, graph: str, kind: str, label: str, aliases: Sequence[str], description: str) -> str:
    """Key of a row of ``kg_entities``: everything it says."""
    joined = "".join(f"{len(alias.encode())}:{alias}" for alias in aliases)
    return text_key("kg_entity", entity_id, graph, kind, label, joined, description)


# The same three for DuckDB, over the columns of their tables.
TRIPLE_ID_SQL = text_key_sql("'triple'", "graph", "head", "relation", "tail", "tail_value")
TRIPLE_KEY_SQL = text_key_sql("'kg_triple'", "triple_id", "head_label", "relation_label", "tail_label")
ENTITY_KEY_SQL = text_key_sql(
    "'kg_entity'",
    "entity_id",
    "graph",
    "kind",
    "label",
    "array_to_string(list_transform(aliases, lambda alias: concat(strlen(alias), ':', alias)), '')",
    "description",
)
