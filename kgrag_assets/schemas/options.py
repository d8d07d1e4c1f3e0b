"""The settings of one task: the product's, with the task's own options laid over them."""

from __future__ import annotations

from kgrag_assets.lake.lake import Lake
from kgrag_assets.schemas.task_folder import load_task
from kgrag_assets.settings import Settings


def task_settings(lake: Lake, settings: Settings, task: str) -> Settings:
    """Return the settings that hold for a task.

    Raises:
        SchemaError: the task's folder cannot be used.
        SettingsError: its ``task.yaml`` has an option that is unknown or not allowed.
    """
    folder = load_task(lake.paths, task)
    return settings.for_task(folder.options, f"{folder.path / 'task.yaml'}")
