"""``kg_entities`` and ``kg_triples``: the knowledge graphs of the lake, split by bucket of the entity id."""

from __future__ import annotations

import polars as pl

from kgrag_assets.rows.keys import key_of
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
)


def bucket_of(entity_id: str, buckets: int) -> int:
    """Return the bucket, in 0..buckets-1, that an entity id always falls into."""
    return int(key_of("bucket", entity_id)[:8], 16) % buckets


def triple_id_of(graph: str, head: str, relation: str, tail: str | None, tail_value: str | None) -> str:
    """Identify a statement by its graph and its three parts."""
    return key_of("triple", graph, head, relation, tail, tail_value)
