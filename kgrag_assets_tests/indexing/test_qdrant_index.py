"""What is the served index's own: what goes over the wire, what a broken update leaves, what refusals say."""

from __future__ import annotations

import socket
from pathlib import Path

import numpy as np
import pytest
from qdrant_client import models

from kgrag_assets.indexing.qdrant_collection import SENT
from kgrag_assets.indexing.qdrant_index import QdrantIndex
from kgrag_assets.indexing.qdrant_server import IndexServerError, QdrantPlace
from kgrag_assets_tests.indexing.qdrant_over_http import serving
from kgrag_assets_tests.indexing.test_index_contract import DIMENSION, MODEL, QUERIES, Rows, table_of

NAME = "entities"
KEY = "a-secret-that-nobody-may-see"


def prepared(place: QdrantPlace, **options: object) -> QdrantIndex:
    return QdrantIndex.prepare(place, NAME, **{"model_id": MODEL, "dimension": DIMENSION, **options})  # type: ignore[arg-type]


def rows_of(count: int) -> Rows:
    return {f"e{number:04d}": 0 for number in range(count)}


def test_only_the_difference_is_sent() -> None:
    with serving() as server:
        place = QdrantPlace(server.url)
        rows = rows_of(SENT + 20)
        ids, keys, vectors = table_of(rows)
        told: list[int] = []
        first, _ = prepared(place).bring_up_to_date(ids, keys, vectors, lambda _total: told.append)
        assert told == [SENT, 20]
        assert [len(body["batch"]["ids"]) for body in server.sent("PUT", "/points")] == [SENT, 20]
        server.requests.clear()
        again, _ = prepared(place).bring_up_to_date(ids, keys, lambda _rows: pytest.fail("nothing is new"))
        assert again.data_version == first.data_version
        assert {path.rpartition("/")[2] for _, path, _ in server.requests} == {"exists", NAME, "count"}
        server.requests.clear()
        del rows["e0005"]
        later = {**rows, "e0001": 1, "new": 0}
        ids, keys, vectors = table_of(later)
        asked: list[str] = []

        def read(numbers: np.ndarray) -> np.ndarray:
            asked.extend(ids[number] for number in numbers)
            return vectors[numbers]

        _, report = prepared(place).bring_up_to_date(ids, keys, read)
        assert (report.added, report.changed, report.removed, report.kept) == (1, 1, 1, SENT + 18)
        assert sorted(asked) == ["e0001", "new"]
        (sent,) = server.sent("PUT", "/points")
        assert [payload["id"] for payload in sent["batch"]["payloads"]] == ["e0001", "new"]
        (deleted,) = server.sent("POST", "/points/delete")
        assert len(deleted["points"]) == 1


def test_a_broken_update_is_not_taken_for_complete_and_goes_on() -> None:
    with serving() as server:
        place = QdrantPlace(server.url)
        table = table_of(rows_of(SENT + 20))
        index = prepared(place)
        server.healthy = 3  # listed, noted, and one batch sent
        with pytest.raises(IndexServerError, match="503"):
            index.bring_up_to_date(*table)
        server.healthy = None
        assert server.engine.count(NAME).count == SENT
        with pytest.raises(IndexServerError, match="not brought up to date to the end"):
            QdrantIndex.open(place, NAME, model_id=MODEL)
        server.requests.clear()
        _, report = prepared(place).bring_up_to_date(*table)
        assert (report.kept, report.added) == (SENT, 20)
        assert QdrantIndex.open(place, NAME, model_id=MODEL).size == SENT + 20


def test_another_model_another_length_and_foreign_points_are_refused() -> None:
    with serving() as server:
        place = QdrantPlace(server.url)
        prepared(place).bring_up_to_date(*table_of(rows_of(3)))
        with pytest.raises(IndexServerError, match=r"of the model model@1, not of other@1.*another collection"):
            QdrantIndex.open(place, NAME, model_id="other@1")
        with pytest.raises(IndexServerError, match=r"of the model model@1, not of other@1"):
            prepared(place, model_id="other@1")
        with pytest.raises(IndexServerError, match="length 16, not 4"):
            prepared(place, dimension=4)
        with pytest.raises(ValueError, match="length 4, the collection takes 16"):
            prepared(place).bring_up_to_date(["a"], ["a"], np.ones((1, 4), dtype=np.float32))
        with pytest.raises(ValueError, match="length 4, the collection takes 16"):
            prepared(place).bring_up_to_date(["a"], ["a"], lambda rows: np.ones((len(rows), 4), dtype=np.float32))
        foreign = models.PointStruct(id=7, vector=[0.0] * DIMENSION, payload={"id": "x"})
        server.engine.upsert(NAME, [foreign])
        with pytest.raises(IndexServerError, match="the point 7, which is none of this product's"):
            prepared(place).bring_up_to_date(*table_of(rows_of(4)))
        server.engine.create_collection(
            "theirs", vectors_config=models.VectorParams(size=DIMENSION, distance=models.Distance.DOT)
        )
        with pytest.raises(IndexServerError, match="was not made by this version"):
            QdrantIndex.open(place, "theirs", model_id=MODEL)
        with pytest.raises(IndexServerError, match="has no collection 'nowhere'"):
            QdrantIndex.open(place, "nowhere", model_id=MODEL)


