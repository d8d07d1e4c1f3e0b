"""What the daemon does with the automation conditions is what ``kgrag run`` does."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import dagster as dg

from kgrag_assets.cli.place import Place
from kgrag_assets.cli.running import bring_up_to_date, observe
from kgrag_assets.lake.lake import Lake
from kgrag_assets.rows.catalog import TASK_TABLES
from kgrag_assets.rows.table import data_version
from kgrag_assets_tests.pipeline import workshop
from kgrag_assets_tests.pipeline.workshop import TASK, WordEmbedder


class Daemon:
    """Ticks as the daemon does, running what the conditions request, one run a partition."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.cursor = None

    def settle(self) -> Counter[str]:
        ran: Counter[str] = Counter()
        quiet = 0
        for _ in range(40):
            wanted = self._tick()
            ran.update(asset for asset, _partition in wanted)
            quiet = 0 if wanted else quiet + 1
            if quiet == 2:
                return ran
        raise AssertionError(f"never quiet: {ran}")

    def _tick(self) -> list[tuple[str, str | None]]:
        definitions = self.place.definitions
        result = dg.evaluate_automation_conditions(definitions, self.place.instance, cursor=self.cursor)
        self.cursor = result.cursor
        by_partition: dict[str | None, list[dg.AssetKey]] = {}
        for key in definitions.resolve_asset_graph().materializable_asset_keys:
            for partition in result.get_requested_partitions(key):
                by_partition.setdefault(partition, []).append(key)
        for partition, keys in by_partition.items():
            done = dg.materialize(
                list(definitions.resolve_asset_graph().assets_defs),
                selection=dg.AssetSelection.assets(*keys),
                instance=self.place.instance,
                partition_key=partition,
            )
            assert done.success
        return [(key.to_user_string(), partition) for partition, keys in by_partition.items() for key in keys]


def versions(lake: Lake) -> dict[str, str]:
    return {table.name: data_version(lake.read(table, TASK)) for table in TASK_TABLES}


def test_the_daemon_ends_where_a_run_ends_and_wakes_only_what_changed(tmp_path: Path) -> None:
    by_hand, by_daemon = Lake.at(tmp_path / "hand" / "lake"), Lake.at(tmp_path / "daemon" / "lake")
    for lake in (by_hand, by_daemon):
        workshop.put_task(lake)
        workshop.put_graph(lake)
    with dg.DagsterInstance.ephemeral() as instance:
        place = Place(workshop.settings_for(tmp_path / "hand"), by_hand, instance, {"embedder": WordEmbedder()})
        bring_up_to_date(place, TASK, lambda _job, _partition: None)
    with dg.DagsterInstance.ephemeral() as instance:
        embedder = WordEmbedder()
        place = Place(workshop.settings_for(tmp_path / "daemon"), by_daemon, instance, {"embedder": embedder})
        daemon = Daemon(place)
        observe(place, None)
        first = daemon.settle()
        assert versions(by_daemon) == versions(by_hand)
        assert by_daemon.paths.snapshot.exists()
        assert first["kg_entities"] == first["entity_embeddings"] == 3

        observe(place, None)
        assert not daemon.settle()

        embedder.seen.clear()
        workshop.put_task(by_daemon, workshop.changed(workshop.SOURCE, "orders", "ord_dt", "when it was bought"))
        observe(place, None)
        woken = daemon.settle()
        assert embedder.seen
        assert all("when it was bought" in text for text in embedder.seen)
        assert woken["schema_attributes"] == 1
        assert not woken.keys() & {"kg_source_rows", "kg_entities", "entity_index", "kg_graph"}

        workshop.put_graph(by_daemon, descriptions={**workshop.DESCRIPTIONS, "Q5": "acquiring goods"})
        observe(place, None)
        woken = daemon.settle()
        assert woken["kg_entities"] == woken["entity_embeddings"] == 1
        assert woken["entity_index"] == 1
        assert not woken.keys() & {"triple_embeddings", "triple_index", "attribute_embeddings"}
