"""The settings of one task: the product's, with the task's own options laid over them."""

from __future__ import annotations

from kgrag_assets.lake.lake import Lake
from kgrag_assets.schemas.task_folder import load_task
from kgrag_assets.settings import Settings


def task_settings(lake: Lake, settings: Settings, task: str) -> Settings:
    """Return the settings that hold for a task; a file of examples in its folder goes before the product's.

    Raises:
        SchemaError: the task's folder cannot be used.
        SettingsError: its ``task.yaml`` has an option that is unknown or not allowed.
    """
    folder = load_task(lake.paths, task)
    own = settings.for_task(folder.options, f"{folder.path / 'task.yaml'}")
    if folder.examples is None:
        return own
    # Found in the task's folder by its name: an option could name any file of this machine.
    return own.model_copy(update={"judging": own.judging.model_copy(update={"few_shot": folder.examples})})
