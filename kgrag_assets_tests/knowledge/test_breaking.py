"""Damage that a load meets: files cut short, rows of an earlier run that are no longer whole, places that are full."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from unittest import mock

import duckdb
import pytest

from kgrag_assets.cli.graphs import listed_graphs
from kgrag_assets.knowledge.changes.cursor import Cursor
from kgrag_assets.knowledge.changes.errors import CursorError
from kgrag_assets.knowledge.extraction import TABLES
from kgrag_assets.knowledge.following import behind, read_cursor, write_cursor
from kgrag_assets.knowledge.loading import parts_folder
from kgrag_assets.knowledge.staging import Staging
from kgrag_assets.lake.files import LakeError
from kgrag_assets.lake.lake import Lake
from kgrag_assets.lake.paths import name_problem
from kgrag_assets.rows.graph_changes import KG_CHANGES
from kgrag_assets.rows.knowledge_graph import KG_ENTITIES, STAGED_ENTITIES
from kgrag_assets_tests.knowledge.loaded import add_graph, load_all

EDGES = "node1\tlabel\tnode2\n" + "".join(
    f"Q{number}\tlabel\t'name {number}'@en\nQ{number}\tP31\tQ{number % 7}\n" for number in range(100)
)
FOLLOWED = "format: wikidata_json\nrefresh: {contact: a@example.org, since: '2026-11-25'}\n"


def halve(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def scribble(path: Path) -> None:
    path.write_bytes(b"garbage")


def empty(path: Path) -> None:
    path.write_bytes(b"")


@pytest.mark.parametrize("damage", [halve, scribble, empty, Path.unlink])
@pytest.mark.parametrize("table", TABLES)
def test_a_part_that_is_not_whole_is_read_again(tmp_path: Path, table: str, damage: Callable[[Path], None]) -> None:
    folder = add_graph(tmp_path, "g", "format: kgtk\n", {"e.tsv": EDGES + "too\tshort\n"})
    first = load_all(tmp_path, [folder], 2)
    (part,) = [path for path in parts_folder(first.lake, "g").iterdir() if path.is_dir()]
    damage(part / f"{table}.parquet")

    again = load_all(tmp_path, [folder], 2)

    assert (again.report.units_read, again.report.units_kept) == (1, 0)
    assert again.entities.equals(first.entities)
    assert again.triples.equals(first.triples)
    assert again.rejects.equals(first.rejects)
    assert first.rejects.height == 1


@pytest.mark.parametrize("table", ["names", "edges", "rejects"])
def test_bytes_changed_within_a_part_are_named_and_mended_by_deleting_it(tmp_path: Path, table: str) -> None:
    folder = add_graph(tmp_path, "g", "format: kgtk\n", {"e.tsv": EDGES + "too\tshort\n"})
    first = load_all(tmp_path, [folder], 2)
    place = parts_folder(first.lake, "g")
    (part,) = [path for path in place.iterdir() if path.is_dir()]
    damaged = part / f"{table}.parquet"
    raw = damaged.read_bytes()
    damaged.write_bytes(raw[:4] + b"\xff" * (len(raw) - 8) + raw[-4:])

    with pytest.raises(LakeError, match="delete") as caught:
        load_all(tmp_path, [folder], 2)

    assert str(place) in str(caught.value)
    damaged.unlink()
    assert load_all(tmp_path, [folder], 2).entities.equals(first.entities)


def test_a_disk_that_fills_while_joining_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    full = mock.Mock()
    full.execute.side_effect = duckdb.TransactionException("Failed to commit: No space left on device")
    staging = Staging(tmp_path, memory_mb=100, threads=1)
    monkeypatch.setattr(staging, "_connection", full)
    with pytest.raises(LakeError, match="is the disk full"):
        staging.affected_by(["Q1"])


def test_a_packed_file_that_breaks_off_keeps_its_whole_lines(tmp_path: Path) -> None:
    packed = gzip.compress(EDGES.encode()) + b"garbage"
    folder = add_graph(tmp_path, "g", "format: kgtk\n", {"e.tsv.gz": packed})

    loaded = load_all(tmp_path, [folder], 1)

    assert loaded.triples.height == 100
    assert loaded.rejects["row"].to_list() == [202]


def test_a_table_of_another_format_is_refused_not_misread(tmp_path: Path) -> None:
    kgtk = "id\tnode1\tlabel\tnode2\n1\tQ1\tP31\tQ2\n"
    loaded = load_all(tmp_path, [add_graph(tmp_path, "g", "format: triples\n", {"t.csv": kgtk})], 1)
    assert loaded.entities.is_empty()
    assert "format: kgtk" in loaded.rejects["reason"].item()


def test_a_table_with_carriage_returns_alone_is_refused(tmp_path: Path) -> None:
    table = "head,relation,tail\ra,r,b\rb,r,a\r"
    loaded = load_all(tmp_path, [add_graph(tmp_path, "g", "format: triples\n", {"t.csv": table})], 1)
    assert "carriage return" in loaded.rejects["reason"].item()


@pytest.mark.parametrize("name", ["ü" * 34, "医" * 23, "\udcff" * 80])
def test_a_name_too_long_for_its_files_is_refused(name: str) -> None:
    assert name_problem(name) is not None


@pytest.mark.parametrize("name", ["ü" * 33, "医" * 22])
def test_a_name_that_just_fits_is_loaded(tmp_path: Path, name: str) -> None:
    loaded = load_all(tmp_path, [add_graph(tmp_path, name, "format: kgtk\n", {"e.tsv": EDGES})], 1)
    assert loaded.triples.height == 100


@pytest.mark.parametrize("content", [b"garbage", b"", b"\xff\xfe\x00", b'{"version":1}'])
def test_a_damaged_cursor_is_named_and_hides_no_other_graph(tmp_path: Path, content: bytes) -> None:
    folder = add_graph(tmp_path, "followed", FOLLOWED, {"d.json": "[]"})
    add_graph(tmp_path, "other", "format: kgtk\n", {"e.tsv": EDGES})
    lake = Lake.at(tmp_path)
    write_cursor(lake, "followed", Cursor.at(datetime(2026, 11, 30, tzinfo=UTC)))
    (path,) = tmp_path.rglob("cursor.json")
    path.write_bytes(content)

    with pytest.raises(CursorError, match="Delete it") as caught:
        read_cursor(lake, folder)

    assert str(path) in str(caught.value)
    listed = listed_graphs(lake)
    assert [row["graph"] for row in listed] == ["followed", "other"]
    assert str(path) in listed[0]["problem"]


def test_changes_that_were_deleted_are_taken_again_from_the_beginning(tmp_path: Path) -> None:
    folder = add_graph(tmp_path, "g", FOLLOWED, {"d.json": "[]"})
    lake = Lake.at(tmp_path)
    write_cursor(lake, "g", Cursor.at(datetime(2026, 11, 30, tzinfo=UTC)))
    assert read_cursor(lake, folder).timestamp == datetime(2026, 11, 30, tzinfo=UTC)

    lake.files(KG_CHANGES, "g").rows.unlink()

    assert read_cursor(lake, folder).timestamp == datetime(2026, 11, 25, tzinfo=UTC)
    assert behind(lake, folder) is None


def test_rows_that_are_missing_are_not_taken_for_none(tmp_path: Path) -> None:
    loaded = load_all(tmp_path, [add_graph(tmp_path, "g", "format: kgtk\n", {"e.tsv": EDGES})], 1)
    (name,) = loaded.lake.partitions(STAGED_ENTITIES)
    loaded.lake.adopt(KG_ENTITIES, name, STAGED_ENTITIES)
    loaded.lake.files(STAGED_ENTITIES, name).rows.unlink()

    with pytest.raises(LakeError, match="is missing"):
        loaded.lake.adopt(KG_ENTITIES, name, STAGED_ENTITIES)

    assert loaded.lake.read(KG_ENTITIES, name).height == 100
