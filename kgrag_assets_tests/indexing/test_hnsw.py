"""The index against brute force, whatever was added, changed and removed before."""

from __future__ import annotations

from collections.abc import Callable

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from kgrag_assets.indexing.hnsw import HnswIndex
from kgrag_assets.indexing.recall import recall_at_k
from kgrag_assets.indexing.update import UpdatedIndex, update_index
from kgrag_assets.settings import IndexSettings

DIMENSION = 8
MODEL = "model@1"
WIDE = IndexSettings(hnsw_m=16, ef_construction=100, ef_search=512)
# The same with a graph from the first row on.
GRAPH = WIDE.model_copy(update={"exact_below": 0, "storage": "full"})


def vector_of(entry: str, version: int, dimension: int = DIMENSION) -> np.ndarray:
    if entry.startswith("e1"):
        entry = "e1"  # e1, e10 to e19: rows of one vector
    seed = int.from_bytes(f"{entry}/{version}".encode(), "little") % (2**63)
    drawn = np.random.default_rng(seed).normal(size=dimension).astype(np.float32)
    return drawn / np.linalg.norm(drawn)


def table_of(rows: dict[str, int], dimension: int = DIMENSION) -> tuple[list[str], list[str], np.ndarray]:
    ids = list(rows)
    keys = [f"{entry}#{rows[entry]}" for entry in ids]
    vectors = [vector_of(entry, rows[entry], dimension) for entry in ids]
    return ids, keys, np.array(vectors, dtype=np.float32).reshape(len(ids), dimension)


def updated(previous: HnswIndex | None, rows: dict[str, int], options: IndexSettings = WIDE) -> UpdatedIndex:
    ids, keys, vectors = table_of(rows)
    return update_index(previous, ids, keys, vectors, options, model_id=MODEL)


def exact(rows: dict[str, int], query: np.ndarray, k: int) -> list[str]:
    ids, _, vectors = table_of(rows)
    scores = vectors @ query if ids else np.zeros(0)
    return sorted(ids, key=lambda entry: (-round(float(scores[ids.index(entry)]), 5), entry))[:k]


def vector_name(entry: str, rows: dict[str, int]) -> bytes:
    return vector_of(entry, rows[entry]).tobytes()


states = st.lists(st.dictionaries(st.integers(0, 25), st.integers(0, 2), max_size=20), min_size=1, max_size=5)


@pytest.mark.parametrize("exact_below", [0, 10, 1000])
def test_any_sequence_of_updates_answers_like_brute_force(exact_below: int) -> None:
    @settings(max_examples=60, deadline=None)
    @given(states, st.integers(1, 30), st.sampled_from([0.05, 0.5, 1.0]))
    def check(sequence: list[dict[int, int]], k: int, share: float) -> None:
        index: HnswIndex | None = None
        before: dict[str, int] = {}
        options = WIDE.model_copy(update={"rebuild_share": share, "exact_below": exact_below})
        for state in sequence:
            rows = {f"e{number}": version for number, version in state.items()}
            result = updated(index, rows, options)
            report, index = result.report, result.index
            assert report.added == len(rows.keys() - before.keys())
            assert report.removed == len(before.keys() - rows.keys())
            assert report.changed == sum(1 for entry in rows if entry in before and before[entry] != rows[entry])
            assert report.kept == sum(1 for entry in rows if entry in before and before[entry] == rows[entry])
            assert index.size == len(rows)
            for query in np.array([vector_of("query", number) for number in range(3)]):
                hits = index.search(query[None, :], k)
                found = hits.ids[0]
                assert len(found) == len(set(found)) == min(k, len(rows))
                expected = exact(rows, query, k)
                assert [vector_name(entry, rows) for entry in found] == [vector_name(entry, rows) for entry in expected]
                scores = [score for _, score in hits.of(0)]
                assert scores == sorted(scores, reverse=True)
                assert np.isnan(hits.scores[0, len(found) :]).all()
            before = rows

    check()


def test_nothing_changed_is_the_same_object() -> None:
    rows = {f"e{number}": 0 for number in range(5)}
    first = updated(None, rows).index
    again = updated(first, dict(reversed(rows.items())))
    assert again.index is first
    assert not again.changed
    assert not again.report.rebuilt
    assert again.report.kept == 5


def test_an_edit_is_dead_in_the_base_and_alive_in_the_delta_until_the_share_is_reached() -> None:
    rows = {f"e{number}": 0 for number in range(20)}
    first = updated(None, rows, GRAPH).index
    second = updated(first, {**rows, "e3": 1}, GRAPH)
    assert not second.report.rebuilt
    assert second.index.base is first.base
    assert not second.index.alive[second.index.base_rows.ids.to_pylist().index("e3")]
    assert second.index.delta_rows.ids.to_pylist() == ["e3"]
    undone = updated(second.index, rows, GRAPH)
    assert undone.index.alive.all()
    assert len(undone.index.delta_rows) == 0
    assert undone.index.data_version == first.data_version
    many = updated(second.index, {**rows, "e3": 1, "e4": 1, "e5": 1}, GRAPH)
    assert many.report.rebuilt
    assert many.index.alive.all()
    assert len(many.index.delta_rows) == 0


