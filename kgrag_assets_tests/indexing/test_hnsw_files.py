"""What is written opens as it was, costs nothing where nothing changed, and is refused where files do not agree."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from kgrag_assets.indexing import hnsw_files
from kgrag_assets.indexing.hnsw import HnswIndex
from kgrag_assets.indexing.hnsw_base import write_base
from kgrag_assets.indexing.hnsw_files import verify
from kgrag_assets.indexing.index_rows import IndexRows
from kgrag_assets.indexing.manifest import IndexFileError, Storage
from kgrag_assets.indexing.update import update_index
from kgrag_assets.lake.files import replace_folder
from kgrag_assets_tests.indexing.test_hnsw import DIMENSION, GRAPH, MODEL, table_of, updated, vector_of

QUERIES = np.array([vector_of("query", number) for number in range(20)])
ROWS = {f"e{number}": 0 for number in range(20)}
EDITED = {**ROWS, "e3": 1, "new": 0}
# It builds nothing anew before every row has changed.
PATIENT = GRAPH.model_copy(update={"rebuild_share": 1.0})
FILES = ["base.faiss", "base_rows.arrow", "dead.npy", "delta.npy", "delta_rows.arrow", "manifest.json"]


def saved(tmp_path: Path, storage: Storage = "full") -> tuple[HnswIndex, Path]:
    options = GRAPH.model_copy(update={"storage": storage})
    index = updated(updated(None, ROWS, options).index, EDITED, options).index
    folder = tmp_path / "entity_index"
    replace_folder(folder, index.save)
    return index, folder


@pytest.mark.parametrize("storage", ["full", "fp16", "sq8"])
def test_a_saved_index_opens_as_it_was(storage: Storage, tmp_path: Path) -> None:
    index, folder = saved(tmp_path, storage)
    opened = HnswIndex.open(folder)
    verify(folder)
    assert opened.search(QUERIES, 10).ids == index.search(QUERIES, 10).ids
    assert np.array_equal(opened.search(QUERIES, 10).scores, index.search(QUERIES, 10).scores)
    assert opened.data_version == index.data_version
    assert opened.parameters.storage == storage
    assert opened.live_rows().equals(index.live_rows())
    ids, keys, vectors = table_of(EDITED)
    options = GRAPH.model_copy(update={"storage": storage})
    assert update_index(opened, ids, keys, vectors, options, model_id=MODEL).index is opened


def test_an_empty_index_is_legal(tmp_path: Path) -> None:
    index = updated(None, {}).index
    folder = tmp_path / "index"
    replace_folder(folder, index.save)
    verify(folder)
    opened = HnswIndex.open(folder)
    assert opened.size == 0
    assert opened.search(np.zeros((2, DIMENSION), dtype=np.float32), 3).ids == [[], []]


def test_a_small_change_does_not_copy_the_base(tmp_path: Path) -> None:
    _, folder = saved(tmp_path)
    before = {name: (folder / name).stat().st_ino for name in FILES}
    index = updated(HnswIndex.open(folder), {**EDITED, "e5": 2}, PATIENT).index
    replace_folder(folder, index.save)
    after = {name: (folder / name).stat().st_ino for name in FILES}
    assert [name for name in FILES if before[name] == after[name]] == ["base.faiss", "base_rows.arrow"]
    verify(folder)
    # The old folder is gone, and the index that was opened from it still answers and can still be saved.
    again = tmp_path / "elsewhere"
    replace_folder(again, index.save)
    verify(again)
    assert HnswIndex.open(again).search(QUERIES, 5).ids == index.search(QUERIES, 5).ids


def test_a_folder_that_was_moved_is_named(tmp_path: Path) -> None:
    _, folder = saved(tmp_path)
    index = updated(HnswIndex.open(folder), {**EDITED, "e5": 2}, PATIENT).index
    moved = tmp_path / "moved"
    shutil.move(folder.resolve(), moved)
    fresh = tmp_path / "fresh"
    fresh.mkdir()
    index.save(fresh, previous_folder=moved)
    assert (fresh / "base.faiss").stat().st_ino == (moved / "base.faiss").stat().st_ino


def test_without_hard_links_the_base_is_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, folder = saved(tmp_path)

    def refuse(_source: Path, _target: Path) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(hnsw_files.os, "link", refuse)
    index = updated(HnswIndex.open(folder), {**EDITED, "e5": 2}, PATIENT).index
    replace_folder(folder, index.save)
    verify(folder)
    assert HnswIndex.open(folder).search(QUERIES, 5).ids == index.search(QUERIES, 5).ids


def test_a_view_cannot_be_saved(tmp_path: Path) -> None:
    index, _ = saved(tmp_path)
    with pytest.raises(ValueError, match="cannot be saved"):
        index.restricted_to(["e1"]).save(tmp_path)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("damage", ["missing", "cut", "foreign"])
def test_files_that_do_not_agree_are_refused(name: str, damage: str, tmp_path: Path) -> None:
    _, folder = saved(tmp_path)
    path = folder / name
    if damage == "foreign":
        other = tmp_path / "other"
        options = GRAPH.model_copy(update={"rebuild_share": 1.0})
        first = updated(None, {f"e{number}": 7 for number in range(21)}, options).index
        replace_folder(other, updated(first, {f"e{number}": 7 for number in range(4, 25)}, options).index.save)
        content = (other / name).read_bytes()
    else:
        content = path.read_bytes()[:-7]
    path.unlink()
    if damage != "missing":
        path.write_bytes(content)
    with pytest.raises(IndexFileError, match=r"Delete the folder .*entity_index.* and run again"):
        HnswIndex.open(folder)


def test_a_byte_in_the_middle_of_a_large_file_is_found_by_verifying(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(6000, 128)).astype(np.float32)
    ids = [f"e{number:05d}" for number in range(6000)]
    options = GRAPH.model_copy(update={"hnsw_m": 4, "ef_construction": 8})
    index = update_index(None, ids, ids, vectors, options, model_id=MODEL).index
    folder = tmp_path / "index"
    replace_folder(folder, index.save)
    base = folder / "base.faiss"
    assert base.stat().st_size > 3 << 20
    with base.open("r+b") as handle:
        handle.seek(base.stat().st_size // 2)
        byte = handle.read(1)[0]
        handle.seek(-1, 1)
        handle.write(bytes([byte ^ 1]))
    HnswIndex.open(folder)
    with pytest.raises(IndexFileError, match=r"base\.faiss: is not the file"):
        verify(folder)
    with base.open("r+b") as handle:
        handle.seek(-1, 2)
        handle.write(b"?")
    with pytest.raises(IndexFileError, match=r"base\.faiss: is not the file"):
        HnswIndex.open(folder)


def test_rows_of_another_index_are_refused_even_with_good_checksums(tmp_path: Path) -> None:
    index, _ = saved(tmp_path)
    rows = index.base_rows

    def written(changed: HnswIndex, name: str) -> Path:
        replace_folder(tmp_path / name, changed.save)
        return tmp_path / name

    swapped = written(replace(index, base_rows=IndexRows(rows.ids, rows.row_keys[::-1])), "swapped")
    HnswIndex.open(swapped)
    with pytest.raises(IndexFileError, match="data version"):
        verify(swapped)
    with pytest.raises(IndexFileError, match="twice"):
        verify(written(replace(index, base_rows=IndexRows(rows.ids.take(pa.array([0] * 20)), rows.row_keys)), "twice"))
    with pytest.raises(IndexFileError, match="alive in the base"):
        verify(written(replace(index, alive=np.ones(20, dtype=bool)), "both"))
    with pytest.raises(IndexFileError, match="other nodes"):
        verify(written(replace(index, nodes=np.zeros(20, dtype=np.int64)), "nodes"))
    with pytest.raises(IndexFileError, match="another shape"):
        HnswIndex.open(written(replace(index, delta=index.delta[:1]), "short"))


def test_a_full_disk_is_an_os_error() -> None:
    index = updated(None, {f"e{number}": 0 for number in range(400)}, GRAPH).index
    with pytest.raises(OSError, match="No space left"):
        write_base(index.base, Path("/dev/full"))
