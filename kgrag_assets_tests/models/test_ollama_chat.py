"""The ollama adapter against a server on loopback that speaks the protocol."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from kgrag_assets.models import ollama_server as endpoint
from kgrag_assets.models.chat import ChatRequest, Message
from kgrag_assets.models.errors import ModelUnavailableError
from kgrag_assets.models.ollama_chat import OllamaChat, context_for
from kgrag_assets_tests.servers import NotedPause
from kgrag_assets_tests.servers import ollama_server as wire
from kgrag_assets_tests.servers.ollama_server import OllamaServer
from kgrag_assets_tests.servers.openai_server import GOOD_ANSWER
from kgrag_assets_tests.servers.scripted import Reply

SCHEMA = {"type": "object", "properties": {"match": {"type": "boolean"}}, "required": ["match"]}


def request(**changes: Any) -> ChatRequest:
    values: dict[str, Any] = {
        "provider": "ollama",
        "model": "llama3.2",
        "messages": (Message("user", "Same?"),),
        "json_schema": SCHEMA,
    }
    return ChatRequest(**{**values, **changes})


@pytest.fixture
def chat(ollama_server: OllamaServer, pause: NotedPause) -> OllamaChat:
    return OllamaChat(endpoint.connect(ollama_server.url, 5.0), "llama3.2", pause=pause)


def test_a_good_answer_is_asked_for_as_the_protocol_has_it(ollama_server: OllamaServer, chat: OllamaChat) -> None:
    reply = chat.ask(request(temperature=0.5, seed=7))
    assert (reply.status, reply.text, reply.error) == ("answered", GOOD_ANSWER, "")
    assert (reply.tokens_in, reply.tokens_out, reply.cost_usd) == (100, 20, 0.0)
    (asked,) = ollama_server.asked
    assert asked.path == "/api/chat"
    assert asked.body == {
        "model": "llama3.2",
        "messages": [{"role": "user", "content": "Same?"}],
        "stream": False,
        "tools": [],
        "format": SCHEMA,
        "options": {"temperature": 0.5, "num_predict": 300, "num_ctx": 4096, "seed": 7},
    }


def test_a_long_prompt_gets_a_window_that_holds_it() -> None:
    assert context_for(request()) == 4096
    long = request(messages=(Message("user", "x" * 20_000),), max_tokens=1000)
    assert context_for(long) == 8192


@pytest.mark.parametrize(
    ("reply", "status", "text"),
    [
        (wire.TRUNCATED, "truncated", '{"reason": "both'),
        (wire.chat(""), "answered", ""),
        (wire.chat("cut off", done=False), "error", "cut off"),
        (wire.chat("lone \ud800 surrogate"), "answered", "lone ? surrogate"),
    ],
)
def test_what_a_model_does_is_a_status(
    ollama_server: OllamaServer, chat: OllamaChat, reply: Reply, status: str, text: str
) -> None:
    ollama_server.then(reply)
    got = chat.ask(request())
    assert (got.status, got.text, got.tokens_in) == (status, text, 100)
    assert bool(got.error) == (status != "answered")


@pytest.mark.parametrize(
    "bad",
    [
        wire.SERVER_ERROR,
        wire.OVERLOADED,
        Reply(502, b"<html>bad gateway</html>", content_type="text/html"),
        Reply(500, ["an", "error", "that", "is", "a", "list"]),
        Reply(200, b'{"model": "llama3.2", "mess'),
        Reply(200, []),
        Reply(200, {"model": "llama3.2", "done": True}),
        Reply(200, {"message": {"role": "assistant", "content": 5}, "done": True}),
        Reply(200, b""),
        Reply(200, {"a": "x" * 5000}, cut=True),
    ],
    ids=lambda reply: str(reply.body)[:30],
)
def test_a_failing_server_is_asked_again_and_then_given_up(
    ollama_server: OllamaServer, chat: OllamaChat, pause: NotedPause, bad: Reply
) -> None:
    ollama_server.then(bad)
    assert chat.ask(request()).status == "answered"
    assert len(pause.waits) == 1
    ollama_server.then(*[bad] * 4)
    reply = chat.ask(request())
    assert (reply.status, reply.text) == ("error", "")
    assert reply.error
    assert len(ollama_server.asked) == 2 + 4


def test_retry_after_is_obeyed_and_forgotten(ollama_server: OllamaServer, chat: OllamaChat, pause: NotedPause) -> None:
    ollama_server.then(wire.error(429, "too many requests", retry_after="7"), wire.error(429, "too many requests"))
    assert chat.ask(request()).status == "answered"
    assert pause.waits[0] == 7.0
    assert pause.waits[1] <= 1.0


def test_a_lasting_limit_ends_as_rate_limited(ollama_server: OllamaServer, chat: OllamaChat) -> None:
    ollama_server.then(*[wire.error(429, "too many requests")] * 4)
    assert chat.ask(request()).status == "rate_limited"


def test_silence_is_a_timeout(ollama_server: OllamaServer, pause: NotedPause) -> None:
    chat = OllamaChat(endpoint.connect(ollama_server.url, 0.1), "llama3.2", max_retries=1, pause=pause)
    ollama_server.then(Reply(hang=True), Reply(hang=True))
    assert chat.ask(request()).status == "timeout"
    assert len(ollama_server.asked) == 2


def test_nobody_listening_is_an_error_that_says_what_to_do(pause: NotedPause) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
    reply = OllamaChat(endpoint.connect(url, 1.0), "llama3.2", pause=pause).ask(request())
    assert reply.status == "error"
    assert "ollama serve" in reply.error


def test_a_server_without_schemas_is_asked_without_and_remembered(
    ollama_server: OllamaServer, chat: OllamaChat
) -> None:
    ollama_server.takes_schema = False
    assert chat.ask(request()).status == "answered"
    assert chat.ask(request()).status == "answered"
    assert [asked.body.get("format") for asked in ollama_server.asked] == [SCHEMA, None, None]


def test_a_400_without_a_schema_is_an_error(ollama_server: OllamaServer, chat: OllamaChat) -> None:
    ollama_server.then(wire.error(400, "invalid options"))
    reply = chat.ask(request(json_schema=None))
    assert (reply.status, "invalid options" in reply.error) == ("error", True)


def test_an_unknown_model_says_how_to_fetch_it(ollama_server: OllamaServer, chat: OllamaChat) -> None:
    ollama_server.models = set()
    with pytest.raises(ModelUnavailableError, match=r"ollama pull llama3\.2"):
        chat.ask(request())


def test_a_missing_key_for_a_hosted_server_says_which_variable(ollama_server: OllamaServer, chat: OllamaChat) -> None:
    ollama_server.then(wire.error(401, "unauthorized"))
    with pytest.raises(ModelUnavailableError, match="OLLAMA_API_KEY"):
        chat.ask(request())


def test_a_hosted_model_has_no_known_price(ollama_server: OllamaServer, pause: NotedPause) -> None:
    ollama_server.models.add("gpt-oss:120b-cloud")
    chat = OllamaChat(endpoint.connect(ollama_server.url, 5.0), "gpt-oss:120b-cloud", pause=pause)
    assert chat.ask(request(model="gpt-oss:120b-cloud")).cost_usd is None


def test_the_address_may_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OLLAMA_HOST", "0.0.0.0:1234")
    assert endpoint.connect(None, 1.0).base_url == "http://127.0.0.1:1234"
    monkeypatch.delenv("OLLAMA_HOST")
    assert endpoint.connect(None, 1.0).base_url == endpoint.DEFAULT_URL
    with pytest.raises(ModelUnavailableError, match="not a URL"):
        endpoint.connect("ftp://x", 1.0)


def test_a_proxy_is_not_asked_for_a_server_on_this_machine(
    ollama_server: OllamaServer, pause: NotedPause, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    assert (
        OllamaChat(endpoint.connect(ollama_server.url, 5.0), "llama3.2", pause=pause).ask(request()).status
        == "answered"
    )


def test_a_key_that_the_server_repeats_does_not_get_into_the_error(
    ollama_server: OllamaServer, pause: NotedPause, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OLLAMA_API_KEY", "top-secret-word")
    chat = OllamaChat(endpoint.connect(ollama_server.url, 5.0), "llama3.2", pause=pause)
    ollama_server.then(*[wire.error(500, "failed for top-secret-word")] * 4)
    reply = chat.ask(request())
    assert reply.status == "error"
    assert "top-secret-word" not in reply.error
    assert ollama_server.asked[0].headers["authorization"] == "Bearer top-secret-word"