@pytest.mark.parametrize(
    ("option", "value", "rebuilt"),
    [("hnsw_m", 8, True), ("ef_construction", 50, True), ("storage", "sq8", True), ("ef_search", 64, False)],
)
def test_only_parameters_of_the_graph_rebuild_it(option: str, value: object, rebuilt: bool) -> None:
    rows = {f"e{number}": 0 for number in range(20)}
    first = updated(None, rows, GRAPH).index
    second = updated(first, rows, GRAPH.model_copy(update={option: value}))
    assert second.changed
    assert second.report.rebuilt is rebuilt
    assert second.index is not first
    assert second.index.data_version != first.data_version


class Asked:
    """Gives vectors by row number, and remembers which rows it was asked for."""

    def __init__(self, vectors: np.ndarray) -> None:
        self.vectors = vectors
        self.rows: list[int] = []

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        self.rows.extend(rows.tolist())
        return self.vectors[rows]


def test_vectors_are_asked_for_where_they_are_new_only() -> None:
    rows = {f"e{number}": 0 for number in range(30)}
    ids, keys, vectors = table_of(rows)
    built = update_index(None, ids, keys, Asked(vectors), GRAPH, model_id=MODEL).index
    assert built.search(vectors, 7).ids == updated(None, rows, GRAPH).index.search(vectors, 7).ids
    nothing = Asked(vectors)
    assert update_index(built, ids, keys, nothing, GRAPH, model_id=MODEL).index is built
    assert nothing.rows == []
    later = {**{entry: version for entry, version in rows.items() if entry != "e9"}, "e4": 1, "new": 0}
    ids, keys, vectors = table_of(later)
    some = Asked(vectors)
    second = update_index(built, ids, keys, some, GRAPH, model_id=MODEL).index
    assert [ids[row] for row in some.rows] == ["e4", "new"]
    # What stands in the delta already is not asked for again.
    third = {**later, "e5": 1}
    ids, keys, vectors = table_of(third)
    one = Asked(vectors)
    last = update_index(second, ids, keys, one, GRAPH, model_id=MODEL).index
    assert [ids[row] for row in one.rows] == ["e5"]
    assert last.search(vectors, 9).ids == updated(None, third, GRAPH).index.search(vectors, 9).ids


