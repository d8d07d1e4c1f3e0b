"""Bringing a task up to date through Dagster: what is stale runs, in order, and nothing else."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import dagster as dg

from kgrag_assets.automation.inputs import GRAPH_CHANGES, GRAPH_FILES, TASK_FILES, TASK_OPTIONS, report_changes
from kgrag_assets.automation.jobs import ABLATE, PUBLISH, Job, jobs_in_order
from kgrag_assets.automation.partitions import bucket_names
from kgrag_assets.automation.staleness import Stale, find_stale
from kgrag_assets.cli.place import Place
from kgrag_assets.knowledge.lexicon_files import lexicon_path
from kgrag_assets.knowledge.sensors import followed_graphs, see_changes, see_graphs
from kgrag_assets.rows.ablation_report import ABLATION_REPORT
from kgrag_assets.rows.catalog import TASK_TABLES
from kgrag_assets.rows.embeddings import ATTRIBUTE_EMBEDDINGS, ENTITY_EMBEDDINGS, TRIPLE_EMBEDDINGS
from kgrag_assets.rows.knowledge_graph import KG_ENTITIES, KG_TRIPLES, STAGED_ENTITIES, STAGED_TRIPLES
from kgrag_assets.rows.llm_judgments import FAILED_STATUSES, LLM_JUDGMENTS
from kgrag_assets.schemas.errors import SchemaError
from kgrag_assets.schemas.sensors import see_tasks

PID_TAG = "kgrag/pid"
_PARTITIONED = {
    table.name: table
    for table in (*TASK_TABLES, KG_ENTITIES, KG_TRIPLES, ENTITY_EMBEDDINGS, TRIPLE_EMBEDDINGS, ATTRIBUTE_EMBEDDINGS)
}
_FOLDERS = ("kg_graph", "entity_index", "triple_index")
_FILES = {"kg_lexicon": lexicon_path}


class RunError(RuntimeError):
    """A step failed; the message is the step's own."""


@dataclass(frozen=True)
class Step:
    """One asset('s partition) that ran, with the counts of its materialization."""

    asset: str
    partition: str | None
    kept: int
    computed: int
    removed: int
    written: bool


@dataclass
class RunReport:
    """What a run did."""

    task: str
    steps: list[Step] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def observe(place: Place, task: str | None) -> list[str]:
    """Tell Dagster of changed files, as the sensors do, and return the usable tasks.

    Args:
        place: where.
        task: look at this task alone; None for all.

    Raises:
        SchemaError: the task's folder does not exist or cannot be used.
    """
    seen = see_tasks(place.lake, task)
    if task is not None and task not in seen.files:
        tasks = place.lake.paths.tasks
        problem = seen.problems.get(task, f"there is no folder of that name in {tasks}; see `kgrag tasks`")
        raise SchemaError(f"task {task!r}: {problem}")
    place.instance.add_dynamic_partitions("tasks", seen.names)
    observe_graphs(place)
    report_changes(place.instance, TASK_FILES, seen.files)
    report_changes(place.instance, TASK_OPTIONS, seen.options)
    return seen.names


def observe_graphs(place: Place) -> None:
    """Tell Dagster of changed graph files, and of changes that were taken from graphs' sources."""
    report_changes(place.instance, GRAPH_FILES, {None: see_graphs(place.lake)})
    report_changes(place.instance, GRAPH_CHANGES, {None: see_changes(place.lake, followed_graphs(place.lake))})


def stale_of(place: Place, job: Job, partitions: Sequence[str | None]) -> list[Stale]:
    """Tell what of a job is stale or missing for these partitions: in Dagster's history or on disk."""
    wanted = [(dg.AssetKey(asset), partition) for partition in partitions for asset in job.assets]
    found = {(stale.asset, stale.partition): stale for stale in find_stale(place.instance, place.graph, wanted)}
    for key, partition in wanted:
        asset = key.to_user_string()
        if (asset, partition) not in found and not _on_disk(place, asset, partition):
            found[asset, partition] = Stale(asset, partition, missing=True, reasons=("its file is missing",))
        elif asset == LLM_JUDGMENTS.name and (asset, partition) not in found:
            failed = _failed_calls(place, partition)
            if failed:
                reason = f"the calls of {failed} pairs failed and can be asked again"
                found[asset, partition] = Stale(asset, partition, missing=False, reasons=(reason,))
    places = [(key.to_user_string(), partition) for key, partition in wanted]
    return [found[place] for place in places if place in found]


