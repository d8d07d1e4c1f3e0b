"""Reading answers: strictly, carefully, or not at all."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kgrag_assets.judging.parsing import parse_answer
from kgrag_assets.rows.llm_judgments import ANSWERED_STATUSES, PARSE_STATUSES

FACTS = ("F1", "F2")
YES = '{"reason": "same", "match": true, "confidence": 0.9, "facts": ["F1"]}'
NO = '{"reason": "other", "match": false, "confidence": 0.8, "facts": []}'


def test_an_answer_of_the_schema_is_parsed() -> None:
    answer = parse_answer(YES, FACTS)
    assert (answer.status, answer.answer, answer.score, answer.reason) == ("parsed", True, 0.9, "same")
    assert answer.cited_facts == ("F1",)
    answer = parse_answer(f"\ufeff  {NO}\n", FACTS)
    assert (answer.status, answer.answer) == ("parsed", False)
    assert answer.score == pytest.approx(0.2)


@given(
    st.booleans(),
    st.floats(0, 1),
    st.text(max_size=300),
    st.lists(st.sampled_from(FACTS), unique=True),
    st.booleans(),
)
def test_a_valid_answer_survives_the_way_through_json(
    match: bool, confidence: float, reason: str, facts: list[str], ascii_only: bool
) -> None:
    fields = {"reason": reason, "match": match, "confidence": confidence, "facts": facts}
    answer = parse_answer(json.dumps(fields, ensure_ascii=ascii_only), FACTS)
    assert (answer.status, answer.answer) == ("parsed", match)
    assert answer.score == pytest.approx(confidence if match else 1 - confidence)
    assert answer.reason == " ".join(reason.split())
    assert answer.cited_facts == tuple(facts)


@pytest.mark.parametrize(
    ("text", "expected", "score"),
    [
        ("not matched. Label: 0", False, 0.25),
        ("Label: 0", False, 0.25),
        ("Label: 1", True, 0.75),
        ("**Label:** 1", True, 0.75),
        ('"label": "1"', True, 0.75),
        ("label = 0.", False, 0.25),
        ("They share a meaning. Label: 1", True, 0.75),
        ('<think>It might be {"match": true}.</think>{"match": false}', False, 0.25),
        ('It might be yes.</think>\n{"match": false, "confidence": 0.6}', False, 0.4),
        ('```json\n{"match": true, "confidence": 0.8}\n```', True, 0.8),
        (f"Here you are:\n{YES}\nI hope this helps!", True, 0.9),
        (f"{YES}\n\n{YES}", True, 0.9),
        (f"[{NO}]", False, 0.2),
        (f'{{"result": {YES}}}', True, 0.9),
        ('{"match": "yes", "confidence": "0.7"}', True, 0.7),
        ('{"match": 1}', True, 0.75),
        ('{"label": 0}', False, 0.25),
        ('{"match": true, "confidence": 85}', True, 0.75),
        ('{"match": true, "confidence": -1}', True, 0.75),
        ('{"match": true, "confidence": NaN}', True, 0.75),
        ('{"match": true, "confidence": 1e999}', True, 0.75),
        ('{"match": true, "confidence": true}', True, 0.75),
        ('{"match": true, "confidence": "high"}', True, 0.75),
        ('{"match": true, "confidence": 0.9, "reason": "not equal but the same", "facts": [], "x": 1}', True, 0.9),
        ("{'match': True}", True, 0.75),
        ("Match:\n" + NO, False, 0.2),
        ("Yes", True, 0.75),
        ("**Yes.**", True, 0.75),
        ("no", False, 0.25),
        ("No match.", False, 0.25),
        ("They do not correspond.", False, 0.25),
        ("Answer: no", False, 0.25),
        ("Final answer: **No**", False, 0.25),
    ],
)
def test_an_answer_with_something_around_it_is_recovered(text: str, expected: bool, score: float) -> None:
    answer = parse_answer(text, FACTS)
    assert (answer.status, answer.answer) == ("recovered", expected)
    assert answer.score == pytest.approx(score)


@pytest.mark.parametrize(
    "text",
    [
        f"{YES} {NO}",
        "Label: 1 or rather label: 0",
        "Label: 1. Label: 0.",
        "The choice is label: 0 or 1.\nLabel: 1",
        "Yes. No.",
        "They do not match. Label: 1",
        "It is not the same thing at all, but Label: 1",
        'No. {"match": true}',
        'Label: 0\n{"match": true}',
        '{"match": true, "match": false}',
        '{"match": true, "label": 0}',
        '{"match": true} {"match": "perhaps"}',
    ],
)
def test_answers_that_disagree_are_ambiguous(text: str) -> None:
    answer = parse_answer(text, FACTS)
    assert (answer.status, answer.answer, answer.score) == ("ambiguous", None, None)


@pytest.mark.parametrize(
    "text",
    [
        "The two columns look alike, so they probably correspond.",
        "These columns do not match because one is a key.",
        "I'm sorry, but I can't help with that.",
        "Yes, in a way.",
        "No doubt, they correspond.",
        "The answer: no doubt they match",
        "Label: 0 or 1",
        "Label: 0/1",
        "Label: 1 | 0",
        "Label: 0.8",
        "Label: 1%",
        "Label: 10",
        "1",
        '{"match": null}',
        '{"match": "perhaps"}',
        '{"match": 0.5}',
        '{"matches": true}',
        '{"confidence": 0.9}',
        '<think>I think {"match": true}',
        "<think>only thoughts</think>",
        '"{\\"match\\": true}"',
        "{" * 10_000,
        '{"a":' * 20_000,
        "[" * 50_000,
        "'" * 90_000,
        "<think>" * 12_000,
        "x" * 200_000,
        "{}",
        "[]",
        "null",
        "-",
    ],
    ids=lambda text: text[:40],
)
def test_what_is_no_answer_is_not_guessed(text: str) -> None:
    answer = parse_answer(text, FACTS)
    assert (answer.status, answer.answer, answer.score) == ("unparsed", None, None)


@pytest.mark.parametrize("text", ["", " \n\t", "\ufeff"])
def test_nothing_is_empty(text: str) -> None:
    assert parse_answer(text, FACTS).status == "empty"
    assert parse_answer(text, FACTS, "truncated").status == "truncated"


@pytest.mark.parametrize("text", ['{"reason": "both hold', '{"match": true, "conf', "Label: 1", "Yes", "<think>hm"])
def test_a_cut_text_without_a_whole_object_is_truncated(text: str) -> None:
    answer = parse_answer(text, FACTS, "truncated")
    assert (answer.status, answer.answer) == ("truncated", None)


def test_a_cut_text_with_a_whole_object_has_an_answer() -> None:
    assert parse_answer(YES, FACTS, "truncated").status == "parsed"
    answer = parse_answer(YES + "\nLet me explain why: the", FACTS, "truncated")
    assert (answer.status, answer.answer) == ("recovered", True)


@pytest.mark.parametrize(
    ("facts", "cited", "unknown"),
    [
        ('["F1", "f2", "F1"]', ("F1", "F2"), ()),
        ('["F1: date of birth is a date", "[F2]"]', ("F1", "F2"), ()),
        ('["F9"]', (), ("F9",)),
        ('["F9", "F1", "Q42"]', ("F1",), ("F9", "Q42")),
        ('["F11"]', (), ("F11",)),
        ('[1, null, "", {"a": 1}]', (), ()),
        ('"F1"', (), ()),
        ("null", (), ()),
    ],
)
def test_only_facts_that_were_shown_can_be_cited(facts: str, cited: tuple[str, ...], unknown: tuple[str, ...]) -> None:
    answer = parse_answer(f'{{"reason": "", "match": true, "confidence": 0.9, "facts": {facts}}}', FACTS)
    assert (answer.answer, answer.cited_facts, answer.unknown_citations) == (True, cited, unknown)


def test_the_gates_fields_are_read_where_they_make_sense() -> None:
    base = '{"reason": "r", "match": true, "confidence": 0.9, "facts": [], "own_match": %s, "relevance": %s}'
    good = parse_answer(base % ("false", "7"), FACTS)
    assert (good.own_answer, good.own_score, good.relevance) == (False, 0.25, 7)
    odd = parse_answer(base % ('"perhaps"', "70"), FACTS)
    assert (odd.answer, odd.own_answer, odd.own_score, odd.relevance) == (True, None, None, None)


def test_a_long_reason_is_cut_visibly() -> None:
    answer = parse_answer(json.dumps({"reason": "long " * 1000, "match": True, "confidence": 1, "facts": []}), FACTS)
    assert len(answer.reason) <= 500
    assert answer.reason.endswith("[cut]")


JSON_TOKENS = ["{", "}", "[", "]", ":", ",", '"match"', "true", "false", "null", "NaN", "\\ud800"]
WORD_TOKENS = ["<think>", "</think>", "```", "Label:", "1", "0", "yes", "no", "not", "match", " ", "\n", ". "]
PIECES = st.lists(
    st.one_of(
        st.text(max_size=8),
        st.sampled_from([*JSON_TOKENS, *WORD_TOKENS, YES, NO]),
    ),
    max_size=14,
).map("".join)


@given(PIECES, st.sampled_from(["answered", "truncated"]))
@example("9" * 5000, "answered")
@example('{"match": true, "confidence": ' + "9" * 5000 + "}", "answered")
@example("\ud800", "answered")
def test_no_text_makes_it_fail(text: str, call_status: str) -> None:
    answer = parse_answer(text, FACTS, call_status)
    assert answer.status in PARSE_STATUSES
    assert (answer.answer is not None) == (answer.score is not None) == (answer.status in ANSWERED_STATUSES)
    if answer.score is not None:
        assert 0 <= answer.score <= 1
    assert set(answer.cited_facts) <= set(FACTS)


WORDS = st.lists(
    st.sampled_from(["yes", "match", "true", "Label: 1", "the", "columns", ".", "\n", "answer: yes", ",", "they"]),
    max_size=8,
)


@given(WORDS, st.sampled_from(["not", "no", "don't", "cannot", "never", "false", "isn\u2019t"]), WORDS)
def test_words_with_a_negation_are_never_a_yes(before: list[str], negation: str, after: list[str]) -> None:
    answer = parse_answer(" ".join([*before, negation, *after]), FACTS)
    assert answer.answer is not True
