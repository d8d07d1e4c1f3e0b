"""The settings' choice of a judge."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kgrag_assets.judging.choice import judge_version, make_judge
from kgrag_assets.models.errors import ModelUnavailableError
from kgrag_assets.models.ledger import CallLedger
from kgrag_assets.settings import JudgingSettings
from kgrag_assets_tests.judging.pairs import pair
from kgrag_assets_tests.servers.ollama_server import OllamaServer
from kgrag_assets_tests.servers.openai_server import OpenAIServer


@pytest.fixture
def ledger(tmp_path: Path) -> CallLedger:
    return CallLedger(tmp_path / "llm_calls.sqlite")


def test_the_default_is_offline_and_needs_nothing(ledger: CallLedger) -> None:
    judge = make_judge(JudgingSettings(), ledger)
    assert judge.name == "offline"
    assert not ledger.path.exists()


def test_the_servers_judges_are_made_and_judge(
    openai_server: OpenAIServer, ollama_server: OllamaServer, ledger: CallLedger
) -> None:
    for settings in (
        JudgingSettings(judge="openai", base_url=openai_server.url),
        JudgingSettings(judge="ollama", model="llama3.2", base_url=ollama_server.url),
    ):
        judge = make_judge(settings, ledger)
        assert (judge.name, judge.model) == (settings.judge, settings.model)
        assert [one.parse_status for one in judge.judge([pair()])] == ["parsed"]
    assert ledger.frame()["provider"].to_list() == ["openai", "ollama"]


def test_a_missing_key_is_said_before_anything_is_judged(ledger: CallLedger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with pytest.raises(ModelUnavailableError, match="OPENAI_API_KEY"):
        make_judge(JudgingSettings(judge="openai"), ledger)
    # Definitions are loaded without a key.
    assert judge_version(JudgingSettings(judge="openai"))


@pytest.mark.parametrize(
    "change",
    [
        {"model": "other"},
        {"temperature": 0.3},
        {"max_tokens": 99},
        {"structured": "none"},
        {"judge": "ollama"},
        {"judge": "offline"},
    ],
)
def test_what_changes_the_meaning_changes_the_version(change: dict[str, Any]) -> None:
    base = JudgingSettings(judge="openai")
    assert judge_version(base) == judge_version(JudgingSettings(judge="openai", concurrency=9, timeout_s=3))
    assert judge_version(base) != judge_version(JudgingSettings(**{"judge": "openai", **change}))
