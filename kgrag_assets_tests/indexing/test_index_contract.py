"""What retrieval relies on, asked of every adapter of the port: embedded in each form, and served."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import numpy as np
import pytest

from kgrag_assets.indexing.hnsw import HnswIndex
from kgrag_assets.indexing.port import VectorIndex
from kgrag_assets.indexing.qdrant_index import QdrantIndex
from kgrag_assets.indexing.qdrant_server import QdrantPlace
from kgrag_assets.indexing.recall import recall_at_k
from kgrag_assets.indexing.update import UpdateReport, update_index
from kgrag_assets.lake.files import replace_folder
from kgrag_assets.settings import IndexSettings
from kgrag_assets_tests.indexing.qdrant_over_http import serving

DIMENSION = 16
MODEL = "model@1"
Rows = dict[str, int]


class Adapter(Protocol):
    """One way to keep an index."""

    # How far a score may be from the cosine.
    tolerance: float

    def update(self, rows: Rows) -> tuple[VectorIndex, UpdateReport]: ...

    def reopen(self) -> VectorIndex: ...

    def close(self) -> None: ...


@dataclass
class Embedded:
    folder: Path
    settings: IndexSettings
    tolerance: float
    index: HnswIndex | None = None

    def update(self, rows: Rows) -> tuple[VectorIndex, UpdateReport]:
        done = update_index(self.index, *table_of(rows), self.settings, model_id=MODEL)
        self.index = done.index
        replace_folder(self.folder, done.index.save)
        return done.index, done.report

    def reopen(self) -> VectorIndex:
        self.index = HnswIndex.open(self.folder)
        return self.index

    def close(self) -> None:
        pass


@dataclass
class Served:
    place: QdrantPlace
    tolerance: float = 1e-5
    name: str = field(default_factory=lambda: f"contract-{uuid.uuid4().hex}")

    def __post_init__(self) -> None:
        self.client = self.place.client()

    def update(self, rows: Rows) -> tuple[VectorIndex, UpdateReport]:
        index = QdrantIndex.prepare(self.place, self.name, model_id=MODEL, dimension=DIMENSION, client=self.client)
        return index.bring_up_to_date(*table_of(rows))

    def reopen(self) -> VectorIndex:
        if self.place.location != ":memory:":
            self.client.close()
            self.client = self.place.client()
        return QdrantIndex.open(self.place, self.name, model_id=MODEL, client=self.client)

    def close(self) -> None:
        if self.place.location == SERVER:
            self.client.delete_collection(self.name)
        self.client.close()


GRAPH = IndexSettings(hnsw_m=16, ef_construction=100, ef_search=64, exact_below=0)
# Name a Qdrant server to ask it the same.
SERVER = os.environ.get("KGRAG_TEST_QDRANT_URL")
KINDS = ["exact", "full", "fp16", "sq8", "memory", "http", *(["server"] if SERVER else [])]


@pytest.fixture(params=KINDS)
def adapter(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Adapter]:
    kind = request.param
    with ExitStack() as stack:
        made: Adapter
        if kind == "memory":
            made = Served(QdrantPlace(":memory:"))
        elif kind == "http":
            made = Served(QdrantPlace(stack.enter_context(serving()).url))
        elif kind == "server":
            made = Served(QdrantPlace(SERVER or ""))
        elif kind == "exact":
            made = Embedded(tmp_path / "index", IndexSettings(exact_below=100_000), 1e-5)
        else:
            tolerance = {"full": 1e-5, "fp16": 1e-3, "sq8": 2e-2}[kind]
            made = Embedded(tmp_path / "index", GRAPH.model_copy(update={"storage": kind}), tolerance)
        yield made
        made.close()


def vector_of(entry: str, version: int) -> np.ndarray:
    seed = int.from_bytes(f"{entry}/{version}".encode(), "little") % (2**63)
    drawn = np.random.default_rng(seed).normal(size=DIMENSION).astype(np.float32)
    return drawn / np.linalg.norm(drawn)


def table_of(rows: Rows) -> tuple[list[str], list[str], np.ndarray]:
    ids = list(rows)
    vectors = [vector_of(entry.partition("=")[0], rows[entry]) for entry in ids]
    matrix = np.array(vectors, dtype=np.float32).reshape(len(ids), DIMENSION)
    return ids, [f"{entry}#{rows[entry]}" for entry in ids], matrix


MANY: Rows = {f"e{number:03d}": 0 for number in range(400)}
QUERIES = np.array([vector_of("query", number) for number in range(30)])


def assert_answers_like_brute_force(index: VectorIndex, rows: Rows, tolerance: float) -> None:
    ids, _, vectors = table_of(rows)
    assert index.size == len(rows)
    assert recall_at_k(index, vectors, ids, QUERIES) >= 0.95
    hits = index.search(QUERIES, 10)
    assert hits.scores.shape == (len(QUERIES), 10)
    place = {entry: row for row, entry in enumerate(ids)}
    for number, query in enumerate(QUERIES):
        found = hits.of(number)
        assert len(found) == len({entry for entry, _ in found}) == 10
        assert [score for _, score in found] == sorted((score for _, score in found), reverse=True)
        for entry, score in found:
            assert abs(score - float(vectors[place[entry]] @ query)) <= tolerance


def test_answers_are_those_of_brute_force_now_and_when_opened_again(adapter: Adapter) -> None:
    index, report = adapter.update(MANY)
    assert report.added == 400
    assert (index.model_id, index.dimension) == (MODEL, DIMENSION)
    assert_answers_like_brute_force(index, MANY, adapter.tolerance)
    version, answers = index.data_version, index.search(QUERIES, 10).ids
    opened = adapter.reopen()
    assert (opened.model_id, opened.dimension, opened.size) == (MODEL, DIMENSION, 400)
    assert opened.data_version == version
    assert opened.search(QUERIES, 10).ids == answers


def test_what_is_removed_is_gone_and_comes_back_when_added_again(adapter: Adapter) -> None:
    first, _ = adapter.update(MANY)
    version = first.data_version
    best = sorted({found[0] for found in first.search(QUERIES, 1).ids})
    fewer = {entry: number for entry, number in MANY.items() if entry not in best}
    changed = {**fewer, "e007": 1, "new": 0} if "e007" in fewer else {**fewer, "new": 0}
    second, report = adapter.update(changed)
    assert (report.added, report.removed) == (1, len(best))
    assert report.changed == int("e007" in fewer)
    assert not set(best) & {entry for found in second.search(QUERIES, 50).ids for entry in found}
    assert second.search(vector_of("new", 0)[None, :], 1).ids == [["new"]]
    assert second.search(vector_of("e007", changed.get("e007", 0))[None, :], 3).scores[0, 0] > 0.5
    assert_answers_like_brute_force(second, changed, adapter.tolerance)
    assert second.data_version != version
    adapter.reopen()
    third, report = adapter.update(dict(reversed(MANY.items())))
    assert report.removed == 1
    assert report.added == len(best)
    assert third.data_version == version
    assert_answers_like_brute_force(third, MANY, adapter.tolerance)
    again, report = adapter.update(MANY)
    assert (report.kept, report.added, report.removed, report.changed) == (400, 0, 0, 0)
    assert again.data_version == version


def test_a_restricted_view_finds_its_ids_only(adapter: Adapter) -> None:
    index, _ = adapter.update(MANY)
    wanted = dict.fromkeys(list(MANY)[100:140], 0)
    view = index.restricted_to([*reversed(wanted), "unknown"])
    assert_answers_like_brute_force(view, wanted, adapter.tolerance)
    assert all(set(found) == set(wanted) for found in view.search(QUERIES, 60).ids)
    assert view.data_version != index.data_version
    assert index.restricted_to(wanted).data_version == view.data_version
    assert index.restricted_to(MANY).data_version == index.data_version
    narrower = view.restricted_to(["e110", "e111", "e001"])
    assert sorted(narrower.search(QUERIES[:1], 9).ids[0]) == ["e110", "e111"]
    nothing = index.restricted_to(["unknown"])
    assert nothing.size == 0
    assert nothing.search(QUERIES[:2], 3).ids == [[], []]
    # The whole index is as it was.
    assert_answers_like_brute_force(index, MANY, adapter.tolerance)


def test_fewer_rows_than_asked_for(adapter: Adapter) -> None:
    index, _ = adapter.update({"a": 0, "b": 0, "c": 0})
    hits = index.search(QUERIES[:2], 5)
    assert [sorted(found) for found in hits.ids] == [["a", "b", "c"]] * 2
    assert np.isfinite(hits.scores[:, :3]).all()
    assert np.isnan(hits.scores[:, 3:]).all()


def test_an_empty_index_finds_nothing(adapter: Adapter) -> None:
    adapter.update({"a": 0})
    index, report = adapter.update({})
    assert report.removed == 1
    assert index.size == 0
    hits = index.search(np.zeros((2, index.dimension), dtype=np.float32), 3)
    assert hits.ids == [[], []]
    assert np.isnan(hits.scores).all()
    index = adapter.reopen()
    assert index.size == 0
    assert index.search(np.zeros((0, index.dimension), dtype=np.float32), 3).ids == []


def test_rows_with_one_vector_stand_in_the_order_of_their_ids(adapter: Adapter) -> None:
    same: Rows = {f"twin={number:02d}": 0 for number in range(40)}
    index, _ = adapter.update({**dict(reversed(same.items())), **{f"e{number}": 0 for number in range(20)}})
    found = index.search(vector_of("twin", 0)[None, :], 7).ids[0]
    assert found == sorted(same)[:7]


def test_questions_that_make_no_sense_are_refused(adapter: Adapter) -> None:
    index, _ = adapter.update({"a": 0, "b": 0})
    with pytest.raises(ValueError, match="k must be"):
        index.search(QUERIES, 0)
    with pytest.raises(ValueError, match="queries have shape"):
        index.search(QUERIES[:, :3], 1)
    with pytest.raises(ValueError, match="queries have shape"):
        index.search(QUERIES[0], 1)
