"""The published snapshot: typed, commented, and never in a reader's way."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from kgrag_assets.lake.files import LakeError
from kgrag_assets.lake.snapshot import publish, published_version
from kgrag_assets.rows.catalog import PUBLISHED_TABLES
from kgrag_assets_tests.lake.test_lake import NOTES, notes


def test_a_reader_of_the_old_snapshot_is_not_disturbed(tmp_path: Path) -> None:
    path = tmp_path / "kgrag.duckdb"
    publish(path, [(NOTES, notes("a"))], "1", {})
    with duckdb.connect(str(path), read_only=True) as reader:
        publish(path, [(NOTES, notes("a", "b"))], "2", {"many": "SELECT count(*) AS n FROM notes"})
        assert reader.execute("SELECT count(*) FROM notes").fetchone() == (1,)
    with duckdb.connect(str(path), read_only=True) as reader:
        assert reader.execute("SELECT n FROM many").fetchone() == (2,)
    assert published_version(path) == "2"
    assert [entry.name for entry in tmp_path.iterdir()] == ["kgrag.duckdb"]


def test_empty_tables_keep_their_columns_types_and_meaning(tmp_path: Path) -> None:
    path = tmp_path / "kgrag.duckdb"
    publish(path, [(table, table.empty()) for table in PUBLISHED_TABLES], "0", {})
    with duckdb.connect(str(path), read_only=True) as reader:
        for table in PUBLISHED_TABLES:
            rows = reader.execute(
                "SELECT column_name, comment FROM duckdb_columns() WHERE table_name = ? ORDER BY column_index",
                [table.name],
            ).fetchall()
            assert rows == [(column.name, column.description) for column in table.columns]


def test_a_snapshot_that_cannot_be_written_leaves_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "kgrag.duckdb"
    publish(path, [(NOTES, notes("a"))], "1", {})
    with pytest.raises(LakeError, match="the old snapshot is untouched"):
        publish(path, [(NOTES, notes("a"))], "2", {"broken": "SELECT nothing FROM nowhere"})
    assert published_version(path) == "1"
    assert [entry.name for entry in tmp_path.iterdir()] == ["kgrag.duckdb"]


def test_no_version_without_a_snapshot(tmp_path: Path) -> None:
    path = tmp_path / "kgrag.duckdb"
    assert published_version(path) is None
    path.write_bytes(b"not a database")
    assert published_version(path) is None
