"""The gate, the vote, a second judge's word, and the sharing out of what a call cost."""

from __future__ import annotations

from dataclasses import replace

import hypothesis.strategies as st
import pytest
from hypothesis import given

from kgrag_assets.judging.gate import Weighed, apply_gate, learn_threshold, score_thresholds
from kgrag_assets.judging.parsing import ParsedAnswer
from kgrag_assets.judging.protocol import Judgment
from kgrag_assets.judging.voting import Share, judgment_of, shares_of, with_second
from kgrag_assets.settings import JudgingSettings
from kgrag_assets_tests.judging.pairs import pair

YES = ParsedAnswer("parsed", True, 0.9, "yes", ("F1",), relevance=8, own_answer=False, own_score=0.2)
LABELS = {"F1": "fact-1"}


def judged(*answers: ParsedAnswer, **options: object) -> Judgment:
    settings = JudgingSettings.model_validate(options)
    return judgment_of(pair(), answers, LABELS, Share(10, 5, 0.1), "hash", settings)


@pytest.mark.parametrize(("threshold", "answer", "gate"), [(8, True, "with_facts"), (9, False, "without_facts")])
def test_below_the_threshold_the_models_own_answer_counts(threshold: int, answer: bool, gate: str) -> None:
    found = apply_gate(YES, facts_shown=True, gate=True, threshold=threshold)
    assert (found.answer, found.gate, found.conflict) == (answer, gate, True)


def test_without_facts_relevance_or_own_answer_there_is_nothing_to_gate() -> None:
    assert apply_gate(YES, facts_shown=False, gate=True, threshold=10).gate == "no_facts"
    assert apply_gate(YES, facts_shown=True, gate=False, threshold=10).gate == "off"
    for silent in (replace(YES, relevance=None), replace(YES, own_answer=None, own_score=None)):
        found = apply_gate(silent, facts_shown=True, gate=True, threshold=10)
        assert (found.answer, found.gate) == (True, "with_facts")
    nothing = apply_gate(ParsedAnswer("unparsed"), facts_shown=True, gate=True, threshold=10)
    assert (nothing.answer, nothing.conflict) == (None, None)


def test_one_answer_is_the_judgment_and_a_conflict_is_told() -> None:
    found = judged(YES)
    assert (found.answer, found.score, found.votes, found.votes_for) == (True, 0.9, 1, 1)
    assert (found.relevance, found.own_answer, found.own_score, found.conflict) == (8, False, 0.2, True)
    assert found.cited_facts == ("fact-1",)
    gated = judged(YES, gate_threshold=9)
    assert (gated.answer, gated.score, gated.gate) == (False, 0.2, "without_facts")


def test_the_majority_counts_and_lies_on_its_side_of_one_half() -> None:
    no = ParsedAnswer("parsed", False, 0.05, "no")
    found = judged(replace(YES, score=0.55), replace(YES, score=0.6, status="recovered"), no)
    assert (found.answer, found.votes, found.votes_for, found.reason) == (True, 3, 2, "yes")
    assert 0.5 <= found.score < 0.6
    unread = judged(ParsedAnswer("unparsed"), no, no)
    assert (unread.answer, unread.votes, unread.parse_status) == (False, 2, "parsed")
    nothing = judged(ParsedAnswer("timeout", reason="late"), ParsedAnswer("error"))
    assert (nothing.answer, nothing.votes, nothing.parse_status, nothing.reason) == (None, 0, "timeout", "late")


def test_a_tie_goes_to_the_surer_side_and_an_exact_one_is_no_match() -> None:
    assert judged(replace(YES, score=0.9), ParsedAnswer("parsed", False, 0.4, "no")).answer is True
    assert judged(replace(YES, score=0.75), ParsedAnswer("parsed", False, 0.25, "no")).answer is False


scores = st.floats(0, 1)


@given(st.lists(st.tuples(st.booleans(), st.floats(0.5, 1)), min_size=1, max_size=9))
def test_score_and_answer_never_contradict(votes: list[tuple[bool, float]]) -> None:
    answers = [ParsedAnswer("parsed", yes, sure if yes else 1 - sure, "r") for yes, sure in votes]
    found = judged(*answers)
    assert found.score is not None
    assert (found.score >= 0.5) if found.answer else (found.score <= 0.5)
    assert found.votes_for == sum(yes for yes, _ in votes)


@given(st.integers(0, 10_000), st.integers(0, 10_000), st.integers(1, 60))
def test_the_shares_of_a_call_sum_up_to_it(tokens_in: int, tokens_out: int, pairs: int) -> None:
    shares = shares_of(tokens_in, tokens_out, 0.5, pairs)
    assert len(shares) == pairs
    assert sum(share.tokens_in for share in shares) == tokens_in
    assert sum(share.tokens_out for share in shares) == tokens_out
    assert sum(share.cost_usd or 0.0 for share in shares) == pytest.approx(0.5)
    assert max(share.tokens_in for share in shares) - min(share.tokens_in for share in shares) <= 1


def test_a_second_word_stands_beside_the_first_and_is_paid_for() -> None:
    first, second = judged(YES), judged(ParsedAnswer("parsed", False, 0.3, "no"))
    both = with_second(first, second)
    assert (both.answer, both.second_answer, both.second_score, both.disagreement) == (True, False, 0.3, True)
    assert (both.tokens_in, both.tokens_out, both.cost_usd) == (20, 10, 0.2)
    silent = with_second(first, judged(ParsedAnswer("unparsed")))
    assert (silent.second_answer, silent.disagreement) == (None, None)
    unknown = with_second(first, replace(second, cost_usd=None))
    assert unknown.cost_usd is None


def test_the_learnt_threshold_lets_the_good_facts_through_and_stays_near_the_default() -> None:
    good = [Weighed(8, True, False, True)] * 3
    misleading = [Weighed(4, True, False, False)] * 5
    assert learn_threshold([*good, *misleading], 7) == 7
    assert learn_threshold([*good, *misleading], 2) == 5
    assert learn_threshold([], 7) == 7
    by_threshold = {score.threshold: score for score in score_thresholds([*good, *misleading])}
    assert by_threshold[5].f1 == 1.0
    assert by_threshold[0].precision == pytest.approx(3 / 8)
    assert by_threshold[11].precision is None
