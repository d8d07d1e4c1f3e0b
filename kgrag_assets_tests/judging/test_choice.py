"""The settings' choice of a judge."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kgrag_assets.judging.choice import judge_version, make_judge
from kgrag_assets.models.errors import ModelUnavailableError
from kgrag_assets.models.ledger import CallLedger
from kgrag_assets.settings import JudgingSettings, LanguageModelSettings, Settings
from kgrag_assets_tests.judging.pairs import pair
from kgrag_assets_tests.servers.ollama_server import OllamaServer
from kgrag_assets_tests.servers.openai_server import OpenAIServer


def with_judging(**options: Any) -> Settings:
    return Settings(_env_file=None, judging=JudgingSettings(**options))  # type: ignore[call-arg]


@pytest.fixture
def ledger(tmp_path: Path) -> CallLedger:
    return CallLedger(tmp_path / "llm_calls.sqlite")


def test_the_default_is_offline_and_needs_nothing(ledger: CallLedger) -> None:
    judge = make_judge(with_judging(), ledger)
    assert judge.name == "offline"
    assert not ledger.path.exists()


def test_the_servers_judges_are_made_and_judge(
    openai_server: OpenAIServer, ollama_server: OllamaServer, ledger: CallLedger
) -> None:
    for settings in (
        with_judging(judge="openai", base_url=openai_server.url, prompt="pairwise"),
        with_judging(judge="ollama", model="llama3.2", base_url=ollama_server.url, prompt="pairwise"),
    ):
        judge = make_judge(settings, ledger)
        assert (judge.name, judge.model) == (settings.judging.judge, settings.judging.model)
        assert [one.parse_status for one in judge.judge([pair()])] == ["parsed"]
    assert ledger.frame()["provider"].to_list() == ["openai", "ollama"]


def test_a_missing_key_is_said_before_anything_is_judged(ledger: CallLedger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with pytest.raises(ModelUnavailableError, match="OPENAI_API_KEY"):
        make_judge(with_judging(judge="openai"), ledger)
    # Definitions are loaded without a key.
    assert judge_version(with_judging(judge="openai"))


@pytest.mark.parametrize(
    "change",
    [
        {"model": "other"},
        {"temperature": 0.3},
        {"max_tokens": 99},
        {"structured": "none"},
        {"judge": "ollama"},
        {"judge": "offline"},
        {"prompt": "pairwise"},
        {"candidates_per_call": 5},
        {"gate": False},
        {"gate_threshold": 3},
        {"answers": 3},
        {"description_tokens": 30},
        {"values": "local"},
    ],
)
def test_what_changes_the_meaning_changes_the_version(change: dict[str, Any]) -> None:
    base = with_judging(judge="openai")
    assert judge_version(base) == judge_version(with_judging(judge="openai", concurrency=9, timeout_s=3))
    assert judge_version(base) != judge_version(with_judging(**{"judge": "openai", **change}))


def test_a_second_judge_changes_the_version_and_stands_beside_a_language_model_only(ledger: CallLedger) -> None:
    second = LanguageModelSettings(provider="ollama", model="other")
    base = with_judging(judge="openai")
    assert judge_version(base.model_copy(update={"second_judge": second})) != judge_version(base)
    with pytest.raises(ModelUnavailableError, match="KGRAG_SECOND_JUDGE__PROVIDER"):
        make_judge(with_judging().model_copy(update={"second_judge": second}), ledger)


def test_a_model_that_is_not_pulled_is_said_before_anything_is_judged(
    ollama_server: OllamaServer, ledger: CallLedger
) -> None:
    with pytest.raises(ModelUnavailableError, match="ollama pull nowhere"):
        make_judge(with_judging(judge="ollama", model="nowhere", base_url=ollama_server.url), ledger)


def test_a_replay_needs_no_key_and_no_server_and_answers_from_the_ledger_alone(
    openai_server: OpenAIServer, ledger: CallLedger
) -> None:
    asked = with_judging(judge="openai", base_url=openai_server.url)
    judgments = make_judge(asked, ledger).judge([pair()])
    replayed = make_judge(with_judging(judge="openai", base_url="http://127.0.0.1:1"), ledger, replay=True)
    assert replayed.judge([pair()]) == judgments
    with pytest.raises(ModelUnavailableError, match="never asked"):
        replayed.judge([pair(facts=())])