def test_a_build_tells_how_far_it_is_and_may_use_two_threads() -> None:
    rng = np.random.default_rng(2)
    vectors = rng.normal(size=(35_000, 4)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    ids = [f"e{number:05d}" for number in range(35_000)]
    told: list[tuple[str, int]] = []

    def start(total: int) -> Callable[[int], None]:
        told.append(("total", total))
        return lambda rows: told.append(("rows", rows))

    options = IndexSettings(hnsw_m=4, ef_construction=20, ef_search=64)
    index = update_index(None, ids, ids, vectors, options, model_id=MODEL, threads=2, start_progress=start).index
    assert told == [("total", 35_000), ("rows", 32_768), ("rows", 2_232)]
    assert recall_at_k(index, vectors, ids, sample=50) > 0.9


def test_another_model_starts_anew() -> None:
    rows = {f"e{number}": 0 for number in range(5)}
    first = updated(None, rows).index
    ids, keys, vectors = table_of(rows, dimension=4)
    second = update_index(first, ids, [f"{key}+" for key in keys], vectors, WIDE, model_id="other@1")
    assert second.report.rebuilt
    assert second.index.model_id == "other@1"
    assert second.index.dimension == 4
    assert second.report.changed == 5


def test_a_large_index_recalls_through_updates_and_building_is_deterministic() -> None:
    rng = np.random.default_rng(5)
    centres = rng.normal(size=(60, 32))
    vectors = (centres[rng.integers(0, 60, 4000)] + rng.normal(size=(4000, 32))).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    ids = [f"e{number:05d}" for number in range(4000)]
    options = IndexSettings()
    first = update_index(None, ids[:3600], ids[:3600], vectors[:3600], options, model_id=MODEL).index
    again = update_index(None, ids[:3600][::-1], ids[:3600][::-1], vectors[:3600][::-1], options, model_id=MODEL).index
    assert first.base is not None
    queries = vectors[rng.integers(0, 4000, 100)]
    assert first.search(queries, 10).ids == again.search(queries, 10).ids
    second = update_index(first, ids[300:], ids[300:], vectors[300:], options, model_id=MODEL)
    assert not second.report.rebuilt
    gone = set(ids[:300])
    assert not any(gone & set(found) for found in second.index.search(queries, 50).ids)
    assert recall_at_k(second.index, vectors[300:], ids[300:], queries) >= 0.95
    assert recall_at_k(second.index, lambda rows: vectors[300:][rows], ids[300:], queries) >= 0.95
    # Mostly dead: what is left is still found.
    few = second.index.restricted_to(ids[1000:1040])
    assert few.size == 40
    assert recall_at_k(few, vectors[1000:1040], ids[1000:1040], queries) == 1.0


def test_many_equal_vectors_do_not_hide_the_others() -> None:
    rng = np.random.default_rng(3)
    different = rng.normal(size=(60, 32))
    vectors = different[np.arange(3000) % 60].astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    ids = [f"e{number:05d}" for number in range(3000)]
    index = update_index(None, ids, ids, vectors, IndexSettings(), model_id=MODEL).index
    assert index.base.ntotal == 60
    queries = vectors[:60] + 0.1 * rng.normal(size=(60, 32)).astype(np.float32)
    queries /= np.linalg.norm(queries, axis=1, keepdims=True)
    assert recall_at_k(index, vectors, ids, queries, k=200) == 1.0
    without = update_index(index, ids[1:], ids[1:], vectors[1:], IndexSettings(), model_id=MODEL).index
    assert ids[0] not in without.search(vectors[:1], 60).ids[0]
    assert len(without.search(vectors[:1], 60).ids[0]) == 60


def test_a_walk_that_comes_back_short_is_made_good_by_a_scan(monkeypatch: pytest.MonkeyPatch) -> None:
    ids, keys, vectors = table_of({f"x{number}": 0 for number in range(200)})
    index = update_index(None, ids, keys, vectors, GRAPH, model_id=MODEL).index
    walked = index.base.search

    def short(queries: np.ndarray, k: int, params: object) -> tuple[np.ndarray, np.ndarray]:
        similarity, nodes = walked(queries, k, params=params)
        nodes[::2, 3:] = -1
        return similarity, nodes

    expected = index.search_exact(vectors[:9], 5).ids
    monkeypatch.setattr(index.base, "search", short)
    assert index.search(vectors[:9], 5).ids == expected
    few = index.restricted_to(ids[:150])
    assert few.search(vectors[:9], 5).ids == few.search_exact(vectors[:9], 5).ids


@pytest.mark.parametrize("storage", ["full", "fp16", "sq8"])
@pytest.mark.parametrize("chosen", [90, 500, 999])
def test_a_scan_of_some_rows_is_the_same_for_one_query_and_for_many(storage: str, chosen: int) -> None:
    ids, keys, vectors = table_of({f"x{number:04d}": 0 for number in range(1000)})
    options = GRAPH.model_copy(update={"storage": storage})
    index = update_index(None, ids, keys, vectors, options, model_id=MODEL).index.restricted_to(ids[-chosen:])
    queries = np.array([vector_of("query", number) for number in range(20)])
    many = index.search_exact(queries, 7)
    singly = [index.search_exact(query[None, :], 7) for query in queries]
    assert many.ids == [one.ids[0] for one in singly]
    assert np.allclose(many.scores, np.concatenate([one.scores for one in singly]), atol=1e-5)
    assert recall_at_k(index, vectors[-chosen:], ids[-chosen:], queries, k=7) > (0.9 if storage == "sq8" else 0.99)


def test_recall_counts_what_is_not_found() -> None:
    ids, keys, vectors = table_of({f"e{number}": 0 for number in range(40)})
    half = update_index(None, ids[::2], keys[::2], vectors[::2], WIDE, model_id=MODEL).index
    assert recall_at_k(half, vectors, ids, vectors, k=10) < 0.8
    whole = update_index(None, ids, keys, vectors, WIDE, model_id=MODEL).index
    assert recall_at_k(whole, vectors, ids, vectors, k=100) == 1.0
    with pytest.raises(ValueError, match="at least one query"):
        recall_at_k(whole, vectors, ids, vectors[:0])


def test_restricted_view_finds_only_its_ids_and_has_its_own_version() -> None:
    rows = {f"e{number}": 0 for number in range(10)}
    index = updated(None, rows).index
    view = index.restricted_to(["e1", "e2", "unknown"])
    with pytest.raises(ValueError, match="cannot be updated"):
        updated(view, rows)
    assert sorted(view.search(vector_of("query", 0)[None, :], 5).ids[0]) == ["e1", "e2"]
    assert view.data_version != index.data_version
    assert index.restricted_to(rows) is index
    assert index.restricted_to(["e2", "e1"]).data_version == view.data_version


def test_bad_rows_and_queries_are_refused() -> None:
    ids, keys, vectors = table_of({"a": 0, "b": 0})
    with pytest.raises(ValueError, match="'a' stands twice"):
        update_index(None, ["a", "a"], keys, vectors, WIDE, model_id=MODEL)
    with pytest.raises(ValueError, match="do not go with"):
        update_index(None, ids, keys, vectors[:1], WIDE, model_id=MODEL)
    broken = vectors.copy()
    broken[1, 0] = np.nan
    with pytest.raises(ValueError, match="vector of 'b' is not finite"):
        update_index(None, ids, keys, broken, WIDE, model_id=MODEL)
    index = update_index(None, ids, keys, vectors, WIDE, model_id=MODEL).index
    with pytest.raises(ValueError, match="k must be"):
        index.search(vectors, 0)
    with pytest.raises(ValueError, match="queries have shape"):
        index.search(vectors[:, :3], 1)