def _failed_calls(place: Place, task: str | None) -> int:
    statuses = place.lake.reusable(LLM_JUDGMENTS, task)["parse_status"]
    return int(statuses.is_in(FAILED_STATUSES).sum())


def plan(place: Place, task: str) -> Iterator[tuple[Job, list[str | None]]]:
    """Name the jobs that bring a task up to date, in order, each with its partitions."""
    for job in jobs_in_order(place.settings):
        yield job, [task] if job.per == "task" else _partitions(place, job)


def graph_plan(place: Place) -> Iterator[tuple[Job, list[str | None]]]:
    """Name the jobs that bring the graph up to date, in order, each with its partitions.

    Where triples are embedded as tasks reach them, the tasks' schemas are read on the way.
    """
    tasks = place.instance.get_dynamic_partitions("tasks")
    jobs = jobs_in_order(place.settings)
    last = max(number for number, job in enumerate(jobs) if job.per != "task" and job.name != PUBLISH)
    for job in jobs[: last + 1]:
        yield job, list(tasks) if job.per == "task" else _partitions(place, job)


def _partitions(place: Place, job: Job) -> list[str | None]:
    return list(bucket_names(place.settings.graph.buckets)) if job.per == "bucket" else [None]


def bring_up_to_date(place: Place, task: str, on_job: Callable[[str, str | None], None]) -> RunReport:
    """Run what is stale for a task, in order.

    Args:
        place: where.
        task: the task.
        on_job: told of each run before it starts: the job and the partition.

    Raises:
        SchemaError: the task cannot be used.
        RunError: a step failed; what ran before stays and is not run again.
    """
    close_dead_runs(place.instance)
    observe(place, task)
    return _run_plan(place, plan(place, task), RunReport(task), on_job)


def prepare(place: Place, task: str, on_job: Callable[[str, str | None], None]) -> RunReport:
    """Bring a task up to date as far as its ranked facts: whatever comes before judging.

    Raises:
        SchemaError: the task cannot be used.
        RunError: a step failed.
    """
    close_dead_runs(place.instance)
    observe(place, task)
    jobs = ((_before(job, LLM_JUDGMENTS.name), partitions) for job, partitions in plan(place, task))
    return _run_plan(
        place, ((job, partitions) for job, partitions in jobs if job.name != PUBLISH), RunReport(task), on_job
    )


def _before(job: Job, asset: str) -> Job:
    if asset not in job.assets:
        return job
    return replace(job, assets=job.assets[: job.assets.index(asset)])


def ablate(place: Place, task: str, on_job: Callable[[str, str | None], None]) -> RunReport:
    """Bring a task up to date, measure what each part of the method is worth on it, and publish that.

    Raises:
        SchemaError: the task cannot be used.
        RunError: a step failed, or the task has no reference; cells that were computed stay.
    """
    report = bring_up_to_date(place, task, on_job)
    on_job(ABLATE, task)
    _run(place, ABLATE, task, [dg.AssetKey(ABLATION_REPORT.name)], report)
    # Asked for by name: a partition's first rows do not make what was published before stale in Dagster's eyes.
    on_job(PUBLISH, None)
    _run(place, PUBLISH, None, [dg.AssetKey("analyst_database")], report)
    return report


def bring_graph_up_to_date(place: Place, on_job: Callable[[str, str | None], None]) -> RunReport:
    """Run what is stale of the graph, in order.

    Raises:
        RunError: a step failed; what ran before stays and is not run again.
    """
    close_dead_runs(place.instance)
    observe_graphs(place)
    return _run_plan(place, graph_plan(place), RunReport("knowledge graphs"), on_job)


