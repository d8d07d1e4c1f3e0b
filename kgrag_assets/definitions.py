"""The one place where everything is put together for Dagster."""

from __future__ import annotations

from collections.abc import Mapping

import dagster as dg

from kgrag_assets.automation.inputs import input_specs
from kgrag_assets.automation.jobs import build_jobs
from kgrag_assets.automation.progress import SilentProgress
from kgrag_assets.blocking import assets as blocking
from kgrag_assets.evaluation import ablation_assets as ablation
from kgrag_assets.evaluation import assets as evaluation
from kgrag_assets.indexing import assets as indexing
from kgrag_assets.indexing.graph_embedder import family_of, graph_embedder_of
from kgrag_assets.judging import assets as judging
from kgrag_assets.knowledge import assets as knowledge
from kgrag_assets.knowledge import sensors as knowledge_sensors
from kgrag_assets.lake.lake import Lake
from kgrag_assets.mapping import assets as mapping
from kgrag_assets.models.embedders import Embedder, make_embedder
from kgrag_assets.ranking import assets as ranking
from kgrag_assets.retrieval import assets as retrieval
from kgrag_assets.schemas import assets as schemas
from kgrag_assets.schemas import sensors as schemas_sensors
from kgrag_assets.settings import Settings


def build_defs(
    settings: Settings | None = None, resource_overrides: Mapping[str, object] | None = None
) -> dg.Definitions:
    """Put assets, jobs, sensors and resources together.

    Args:
        settings: the settings; read from the environment where not given.
        resource_overrides: resources by name (lake, embedder, progress) that take the place of the usual ones.

    Returns:
        definitions that depend on nothing but the arguments.
    """
    settings = Settings() if settings is None else settings
    embedder: Embedder = make_embedder(settings.embedder)
    given = resource_overrides or {}
    resources: dict[str, object] = {
        "lake": Lake.at(settings.lake),
        "embedder": embedder,
        "progress": SilentProgress(),
        **given,
    }
    used: Embedder = resources["embedder"]  # type: ignore[assignment]  # whoever overrides it gives an embedder
    if "graph_embedder" not in given:
        lake: Lake = resources["lake"]  # type: ignore[assignment]
        resources["graph_embedder"] = graph_embedder_of(settings.embedder, used, lake)
    jobs = build_jobs(settings)
    return dg.Definitions(
        assets=[
            *input_specs(settings.graph.buckets),
            *schemas.build(),
            *knowledge.build(settings),
            *indexing.build(settings, used.model_id, family_of(resources["graph_embedder"])),
            *blocking.build(settings),
            *retrieval.build(settings),
            *ranking.build(settings),
            *judging.build(settings),
            *mapping.build(settings),
            *evaluation.build(settings),
            *ablation.build(settings),
        ],
        jobs=jobs,
        sensors=[
            *schemas_sensors.build(),
            *knowledge_sensors.build(jobs),
            dg.AutomationConditionSensorDefinition(
                "bring_up_to_date",
                target=dg.AssetSelection.all(),
                default_status=dg.DefaultSensorStatus.STOPPED,
                minimum_interval_seconds=15,
                description="Runs whatever changed in content. Switch it on to let the daemon do what "
                "`kgrag run` does.",
            ),
        ],
        schedules=knowledge_sensors.build_schedules(),
        resources=resources,
        executor=dg.in_process_executor,
    )


@dg.definitions
def defs() -> dg.Definitions:
    """Dagster's entry: what ``workspace.yaml`` loads."""
    return build_defs()
