"""The sensors see what people put in: folders that come, change and go, and those that cannot be used."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from kgrag_assets.automation.inputs import GRAPH_CHANGES, GRAPH_FILES, TASK_FILES, TASK_OPTIONS
from kgrag_assets.definitions import build_defs
from kgrag_assets.lake.lake import Lake
from kgrag_assets_tests.pipeline import workshop
from kgrag_assets_tests.pipeline.workshop import TASK, WordEmbedder


class Watch:
    """One sensor, evaluated as the daemon does, its results taken over into the instance."""

    def __init__(self, root: Path, instance: dg.DagsterInstance, name: str) -> None:
        self.lake = Lake.at(root / "lake")
        self.instance = instance
        self.definitions = build_defs(workshop.settings_for(root), {"embedder": WordEmbedder()})
        self.sensor = self.definitions.resolve_sensor_def(name)

    def look(self) -> set[tuple[str, str | None]]:
        """Evaluate once; return the external assets and partitions whose change was reported."""
        context = dg.build_sensor_context(
            instance=self.instance, definitions=self.definitions, resources={"lake": self.lake}
        )
        result = self.sensor.evaluate_tick(context)
        for request in result.dynamic_partitions_requests or ():
            if isinstance(request, dg.AddDynamicPartitionsRequest):
                self.instance.add_dynamic_partitions("tasks", list(request.partition_keys))
            else:
                for key in request.partition_keys:
                    self.instance.delete_dynamic_partition("tasks", key)
        for event in result.asset_events:
            self.instance.report_runless_asset_event(event)
        return {(event.asset_key.to_user_string(), event.partition) for event in result.asset_events}


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as made:
        yield made


def test_a_folder_becomes_a_partition_and_a_change_is_reported_once(
    tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    watch = Watch(tmp_path, instance, "task_folders")
    assert watch.look() == set()
    folder = workshop.put_task(watch.lake)
    files, options = TASK_FILES.to_user_string(), TASK_OPTIONS.to_user_string()
    assert watch.look() == {(files, TASK), (options, TASK)}
    assert instance.get_dynamic_partitions("tasks") == [TASK]
    assert watch.look() == set()
    (folder / "task.yaml").write_text("options: {mapping: {min_score: 0.3}}\n")
    assert watch.look() == {(options, TASK)}
    workshop.put_task(watch.lake, workshop.changed(workshop.SOURCE, "orders", "ord_dt", "when"))
    assert watch.look() == {(files, TASK)}
    shutil.rmtree(folder)
    watch.look()
    assert instance.get_dynamic_partitions("tasks") == []


def test_folders_that_cannot_be_used_become_no_partition(tmp_path: Path, instance: dg.DagsterInstance) -> None:
    watch = Watch(tmp_path, instance, "task_folders")
    for name in ("a,b", "empty", "with space"):
        (watch.lake.paths.tasks / name).mkdir(parents=True)
    workshop.put_task(watch.lake, name="with space")
    workshop.put_task(watch.lake, name="a,b")
    watch.look()
    assert instance.get_dynamic_partitions("tasks") == ["with space"]


def test_a_changed_graph_is_reported_once(tmp_path: Path, instance: dg.DagsterInstance) -> None:
    watch = Watch(tmp_path, instance, "knowledge_graph_folders")
    workshop.put_graph(watch.lake)
    key = GRAPH_FILES.to_user_string()
    assert watch.look() == {(key, None), (GRAPH_CHANGES.to_user_string(), None)}
    assert watch.look() == set()
    workshop.put_graph(watch.lake, descriptions={"Q5": "other"})
    assert watch.look() == {(key, None)}
