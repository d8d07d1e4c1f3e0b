"""What is proposed, against trying every way to choose; and how judged pairs are scored."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgrag_assets.mapping.cardinality import NEAR_BEST, propose
from kgrag_assets.mapping.scoring import ScoredPair, score_pairs
from kgrag_assets.settings import MappingSettings

SOURCES, TARGETS = ("a1", "a2", "b1", "b2"), ("x1", "x2", "y1")
Name = tuple[str, str]


def pair(
    source: str,
    target: str,
    judge_score: float | None = 0.7,
    *,
    judge: str = "offline",
    answer: bool = True,
    rank: int = 1,
    score: float = 0.0,
) -> ScoredPair:
    silent = judge_score is None
    return ScoredPair(
        pair_id=f"{source}-{target}",
        judged_pair_id=f"{source}-{target}",
        source_id=source,
        target_id=target,
        source_name=("table", source),
        target_name=("table", target),
        blocking_score=1.0 / rank,
        blocking_rank=rank,
        judge=judge,
        parse_status="timeout" if silent else "parsed",
        answer=None if silent else answer,
        judge_score=judge_score,
        judge_reason="",
        top_fact="",
        score=score,
    )


def options(cardinality: str, min_score: float) -> MappingSettings:
    return MappingSettings.model_validate({"cardinality": cardinality, "min_score": min_score})


def best_first(pairs: list[ScoredPair]) -> list[ScoredPair]:
    return sorted(pairs, key=lambda item: -item.score)


scored = st.dictionaries(
    st.tuples(st.sampled_from(SOURCES), st.sampled_from(TARGETS)),
    st.sampled_from([0.0, 0.3, 0.5, 0.55, 0.57, 0.65, 0.8, 1.0]),
    max_size=12,
)
judged = st.dictionaries(
    st.tuples(st.sampled_from(SOURCES), st.sampled_from(TARGETS)),
    st.tuples(st.none() | st.floats(0, 1), st.sampled_from(["offline", "openai"]), st.booleans()),
    max_size=12,
).map(
    lambda found: [
        pair(source, target, score, judge=judge, answer=answer, rank=rank)
        for rank, ((source, target), (score, judge, answer)) in enumerate(found.items(), start=1)
    ]
)


def best_sum(scores: dict[Name, float], min_score: float) -> float:
    """Largest sum above ``min_score``: every way to give each source one target or none is tried."""
    best = 0.0
    for chosen in product((None, *TARGETS), repeat=len(SOURCES)):
        pairs = [(source, target) for source, target in zip(SOURCES, chosen, strict=True) if target is not None]
        once = len({target for _, target in pairs}) == len(pairs)
        if once and all(scores.get(name, -1.0) >= min_score for name in pairs):
            best = max(best, sum(scores[name] - min_score for name in pairs))
    return best


@given(scored, st.sampled_from([0.0, 0.5]))
def test_one_to_one_is_the_best_of_all_assignments(scores: dict[Name, float], min_score: float) -> None:
    pairs = best_first([pair(*name, score=score) for name, score in scores.items()])
    proposed = propose(pairs, options("1:1", min_score))
    chosen = [item for item in pairs if item.pair_id in proposed]
    assert len({item.source_id for item in chosen}) == len(chosen) == len({item.target_id for item in chosen})
    assert all(item.score >= min_score for item in chosen)
    assert sum(item.score - min_score for item in chosen) == pytest.approx(best_sum(scores, min_score), abs=1e-4)


def test_one_to_one_gives_up_a_best_pair_for_a_larger_sum_and_leaves_a_source_alone() -> None:
    scores = {("a1", "x1"): 0.9, ("a1", "x2"): 0.8, ("a2", "x1"): 0.85, ("b1", "x1"): 0.6}
    pairs = [pair(*name, score=score) for name, score in scores.items()]
    assert propose(pairs, options("1:1", 0.5)) == {"a1-x2", "a2-x1"}


def test_one_to_one_proposes_a_pair_at_the_threshold_itself() -> None:
    assert propose([pair("a1", "x1", score=0.5)], options("1:1", 0.5)) == {"a1-x1"}


@given(scored)
def test_n_to_1_is_the_best_of_each_source(scores: dict[Name, float]) -> None:
    pairs = best_first([pair(*name, score=score) for name, score in scores.items()])
    chosen = propose(pairs, options("n:1", 0.5))
    for source in SOURCES:
        mine = [item for item in pairs if item.source_id == source and item.score >= 0.5]
        picked = [item for item in mine if item.pair_id in chosen]
        assert len(picked) == (1 if mine else 0)
        assert all(picked[0].score >= item.score for item in mine)
    assert chosen <= propose(pairs, options("n:m", 0.5))


@given(scored)
def test_n_to_m_is_the_best_and_what_comes_near(scores: dict[Name, float]) -> None:
    expected = {
        f"{source}-{target}"
        for (source, target), score in scores.items()
        if score >= 0.5
        and score >= max(other for (left, _), other in scores.items() if left == source) - NEAR_BEST - 1e-9
    }
    pairs = best_first([pair(*name, score=score) for name, score in scores.items()])
    assert propose(pairs, options("n:m", 0.5)) == expected


@given(judged, st.sampled_from(["1:1", "n:1", "n:m"]), st.sampled_from([0.0, 0.3, 0.5]))
def test_neither_a_models_no_nor_an_unanswered_pair_is_proposed(
    pairs: list[ScoredPair], cardinality: str, min_score: float
) -> None:
    ranked = best_first(score_pairs(pairs, 3))
    chosen = propose(ranked, options(cardinality, min_score))
    for item in ranked:
        if item.pair_id in chosen:
            assert item.judge_score is not None
            assert item.judge == "offline" or item.answer is True
            assert item.score >= min_score


@given(judged, st.integers(1, 20))
def test_scores_lie_in_0_to_1_and_unanswered_pairs_never_above_answered_ones(
    pairs: list[ScoredPair], expected: int
) -> None:
    found = score_pairs(pairs, expected)
    assert [item.pair_id for item in found] == [item.pair_id for item in pairs]
    assert all(0.0 <= item.score <= 1.0 for item in found)
    answered = [item.score for item in found if item.answered]
    silent = [item.score for item in found if not item.answered]
    assert max(silent, default=0.0) <= min(answered, default=0.5)
    for item in found:
        if item.judge != "offline" and item.answered:
            assert (item.score > 0.5) == item.answer


@given(st.floats(0, 1), st.floats(0, 1), st.integers(1, 50), st.integers(1, 50), st.sampled_from(["offline", "openai"]))
def test_a_better_word_or_a_better_place_never_lowers_a_score(
    one: float, other: float, place: int, further: int, judge: str
) -> None:
    low, high = sorted((one, other))
    base = pair("a1", "x1", low, judge=judge, rank=place + further)
    score = score_pairs([base], 10)[0].score
    assert score_pairs([replace(base, judge_score=high)], 10)[0].score >= score
    assert score_pairs([replace(base, blocking_rank=place)], 10)[0].score >= score


def test_nothing_judged() -> None:
    assert score_pairs([], 1) == []
    for cardinality in ("1:1", "n:1", "n:m"):
        assert propose([], options(cardinality, 0.5)) == set()
