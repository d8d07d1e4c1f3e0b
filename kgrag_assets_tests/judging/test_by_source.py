"""Asking about a source attribute with all its candidates: what is shown, and what is read of the answers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgrag_assets.judging.few_shot import read_examples
from kgrag_assets.judging.llm_judge import LlmJudge
from kgrag_assets.judging.parsing_lists import parse_answers
from kgrag_assets.judging.prompt_source import BySourcePrompt
from kgrag_assets.judging.protocol import Evidence, JudgePair
from kgrag_assets.models import openai_server as openai_endpoint
from kgrag_assets.models.ledger import CallLedger
from kgrag_assets.models.openai_chat import OpenAIChat
from kgrag_assets.models.tokens import count_tokens
from kgrag_assets.rows.keys import pair_id_of
from kgrag_assets.settings import JudgingSettings, SettingsError
from kgrag_assets_tests.judging.pairs import FACT, attribute, pair
from kgrag_assets_tests.judging.test_prompt import FENCE, HOSTILE
from kgrag_assets_tests.servers import NotedPause
from kgrag_assets_tests.servers.openai_server import OpenAIServer


def candidates(number: int, source: str = "dob", facts: tuple[Evidence, ...] = (FACT,)) -> list[JudgePair]:
    made = [
        pair(attribute("source", "pat", source), attribute("target", "person", f"column_{place}"), facts)
        for place in range(number)
    ]
    return [replace(one, pair_id=pair_id_of(one.source.attribute_id, one.target.attribute_id)) for one in made]


def shown_in(form: BySourcePrompt, pairs: list[JudgePair]) -> list[str]:
    return [question.messages[1].content for question in form.questions(pairs)]


def test_one_call_shows_the_source_once_and_every_candidate_with_its_facts() -> None:
    facts = (FACT, Evidence("fact-2", "second", "path", "entity_paths", 0.5))
    pairs = candidates(3, facts=facts)
    pairs[0] = replace(pairs[0], target_tables=("visit", "death"), values=(replace(FACT, fact_id="v", text="alike"),))
    (question,) = BySourcePrompt(JudgingSettings()).questions(pairs)
    text = question.messages[1].content
    blocks = {name: inner for _, name, inner in FENCE.findall(text)}
    assert list(blocks) == ["source column", "candidates"]
    assert text.count("column: dob") == 1
    assert blocks["candidates"].count("table person: About person.") == 1
    assert re.findall(r"^C\d+$", blocks["candidates"], re.MULTILINE) == ["C1", "C2", "C3"]
    assert re.findall(r"^F\d+", blocks["candidates"], re.MULTILINE) == [f"F{n}" for n in range(1, 7)]
    assert "V1: alike" in blocks["candidates"]
    assert "the same column stands in: visit, death" in blocks["candidates"]
    assert [one.pair_id for one in question.pairs] == sorted(one.pair_id for one in pairs)
    assert question.max_tokens == 300 + 2 * 120


def test_a_changed_rank_changes_no_prompt_and_many_candidates_are_spread_over_calls() -> None:
    pairs = candidates(45)
    form = BySourcePrompt(JudgingSettings(candidates_per_call=20))
    questions = form.questions(pairs)
    assert sorted(len(question.pairs) for question in questions) == [15, 15, 15]
    assert shown_in(form, pairs) == shown_in(form, pairs[::-1])
    assert {one.pair_id for question in questions for one in question.pairs} == {one.pair_id for one in pairs}


def test_all_candidates_at_once_take_a_fraction_of_the_tokens() -> None:
    from kgrag_assets.judging.prompt_pair import PairwisePrompt

    pairs = candidates(20)
    settings = JudgingSettings()
    totals = [
        sum(count_tokens(message.content) for question in form.questions(pairs) for message in question.messages)
        for form in (BySourcePrompt(settings), PairwisePrompt(settings))
    ]
    assert totals[0] * 5 < totals[1]


@given(HOSTILE, HOSTILE, HOSTILE)
def test_nothing_that_others_wrote_leaves_its_fence(column: str, description: str, fact: str) -> None:
    hostile = pair(
        attribute("source", "pat", column, column_description=description),
        attribute("target", column, fact, column_description=fact, table_description=description),
        (replace(FACT, text=fact),),
    )
    user = shown_in(BySourcePrompt(JudgingSettings()), [hostile])[0]
    usual = shown_in(BySourcePrompt(JudgingSettings()), [pair()])[0]
    assert [name for _, name, _ in FENCE.findall(user)] == ["source column", "candidates"]
    assert FENCE.sub("", user) == FENCE.sub("", usual)
    lines = FENCE.findall(user)[1][2].split("\n")
    assert sum(line == "C1" for line in lines) == 1


def answer(candidate: str, match: bool, **more: Any) -> dict[str, Any]:
    return {"candidate": candidate, "reason": "r", "match": match, "confidence": 0.8, "facts": [], **more}


def test_a_text_of_the_schema_is_parsed() -> None:
    text = json.dumps({"answers": [answer("C1", True, facts=["F1", "F9"]), answer("C2", False)]})
    first, second = parse_answers(text, [["F1"], ["F2"]])
    assert (first.status, first.answer, first.score) == ("parsed", True, 0.8)
    assert (first.cited_facts, first.unknown_citations) == (("F1",), ("F9",))
    assert (second.status, second.answer, second.score) == ("parsed", False, pytest.approx(0.2))
    gate = {"own_match": False, "own_confidence": 0.6, "relevance": 3}
    gated = parse_answers(json.dumps({"answers": [answer("C1", True, **gate)]}), [[]])[0]
    assert (gated.status, gated.relevance, gated.own_answer, gated.own_score) == ("parsed", 3, False, 0.4)


@pytest.mark.parametrize(
    ("text", "statuses"),
    [
        ('[{"candidate": "c2", "match": true}, {"candidate": 1, "match": false}]', ["recovered", "recovered"]),
        ('Here: {"answers": [{"candidate": "C1: a.b", "match": "yes"}]}', ["recovered", "unparsed"]),
        ('{"candidate": "C1", "match": true} {"candidate": "C1", "match": false}', ["ambiguous", "unparsed"]),
        ('{"candidate": "C3", "match": true}', ["unparsed", "unparsed"]),
        ('{"match": true}', ["unparsed", "unparsed"]),
        ("C1 yes, C2 no", ["unparsed", "unparsed"]),
        ("", ["empty", "empty"]),
        ('<think>{"candidate": "C1", "match": true}</think>', ["unparsed", "unparsed"]),
        ('{"candidate": "C1", "match": "perhaps"}', ["unparsed", "unparsed"]),
    ],
)
def test_what_is_found_otherwise_is_recovered_and_what_leaves_a_doubt_is_not(text: str, statuses: list[str]) -> None:
    assert [one.status for one in parse_answers(text, [[], []])] == statuses


def test_of_a_cut_text_the_whole_answers_count() -> None:
    whole = json.dumps({"answers": [answer("C1", True), answer("C2", False), answer("C3", True)]})
    cut = whole[: whole.index('"C3"')]
    assert [one.status for one in parse_answers(cut, [[], [], []], "truncated")] == [
        "recovered",
        "recovered",
        "truncated",
    ]


@given(
    st.text(max_size=300)
    | st.lists(st.sampled_from(['{"candidate": "C', "1", '", "match": true}', "[", "]", "{", "}"])).map("".join)
)
def test_no_text_makes_it_fail(text: str) -> None:
    for status in ("answered", "truncated"):
        found = parse_answers(text, [["F1"], []], status)
        assert len(found) == 2
        assert all((one.answer is None) == (one.score is None) for one in found)


def decide(body: dict[str, Any]) -> str:
    """Answer as a model would: the column with a 3 in its name corresponds."""
    block = FENCE.findall(body["messages"][1]["content"])[1][2]
    names = re.findall(r"^C(\d+)\n(?:table: .*\n)column: (\S+)", block, re.MULTILINE)
    gate = {"own_match": False, "own_confidence": 1.0, "relevance": 9}
    return json.dumps({"answers": [answer(f"C{place}", "3" in name, **gate) for place, name in names]})


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[CallLedger]:
    with CallLedger(tmp_path / "llm_calls.sqlite") as opened:
        yield opened


def judge_for(server: OpenAIServer, ledger: CallLedger, pause: NotedPause, **options: Any) -> LlmJudge:
    settings = JudgingSettings(judge="openai", base_url=server.url, **options)
    endpoint = openai_endpoint.connect(server.url, "KGRAG_NO_SUCH_KEY", settings.timeout_s, "the test")
    chat = OpenAIChat(endpoint, settings.model, pause=pause)
    return LlmJudge(chat, ledger, settings, "openai", BySourcePrompt(settings))


def test_a_task_is_judged_with_a_call_for_each_source_and_only_what_changed_is_asked_again(
    openai_server: OpenAIServer, ledger: CallLedger, pause: NotedPause
) -> None:
    openai_server.text_for = decide
    pairs = [*candidates(5), *candidates(5, "sex")]
    judge = judge_for(openai_server, ledger, pause)
    told: list[str] = []
    judgments = judge.judge(pairs, on_done=lambda one: told.append(one.pair_id))
    assert len(openai_server.asked) == 2
    assert sorted(told) == sorted(one.pair_id for one in pairs)
    assert [one.pair_id for one in judgments] == [one.pair_id for one in pairs]
    assert [one.answer for one in judgments] == [place == 3 for place in range(5)] * 2
    assert [one.conflict for one in judgments] == [place == 3 for place in range(5)] * 2
    assert sum(one.tokens_in for one in judgments) == int(ledger.frame()["tokens_in"].sum())
    edited = [*pairs[:5], *candidates(5, "sexes")]
    keys, before = judge.keys(edited), judge.keys(pairs)
    assert keys[:5] == before[:5]
    assert not set(keys[5:]) & set(before)
    wanted = {one.pair_id for one in edited[5:]}
    assert [one.pair_id for one in judge.judge(edited, wanted)] == [one.pair_id for one in edited[5:]]
    assert len(openai_server.asked) == 3


def test_a_candidate_that_the_model_left_out_has_no_answer_and_the_others_have(
    openai_server: OpenAIServer, ledger: CallLedger, pause: NotedPause
) -> None:
    openai_server.text_for = lambda _body: json.dumps({"answers": [answer("C1", True)]})
    judgments = judge_for(openai_server, ledger, pause).judge(candidates(2))
    assert sorted(one.parse_status for one in judgments) == ["recovered", "unparsed"]


def test_several_answers_are_voted_on(openai_server: OpenAIServer, ledger: CallLedger, pause: NotedPause) -> None:
    texts = iter([decide] * 2 + [lambda _body: "no idea"] * 1)
    openai_server.text_for = lambda body: next(texts)(body)  # noqa: PLW0108 - each call takes another one
    judgments = judge_for(openai_server, ledger, pause, answers=3, concurrency=1).judge(candidates(4))
    assert [one.answer for one in judgments] == [False, False, False, True]
    assert {one.votes for one in judgments} == {2}
    assert sorted(asked.body["seed"] for asked in openai_server.asked) == [1, 2, 3]
    assert {asked.body["temperature"] for asked in openai_server.asked} == {0.7}


def test_a_second_judge_is_heard_on_the_same_pairs(
    openai_server: OpenAIServer, ledger: CallLedger, pause: NotedPause
) -> None:
    openai_server.text_for = decide
    openai_server.models.add("other")
    second = judge_for(openai_server, ledger, pause, model="other")
    settings = JudgingSettings(judge="openai", base_url=openai_server.url)
    endpoint = openai_endpoint.connect(openai_server.url, "KGRAG_NO_SUCH_KEY", 5.0, "the test")
    chat = OpenAIChat(endpoint, settings.model, pause=pause)
    judge = LlmJudge(chat, ledger, settings, "openai", BySourcePrompt(settings), second)
    judgments = judge.judge(candidates(4))
    assert [one.second_answer for one in judgments] == [False, False, False, True]
    assert {one.disagreement for one in judgments} == {False}
    assert judge.keys(candidates(4)) != judge_for(openai_server, ledger, pause).keys(candidates(4))
    assert ledger.frame()["model"].n_unique() == 2


EXAMPLES = """
examples:
  - source: {table: adm, column: adm_dt, description: "day of admission"}
    target: {table: visit, column: visit_start_date}
    match: true
    reason: Both are the day on which a stay begins.
