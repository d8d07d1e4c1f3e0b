"""What a task may set and what it may not: its folder is somebody's upload."""

from __future__ import annotations

from typing import Any

import pytest

from kgrag_assets.settings import JudgingSettings, LanguageModelSettings, Settings, SettingsError


def settings(**sections: Any) -> Settings:
    return Settings(_env_file=None, **sections)  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("section", "name", "value"),
    [
        ("judging", "base_url", "http://elsewhere.example"),
        ("judging", "api_key_env", "HOME"),
        ("judging", "few_shot", "/etc/passwd"),
        ("judging", "max_cost_usd", 1e9),
        ("judging", "max_total_tokens", 10**9),
        ("judging", "requests_per_minute", 10**6),
        ("judging", "tokens_per_minute", 10**9),
        ("ranking", "cross_encoder", "somebody/elses-model"),
    ],
)
def test_what_spends_reads_or_fetches_is_not_set_by_a_task(section: str, name: str, value: object) -> None:
    with pytest.raises(SettingsError, match=f"{section}.{name} is set in the environment, not by a task"):
        settings().for_task({section: {name: value}}, "task.yaml")


@pytest.mark.parametrize(
    ("environment", "task", "allowed"),
    [
        ("local", "shapes", False),
        ("local", "masked", False),
        ("shapes", "masked", False),
        ("shapes", "local", True),
        ("masked", "shapes", True),
        ("local", "local", True),
    ],
)
def test_a_task_may_keep_more_values_here_and_not_fewer(environment: str, task: str, allowed: bool) -> None:
    own = settings(judging=JudgingSettings.model_validate({"values": environment}))
    if allowed:
        assert own.for_task({"judging": {"values": task}}, "task.yaml").judging.values == task
    else:
        with pytest.raises(SettingsError, match=r"task\.yaml: judging\.values may keep more"):
            own.for_task({"judging": {"values": task}}, "task.yaml")


def test_an_unknown_value_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SettingsError, match=r"task\.yaml: options\.judging\.values"):
        settings().for_task({"judging": {"values": "everything"}}, "task.yaml")
    monkeypatch.setenv("KGRAG_JUDGING__VALUES", "local")
    assert settings().judging.values == "local"


def test_the_judges_model_is_asked_as_the_judge_is_set() -> None:
    asked = JudgingSettings(judge="ollama", model="m", max_total_tokens=7, concurrency=2).language_model
    assert asked == LanguageModelSettings(provider="ollama", model="m", max_total_tokens=7, concurrency=2)
    assert JudgingSettings().language_model.provider == "none"
