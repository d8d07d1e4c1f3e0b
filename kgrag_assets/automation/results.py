"""From a stage's rows to Dagster's result: written, versioned, counted; and from our errors to Dagster's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import dagster as dg
import polars as pl

from kgrag_assets.automation.metadata import written_metadata
from kgrag_assets.lake.changes import Written
from kgrag_assets.lake.files import LakeError
from kgrag_assets.lake.lake import Lake
from kgrag_assets.rows.table import Table


@contextmanager
def explained_failures(*kinds: type[Exception]) -> Iterator[None]:
    """Turn errors that say what to do into a failure whose description is that sentence."""
    expected: tuple[type[Exception], ...] = (LakeError, *kinds)
    try:
        yield
    except expected as error:
        raise dg.Failure(description=str(error), allow_retries=False) from error


def store(
    lake: Lake,
    table: Table,
    partition: str | None,
    frame: pl.DataFrame,
    *,
    check_results: Sequence[dg.AssetCheckResult] = (),
    asset_key: str | None = None,
    column_lineage: dg.TableColumnLineage | None = None,
    **metadata: Any,
) -> dg.MaterializeResult[None]:
    """Write a partition and describe it: rows that had the same key before count as kept.

    Call it under ``lake.lock``. The data version is the hash of the row keys, so an unchanged partition
    wakes nothing downstream.
    """
    written = lake.write(table, partition, frame)
    return described(
        written, check_results=check_results, asset_key=asset_key, column_lineage=column_lineage, **metadata
    )


def described(
    written: Written,
    *,
    check_results: Sequence[dg.AssetCheckResult] = (),
    asset_key: str | None = None,
    column_lineage: dg.TableColumnLineage | None = None,
    **metadata: Any,
) -> dg.MaterializeResult[None]:
    """Describe what was written to a partition, with its data version."""
    if column_lineage is not None:
        metadata["dagster/column_lineage"] = column_lineage
    return dg.MaterializeResult(
        asset_key=asset_key,
        data_version=dg.DataVersion(written.data_version),
        metadata=written_metadata(
            written, kept=written.kept, computed=written.added, removed=written.removed, **metadata
        ),
        check_results=list(check_results),
    )