"""


def test_examples_stand_in_the_prompt_and_in_its_version(tmp_path: Path) -> None:
    path = tmp_path / "examples.yaml"
    path.write_text(EXAMPLES)
    examples = read_examples(path)
    form = BySourcePrompt(JudgingSettings(), examples)
    text = shown_in(form, candidates(1))[0]
    assert [name for _, name, _ in FENCE.findall(text)] == ["examples", "source column", "candidates"]
    assert "adm.adm_dt (day of admission) | visit.visit_start_date | match: Both are" in text
    assert form.version == BySourcePrompt(JudgingSettings()).version + examples.version
    path.write_text(EXAMPLES.replace("true", "false"))
    assert read_examples(path).version != examples.version


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("examples: []", "examples"),
        (
            "examples: [{source: {table: a, column: b}, target: {table: c}, match: true, reason: r}]",
            r"examples\.1\.target",
        ),
        (
            "examples: [{source: {table: a, column: b}, target: {table: c, column: d}, match: maybe, reason: r}]",
            "match",
        ),
        ("- a", "valid dictionary"),
        ("a: [", "not YAML"),
    ],
)
def test_a_wrong_file_of_examples_names_file_and_entry(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "examples.yaml"
    path.write_text(text)
    with pytest.raises(SettingsError, match=rf"examples\.yaml.*{said}"):
        read_examples(path)
    with pytest.raises(SettingsError, match="cannot be read"):
        read_examples(tmp_path / "none.yaml")
