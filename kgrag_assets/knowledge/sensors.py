"""The sensors that see knowledge graph files change and follow their sources, and the schedule that takes dumps."""

from collections.abc import Sequence
from typing import Any

import dagster as dg

from kgrag_assets.automation.inputs import GRAPH_CHANGES, GRAPH_FILES, change_events
from kgrag_assets.automation.jobs import REFRESH_GRAPH, TAKE_DUMPS
from kgrag_assets.knowledge.changes.drain import Gap
from kgrag_assets.knowledge.errors import KnowledgeError
from kgrag_assets.knowledge.fingerprint import Fingerprints
from kgrag_assets.knowledge.following import Followed, behind, changes_version, follow
from kgrag_assets.knowledge.graph_folder import GraphFolder, list_graphs, load_graph_folder
from kgrag_assets.lake.files import LakeError
from kgrag_assets.lake.lake import Lake
from kgrag_assets.rows.keys import data_version_of, key_of


def see_graphs(lake: Lake) -> str:
    """Hash the files of all usable knowledge graphs of the lake into one version."""
    listed = list_graphs(lake.paths)
    folders = [load_graph_folder(lake.paths, graph.name) for graph in listed if graph.problem is None]
    # A graph that cannot be used is part of the version: what is wrong with it must be said by kg_source_rows.
    problems = [[graph.name, graph.problem] for graph in listed if graph.problem is not None]
    fingerprints = Fingerprints(lake)
    versions = [[folder.name, fingerprints.of(folder)] for folder in folders]
    fingerprints.save()
    return key_of("graphs", versions, problems)


def followed_graphs(lake: Lake) -> list[GraphFolder]:
    """List the usable graphs whose source is followed."""
    listed = [graph.name for graph in list_graphs(lake.paths) if graph.problem is None]
    folders = [load_graph_folder(lake.paths, name) for name in listed]
    return [folder for folder in folders if folder.refresh is not None]


def see_changes(lake: Lake, folders: list[GraphFolder]) -> str:
    """Hash what was taken of the changes of graphs into one version."""
    return data_version_of(f"{folder.name} {changes_version(lake, folder.name)}" for folder in folders)


def look_events(
    instance: dg.DagsterInstance, lake: Lake, folders: list[GraphFolder], looks: list[Followed]
) -> list[dg.AssetMaterialization | dg.AssetObservation]:
    """Say what looks at the graphs' sources found: an observation of each, and the change where there is one."""
    observations = [
        dg.AssetObservation(GRAPH_CHANGES, metadata={"graph": look.graph, **look.summary()}) for look in looks
    ]
    events = change_events(instance, GRAPH_CHANGES, {None: see_changes(lake, folders)}, _totals(lake, folders, looks))
    return [*observations, *events]


def _totals(lake: Lake, folders: list[GraphFolder], looks: list[Followed]) -> dict[str, object]:
    ages = [age for age in (behind(lake, folder) for folder in folders) if age is not None]
    return {
        "entities_changed": sum(look.staged for look in looks),
        "behind_s": round(max(ages)) if ages else 0,
        "requests": sum(int(look.summary().get("requests", 0)) for look in looks),
        "megabytes": round(sum(float(look.summary().get("megabytes", 0)) for look in looks), 3),
    }


def build(jobs: Sequence[Any]) -> list[dg.SensorDefinition]:
    """Make the sensors of this room; ``jobs`` are the product's asset jobs, of which they ask for two."""
    asked_for = [job for job in jobs if job.name in (REFRESH_GRAPH, TAKE_DUMPS)]

    @dg.sensor(
        name="knowledge_graph_folders",
        minimum_interval_seconds=60,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Reports changed files below input/knowledge_graphs.",
    )
    def knowledge_graph_folders(
        context: dg.SensorEvaluationContext, lake: dg.ResourceParam[Lake]
    ) -> dg.SensorResult | dg.SkipReason:
        for listed in list_graphs(lake.paths):
            if listed.problem is not None:
                context.log.warning(f"knowledge graph {listed.name!r} is not used: {listed.problem}")
        events = change_events(context.instance, GRAPH_FILES, {None: see_graphs(lake)})
        # Also where no graph is followed: what depends on changes waits until it was heard of them.
        events += change_events(context.instance, GRAPH_CHANGES, {None: see_changes(lake, followed_graphs(lake))})
        return dg.SensorResult(asset_events=events) if events else dg.SkipReason("no change")

    @dg.sensor(
        name="knowledge_graph_changes",
        jobs=asked_for,
        minimum_interval_seconds=60,
        default_status=dg.DefaultSensorStatus.STOPPED,
        description="Takes what changed at the source of each graph with a `refresh` section since the last look, and "
        "asks for one run that lays it over the rows. Switch it on to keep the graph fresh.",
    )
    def knowledge_graph_changes(
        context: dg.SensorEvaluationContext, lake: dg.ResourceParam[Lake]
    ) -> dg.SensorResult | dg.SkipReason:
        folders = followed_graphs(lake)
        if not folders:
            return dg.SkipReason("no knowledge graph has a refresh section in its kg.yaml")
        looks: list[Followed] = []
        problems: list[str] = []
        for folder in folders:
            try:
                # A tick has a minute: the graphs share it.
                look = follow(lake, folder, min(folder.refresh.seconds, 50 / len(folders)) if folder.refresh else None)
            except (KnowledgeError, LakeError) as error:
                problems.append(f"{folder.name}: {error}")
                continue
            looks.append(look)
            problem = look.summary().get("problem")
            if problem:
                problems.append(f"{folder.name}: {problem}")
        for problem in problems:
            context.log.warning(problem)
        events = look_events(context.instance, lake, folders, looks)
        runs = [
            # The changes in between are lost to the feed: the next dump has them.
            dg.RunRequest(run_key=f"dump {look.graph} {look.summary()['since']}", job_name=TAKE_DUMPS)
            for look in looks
            if isinstance(look.result, Gap) and _has_dumps(folders, look.graph)
        ]
        if not any(isinstance(event, dg.AssetMaterialization) for event in events):
            reason = "; ".join(problems) or "nothing that the lake holds has changed"
            if runs:
                return dg.SensorResult(asset_events=events, run_requests=runs)
            return dg.SensorResult(asset_events=events, skip_reason=reason)
        runs.append(dg.RunRequest(run_key=see_changes(lake, folders), job_name=REFRESH_GRAPH))
        return dg.SensorResult(asset_events=events, run_requests=runs)

    return [knowledge_graph_folders, knowledge_graph_changes]


def _has_dumps(folders: list[GraphFolder], graph: str) -> bool:
    return any(folder.name == graph and folder.refresh and folder.refresh.dumps for folder in folders)


def build_schedules() -> list[dg.ScheduleDefinition]:
    """Make the schedules of this room."""
    return [
        dg.ScheduleDefinition(
            name="weekly_dump",
            job_name=TAKE_DUMPS,
            # Wikidata's JSON dump of a week is there on Wednesday, as a rule.
            cron_schedule="0 4 * * 4",
            default_status=dg.DefaultScheduleStatus.STOPPED,
            description="Takes the newest dump of each graph whose kg.yaml has refresh.dumps.",
        )
    ]
