"""Real processes: killed at any stage, or two at once, they end where one quiet run ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import dagster as dg
import pytest

from kgrag_assets.automation.jobs import BUILD_INDEXES, LOAD_GRAPH, MAP_TASK, PUBLISH, REFRESH_BUCKET
from kgrag_assets.cli.place import Place
from kgrag_assets.cli.running import bring_up_to_date
from kgrag_assets.lake.lake import Lake
from kgrag_assets.rows.catalog import TASK_TABLES
from kgrag_assets.rows.table import data_version
from kgrag_assets_tests.pipeline import workshop
from kgrag_assets_tests.pipeline.workshop import TASK, WordEmbedder

REPOSITORY = Path(__file__).parents[2]


def start(root: Path) -> subprocess.Popen[str]:
    environment = {name: value for name, value in os.environ.items() if name != "DAGSTER_HOME"}
    return subprocess.Popen(
        [sys.executable, "-m", "kgrag_assets_tests.pipeline.run_once", str(root)],
        cwd=REPOSITORY,
        env={**environment, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process: subprocess.Popen[str]) -> str:
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err[-3000:]
    return out


def outcome(lake: Lake) -> dict[str, str]:
    return {table.name: data_version(lake.read(table, TASK)) for table in TASK_TABLES}


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What one quiet run makes."""
    root = tmp_path_factory.mktemp("quiet")
    lake = Lake.at(root / "lake")
    workshop.put_task(lake)
    workshop.put_graph(lake)
    with dg.DagsterInstance.ephemeral() as instance:
        place = Place(workshop.settings_for(root), lake, instance, {"embedder": WordEmbedder()})
        bring_up_to_date(place, TASK, lambda _job, _partition: None)
    return outcome(lake)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    made = Lake.at(tmp_path / "lake")
    workshop.put_task(made)
    workshop.put_graph(made)
    return made


def test_a_run_killed_in_any_job_goes_on_where_it_was(lake: Lake, tmp_path: Path, expected: dict[str, str]) -> None:
    for job in (LOAD_GRAPH, REFRESH_BUCKET, BUILD_INDEXES, MAP_TASK, PUBLISH):
        process = start(tmp_path)
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith(job):
                break
        else:
            pytest.fail(f"{job} never began: what it has to do was lost")
        process.send_signal(signal.SIGKILL)
        process.wait()
    finish(start(tmp_path))
    assert outcome(lake) == expected
    assert finish(start(tmp_path)) == "steps 0\n"
    left = [path.name for path in (tmp_path / "lake").rglob("*") if path.name.endswith((".tmp", ".link"))]
    assert left == []
    with dg.DagsterInstance.from_config(str(tmp_path / "dagster_home")) as instance:
        going = dg.RunsFilter(statuses=[dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.STARTING])
        assert instance.get_runs(filters=going) == []


def test_kills_between_the_stages_of_a_task_change_nothing(
    lake: Lake, tmp_path: Path, expected: dict[str, str]
) -> None:
    # At several moments of the job; wherever they fall, also after its end, the outcome must be the same.
    for delay in (0.1, 0.25, 0.4, 0.6):
        process = start(tmp_path)
        assert process.stdout is not None
        next((line for line in process.stdout if line.startswith(MAP_TASK)), None)
        time.sleep(delay)
        process.send_signal(signal.SIGKILL)
        process.wait()
    finish(start(tmp_path))
    assert outcome(lake) == expected


def test_two_runs_at_once_end_where_one_ends(lake: Lake, tmp_path: Path, expected: dict[str, str]) -> None:
    first, second = start(tmp_path), start(tmp_path)
    finish(first)
    finish(second)
    assert outcome(lake) == expected
    assert finish(start(tmp_path)) == "steps 0\n"
