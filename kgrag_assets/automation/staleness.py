"""What is out of date and why, as Dagster's own data versions tell it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import dagster as dg
from dagster._core.definitions.assets.graph.asset_graph import AssetGraph
from dagster._core.definitions.data_version import CachingStaleStatusResolver, StaleStatus
from dagster._core.loader import LoadingContextForTest

# CachingStaleStatusResolver is what the UI's "stale" badges are computed by. It is not public API; Dagster
# is pinned, and a test holds what we rely on.


@dataclass(frozen=True)
class Stale:
    """An asset('s partition) that should run: ``reasons`` are sentences for people."""

    asset: str
    partition: str | None
    missing: bool
    reasons: tuple[str, ...]


def find_stale(
    instance: dg.DagsterInstance, graph: AssetGraph, wanted: Iterable[tuple[dg.AssetKey, str | None]]
) -> list[Stale]:
    """Tell which of the wanted asset partitions are missing or stale.

    Args:
        instance: the instance whose event log is asked.
        graph: the asset graph with current code versions.
        wanted: pairs of asset key and partition key (None for unpartitioned assets).

    Returns:
        the stale ones, in the order of ``wanted``. An asset downstream of a stale one is listed only
        once the upstream one has run and its data version has changed.
    """
    resolver = CachingStaleStatusResolver(instance, graph, LoadingContextForTest(instance))
    found = []
    for key, partition in wanted:
        status = resolver.get_status(key, partition)
        if status == StaleStatus.FRESH:
            continue
        missing = status == StaleStatus.MISSING
        reasons = ("never computed",) if missing else _reasons(resolver, key, partition)
        found.append(Stale(key.to_user_string(), partition, missing, reasons))
    return found


def _reasons(resolver: CachingStaleStatusResolver, key: dg.AssetKey, partition: str | None) -> tuple[str, ...]:
    sentences = []
    for cause in resolver.get_stale_causes(key, partition):
        dependency = cause.dependency.asset_key.to_user_string() if cause.dependency is not None else None
        sentences.append(f"{dependency}: {_plain(cause.reason)}" if dependency else _plain(cause.reason))
    return tuple(sentences) or ("out of date",)


_WORDS = {
    "has a new data version": "its content changed",
    "has a new dependency data version": "its content changed",
    "has a new code version": "its code or settings changed",
    "has a new dependency materialization": "it was computed again",
    "has a removed dependency": "an input was removed",
    "has a new dependency": "an input was added",
}


def _plain(reason: str) -> str:
    return _WORDS.get(reason, reason)
