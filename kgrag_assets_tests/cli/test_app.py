"""The commands as a person or a script calls them: what they print, and the exit codes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kgrag_assets.lake.lake import Lake
from kgrag_assets_tests.pipeline import workshop
from kgrag_assets_tests.pipeline.workshop import TASK


def kgrag(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("KGRAG_", "DAGSTER_"))}
    return subprocess.run(
        [sys.executable, "-c", "from kgrag_assets.cli.app import main; main()", *arguments],
        cwd=root,
        env={**environment, "KGRAG_LAKE": "lake", "KGRAG_GRAPH__BUCKETS": "2", "COLUMNS": "200", "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )


@pytest.fixture
def root(tmp_path: Path) -> Path:
    lake = Lake.at(tmp_path / "lake")
    workshop.put_task(lake)
    workshop.put_graph(lake)
    return tmp_path


@pytest.mark.parametrize("command", ["tasks", "init", "run", "status", "show", "export"])
def test_every_command_has_help_with_an_example(root: Path, command: str) -> None:
    done = kgrag(root, command, "--help")
    assert done.returncode == 0
    assert f"kgrag {command}" in done.stdout


def test_from_files_to_an_explained_mapping(root: Path) -> None:
    assert kgrag(root, "status", TASK, "--exit-code").returncode == 3
    ran = kgrag(root, "run", TASK)
    assert ran.returncode == 0, ran.stderr
    assert "birth_date" in ran.stdout
    assert "rows computed" in ran.stdout
    again = kgrag(root, "run", TASK, "--json")
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout)["steps"] == []
    status = kgrag(root, "status", TASK, "--exit-code")
    assert (status.returncode, status.stdout.strip()) == (0, "everything is up to date")
    listed = json.loads(kgrag(root, "tasks", "--json").stdout)
    assert [(row["task"], row["note"]) for row in listed] == [(TASK, "")]
    shown = kgrag(root, "show", TASK, "clients.dob")
    assert shown.returncode == 0
    assert "date of birth of the client" in shown.stdout
    exported = kgrag(root, "export", TASK, "--format", "xlsx")
    assert exported.returncode == 0
    assert (root / exported.stdout.strip()).stat().st_size > 0


def test_a_new_task_from_two_files(root: Path) -> None:
    (root / "mine.sql").write_text("CREATE TABLE t (dob DATE); COMMENT ON COLUMN t.dob IS 'date of birth';")
    made = kgrag(root, "init", "my task", "--source", "mine.sql", "--target", "omop-5.4")
    assert made.returncode == 0, made.stderr
    assert "kgrag run 'my task'" in made.stdout
    assert {row["task"] for row in json.loads(kgrag(root, "tasks", "--json").stdout)} == {"my task", TASK}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("run", "nothing"), "there is no folder of that name"),
        (("run", ".."), "there is no folder of that name"),
        (("show", TASK), "kgrag run"),
        (("init", "a/b", "--source", "x.csv", "--target", "omop-5.4"), "slash"),
        (("init", "new", "--source", "missing.csv", "--target", "omop-5.4"), "missing.csv"),
    ],
)
def test_wrong_input_is_said_with_exit_code_2(root: Path, arguments: tuple[str, ...], words: str) -> None:
    done = kgrag(root, *arguments)
    assert done.returncode == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_a_broken_schema_fails_with_its_reason_and_mends(root: Path) -> None:
    source = root / "lake" / "input" / "tasks" / TASK / "source.csv"
    good = source.read_bytes()
    source.write_bytes(b"")
    done = kgrag(root, "run", TASK)
    assert done.returncode == 1
    assert "source.csv" in done.stderr
    assert "Traceback" not in done.stderr
    source.write_bytes(good)
    assert kgrag(root, "status", TASK, "--exit-code").returncode == 3


def test_a_setting_that_is_not_allowed_is_named(root: Path) -> None:
    environment = {**os.environ, "KGRAG_LAKE": "lake", "KGRAG_GRAPH__BUCKETS": "many"}
    done = subprocess.run(
        [sys.executable, "-c", "from kgrag_assets.cli.app import main; main()", "run", TASK],
        cwd=root,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "KGRAG_GRAPH__BUCKETS" in done.stderr
