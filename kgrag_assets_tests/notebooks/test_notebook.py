"""The analyst's notebook, run as a script and as a library against published snapshots."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kgrag_assets.lake.lake import Lake
from kgrag_assets_tests.cli.finished_task import PAIRS, SOURCE, calls, fill, publish_snapshot

# Looked for, not imported: where marimo is loaded, transformers takes the process for a notebook and asks for IPython.
pytestmark = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("marimo", "altair")),
    reason="the notebook needs the dev extra (marimo, altair)",
)

NOTEBOOK = Path(__file__).parents[2] / "notebooks" / "mapping_review.py"


def _script(snapshot: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(NOTEBOOK)],
        env={**os.environ, "KGRAG_SNAPSHOT": str(snapshot)},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


def _definitions(snapshot: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Run every cell; marimo raises where a cell does."""
    monkeypatch.setenv("KGRAG_SNAPSHOT", str(snapshot))
    found = importlib.util.spec_from_file_location("mapping_review", NOTEBOOK)
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    _outputs, definitions = module.app.run()
    return dict(definitions)


@pytest.fixture
def snapshot(lake: Lake, tmp_path: Path) -> Path:
    fill(lake, "clinic")
    fill(lake, "offline", judge="offline", reference=False)
    path = tmp_path / "kgrag.duckdb"
    publish_snapshot(lake, path, calls("clinic"))
    return path


def test_it_runs_as_a_script(snapshot: Path, tmp_path: Path) -> None:
    before = snapshot.read_bytes()
    done = _script(snapshot, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "clinic: 4 proposed, 2 without a match, 0.0001 USD\n"
    assert snapshot.read_bytes() == before


def test_it_finds_the_snapshot_of_the_folder_it_is_run_in(snapshot: Path, tmp_path: Path) -> None:
    (tmp_path / "data_lake").mkdir()
    snapshot.rename(tmp_path / "data_lake" / "kgrag.duckdb")
    environment = {name: value for name, value in os.environ.items() if name != "KGRAG_SNAPSHOT"}
    done = subprocess.run(
        [sys.executable, str(NOTEBOOK)], env=environment, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0
    assert done.stdout.startswith("clinic: 4 proposed")


def test_an_empty_snapshot_is_no_error(lake: Lake, tmp_path: Path) -> None:
    path = tmp_path / "empty.duckdb"
    publish_snapshot(lake, path)
    done = _script(path, tmp_path)
    assert (done.returncode, done.stdout) == (0, "")
    assert f"{path} holds no mapping yet" in done.stderr


def test_a_missing_or_foreign_file_is_named(tmp_path: Path) -> None:
    done = _script(tmp_path / "none.duckdb", tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith(f"There is no snapshot at {tmp_path / 'none.duckdb'}")
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "none.duckdb").exists()
    (tmp_path / "text.duckdb").write_text("not a database")
    foreign = _script(tmp_path / "text.duckdb", tmp_path)
    assert foreign.returncode == 2
    assert "cannot be opened as a DuckDB file" in foreign.stderr


def test_its_answers(snapshot: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = _definitions(snapshot, monkeypatch)
    assert found["tasks"] == ["clinic", "offline"]
    assert (found["task"], found["mapped_rows"], found["unmatched_rows"]) == ("clinic", 4, 2)
    assert found["mapping"].height == 6
    # Of the first column: its two candidates; no fact was found for either.
    assert found["candidates"]["target_column"].to_list() == ["person_id", "gender_concept_id"]
    assert found["evidence"].is_empty()
    assert found["margins"].select("source_column", "margin", "next_best").rows() == [
        ("sex", 0.02, "person.person_id"),
        ("dob", 0.47, "person.person_id"),
        ("pat_no", 0.59, "person.gender_concept_id"),
        ("val.num", None, None),
    ]
    assert found["unanswered"]["parse_status"].to_list() == ["timeout"]
    assert found["unmatched"].height == 2
    assert found["total_cost"] == pytest.approx(0.0001)
    assert found["cost"]["not_answered"].to_list() == [1]
    assert set(found["metrics"]["metric"]) == {"precision", "recall", "f1", "hit@1", "mrr", "reduction_ratio"}
    assert dict(found["misses_by_stage"].rows()) == {"blocking": 1, "found": 3, "not_proposed": 1}
    for chart in ("by_table_chart", "score_chart", "metric_chart", "miss_chart"):
        assert found[chart].to_dict()["$schema"].startswith("https://vega.github.io")


def test_a_task_without_model_and_reference(lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(lake, "o'ffline\"; DROP", judge="offline", reference=False)
    publish_snapshot(lake, tmp_path / "s.duckdb")
    found = _definitions(tmp_path / "s.duckdb", monkeypatch)
    assert found["task"] == "o'ffline\"; DROP"
    assert (found["mapped_rows"], found["total_cost"]) == (4, 0.0)
    assert found["metrics"].is_empty()
    assert "metric_chart" not in found


def test_the_facts_of_the_first_column(lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    births = tuple(pair for pair in PAIRS if pair[0] == SOURCE[1][:2])
    fill(lake, source=SOURCE[1:2], pairs=births, not_matched=(), reference=False)
    publish_snapshot(lake, tmp_path / "s.duckdb")
    evidence = _definitions(tmp_path / "s.duckdb", monkeypatch)["evidence"]
    assert evidence.select("rank", "target_column", "fact_rank", "cited").rows() == [
        (1, "birth_datetime", 1, True),
        (1, "birth_datetime", 2, False),
        (2, "person_id", 1, True),
    ]
    assert evidence["fact"][0] == "human — date of birth — day of birth"


def test_a_task_without_any_candidate(lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(lake, "bare", pairs=(), source=(), not_matched=(), reference=False)
    fill(lake, "only", pairs=(), reference=False)
    publish_snapshot(lake, tmp_path / "s.duckdb")
    found = _definitions(tmp_path / "s.duckdb", monkeypatch)
    assert found["tasks"] == ["only"]  # a schema without columns has no mapping to look at
    assert (found["mapped_rows"], found["candidates"].height, found["unmatched"].height) == (0, 0, 2)
