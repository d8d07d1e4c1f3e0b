"""The sensor that sees task folders come, change and go."""

from collections.abc import Mapping
from dataclasses import dataclass

import dagster as dg

from kgrag_assets.automation.inputs import TASK_FILES, TASK_OPTIONS, change_events
from kgrag_assets.automation.partitions import TASKS
from kgrag_assets.lake.lake import Lake
from kgrag_assets.schemas.fingerprint import options_fingerprint, schema_fingerprint
from kgrag_assets.schemas.task_folder import list_tasks, load_task


@dataclass(frozen=True)
class SeenTasks:
    """The task folders as they stand: versions by task, and the folders that cannot be used."""

    files: Mapping[str | None, str]
    options: Mapping[str | None, str]
    problems: Mapping[str, str]

    @property
    def names(self) -> list[str]:
        """The usable tasks, sorted."""
        return sorted(name for name in self.files if name is not None)


def see_tasks(lake: Lake, only: str | None = None) -> SeenTasks:
    """Look at the task folders and hash what is in them.

    Args:
        lake: the lake.
        only: look at this task alone.
    """
    files: dict[str | None, str] = {}
    options: dict[str | None, str] = {}
    problems: dict[str, str] = {}
    for listed in list_tasks(lake.paths):
        if only is not None and listed.name != only:
            continue
        if listed.problem is not None:
            problems[listed.name] = listed.problem
            continue
        folder = load_task(lake.paths, listed.name)
        files[listed.name] = schema_fingerprint(folder)
        options[listed.name] = options_fingerprint(folder)
    return SeenTasks(files, options, problems)


def build() -> list[dg.SensorDefinition]:
    """Make the sensors of this room."""

    @dg.sensor(
        name="task_folders",
        minimum_interval_seconds=30,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Adds a partition for each usable folder in input/tasks, removes those whose folder is gone, "
        "and reports changed files and options.",
    )
    def task_folders(
        context: dg.SensorEvaluationContext, lake: dg.ResourceParam[Lake]
    ) -> dg.SensorResult | dg.SkipReason:
        seen = see_tasks(lake)
        known = set(context.instance.get_dynamic_partitions("tasks"))
        new = [name for name in seen.names if name not in known]
        # A folder with a problem keeps its partition: somebody is editing it.
        gone = sorted(known - set(seen.names) - set(seen.problems))
        requests: list[dg.AddDynamicPartitionsRequest | dg.DeleteDynamicPartitionsRequest] = []
        if new:
            requests.append(TASKS.build_add_request(new))
        if gone:
            requests.append(TASKS.build_delete_request(gone))
        events = [
            *change_events(context.instance, TASK_FILES, seen.files),
            *change_events(context.instance, TASK_OPTIONS, seen.options),
        ]
        for name, problem in seen.problems.items():
            context.log.warning(f"task folder {name!r} is not used: {problem}")
        if not requests and not events:
            unusable = "; ".join(f"{name}: {problem}" for name, problem in seen.problems.items())
            return dg.SkipReason(unusable or "no change")
        return dg.SensorResult(dynamic_partitions_requests=requests, asset_events=events)

    return [task_folders]
