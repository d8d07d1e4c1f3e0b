"""What comes from outside Dagster: external assets for people's files, and the word that they changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import dagster as dg
from dagster._core.definitions.data_version import DATA_VERSION_TAG

from kgrag_assets.automation.partitions import TASKS, bucket_partitions

TASK_FILES = dg.AssetKey("task_files")
TASK_OPTIONS = dg.AssetKey("task_options")
GRAPH_FILES = dg.AssetKey("knowledge_graph_files")
GRAPH_CHANGES = dg.AssetKey("kg_changes")
BUCKET_ROWS = dg.AssetKey("kg_bucket_rows")

OWNERS = ["team:schema-matching"]


def input_specs(buckets: int) -> list[dg.AssetSpec]:
    """External assets: their data versions are reported by sensors, by ``kgrag`` and by ``kg_source_rows``."""
    return [
        dg.AssetSpec(
            TASK_FILES,
            description="The schema and reference files of a task, as people put them into `input/tasks`. "
            "The data version is a hash of their content.",
            group_name="schemas",
            partitions_def=TASKS,
            owners=OWNERS,
            kinds={"file"},
        ),
        dg.AssetSpec(
            TASK_OPTIONS,
            description="The options in a task's `task.yaml`: cardinality, budget, judge and so on.",
            group_name="schemas",
            partitions_def=TASKS,
            owners=OWNERS,
            kinds={"yaml"},
        ),
        dg.AssetSpec(
            GRAPH_FILES,
            description="The knowledge graph files below `input/knowledge_graphs`. "
            "The data version is a hash of their content.",
            group_name="knowledge",
            owners=OWNERS,
            kinds={"file"},
        ),
        dg.AssetSpec(
            GRAPH_CHANGES,
            description="What became of entities at the graph's source since its files were loaded, as the sensor "
            "`knowledge_graph_changes` took it. The data version is a hash of the changes.",
            group_name="knowledge",
            owners=OWNERS,
            kinds={"parquet"},
        ),
        dg.AssetSpec(
            BUCKET_ROWS,
            deps=["kg_source_rows", "kg_refreshed_rows"],
            description="What `kg_source_rows` and `kg_refreshed_rows` found for each bucket. Its data version per "
            "bucket lets a changed entity touch its own bucket and no other.",
            group_name="knowledge",
            partitions_def=bucket_partitions(buckets),
            owners=OWNERS,
            kinds={"parquet"},
        ),
    ]


def current_version(instance: dg.DagsterInstance, key: dg.AssetKey, partition: str | None) -> str | None:
    """Return the data version last reported for an external asset('s partition), or None."""
    if partition is None:
        record = instance.get_latest_materialization_event(key)
        materialization = record.asset_materialization if record is not None else None
        tags = materialization.tags if materialization is not None else None
        return None if tags is None else tags.get(DATA_VERSION_TAG)
    records = instance.fetch_materializations(
        dg.AssetRecordsFilter(asset_key=key, asset_partitions=[partition]), limit=1
    ).records
    if not records or records[0].asset_materialization is None:
        return None
    return (records[0].asset_materialization.tags or {}).get(DATA_VERSION_TAG)


def change_events(
    instance: dg.DagsterInstance,
    key: dg.AssetKey,
    versions: Mapping[str | None, str],
    metadata: Mapping[str, Any] | None = None,
) -> list[dg.AssetMaterialization | dg.AssetObservation]:
    """Say what changed: events for each partition whose version is not the one last reported.

    Declarative automation listens to materializations of an external asset, the staleness shown in the
    UI to its observations; both are needed (Dagster 1.13).
    """
    events: list[dg.AssetMaterialization | dg.AssetObservation] = []
    for partition, version in versions.items():
        if current_version(instance, key, partition) == version:
            continue
        tags = {DATA_VERSION_TAG: version}
        events.append(dg.AssetObservation(key, partition=partition, tags=tags, metadata=metadata))
        events.append(dg.AssetMaterialization(key, partition=partition, tags=tags, metadata=metadata))
    return events


def report_changes(
    instance: dg.DagsterInstance, key: dg.AssetKey, versions: Mapping[str | None, str]
) -> list[str | None]:
    """Report changed versions to the instance and return the partitions that changed."""
    events = change_events(instance, key, versions)
    for event in events:
        instance.report_runless_asset_event(event)
    return [event.partition for event in events if isinstance(event, dg.AssetMaterialization)]
