"""The sensor that sees knowledge graph files change."""

import dagster as dg

from kgrag_assets.automation.inputs import GRAPH_FILES, change_events
from kgrag_assets.knowledge.fingerprint import graph_fingerprint
from kgrag_assets.knowledge.graph_folder import list_graphs, load_graph_folder
from kgrag_assets.lake.lake import Lake
from kgrag_assets.rows.keys import key_of


def see_graphs(lake: Lake) -> str:
    """Hash the files of all usable knowledge graphs of the lake into one version."""
    listed = list_graphs(lake.paths)
    folders = [load_graph_folder(lake.paths, graph.name) for graph in listed if graph.problem is None]
    # A graph that cannot be used is part of the version: what is wrong with it must be said by kg_source_rows.
    problems = [[graph.name, graph.problem] for graph in listed if graph.problem is not None]
    return key_of("graphs", [[folder.name, graph_fingerprint(folder)] for folder in folders], problems)


def build() -> list[dg.SensorDefinition]:
    """Make the sensors of this room."""

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
        return dg.SensorResult(asset_events=events) if events else dg.SkipReason("no change")

    return [knowledge_graph_folders]
