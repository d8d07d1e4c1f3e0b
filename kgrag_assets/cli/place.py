"""Where a command works: its settings, its lake, and the Dagster instance it shares with the browser."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import dagster as dg
from dagster._core.definitions.assets.graph.asset_graph import AssetGraph
from pydantic import ValidationError

from kgrag_assets.definitions import build_defs
from kgrag_assets.lake.lake import Lake
from kgrag_assets.lake.locks import locked
from kgrag_assets.settings import Settings, SettingsError

DEFAULT_INSTANCE = "telemetry:\n  enabled: false\nconcurrency:\n  runs:\n    max_concurrent_runs: 1\n"


@dataclass(frozen=True)
class Place:
    """Settings, lake and instance of one command."""

    settings: Settings
    lake: Lake
    instance: dg.DagsterInstance
    resources: Mapping[str, object]

    @cached_property
    def definitions(self) -> dg.Definitions:
        """The product's definitions with this place's settings and resources."""
        return build_defs(self.settings, {"lake": self.lake, **self.resources})

    @cached_property
    def graph(self) -> AssetGraph:
        """The asset graph."""
        return self.definitions.resolve_asset_graph()


def read_settings() -> Settings:
    """Read the settings from the environment.

    Raises:
        SettingsError: a value is not allowed.
    """
    try:
        return Settings()
    except ValidationError as error:
        first = error.errors()[0]
        name = "KGRAG_" + "__".join(str(part) for part in first["loc"]).upper()
        raise SettingsError(f"{name}: {first['msg']}") from error


def dagster_home(lake: Path) -> Path:
    """Find the instance's folder: ``DAGSTER_HOME``, or ``dagster_home`` beside the lake, made where missing."""
    given = os.environ.get("DAGSTER_HOME")
    home = Path(given) if given else lake.resolve().parent / "dagster_home"
    home.mkdir(parents=True, exist_ok=True)
    config = home / "dagster.yaml"
    if not config.exists():
        config.write_text(DEFAULT_INSTANCE)
    return home.resolve()


@contextmanager
def open_instance(home: Path) -> Iterator[dg.DagsterInstance]:
    """Open the instance in ``home``; of several processes that come first at once, one makes its databases."""
    with locked(home / "opening.lock"):
        # Each of these makes its tables on first use, and two processes at that would trip over each other.
        instance = dg.DagsterInstance.from_config(str(home))
        instance.get_runs(limit=1)
        instance.get_dynamic_partitions("tasks")
        instance.all_instigator_state()
    with instance:
        yield instance


@contextmanager
def opened(resources: Mapping[str, object] | None = None) -> Iterator[Place]:
    """Open the place a command works in.

    Args:
        resources: Dagster resources that take the place of the usual ones.

    Raises:
        SettingsError: a setting in the environment is not allowed.
    """
    settings = read_settings()
    home = dagster_home(settings.lake)
    os.environ["DAGSTER_HOME"] = str(home)
    with open_instance(home) as instance:
        yield Place(settings, Lake.at(settings.lake), instance, resources or {})
