"""Fingerprints: what changes them and what does not."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from kgrag_assets.schemas import fingerprint
from kgrag_assets.schemas.fingerprint import options_fingerprint, schema_fingerprint
from kgrag_assets.schemas.task_folder import load_task
from kgrag_assets_tests.schemas.conftest import GOOD, Tasks


def schemas(tasks: Tasks) -> str:
    return schema_fingerprint(load_task(tasks.paths, "t"))


def options(tasks: Tasks) -> str:
    return options_fingerprint(load_task(tasks.paths, "t"))


def edit(name: str, text: str) -> Callable[[Path], None]:
    return lambda folder: Path(folder / name).write_text(text) and None


@pytest.mark.parametrize(
    ("change", "schema_changes"),
    [
        (edit("source.csv", GOOD + "t,d\n"), True),
        (edit("target.csv", GOOD + "t,d\n"), True),
        (edit("reference.csv", "source_table,source_column,target_table,target_column\n"), True),
        (edit("target_tables.csv", "cdmTableName,tableDescription\n"), True),
        (edit("task.yaml", "source: {tables: [t]}"), True),
        (edit("task.yaml", "target: {builtin: omop-5.4}"), True),
        (edit("task.yaml", "title: T"), False),
        (edit("notes.md", "x"), False),
        (lambda folder: (folder / "source.csv").rename(folder / "source.tsv") and None, True),
        (lambda folder: os.utime(folder / "source.csv", (1, 1)), False),
    ],
)
def test_only_what_decides_the_schemas_changes_the_fingerprint(
    tasks: Tasks, change: Callable[[Path], None], schema_changes: bool
) -> None:
    folder = tasks.put(source_csv=GOOD, target_csv=GOOD)
    before = schemas(tasks), options(tasks)
    assert before == (schemas(tasks), options(tasks))
    change(folder)
    assert (schemas(tasks) != before[0]) == schema_changes
    assert options(tasks) == before[1]


def test_options_count_for_themselves_and_in_any_order(tasks: Tasks) -> None:
    tasks.put(
        source_csv=GOOD, target_csv=GOOD, task_yaml="options: {mapping: {min_score: 0.5}, blocking: {k_vector: 3}}"
    )
    before = schemas(tasks), options(tasks)
    tasks.put(task_yaml="title: x\noptions:\n  blocking:\n    k_vector: 3\n  mapping:\n    min_score: 0.5\n")
    assert (schemas(tasks), options(tasks)) == before
    tasks.put(task_yaml="options: {mapping: {min_score: 0.6}, blocking: {k_vector: 3}}")
    assert schemas(tasks) == before[0]
    assert options(tasks) != before[1]


def test_a_folder_counts_with_all_its_files(tasks: Tasks) -> None:
    source = tasks.put(target_csv=GOOD) / "source"
    (source / "deep").mkdir(parents=True)
    (source / "a.csv").write_text("x")
    seen = {schemas(tasks)}
    for path, text in (("b.csv", "x"), ("deep/c.csv", "x"), ("deep/c.csv", "y")):
        (source / path).write_text(text)
        seen.add(schemas(tasks))
    (source / "b.csv").rename(source / "bb.csv")
    seen.add(schemas(tasks))
    assert len(seen) == 5


def test_unreadable_inputs_have_a_fingerprint(tasks: Tasks, monkeypatch: pytest.MonkeyPatch) -> None:
    tasks.put(source_csv=b"", target_xlsx=b"broken")
    empty = schemas(tasks)
    tasks.put(source_csv=b"\x00")
    assert schemas(tasks) != empty
    tasks.put(task_yaml="target: {connection_env: NOT_SET_ANYWHERE}")
    monkeypatch.delenv("NOT_SET_ANYWHERE", raising=False)
    assert schemas(tasks) == schemas(tasks)


def test_a_large_file_is_read_once_while_it_stands_still(tasks: Tasks, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fingerprint, "_REMEMBERED_BYTES", 4)
    monkeypatch.setattr(fingerprint, "_remembered", {})
    folder = tasks.put(source_csv=GOOD, target_csv=GOOD)
    fresh = schemas(tasks)
    assert fingerprint._remembered == {}
    os.utime(folder / "source.csv", (1, 1))
    assert schemas(tasks) == fresh
    assert len(fingerprint._remembered) == 1
    assert schemas(tasks) == fresh
    (folder / "source.csv").write_text(GOOD.replace("c\n", "d\n"))
    assert schemas(tasks) != fresh
