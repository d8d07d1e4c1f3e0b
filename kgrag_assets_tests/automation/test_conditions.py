"""The automation condition: what it starts, and which accidents it prevents, on a real ephemeral instance."""

from __future__ import annotations

from collections.abc import Iterator

import dagster as dg
import pytest

from kgrag_assets.automation.conditions import when_content_changed
from kgrag_assets.automation.inputs import report_changes

INPUT = dg.AssetKey("files")


class House:
    """Three assets in a row below an external input; ``content`` decides the first one's data version."""

    def __init__(self, instance: dg.DagsterInstance) -> None:
        self.instance = instance
        self.content = "a"
        self.code = "1"
        self.fails = False
        self.cursor: dg.AssetDaemonCursor | None = None  # type: ignore[name-defined]
        self.definitions = self.build()

    def build(self) -> dg.Definitions:
        condition = when_content_changed()

        @dg.asset(deps=[INPUT], automation_condition=condition, code_version=self.code)
        def first() -> dg.MaterializeResult[None]:
            if self.fails:
                raise dg.Failure("bad input")
            return dg.MaterializeResult(data_version=dg.DataVersion(self.content))

        @dg.asset(deps=[first], automation_condition=condition)
        def second() -> dg.MaterializeResult[None]:
            return dg.MaterializeResult(data_version=dg.DataVersion("same"))

        @dg.asset(deps=[second], automation_condition=condition)
        def third() -> dg.MaterializeResult[None]:
            return dg.MaterializeResult(data_version=dg.DataVersion("same"))

        return dg.Definitions(assets=[dg.AssetSpec(INPUT), first, second, third], executor=dg.in_process_executor)

    def tick(self) -> list[str]:
        """Evaluate once, run what was requested, and name it."""
        result = dg.evaluate_automation_conditions(self.definitions, self.instance, cursor=self.cursor)
        self.cursor = result.cursor
        keys = [dg.AssetKey(name) for name in ("first", "second", "third")]
        wanted = [key for key in keys if result.get_num_requested(key)]
        if wanted:
            job = self.definitions.resolve_implicit_global_asset_job_def()
            job.execute_in_process(instance=self.instance, asset_selection=wanted, raise_on_error=False)
        return [key.to_user_string() for key in wanted]

    def settle(self) -> list[str]:
        """Tick until nothing is requested twice in a row, and name all that ran."""
        ran: list[str] = []
        quiet = 0
        for _ in range(12):
            wanted = self.tick()
            ran += wanted
            quiet = 0 if wanted else quiet + 1
            if quiet == 2:
                return ran
        raise AssertionError(f"never quiet: {ran}")


@pytest.fixture
def house() -> Iterator[House]:
    with dg.DagsterInstance.ephemeral() as instance:
        report_changes(instance, INPUT, {None: "1"})
        yield House(instance)


def test_what_is_missing_runs_once_in_order(house: House) -> None:
    assert house.settle() == ["first", "second", "third"]
    assert house.settle() == []


def test_the_same_content_wakes_nothing(house: House) -> None:
    house.settle()
    assert report_changes(house.instance, INPUT, {None: "1"}) == []
    assert house.settle() == []


def test_a_change_stops_where_the_content_stays_the_same(house: House) -> None:
    house.settle()
    assert report_changes(house.instance, INPUT, {None: "2"}) == [None]
    # first runs again and its rows come out equal: second is not woken.
    assert house.settle() == ["first"]
    house.content = "b"
    report_changes(house.instance, INPUT, {None: "3"})
    assert house.settle() == ["first", "second"]


def test_a_new_code_version_runs_although_no_data_changed(house: House) -> None:
    house.settle()
    house.code = "2"
    house.definitions = house.build()
    assert house.settle() == ["first"]


def test_a_broken_input_is_not_tried_on_every_tick_but_again_when_it_changes(house: House) -> None:
    house.fails = True
    # One run of all three, in which the later two are skipped; then nothing, for as long as the input stays.
    assert house.settle() == ["first", "second", "third"]
    assert house.instance.get_latest_materialization_event(dg.AssetKey("second")) is None
    assert house.settle() == []
    house.fails = False
    report_changes(house.instance, INPUT, {None: "2"})
    assert house.settle() == ["first", "second", "third"]
