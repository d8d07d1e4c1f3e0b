"""What the tables of a task have in common as assets, where one function fills several."""

from __future__ import annotations

from collections.abc import Sequence

import dagster as dg

from kgrag_assets.automation.conditions import when_content_changed
from kgrag_assets.automation.inputs import OWNERS
from kgrag_assets.automation.metadata import table_metadata
from kgrag_assets.automation.partitions import TASKS
from kgrag_assets.rows.table import Table


def task_table(
    table: Table, description: str, *, group: str, deps: Sequence[str | dg.AssetKey], code_version: str
) -> dg.AssetSpec:
    """Describe a table with a partition for each task, kept as Parquet and run when its content may have changed."""
    return dg.AssetSpec(
        table.name,
        deps=list(deps),
        description=description,
        metadata=table_metadata(table),
        group_name=group,
        code_version=code_version,
        owners=OWNERS,
        kinds={"polars", "parquet"},
        automation_condition=when_content_changed(),
        partitions_def=TASKS,
    )
