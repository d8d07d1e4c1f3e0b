"""Rows of ``kg_entities`` made by hand, and a lake that holds them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from kgrag_assets.lake.lake import Lake
from kgrag_assets.rows.knowledge_graph import KG_ENTITIES, bucket_of, entity_key_of

BUCKETS = 3
PARTITIONS = [f"bucket-{number:02d}" for number in range(BUCKETS)]


@dataclass(frozen=True)
class Named:
    """One row, as far as its names go."""

    entity_id: str
    label: str
    aliases: tuple[str, ...] = ()
    graph: str = "g"
    kind: str = "entity"
    description: str = ""


def rows_of(entities: Sequence[Named]) -> pl.DataFrame:
    """Make the rows of ``kg_entities``."""
    rows: list[dict[str, object]] = [
        {
            "entity_id": one.entity_id,
            "graph": one.graph,
            "bucket": bucket_of(one.entity_id, BUCKETS),
            "kind": one.kind,
            "label": one.label,
            "aliases": list(one.aliases),
            "description": one.description,
            "row_key": entity_key_of(one.entity_id, one.graph, one.kind, one.label, one.aliases, one.description),
        }
        for one in entities
    ]
    return KG_ENTITIES.frame(rows)


def write_entities(root: Path, entities: Sequence[Named]) -> Lake:
    """Write the rows into their buckets."""
    lake, rows = Lake.at(root), rows_of(entities)
    for number, partition in enumerate(PARTITIONS):
        lake.write(KG_ENTITIES, partition, rows.filter(pl.col("bucket") == number))
    return lake
