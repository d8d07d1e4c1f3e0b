"""The judge that asks a model: statuses, the ledger, and what a kill or Ctrl-C leaves."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kgrag_assets.judging.llm_judge import LlmJudge
from kgrag_assets.judging.prompt_pair import PairwisePrompt
from kgrag_assets.judging.protocol import Evidence, JudgePair, Judgment
from kgrag_assets.models import ollama_server as ollama_endpoint
from kgrag_assets.models import openai_server as openai_endpoint
from kgrag_assets.models.asking_many import MOST_FAILURES_IN_A_ROW
from kgrag_assets.models.errors import ModelUnavailableError
from kgrag_assets.models.ledger import CallLedger
from kgrag_assets.models.ollama_chat import OllamaChat
from kgrag_assets.models.openai_chat import OpenAIChat
from kgrag_assets.settings import JudgingSettings
from kgrag_assets_tests.judging.pairs import FACT, attribute, pair, pairs
from kgrag_assets_tests.servers import NotedPause
from kgrag_assets_tests.servers import openai_server as wire
from kgrag_assets_tests.servers.ollama_server import OllamaServer
from kgrag_assets_tests.servers.openai_server import OpenAIServer
from kgrag_assets_tests.servers.scripted import Reply

MODEL = "gpt-4o-mini"


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[CallLedger]:
    with CallLedger(tmp_path / "llm_calls.sqlite") as opened:
        yield opened


def judge_for(server: OpenAIServer, ledger: CallLedger, pause: NotedPause, **options: Any) -> LlmJudge:
    settings = JudgingSettings(judge="openai", model=MODEL, base_url=server.url, **{"concurrency": 1, **options})
    endpoint = openai_endpoint.connect(server.url, "KGRAG_NO_SUCH_KEY", settings.timeout_s, "the test")
    chat = OpenAIChat(endpoint, MODEL, structured=settings.structured, max_retries=settings.max_retries, pause=pause)
    return LlmJudge(chat, ledger, settings, "openai", PairwisePrompt(settings))


def test_judgments_come_in_order_with_their_evidence(
    openai_server: OpenAIServer, ledger: CallLedger, pause: NotedPause
) -> None:
    openai_server.text_for = lambda body: (
        wire.GOOD_ANSWER
        if "column_3" in body["messages"][1]["content"]
        else '{"reason": "no", "match": false, "confidence": 0.8, "facts": []}'
    )
    judge = judge_for(openai_server, ledger, pause, concurrency=4)
    told: list[Judgment] = []
    threads = set()

    def on_done(judgment: Judgment) -> None:
        threads.add(threading.current_thread())
        told.append(judgment)
        # The call is in the ledger before anybody hears of it.
        assert judgment.request_hash is not None
        assert ledger.find(judgment.request_hash) is not None

    judgments = judge.judge(pairs(8), on_done=on_done)
    assert [judgment.pair_id for judgment in judgments] == [one.pair_id for one in pairs(8)]
    assert sorted(told, key=lambda judgment: judgment.pair_id) == sorted(judgments, key=lambda one: one.pair_id)
    assert threads == {threading.current_thread()}
    assert [judgment.answer for judgment in judgments] == [number == 3 for number in range(8)]
    yes = judgments[3]
    assert (yes.parse_status, yes.score, yes.reason) == ("parsed", 0.9, "both hold a birth date")
    assert yes.cited_facts == ("fact-1",)
    assert (yes.tokens_in, yes.tokens_out, yes.cost_usd) == (100, 20, 0.0)
    assert judgments[0].score == pytest.approx(0.2)
    assert ledger.frame()["task"].unique().to_list() == ["clinic"]


def test_a_second_run_asks_nothing(openai_server: OpenAIServer, ledger: CallLedger, pause: NotedPause) -> None:
    first = judge_for(openai_server, ledger, pause).judge(pairs(5))
    assert len(openai_server.asked) == 5
    assert judge_for(openai_server, ledger, pause).judge(pairs(5)) == first
    assert len(openai_server.asked) == 5
    edited = [*pairs(4), pair(source=attribute("source", "pat", "column_4", column_description="edited"))]
    judge_for(openai_server, ledger, pause).judge(edited)
    assert len(openai_server.asked) == 6


def test_no_pairs_is_no_work(openai_server: OpenAIServer, ledger: CallLedger, pause: NotedPause) -> None:
    assert judge_for(openai_server, ledger, pause).judge([]) == []
    assert openai_server.asked == []


@pytest.mark.parametrize(
    ("reply", "status", "answer"),
    [
        (wire.REFUSAL, "refused", None),
        (wire.TRUNCATED, "truncated", None),
        (wire.completion('{"match": false}', finish_reason="length"), "recovered", False),
        (wire.completion(""), "empty", None),
        (wire.completion("The two look alike."), "unparsed", None),
        (wire.completion("not matched. Label: 0"), "recovered", False),
        (wire.completion('<think>yes</think>{"match": false}'), "recovered", False),
        (wire.completion('{"match": true} {"match": false}'), "ambiguous", None),
        (wire.rate_limited("9999"), "rate_limited", None),
        (wire.SERVER_ERROR, "error", None),
        (Reply(200, b"{not json"), "error", None),
    ],
)
def test_every_way_a_call_can_go_has_its_status(
    openai_server: OpenAIServer, ledger: CallLedger, pause: NotedPause, reply: Reply, status: str, answer: bool | None
) -> None:
    openai_server.then(reply)
    judge = judge_for(openai_server, ledger, pause, max_retries=0)
    first, second = judge.judge(pairs(2))
    assert (first.parse_status, first.answer) == (status, answer)
    assert (first.score is None) == (answer is None)
    assert second.parse_status == "parsed"
    if status in ("refused", "rate_limited", "error"):
        assert first.reason
        # A failure is asked again.
        assert judge.judge(pairs(2))[0].parse_status == "parsed"


def test_a_wrong_key_keeps_what_was_answered_and_cancels_the_rest(
    openai_server: OpenAIServer, ledger: CallLedger, pause: NotedPause
) -> None:
    def on_asked(number: int) -> None:
        if number == 4:
            openai_server.models = set()

    openai_server.on_asked = on_asked
    told: list[Judgment] = []
    with pytest.raises(ModelUnavailableError, match=MODEL):
        judge_for(openai_server, ledger, pause).judge(pairs(50), on_done=told.append)
    assert ledger.frame().height == 3
    assert len(told) == 3
    asked = len(openai_server.asked)
    assert asked < 50
    openai_server.on_asked, openai_server.models = None, {MODEL}
    assert len(judge_for(openai_server, ledger, pause).judge(pairs(50))) == 50
    assert len(openai_server.asked) == asked + 47


def test_ctrl_c_keeps_what_was_answered(openai_server: OpenAIServer, ledger: CallLedger, pause: NotedPause) -> None:
    told: list[Judgment] = []

    def on_done(judgment: Judgment) -> None:
        told.append(judgment)
        if len(told) == 5:
            raise KeyboardInterrupt

    judge = judge_for(openai_server, ledger, pause, concurrency=2)
    with pytest.raises(KeyboardInterrupt):
        judge.judge(pairs(60), on_done=on_done)
    kept = ledger.frame()
    assert 5 <= kept.height == len(openai_server.asked) < 60
    assert kept["status"].unique().to_list() == ["answered"]
    # The same judge works on afterwards, and pays only for the rest.
    assert len(judge.judge(pairs(60))) == 60
    assert len(openai_server.asked) == 60


def test_a_dead_server_ends_the_run_instead_of_failing_every_pair(
    openai_server: OpenAIServer, ledger: CallLedger, pause: NotedPause
) -> None:
    openai_server.then(*[wire.SERVER_ERROR] * 1000)
    judge = judge_for(openai_server, ledger, pause, max_retries=0)
    with pytest.raises(ModelUnavailableError, match="calls in a row"):
        judge.judge(pairs(200))
    assert MOST_FAILURES_IN_A_ROW <= len(openai_server.asked) < 200


def test_failures_between_answers_end_nothing(
    openai_server: OpenAIServer, ledger: CallLedger, pause: NotedPause
) -> None:
    answer = wire.completion(wire.GOOD_ANSWER)
    openai_server.then(*([wire.SERVER_ERROR] * 10 + [answer]) * 3)
    statuses = [one.parse_status for one in judge_for(openai_server, ledger, pause, max_retries=0).judge(pairs(33))]
    assert statuses.count("error") == 30


def test_what_decides_a_judgment_decides_its_key(
    openai_server: OpenAIServer, ledger: CallLedger, pause: NotedPause
) -> None:
    def key_of(one: JudgePair, **options: Any) -> str:
        return judge_for(openai_server, ledger, pause, **options).keys([one])[0]

    base = pair()
    key = key_of(base)
    assert key_of(pair()) == key
    # Other settings that decide no answer leave it alone.
    assert key_of(base, concurrency=9, timeout_s=1, max_retries=9) == key
    others = [
        key_of(replace(base, context_key="other")),
        key_of(replace(base, task="other")),
        key_of(replace(base, facts=())),
        key_of(replace(base, facts=(replace(FACT, text="other"),))),
        key_of(replace(base, values=(replace(FACT, kind="values"),))),
        key_of(replace(base, target_tables=("other",))),
        key_of(pair(source=attribute("source", "pat", "dob", column_description="other"))),
        key_of(pair(target=attribute("target", "person", "other"))),
        key_of(base, temperature=0.5),
        key_of(base, max_tokens=400),
        key_of(base, structured="none"),
        key_of(base, gate=False),
        key_of(base, gate_threshold=5),
        key_of(base, answers=3),
        key_of(base, description_tokens=20),
    ]
    assert len({key, *others}) == 1 + len(others)
    assert openai_server.asked == []


def test_facts_are_cited_by_their_own_ids(openai_server: OpenAIServer, ledger: CallLedger, pause: NotedPause) -> None:
    openai_server.text_for = lambda _body: '{"reason": "r", "match": true, "confidence": 1, "facts": ["F2", "F3"]}'
    facts = (FACT, Evidence("other-id", "second", "path", "entity_paths", 0.1))
    (judgment,) = judge_for(openai_server, ledger, pause).judge([pair(facts=facts)])
    assert judgment.cited_facts == ("other-id",)
    assert judgment.unknown_citations == ("F3",)


def test_ollama_judges_too(ollama_server: OllamaServer, ledger: CallLedger, pause: NotedPause) -> None:
    settings = JudgingSettings(judge="ollama", model="llama3.2", base_url=ollama_server.url)
    chat = OllamaChat(ollama_endpoint.connect(ollama_server.url, 5.0), "llama3.2", pause=pause)
    judge = LlmJudge(chat, ledger, settings, "ollama", PairwisePrompt(settings))
    assert (judge.name, judge.model) == ("ollama", "llama3.2")
    assert {one.parse_status for one in judge.judge(pairs(3))} == {"parsed"}
    assert ledger.frame()["provider"].to_list() == ["ollama"] * 3


RUN = """
import sys
from pathlib import Path
from kgrag_assets.judging.llm_judge import LlmJudge
from kgrag_assets.judging.prompt_pair import PairwisePrompt
from kgrag_assets.models import openai_server
from kgrag_assets.models.ledger import CallLedger
from kgrag_assets.models.openai_chat import OpenAIChat
from kgrag_assets.settings import JudgingSettings
from kgrag_assets_tests.judging.pairs import pairs
url, ledger, concurrency = sys.argv[1:]
settings = JudgingSettings(judge="openai", base_url=url, concurrency=int(concurrency))
server = openai_server.connect(url, "KGRAG_NO_SUCH_KEY", 60.0, "the test")
chat = OpenAIChat(server, settings.model)
judge = LlmJudge(chat, CallLedger(Path(ledger)), settings, "openai", PairwisePrompt(settings))
judge.judge(pairs(20), on_done=lambda judgment: print(judgment.pair_id, flush=True))
"""


def run_elsewhere(server: OpenAIServer, ledger: CallLedger, concurrency: int) -> subprocess.Popen[str]:
    root = Path(__file__).parents[2]
    return subprocess.Popen(
        [sys.executable, "-c", RUN, server.url, str(ledger.path), str(concurrency)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
    )


def test_ctrl_c_does_not_sit_out_the_waits(openai_server: OpenAIServer, ledger: CallLedger) -> None:
    openai_server.then(*[wire.completion(wire.GOOD_ANSWER)] * 3, *[wire.rate_limited("55")] * 17)
    all_wait = threading.Event()
    openai_server.on_asked = lambda number: all_wait.set() if number == 7 else None
    process = run_elsewhere(openai_server, ledger, 4)
    assert all_wait.wait(60)
    process.send_signal(signal.SIGINT)
    # Four waits of 55 s are under way, and 13 pairs are still to come.
    _, errors = process.communicate(timeout=40)
    assert "KeyboardInterrupt" in errors
    assert ledger.frame()["status"].to_list().count("answered") == 3


@pytest.mark.parametrize("concurrency", [1, 4])
def test_a_killed_run_has_kept_what_was_answered(
    openai_server: OpenAIServer, ledger: CallLedger, pause: NotedPause, concurrency: int
) -> None:
    answered = 7
    openai_server.then(*[wire.completion(wire.GOOD_ANSWER)] * answered, *[Reply(hang=True)] * concurrency)
    all_hang = threading.Event()
    openai_server.on_asked = lambda number: all_hang.set() if number == answered + concurrency else None
    process = run_elsewhere(openai_server, ledger, concurrency)
    # When every worker waits for an answer that does not come, all answers that came are kept.
    assert all_hang.wait(60)
    process.send_signal(signal.SIGKILL)
    told, _ = process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL
    kept = ledger.frame()
    assert kept.height == answered
    assert kept["status"].unique().to_list() == ["answered"]
    shown_in_ledger = {json.loads(request)["messages"][1]["content"] for request in kept["request"]}
    first = [asked.body["messages"][1]["content"] for asked in openai_server.asked]
    assert shown_in_ledger == set(first[:answered])
    assert len(told.splitlines()) <= answered

    openai_server.asked.clear()
    openai_server.on_asked = None
    judgments = judge_for(openai_server, ledger, pause, concurrency=concurrency).judge(pairs(20))
    assert {judgment.parse_status for judgment in judgments} == {"parsed"}
    again = {asked.body["messages"][1]["content"] for asked in openai_server.asked}
    assert len(again) == len(openai_server.asked) == 20 - answered
    assert not again & shown_in_ledger
