"""Two stages against brute force: candidates of a rough index, the full model's cosines, the memory of vectors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import hypothesis.strategies as st
import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings

from kgrag_assets.indexing.port import Hits, VectorIndex
from kgrag_assets.indexing.rescoring import FullVectors, TwoStageIndex, texts_in
from kgrag_assets.indexing.update import update_index
from kgrag_assets.models.embedders import EmbedProgress
from kgrag_assets.models.errors import EmbeddingError
from kgrag_assets.settings import IndexSettings

DIMENSION = 6


class TextVectors:
    """An embedder whose vectors follow from the text alone, and that notes what it was asked."""

    model_id, dimension = "full@1", DIMENSION

    def __init__(self) -> None:
        self.asked: list[str] = []

    def embed(self, texts: Sequence[str], progress: EmbedProgress | None = None) -> np.ndarray:
        self.asked.extend(texts)
        if progress is not None:
            progress(len(texts))
        return np.array([vector_of(text) for text in texts], dtype=np.float32).reshape(len(texts), DIMENSION)


def vector_of(text: str) -> np.ndarray:
    drawn = np.random.default_rng(list(text.encode())).normal(size=DIMENSION)
    return np.asarray(drawn / np.linalg.norm(drawn), dtype=np.float32)


def rough(text: str, noise: float) -> np.ndarray:
    moved = vector_of(text) + noise * vector_of(f"noise of {text}")
    return np.asarray(moved / np.linalg.norm(moved), dtype=np.float32)


@dataclass(frozen=True)
class ExactIndex:
    """A first stage by brute force."""

    rows: dict[str, np.ndarray]
    model_id: str = "rough@1"
    dimension: int = DIMENSION

    @property
    def size(self) -> int:
        return len(self.rows)

    @property
    def data_version(self) -> str:
        return "/".join(sorted(self.rows))

    def search(self, queries: np.ndarray, k: int) -> Hits:
        ids = sorted(self.rows)
        similarity = queries @ np.array([self.rows[entry] for entry in ids]).T
        places = np.argsort(-similarity, axis=1, kind="stable")[:, :k]
        scores = np.full((len(queries), k), np.nan, dtype=np.float32)
        scores[:, : places.shape[1]] = np.take_along_axis(similarity, places, axis=1)
        return Hits([[ids[place] for place in row] for row in places], scores)

    def restricted_to(self, ids: Iterable[str]) -> ExactIndex:
        wanted = set(ids)
        return ExactIndex({entry: row for entry, row in self.rows.items() if entry in wanted})


def text_of(entry: str) -> str:
    # e1 and e10 to e19 have one text.
    return "text of e1" if entry.startswith("e1") else f"text of {entry}"


def texts_of(ids: Sequence[str]) -> list[str | None]:
    return [text_of(entry) for entry in ids]


def two_stages(ids: Iterable[str], wide: int, noise: float = 0.5, limit: int = 1000) -> TwoStageIndex:
    first = ExactIndex({entry: rough(text_of(entry), noise) for entry in ids})
    return TwoStageIndex(first, FullVectors(TextVectors(), limit), texts_of, "full@1", wide)


def asked_of(index: TwoStageIndex) -> list[str]:
    embedder = index.full._embedder
    assert isinstance(embedder, TextVectors)
    return embedder.asked


def best_of(ids: Iterable[str], query: np.ndarray, k: int) -> list[tuple[str, float]]:
    scored = [(entry, float(vector_of(text_of(entry)) @ query)) for entry in ids]
    return sorted(scored, key=lambda hit: (-round(hit[1], 5), hit[0]))[:k]


IDS = [f"e{number}" for number in range(40)]
QUERIES = np.array([vector_of(f"query {number}") for number in range(5)])


@settings(max_examples=60, deadline=None)
@given(
    st.sets(st.sampled_from(IDS)),
    st.sets(st.sampled_from([*IDS, "unknown"])),
    st.integers(1, 50),
    st.integers(1, 50),
    st.integers(0, 30),
)
def test_it_answers_like_brute_force_among_the_candidates(
    ids: set[str], chosen: set[str], k: int, wide: int, limit: int
) -> None:
    index: VectorIndex = two_stages(ids, wide, limit=limit)
    for view, rows in ((index, ids), (index.restricted_to(chosen), ids & chosen)):
        assert view.size == len(rows)
        hits = view.search(QUERIES, k)
        assert hits.scores.shape == (len(QUERIES), k)
        first = ExactIndex({entry: rough(text_of(entry), 0.5) for entry in rows})
        for row, query in enumerate(QUERIES):
            candidates = first.search(query[None, :], max(k, wide)).ids[0] if rows else []
            expected = best_of(candidates, query, k)
            found_ids = hits.ids[row]
            assert len(set(found_ids)) == len(found_ids) == min(k, len(rows))
            assert set(found_ids) <= set(candidates)
            # Rows as near as one another to the last digits may stand in either order.
            exact = [float(vector_of(text_of(entry)) @ query) for entry in found_ids]
            np.testing.assert_allclose(exact, [score for _, score in expected], atol=2e-5)
            found = hits.scores[row, : len(expected)]
            np.testing.assert_allclose(found, exact, atol=1e-5)
            assert np.isnan(hits.scores[row, len(expected) :]).all()


def test_a_wide_first_stage_finds_what_the_full_model_would() -> None:
    query = QUERIES[:1]
    true = [entry for entry, _ in best_of(IDS, query[0], 5)]
    narrow = two_stages(IDS, wide=5, noise=1.0).search(query, 5).ids[0]
    assert narrow != true  # the first stage by itself is not good enough
    assert two_stages(IDS, wide=40, noise=1.0).search(query, 5).ids[0] == true


def test_a_real_index_is_the_first_stage() -> None:
    vectors = np.array([rough(text_of(entry), 0.2) for entry in IDS])
    options = IndexSettings(ef_construction=40, exact_below=0)
    first = update_index(None, IDS, IDS, vectors, options, model_id="rough@1").index
    index = TwoStageIndex(first, FullVectors(TextVectors()), texts_of, "full@1", wide=40)
    for row, query in enumerate(QUERIES):
        assert index.search(QUERIES, 7).ids[row] == [entry for entry, _ in best_of(IDS, query, 7)]
    part = index.restricted_to(IDS[::3])
    assert part.search(QUERIES[:1], 99).ids[0] == [entry for entry, _ in best_of(IDS[::3], QUERIES[0], 99)]
    assert len({index.data_version, part.data_version}) == 2


def test_repeated_questions_embed_nothing() -> None:
    index = two_stages(IDS, wide=10)
    first = index.search(QUERIES, 5)
    asked = list(asked_of(index))
    assert len(asked) == len(set(asked))  # several candidates of one text, one embedding
    again = index.search(QUERIES, 5)
    assert again.ids == first.ids
    assert np.array_equal(again.scores, first.scores, equal_nan=True)
    # A view and the whole share the memory.
    index.restricted_to([hit for ids in first.ids for hit in ids]).search(QUERIES, 5)
    assert asked_of(index) == asked
    assert index.full.embedded == len(asked)


def test_rows_without_a_text_are_left_out() -> None:
    table = pl.DataFrame({"entity_id": IDS[:10], "text": [text_of(entry) for entry in IDS[:10]]})
    rows = {entry: rough(text_of(entry), 0.1) for entry in IDS[:20]}
    index = TwoStageIndex(ExactIndex(rows), FullVectors(TextVectors()), texts_in(table, "entity_id"), "full@1", 20)
    hits = index.search(QUERIES, 15)
    for row, query in enumerate(QUERIES):
        assert hits.ids[row] == [entry for entry, _ in best_of(IDS[:10], query, 15)]
        assert np.isnan(hits.scores[row, 10:]).all()


def test_texts_are_looked_up_in_the_order_asked() -> None:
    table = pl.DataFrame({"triple_id": ["b", "a", "'; drop"], "text": ["of b", "of a", "odd"]})
    assert texts_in(table, "triple_id")(["a", "x", "'; drop", "a"]) == ["of a", None, "odd", "of a"]
    assert texts_in(table, "triple_id")([]) == []


def test_what_does_not_go_together_is_refused() -> None:
    first, full = ExactIndex({"a": rough("a", 0.1)}), FullVectors(TextVectors())
    with pytest.raises(ValueError, match="fitted to no model"):
        TwoStageIndex(first, full, texts_of, None)
    with pytest.raises(ValueError, match="fitted to other@1"):
        TwoStageIndex(first, full, texts_of, "other@1")
    with pytest.raises(ValueError, match="embed the graph again"):
        TwoStageIndex(ExactIndex(first.rows, dimension=DIMENSION + 1), full, texts_of, "full@1")
    with pytest.raises(ValueError, match="wide must be at least 1"):
        TwoStageIndex(first, full, texts_of, "full@1", 0)
    with pytest.raises(ValueError, match="cannot hold -1 texts"):
        FullVectors(TextVectors(), -1)
    index = TwoStageIndex(first, full, texts_of, "full@1")
    with pytest.raises(ValueError, match="k must be at least 1"):
        index.search(QUERIES, 0)
    with pytest.raises(ValueError, match="queries have shape"):
        index.search(QUERIES[:, :-1], 1)
    assert index.search(QUERIES[:0], 3).ids == []
    assert (index.model_id, index.dimension) == ("full@1", DIMENSION)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.lists(st.sampled_from("abcdefgh"), max_size=10), max_size=8), st.integers(0, 6))
def test_the_memory_is_bounded_and_never_wrong(calls: list[list[str]], limit: int) -> None:
    full = FullVectors(TextVectors(), limit)
    recent: list[str] = []
    for texts in calls:
        known = set(recent[-limit:] if limit else [])
        before = full.embedded
        vectors = full.of(texts)
        assert vectors.shape == (len(texts), DIMENSION)
        assert all(np.array_equal(vector, vector_of(text)) for vector, text in zip(vectors, texts, strict=True))
        assert full.embedded - before == len(set(texts) - known)
        assert len(full) <= limit
        # Known texts of a call are touched before its new ones.
        touched = [text for text in dict.fromkeys(texts) if text in known]
        touched += [text for text in dict.fromkeys(texts) if text not in known]
        recent = [text for text in recent if text not in touched] + touched


def test_what_was_asked_last_is_forgotten_last() -> None:
    full = FullVectors(TextVectors(), limit=2)
    for texts in (["a"], ["b"], ["a"], ["c"]):
        full.of(texts)
    before = full.embedded
    full.of(["a"])
    assert full.embedded == before
    full.of(["b"])
    assert full.embedded == before + 1


def test_a_warm_memory_asks_nothing(tmp_path: Path) -> None:
    full = FullVectors(TextVectors())
    texts = [f"text {number}" for number in range(10)]
    full.warm(texts, np.array([vector_of(text) for text in texts]))
    assert full.of(texts).shape == (10, DIMENSION)
    assert full.embedded == 0
    full.save(tmp_path / "vectors.parquet")
    other = FullVectors(TextVectors(), limit=4)
    assert other.load(tmp_path / "vectors.parquet") == 4
    assert np.array_equal(other.of(texts[6:]), [vector_of(text) for text in texts[6:]])
    assert other.embedded == 0
    with pytest.raises(ValueError, match="do not go with 10 texts"):
        full.warm(texts, np.zeros((9, DIMENSION), dtype=np.float32))


def test_a_memory_of_another_model_or_a_damaged_one_is_an_empty_one(tmp_path: Path) -> None:
    saved = tmp_path / "vectors.parquet"
    full = FullVectors(TextVectors())
    assert full.load(saved) == 0
    full.of(["a", "b"])
    full.save(saved)

    class Other(TextVectors):
        model_id = "full@2"

    assert FullVectors(Other()).load(saved) == 0
    saved.write_bytes(saved.read_bytes()[:100])
    assert full.load(saved) == 0
    pl.DataFrame({"text": ["a"]}).write_parquet(saved)
    assert full.load(saved) == 0
    FullVectors(TextVectors()).save(saved)
    assert full.load(saved) == 0


def test_a_failing_model_leaves_the_memory_as_it_was() -> None:
    class Failing(TextVectors):
        def embed(self, texts: Sequence[str], progress: EmbedProgress | None = None) -> np.ndarray:
            if "bad" in texts:
                raise EmbeddingError("the model gave NaN")
            return super().embed(texts, progress)

    full = FullVectors(Failing())
    full.of(["a"])
    with pytest.raises(EmbeddingError):
        full.of(["b", "bad"])
    assert (len(full), full.embedded) == (1, 1)
