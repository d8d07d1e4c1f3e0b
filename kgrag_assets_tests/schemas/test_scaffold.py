"""Making task folders from inputs of every kind, and leaving nothing where that fails."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from kgrag_assets.schemas.errors import SchemaError
from kgrag_assets.schemas.scaffold import make_task
from kgrag_assets_tests.schemas.conftest import GOOD, Tasks
from kgrag_assets_tests.schemas.test_workbooks import write


@pytest.fixture
def good(tmp_path: Path) -> str:
    """Write a schema file somewhere and return its path."""
    path = tmp_path / "ours.csv"
    path.write_text(GOOD)
    return str(path)


def test_files_are_copied_and_read(tasks: Tasks, good: str) -> None:
    folder = make_task(tasks.paths, "new one", good, good)
    assert folder == tasks.paths.tasks / "new one"
    assert sorted(path.name for path in folder.iterdir()) == ["source.csv", "target.csv"]
    assert tasks.names("target", "new one") == [("t", "c")]
    assert folder.stat().st_mode & 0o777 == 0o755


def test_a_built_in_target_is_named_in_task_yaml(tasks: Tasks, good: str) -> None:
    folder = make_task(tasks.paths, "t", good, "omop-5.4")
    assert yaml.safe_load((folder / "task.yaml").read_text()) == {"target": {"builtin": "omop-5.4"}}
    assert len(tasks.names("target")) == 432


def test_inputs_of_every_kind(tasks: Tasks, tmp_path: Path, good: str) -> None:
    data = tmp_path / "data"
    data.mkdir()
    pq.write_table(pa.table({"c": [1]}), data / "t.parquet")
    (tmp_path / "schema.ddl").write_text("CREATE TABLE t (c int);")
    (tmp_path / "schema.backup").write_text("-- x\nCREATE TABLE t (c int);")
    (tmp_path / "schema").write_text(GOOD)
    write(tmp_path / "book.tmp.xlsx", {"S": [["table", "column"], ["t", "c"]]})
    (tmp_path / "book.tmp.xlsx").rename(tmp_path / "book.dat")
    with duckdb.connect(str(tmp_path / "base.dat")) as con:
        con.execute("CREATE TABLE t (c int)")
    places = {
        "data": "source/t.parquet",
        "data/t.parquet": "source/t.parquet",
        "schema.ddl": "source.ddl",
        "schema.backup": "source.sql",
        "schema": "source.csv",
        "book.dat": "source.xlsx",
        "base.dat": "source.duckdb",
    }
    for number, (given, place) in enumerate(places.items()):
        folder = make_task(tasks.paths, f"t{number}", str(tmp_path / given), good)
        assert (folder / place).exists(), given
        assert tasks.names("source", f"t{number}") == [("t", "c")]


def test_the_table_level_file_of_omop_comes_along(tasks: Tasks, shared_data: Path, good: str) -> None:
    make_task(tasks.paths, "t", good, str(shared_data / "omop_cdm" / "OMOP_CDMv5.4_Field_Level.csv"))
    described = tasks.read().attributes.filter(side="target")["table_description"]
    assert (described != "").all()


@pytest.mark.parametrize(
    ("name", "source", "target", "message"),
    [
        ("a/b", "GOOD", "GOOD", "cannot be a task"),
        ("..", "GOOD", "GOOD", "cannot be a task"),
        ("taken", "GOOD", "GOOD", "there is a task 'taken' already"),
        ("t", "/nowhere/x.csv", "GOOD", "--source /nowhere/x.csv: there is no such file or folder"),
        ("t", "GOOD", "omop-9", r"--target omop-9: .*omop-5\.4"),
        ("t", "GOOD", "BAD", "--target .*must name the columns"),
        ("t", "GOOD", "PDF", "--target .*a PDF document"),
        ("t", "GOOD", "pg:NOT_SET_ANYWHERE", "NOT_SET_ANYWHERE is not set"),
        ("t", "GOOD", "pg:postgresql://u:s3cret@h/d", "name of an environment variable"),
    ],
)
def test_a_failure_leaves_nothing(
    tasks: Tasks, tmp_path: Path, good: str, name: str, source: str, target: str, message: str
) -> None:
    (tmp_path / "bad.csv").write_text("x,y\n1,2\n")
    (tmp_path / "doc.dat").write_bytes(b"%PDF-1.4")
    kinds = {"GOOD": good, "BAD": str(tmp_path / "bad.csv"), "PDF": str(tmp_path / "doc.dat")}
    tasks.put("taken", source_csv=GOOD, target_csv=GOOD)
    with pytest.raises(SchemaError, match=message) as caught:
        make_task(tasks.paths, name, kinds.get(source, source), kinds.get(target, target))
    assert [path.name for path in tasks.paths.tasks.iterdir()] == ["taken"]
    assert ".new-task-" not in str(caught.value)
