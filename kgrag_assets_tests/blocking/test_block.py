"""Which pairs are kept: within the budget, none of the sources forgotten, every pair accounted for."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kgrag_assets.blocking.block import Blocking, block_pairs, rank_rows
from kgrag_assets.rows.candidate_pairs import CANDIDATE_PAIRS
from kgrag_assets.rows.table import TableError
from kgrag_assets.settings import BlockingSettings
from kgrag_assets_tests.matching import attribute, attributes, embeddings, schema

names = st.tuples(st.sampled_from(["pat", "visit", ""]), st.sampled_from(["dob", "sex", "", "___", "id", "Größe"]))
about = st.sampled_from(["", "date of birth", "the"])
sides = st.dictionaries(names, about, max_size=7)


def made(sources: dict[tuple[str, str], str], targets: dict[tuple[str, str], str]) -> pl.DataFrame:
    return attributes(
        [
            attribute(side, *name, column_description=text, table_description=text)
            for side, found in (("source", sources), ("target", targets))
            for name, text in found.items()
        ]
    )


def blocked(frame: pl.DataFrame, **options: float) -> Blocking:
    result = block_pairs(frame, embeddings(frame), BlockingSettings.model_validate(options))
    CANDIDATE_PAIRS.conform(result.pairs)
    return result


@settings(deadline=None, max_examples=60)
@given(
    sides,
    sides,
    st.integers(0, 4),
    st.integers(0, 4),
    st.sampled_from([0.01, 0.1, 0.5, 1.0]),
    st.integers(1, 30),
)
def test_budget_counts_and_candidates(
    sources: dict[tuple[str, str], str],
    targets: dict[tuple[str, str], str],
    k_vector: int,
    k_lexical: int,
    share: float,
    floor: int,
) -> None:
    result = blocked(
        made(sources, targets), k_vector=k_vector, k_lexical=k_lexical, budget_share=share, budget_floor=floor
    )
    pairs, report = result.pairs, result.report
    total = len(sources) * len(targets)
    assert report.total_pairs == total
    assert report.kept == pairs.height
    assert report.kept + report.dropped_not_in_top_k + report.dropped_by_budget == report.group_pairs <= total
    assert min(report.kept, report.dropped_not_in_top_k, report.dropped_by_budget) >= 0
    assert report.budget == min(report.group_pairs, total, max(floor, math.ceil(share * total)))
    # The budget gives way to nothing but one pair of each source.
    groups = result.groups.filter(pl.col("side") == "source")["representative_id"].n_unique()
    assert report.kept <= max(report.budget, groups)
    if targets and report.budget >= groups:
        assert pairs["source_attribute_id"].n_unique() == groups
    assert report.pairs_covered >= report.kept
    assert pairs["pair_id"].is_unique().all()
    assert pairs["blocking_rank"].to_list() == list(range(1, pairs.height + 1))
    assert pairs["blocking_score"].to_list() == sorted(pairs["blocking_score"], reverse=True)
    assert pairs["blocking_score"].is_between(0, 1).all()
    for name, dtype in CANDIDATE_PAIRS.schema.items():
        if dtype == pl.Float64:
            assert pairs[name].is_finite().all(), name
    for name in (name for name in pairs.columns if "_rank_" in name):
        assert pairs[name].is_between(1, len(targets) if name.endswith("source") else len(sources)).all()


@pytest.mark.parametrize("one_side", [(["pat.dob"], []), ([], ["person.birth"]), ([], [])])
def test_a_missing_side_has_no_pairs(one_side: tuple[list[str], list[str]]) -> None:
    result = blocked(schema(*one_side))
    assert result.pairs.is_empty()
    assert (result.report.total_pairs, result.report.kept, result.report.reduction_ratio) == (0, 0, 0.0)


def test_room_for_all_keeps_all() -> None:
    frame = schema([f"pat.c{n}" for n in range(6)], [f"person.d{n}" for n in range(5)])
    result = blocked(frame, k_vector=6, k_lexical=0, budget_share=1.0)
    assert (result.report.kept, result.report.reduction_ratio) == (30, 0.0)


def test_each_source_keeps_a_pair_when_the_budget_is_one_each() -> None:
    frame = schema([f"pat.c{n}" for n in range(12)], [f"person.d{n}" for n in range(10)])
    result = blocked(frame, budget_share=0.1, budget_floor=1)
    assert result.report.budget == result.report.kept == 12
    assert result.pairs["source_attribute_id"].n_unique() == 12
    assert result.report.reduction_ratio == pytest.approx(0.9)


def test_more_budget_only_adds_pairs() -> None:
    frame = schema([f"pat.c{n}" for n in range(8)], [f"person.d{n}" for n in range(8)])
    kept = [set(blocked(frame, budget_floor=floor, budget_share=0.01).pairs["pair_id"]) for floor in (8, 16, 32, 64)]
    assert all(less <= more for less, more in pairwise(kept))


def test_attributes_that_are_all_alike_are_ranked_without_gaps() -> None:
    frame = attributes(
        [
            attribute(side, f"t{n}", "value", column_description="A value.")
            for side in ("source", "target")
            for n in range(5)
        ]
    )
    same = embeddings(frame).with_columns(pl.lit([0.6, 0.8], dtype=pl.List(pl.Float32)).alias("vector"))
    result = block_pairs(
        frame, same, BlockingSettings.model_validate({"k_vector": 5, "budget_share": 1.0, "group": False})
    )
    assert result.report.kept == 25
    assert result.pairs["blocking_score"].is_finite().all()
    assert result.pairs["cosine_full"].unique().to_list() == pytest.approx([1.0])


def test_a_pair_is_the_first_where_vectors_and_words_agree() -> None:
    frame = schema(["pat.dob", "pat.sex", "pat.zip"], ["pat.dob", "pat.sex", "pat.zip"])
    pairs = blocked(frame).pairs
    best = pairs.sort("blocking_rank").group_by("source_column").first()
    assert (best["source_column"] == best["target_column"]).all()
    assert pairs.filter(pl.col("source_column") == pl.col("target_column"))["vector_rank_source"].to_list() == [1, 1, 1]


def test_the_same_input_gives_the_same_rows() -> None:
    frame = schema([f"pat.c{n}" for n in range(9)], [f"person.d{n}" for n in range(7)])
    assert blocked(frame).pairs.equals(blocked(frame).pairs)
    shuffled = block_pairs(
        frame, embeddings(frame).sample(fraction=1.0, shuffle=True, seed=3), BlockingSettings.model_validate({})
    )
    assert shuffled.pairs.equals(blocked(frame).pairs)


def test_an_attribute_without_a_vector_is_named() -> None:
    frame = schema(["pat.dob"], ["person.birth"])
    fewer = embeddings(frame).filter(pl.col("attribute_id") != frame["attribute_id"][1])
    with pytest.raises(TableError, match=r"person\.birth"):
        block_pairs(frame, fewer, BlockingSettings.model_validate({}))


grid = st.integers(1, 5).flatmap(
    lambda width: st.lists(
        st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=width, max_size=width), min_size=1, max_size=4
    ).map(np.array)
)


@given(grid, st.integers(0, 1000))
def test_ranks_like_counting(values: np.ndarray, seed: int) -> None:
    tie_break = np.random.default_rng(seed).integers(0, 3, values.shape).astype(float)
    ranks = rank_rows(values, tie_break)
    for row in range(values.shape[0]):
        keys = [(-values[row, c], -tie_break[row, c], c) for c in range(values.shape[1])]
        assert ranks[row].tolist() == [1 + sum(other < key for other in keys) for key in keys]
