"""The curve of blocking counted by hand, and the reasons of lost pairs."""

from __future__ import annotations

import numpy as np
import polars as pl

from kgrag_assets.blocking.block import ScoredGroups, best_of_groups
from kgrag_assets.blocking.groups import Grouping
from kgrag_assets.blocking.signals import Signals
from kgrag_assets.evaluation.blocking_curve import SHARES, blocking_curve, lost_reasons
from kgrag_assets.rows.blocking_curve import BLOCKING_CURVE
from kgrag_assets_tests.matching import attribute, reference

SOURCES = [attribute("source", "pat", f"s{n}") for n in range(4)]
TARGETS = [attribute("target", "person", f"t{n}", column_description="") for n in range(5)]


def scored(values: np.ndarray, cosine: np.ndarray) -> ScoredGroups:
    left = Grouping(np.array([0, 0, 1, 2]), np.array([0, 2, 3]), ("r", "r", "", ""))
    right = Grouping(np.arange(5), np.arange(5), ("",) * 5)
    zero = np.zeros_like(cosine)
    signals = Signals(cosine, zero, zero, zero, zero, zero)
    return ScoredGroups(SOURCES, TARGETS, left, right, signals, values, best_of_groups(values, left, right))


def test_each_budget_keeps_what_stands_within_it() -> None:
    values = np.zeros((4, 5))
    values[0, 0], values[1, 0], values[2, 1], values[3, 2] = 9.0, 1.0, 8.0, -1.0
    cosine = np.arange(20.0).reshape(4, 5) / 20.0
    truth = reference([("pat.s1", "person.t0"), ("pat.s2", "person.t1"), ("pat.s3", "person.t2")])
    curve = blocking_curve(scored(values, cosine), truth)
    BLOCKING_CURVE.conform(curve)
    ours = {row["budget_share"]: row for row in curve.filter(pl.col("method") == "kgrag").iter_rows(named=True)}
    assert list(ours) == list(SHARES)
    # 20 pairs; at 5 % one is judged: the group of s0 and s1 with t0, which covers the true pair of s1.
    assert (ours[0.05]["pairs_judged"], ours[0.05]["true_pairs_kept"]) == (1, 1)
    assert (ours[0.10]["pairs_judged"], ours[0.10]["true_pairs_kept"]) == (2, 2)
    assert (ours[1.0]["pairs_judged"], ours[1.0]["true_pairs_kept"], ours[1.0]["pair_completeness"]) == (15, 3, 1.0)
    plain = {row["budget_share"]: row for row in curve.filter(pl.col("method") == "cosine").iter_rows(named=True)}
    # By cosine the true pairs stand at places 3, 9 and 15 of 20.
    assert plain[0.15]["true_pairs_kept"] == 1
    assert plain[0.5]["true_pairs_kept"] == 2
    assert (
        curve.sort("budget_share")
        .group_by("method")
        .agg(pl.col("true_pairs_kept").diff().min())["true_pairs_kept"]
        .min()
        >= 0
    )


def test_a_lost_pair_has_a_reason_and_no_reference_no_curve() -> None:
    values = np.zeros((4, 5))
    values[3, 0] = 5.0
    truth = reference([("pat.s3", "person.t2"), ("pat.gone", "person.t2")])
    reasons = lost_reasons(scored(values, np.full((4, 5), 0.1)), truth)
    assert list(reasons) == [truth["pair_id"][0]]
    said = reasons[truth["pair_id"][0]]
    assert "the target has no description" in said
    assert "cosine 0.10" in said
    assert "the names share no word" in said
    assert said.endswith("1 targets stand before it for its source, 0 sources for its target")
    assert blocking_curve(scored(values, values), reference([])).is_empty()
