"""Fixtures of this room's tests: task folders made in a line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from kgrag_assets.lake.paths import LakePaths
from kgrag_assets.schemas.reading import TaskSchemas, read_task
from kgrag_assets.schemas.task_folder import load_task

GOOD = "table,column\nt,c\n"


class Tasks:
    """An empty lake and ways to fill it."""

    def __init__(self, root: Path) -> None:
        self.paths = LakePaths(root)
        self.paths.tasks.mkdir(parents=True)

    def put(self, name: str = "t", **files: str | bytes) -> Path:
        """Make a task folder; ``source_csv="..."`` writes ``source.csv``. A missing side gets a good one."""
        folder = self.paths.tasks / name
        folder.mkdir(exist_ok=True)
        for key, content in files.items():
            stem, _, ending = key.rpartition("_")
            path = folder / f"{stem}.{ending}"
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return folder

    def read(self, name: str = "t") -> TaskSchemas:
        """Read a task."""
        return read_task(load_task(self.paths, name))

    def names(self, side: str = "source", name: str = "t") -> list[tuple[str, str]]:
        """Table and column of each attribute of a side, in order."""
        rows = self.read(name).attributes.filter(pl.col("side") == side)
        return list(rows.select("table_name", "column_name").iter_rows())


@pytest.fixture
def tasks(tmp_path: Path) -> Tasks:
    """Make an empty lake for tasks."""
    return Tasks(tmp_path / "lake")


@pytest.fixture
def source_names(tasks: Tasks) -> Callable[[str | bytes], list[tuple[str, str]]]:
    """Read a text or bytes as source.csv and return table and column of each attribute."""

    def read(content: str | bytes) -> list[tuple[str, str]]:
        tasks.put(source_csv=content, target_csv=GOOD)
        return tasks.names()

    return read


@pytest.fixture
def shared_data() -> Path:
    """Return the folder of public data sets, where it is."""
    folder = Path(__file__).parents[2].parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("the public data sets are not on this machine")
    return folder
