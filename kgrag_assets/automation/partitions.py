"""How the work is split: tasks by name, the graph by static buckets of the entity id."""

from __future__ import annotations

import dagster as dg

TASKS = dg.DynamicPartitionsDefinition(name="tasks")


def bucket_names(buckets: int) -> list[str]:
    """Partition keys of the graph's buckets, in order: ``bucket-00`` and so on."""
    return [f"bucket-{number:02d}" for number in range(buckets)]


def bucket_partitions(buckets: int) -> dg.StaticPartitionsDefinition:
    """Partitions of the knowledge graph by bucket."""
    return dg.StaticPartitionsDefinition(bucket_names(buckets))
