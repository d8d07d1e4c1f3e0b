"""A mapping worked out by hand against its reference: metrics, and what became of each true pair."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from kgrag_assets.evaluation.metrics import evaluate
from kgrag_assets.evaluation.misses import find_misses
from kgrag_assets.mapping.assemble import map_task
from kgrag_assets.rows.match_metrics import MATCH_METRICS, MATCH_MISSES, OUTCOMES
from kgrag_assets.settings import EvaluationSettings, MappingSettings
from kgrag_assets_tests.matching import candidates, contexts, groups, judgment, judgments, reference, schema

QUICK = EvaluationSettings(bootstrap_samples=100, seed=1)
SOURCES = ["pat.dob", "pat.sex", "pat.zip", "pat.note"]
TARGETS = ["person.birth", "person.gender", "person.postcode"]
TRUE = [("pat.dob", "person.birth"), ("pat.sex", "person.gender"), ("pat.zip", "person.postcode")]


class Case:
    """A judged task, mapped as it would be."""

    def __init__(self, rows: list[dict[str, Any]], kept: list[tuple[str, str]] | None = None) -> None:
        named = [
            (f"{r['source_table']}.{r['source_column']}", f"{r['target_table']}.{r['target_column']}") for r in rows
        ]
        self.attributes = schema(SOURCES, TARGETS)
        self.candidates = candidates(dict.fromkeys(named if kept is None else kept, 0.5))
        self.judgments = judgments(rows)
        self.mappings = map_task(
            self.attributes,
            groups(self.attributes),
            self.candidates,
            self.judgments,
            contexts({}),
            MappingSettings.model_validate({}),
        )

    def metrics(self, true: list[tuple[str, str]]) -> dict[str, dict[str, Any]]:
        frame = evaluate(self.mappings, self.candidates, self.attributes, reference(true), QUICK)
        assert frame.equals(MATCH_METRICS.conform(frame))
        return {row["metric"]: row for row in frame.iter_rows(named=True)}

    def outcomes(self, true: list[tuple[str, str]]) -> dict[str, dict[str, Any]]:
        frame = find_misses(self.mappings, reference(true))
        assert frame.equals(MATCH_MISSES.conform(frame))
        assert set(frame["outcome"]) <= set(OUTCOMES)
        return {row["source_column"]: row for row in frame.iter_rows(named=True)}


def values(metrics: dict[str, dict[str, Any]]) -> dict[str, float | None]:
    return {name: row["value"] for name, row in metrics.items()}


def mixed() -> Case:
    """Judge so that dob is found, sex goes to a wrong target for want of an answer, and zip is lost by blocking."""
    return Case(
        [
            judgment("pat.dob", "person.birth", 0.9),
            judgment("pat.dob", "person.gender", 0.1),
            judgment("pat.sex", "person.birth", 0.8),
            judgment("pat.sex", "person.gender", None),
            judgment("pat.zip", "person.birth", 0.2),
        ]
    )


def test_by_hand() -> None:
    found = values(mixed().metrics(TRUE))
    assert found["precision"] == pytest.approx(1 / 2)
    assert found["recall"] == pytest.approx(1 / 3)
    assert found["f1"] == pytest.approx(2 / 5)
    assert found["hit@1"] == pytest.approx(1 / 3)
    assert found["hit@3"] == pytest.approx(2 / 3)
    assert found["mrr"] == pytest.approx((1 + 1 / 2 + 0) / 3)
    assert found["pair_completeness"] == pytest.approx(2 / 3)
    assert found["reduction_ratio"] == pytest.approx(1 - 5 / 12)
    assert found["true_pairs"] == 3
    assert found["unanswered_pairs"] == 1
    # In order of score: dob-birth, sex-birth, three others, the unanswered one last.
    assert found["average_precision"] == pytest.approx((1 + 2 / 5) / 3)
    assert found["best_f1"] == pytest.approx(2 / (1 + 3))


def test_the_outcomes_by_hand() -> None:
    rows = mixed().outcomes(TRUE)
    assert {name: row["outcome"] for name, row in rows.items()} == {
        "dob": "found",
        "sex": "unanswered",
        "zip": "blocking",
    }
    assert (rows["dob"]["rank"], rows["dob"]["proposed_instead"]) == (1, None)
    assert (rows["sex"]["rank"], rows["sex"]["proposed_instead"]) == (2, "person.birth")
    assert (rows["zip"]["rank"], rows["zip"]["score"], rows["zip"]["proposed_instead"]) == (None, None, None)


def test_a_true_pair_judged_and_not_chosen_is_not_proposed() -> None:
    case = Case([judgment("pat.dob", "person.birth", 0.6), judgment("pat.dob", "person.gender", 0.9)])
    row = case.outcomes(TRUE[:1])["dob"]
    assert (row["outcome"], row["rank"], row["proposed_instead"]) == ("not_proposed", 2, "person.gender")


def test_a_candidate_that_was_not_judged_is_unanswered() -> None:
    case = Case([], kept=TRUE[:1])
    assert case.outcomes(TRUE[:1])["dob"]["outcome"] == "unanswered"
    assert case.metrics(TRUE[:1])["pair_completeness"]["value"] == 1.0


def test_each_true_pair_has_one_outcome_and_the_counts_agree() -> None:
    case = mixed()
    outcomes = [row["outcome"] for row in case.outcomes(TRUE).values()]
    found = values(case.metrics(TRUE))
    lost = [value for name, value in found.items() if name.startswith(("true_lost", "lost_", "true_unanswered"))]
    assert outcomes.count("found") + sum(value or 0 for value in lost) == len(outcomes) == len(TRUE)


def test_intervals_hold_the_value_of_shares_and_counts_have_none() -> None:
    metrics = mixed().metrics(TRUE)
    for name in ("precision", "recall", "f1"):
        assert metrics[name]["ci_low"] <= metrics[name]["value"] <= metrics[name]["ci_high"]
    for name in ("true_pairs", "unanswered_pairs", "reduction_ratio"):
        assert metrics[name]["ci_low"] is None
    assert metrics == mixed().metrics(TRUE)


def test_everything_found() -> None:
    metrics = Case([judgment(*pair, 0.9) for pair in TRUE]).metrics(TRUE)
    for name in ("precision", "recall", "f1", "hit@1", "mrr", "average_precision", "best_f1", "pair_completeness"):
        assert (metrics[name]["value"], metrics[name]["ci_low"], metrics[name]["ci_high"]) == (1.0, 1.0, 1.0), name


def test_nothing_proposed_has_no_precision() -> None:
    case = Case([judgment(*pair, 0.1) for pair in TRUE])
    metrics = case.metrics(TRUE)
    assert (metrics["precision"]["value"], metrics["precision"]["ci_low"]) == (None, None)
    assert (metrics["recall"]["value"], metrics["f1"]["value"]) == (0.0, 0.0)
    # The ranked lists are as good as ever.
    assert metrics["hit@1"]["value"] == 1.0
    assert {row["outcome"] for row in case.outcomes(TRUE).values()} == {"not_proposed"}


def test_nothing_judged_at_all() -> None:
    metrics = values(Case([]).metrics(TRUE))
    assert metrics["recall"] == metrics["hit@5"] == metrics["mrr"] == metrics["best_f1"] == 0.0
    assert metrics["pair_completeness"] == 0.0
    assert metrics["reduction_ratio"] == 1.0


def test_without_a_reference_there_is_nothing_to_tell() -> None:
    case = mixed()
    assert case.metrics([]) == {}
    assert case.outcomes([]) == {}


def test_several_true_targets_of_one_source() -> None:
    case = Case([judgment("pat.dob", "person.birth", 0.9), judgment("pat.dob", "person.gender", 0.8)])
    found = values(case.metrics([("pat.dob", "person.birth"), ("pat.dob", "person.gender")]))
    assert (found["recall"], found["precision"], found["hit@1"], found["mrr"]) == (0.5, 1.0, 1.0, 1.0)
    assert found["average_precision"] == 1.0


def test_the_rank_that_is_shown_is_the_rank_that_counts() -> None:
    pairs = [("pat.dob", target) for target in TARGETS]
    case = Case([judgment(*pair, 0.9) for pair in pairs])
    for pair in pairs:
        rank = case.mappings.filter(pl.col("target_column") == pair[1].split(".")[1])["rank"].item()
        assert case.metrics([pair])["mrr"]["value"] == pytest.approx(1 / rank)
