"""What makes retrieval run again, and what the language model's part in it has cost."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import polars as pl
import pytest

from kgrag_assets.models.chat import ChatReply, ChatRequest, Message
from kgrag_assets.models.ledger import CallLedger
from kgrag_assets.retrieval.spending import Spent, spent_on
from kgrag_assets.retrieval.versions import retrieval_version
from kgrag_assets.settings import LanguageModelSettings, RetrievalMethod, RetrievalSettings, Settings


def version(**changed: object) -> str:
    return retrieval_version(Settings(_env_file=None).model_copy(update=changed))


@pytest.mark.parametrize(
    "changed",
    [
        {"retrieval": RetrievalSettings(query_form="question")},
        {"retrieval": RetrievalSettings(adaptive=True)},
        {"retrieval": RetrievalSettings(fusion="rrf")},
        {"retrieval_llm": LanguageModelSettings(provider="ollama")},
    ],
)
def test_settings_that_change_the_meaning_change_the_version(changed: dict[str, object]) -> None:
    assert version(**changed) != version()


def test_limits_and_an_unused_model_change_nothing() -> None:
    assert version(retrieval_llm=LanguageModelSettings(model="other")) == version()
    slow = LanguageModelSettings(provider="openai", requests_per_minute=3, max_cost_usd=1.0, concurrency=1)
    assert version(retrieval_llm=slow) == version(retrieval_llm=LanguageModelSettings(provider="openai"))
    other = LanguageModelSettings(provider="openai", model="other")
    assert version(retrieval_llm=other) != version(retrieval_llm=slow)


@pytest.mark.parametrize(
    ("method", "module"),
    [("search_code", "search_code")],
)
def test_a_method_in_use_that_asks_a_model_has_its_version_in_it(method: RetrievalMethod, module: str) -> None:
    methods = RetrievalSettings(methods=("vector_triples", method))
    asked = version(retrieval=methods, retrieval_llm=LanguageModelSettings(provider="openai"))
    own = import_module(f"kgrag_assets.retrieval.{module}").VERSION
    assert asked.endswith(own)
    assert own not in version(retrieval=methods)


def test_each_call_is_added_up_once(tmp_path: Path) -> None:
    requests = [ChatRequest("openai", "m", (Message("user", text),)) for text in ("one", "two", "three")]
    with CallLedger(tmp_path / "calls.sqlite") as ledger:
        ledger.keep("t", requests[0], ChatReply("a", "answered", "", 10, 2, 0.1, 0.5))
        ledger.keep("t", requests[1], ChatReply("b", "answered", "", 7, 1, 0.1, None))
        ledger.keep("t", requests[2], ChatReply("", "timeout", "late", 0, 0, 0.1, None))
        one, two, three = (request.request_hash for request in requests)
        rows = pl.DataFrame({"request_hashes": [[one], [one, two], [], [three, "unknown"]]})
        assert spent_on(rows, ledger) == Spent(calls=2, tokens_in=17, tokens_out=3, cost_usd=0.5)


def test_nothing_is_asked_of_a_ledger_that_is_not_there(tmp_path: Path) -> None:
    path = tmp_path / "calls.sqlite"
    rows = pl.DataFrame({"request_hashes": [[], []]}, schema={"request_hashes": pl.List(pl.String)})
    with CallLedger(path) as ledger:
        assert spent_on(rows, ledger) == Spent(0, 0, 0, 0.0)
    assert not path.exists()