def _run_plan(
    place: Place,
    jobs: Iterable[tuple[Job, list[str | None]]],
    report: RunReport,
    on_job: Callable[[str, str | None], None],
) -> RunReport:
    for job, partitions in jobs:
        by_partition: dict[str | None, list[str]] = {}
        for stale in stale_of(place, job, partitions):
            by_partition.setdefault(stale.partition, []).append(stale.asset)
        for partition, assets in by_partition.items():
            on_job(job.name, partition)
            _run(place, job.name, partition, _with_downstream(place, job, assets), report)
    return report


def close_dead_runs(instance: dg.DagsterInstance) -> None:
    """Mark runs of killed ``kgrag`` processes as failed: a run that seems to go on would hold back the daemon."""
    going = dg.RunsFilter(statuses=[dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.STARTING])
    for run in instance.get_runs(filters=going):
        pid = run.tags.get(PID_TAG)
        if pid is not None and not Path(f"/proc/{pid}").exists():
            instance.report_run_failed(run, "the process that ran this was killed; run again, nothing finished is lost")


def _with_downstream(place: Place, job: Job, assets: Sequence[str]) -> list[dg.AssetKey]:
    selected = {dg.AssetKey(asset) for asset in assets}
    for asset in job.assets:
        node = place.graph.get(dg.AssetKey(asset))
        if selected & node.parent_keys:
            selected.add(node.key)
        if node.key in selected:
            # Assets that one function makes run together.
            selected |= {key for key in node.execution_set_entity_keys if isinstance(key, dg.AssetKey)}
    return [dg.AssetKey(asset) for asset in job.assets if dg.AssetKey(asset) in selected]


def _run(place: Place, job: str, partition: str | None, selection: list[dg.AssetKey], report: RunReport) -> None:
    result = place.definitions.resolve_job_def(job).execute_in_process(
        instance=place.instance,
        partition_key=partition,
        asset_selection=selection,
        raise_on_error=False,
        run_config={"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}},
        tags={PID_TAG: str(os.getpid())},
    )
    for event in result.all_events:
        if event.is_step_failure:
            failure = event.step_failure_data
            user = failure.user_failure_data
            if user is not None and user.description:
                raise RunError(user.description)
            error = failure.error
            cause = error.cause if error is not None and error.cause is not None else error
            raise RunError(f"{event.step_key} failed: {cause.message.strip() if cause else 'unknown error'}")
    for event in result.get_asset_materialization_events():
        materialization = event.materialization
        numbers = {name: value.value for name, value in materialization.metadata.items()}
        report.steps.append(
            Step(
                materialization.asset_key.to_user_string(),
                materialization.partition,
                kept=_number(numbers.get("rows_kept")),
                computed=_number(numbers.get("rows_computed")),
                removed=_number(numbers.get("rows_removed")),
                written=bool(numbers.get("file_written")),
            )
        )
    report.warnings += [
        f"{check.asset_key.to_user_string()}: check {check.check_name} did not pass"
        for check in result.get_asset_check_evaluations()
        if not check.passed
    ]
    if not result.success:
        raise RunError(f"{job} did not finish; see the run {result.run_id} in the browser (`make ui`)")


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0


def _on_disk(place: Place, asset: str, partition: str | None) -> bool:
    if asset in _PARTITIONED:
        return place.lake.has(_PARTITIONED[asset], partition)
    if asset.endswith("_index") and place.settings.index.kind != "faiss":
        return True  # the server is asked when the index is used
    if asset in _FOLDERS:
        return place.lake.paths.arrays(asset).exists()
    if asset in _FILES:
        return _FILES[asset](place.lake).exists()
    if asset == "analyst_database":
        return place.lake.paths.snapshot.exists()
    return asset != "kg_source_rows" or _is_staged(place)


def _is_staged(place: Place) -> bool:
    names = bucket_names(place.settings.graph.buckets)
    return all(place.lake.has(table, name) for table in (STAGED_ENTITIES, STAGED_TRIPLES) for name in names)