def test_views_and_bad_rows_are_refused() -> None:
    index, _ = prepared(QdrantPlace(":memory:")).bring_up_to_date(*table_of(rows_of(5)))
    ids, keys, vectors = table_of(rows_of(2))
    with pytest.raises(ValueError, match="cannot be updated"):
        index.restricted_to(["e0001"]).bring_up_to_date(ids, keys, vectors)
    with pytest.raises(ValueError, match="stands twice"):
        index.bring_up_to_date(["a", "a"], keys, vectors)
    broken = vectors.copy()
    broken[1, 2] = np.inf
    with pytest.raises(ValueError, match="vector of 'e0001' is not finite"):
        index.bring_up_to_date(ids, ["x", "y"], broken)


def test_the_key_is_sent_and_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(KEY) as server:
        place = QdrantPlace(server.url, api_key_env="SOME_KEY")
        monkeypatch.setenv("SOME_KEY", KEY)
        with pytest.warns(UserWarning, match="insecure connection"):
            index = prepared(place)
        index.bring_up_to_date(*table_of(rows_of(3)))
        assert KEY not in repr(index)
        monkeypatch.setenv("SOME_KEY", KEY + "x")
        with (
            pytest.warns(UserWarning, match="insecure connection"),
            pytest.raises(IndexServerError, match=r"refuses the key: set the environment variable SOME_KEY") as refused,
        ):
            QdrantIndex.open(place, NAME, model_id=MODEL)
        assert KEY not in str(refused.value)
        assert refused.value.__cause__ is None


def test_a_server_that_is_away_is_named_without_its_password() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        place = QdrantPlace(f"http://user:{KEY}@127.0.0.1:{port}")
        with pytest.raises(
            IndexServerError, match=rf"http://127.0.0.1:{port} cannot be reached .*check that it"
        ) as away:
            QdrantIndex.open(place, NAME, model_id=MODEL)
    assert KEY not in str(away.value)
    with pytest.raises(IndexServerError, match="HOST:PORT") as wrong:
        QdrantIndex.open(QdrantPlace(f"http://user:{KEY}@host:port"), NAME, model_id=MODEL)
    assert KEY not in str(wrong.value)


def test_a_server_that_breaks_down_while_it_is_asked_is_named() -> None:
    with serving() as server:
        index, _ = prepared(QdrantPlace(server.url)).bring_up_to_date(*table_of(rows_of(3)))
        server.healthy = 0
        with pytest.raises(IndexServerError, match=r"answered 503 .* while searching"):
            index.search(QUERIES, 2)


def test_the_server_is_told_how_far_to_look() -> None:
    with serving() as server:
        place = QdrantPlace(server.url)
        prepared(place).bring_up_to_date(*table_of(rows_of(30)))
        index = QdrantIndex.open(place, NAME, model_id=MODEL, search_effort=77, exact=True)
        assert index.data_version != QdrantIndex.open(place, NAME, model_id=MODEL).data_version
        server.requests.clear()
        index.search(QUERIES, 2)
        (body,) = server.sent("POST", "/points/query/batch")
        assert {(asked["params"]["hnsw_ef"], asked["params"]["exact"]) for asked in body["searches"]} == {(77, True)}


def test_a_folder_keeps_its_rows_and_belongs_to_one_process(tmp_path: Path) -> None:
    place = QdrantPlace(str(tmp_path / "qdrant"))
    index, _ = prepared(place).bring_up_to_date(*table_of(rows_of(8)))
    with pytest.raises(IndexServerError, match="another process uses"):
        prepared(place)
    answers = index.search(QUERIES, 3).ids
    index.collection.client.close()
    opened = QdrantIndex.open(place, NAME, model_id=MODEL)
    assert opened.search(QUERIES, 3).ids == answers
    assert opened.data_version == index.data_version
    opened.collection.client.close()
