"""The openai adapter against a server on loopback that speaks the protocol."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from kgrag_assets.models import openai_server as endpoint
from kgrag_assets.models.chat import ChatRequest, Message
from kgrag_assets.models.errors import ModelUnavailableError
from kgrag_assets.models.openai_chat import OpenAIChat
from kgrag_assets.models.prices import Price, PriceList
from kgrag_assets_tests.servers import NotedPause
from kgrag_assets_tests.servers import openai_server as wire
from kgrag_assets_tests.servers.openai_server import OpenAIServer
from kgrag_assets_tests.servers.scripted import Reply

KEY = "sk-test-0123456789abcdef"
SCHEMA = {"type": "object", "properties": {"match": {"type": "boolean"}}, "required": ["match"]}


def request(**changes: Any) -> ChatRequest:
    values: dict[str, Any] = {
        "provider": "openai",
        "model": "gpt-4o-mini",
        "messages": (Message("system", "Judge."), Message("user", "Same?")),
        "json_schema": SCHEMA,
    }
    return ChatRequest(**{**values, **changes})


@pytest.fixture
def chat(openai_server: OpenAIServer, pause: NotedPause, monkeypatch: pytest.MonkeyPatch) -> OpenAIChat:
    return make(openai_server.url, pause, monkeypatch)


def make(url: str, pause: NotedPause, monkeypatch: pytest.MonkeyPatch, **options: Any) -> OpenAIChat:
    monkeypatch.setenv("KGRAG_TEST_KEY", KEY)
    server = endpoint.connect(url, "KGRAG_TEST_KEY", options.pop("timeout_s", 5.0), "the test")
    return OpenAIChat(server, "gpt-4o-mini", pause=pause, **options)


def test_a_good_answer_is_asked_for_as_the_protocol_has_it(openai_server: OpenAIServer, chat: OpenAIChat) -> None:
    openai_server.key = KEY
    reply = chat.ask(request(seed=7))
    assert (reply.status, reply.text, reply.error) == ("answered", wire.GOOD_ANSWER, "")
    assert (reply.tokens_in, reply.tokens_out, reply.cost_usd) == (100, 20, 0.0)
    assert reply.latency_s > 0
    (asked,) = openai_server.asked
    assert asked.path == "/v1/chat/completions"
    assert asked.body == {
        "model": "gpt-4o-mini",
        "messages": [{"role": "system", "content": "Judge."}, {"role": "user", "content": "Same?"}],
        "temperature": 0.0,
        "max_tokens": 300,
        "seed": 7,
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "answer", "strict": True, "schema": SCHEMA},
        },
    }


def test_no_schema_is_sent_where_none_is_asked_for(openai_server: OpenAIServer, chat: OpenAIChat) -> None:
    chat.ask(request(json_schema=None))
    assert "response_format" not in openai_server.asked[0].body


@pytest.mark.parametrize(
    ("reply", "status", "text", "error"),
    [
        (wire.REFUSAL, "refused", "", "I cannot help with that."),
        (wire.CONTENT_FILTER, "refused", "", "content filter"),
        (wire.TRUNCATED, "truncated", '{"reason": "both hold a bi', "MAX_TOKENS"),
        (wire.completion(""), "answered", "", ""),
        (wire.completion(None), "answered", "", ""),
        (wire.completion("lone \ud800 surrogate"), "answered", "lone ? surrogate", ""),
    ],
)
def test_what_a_model_does_is_a_status(
    openai_server: OpenAIServer, chat: OpenAIChat, reply: Reply, status: str, text: str, error: str
) -> None:
    openai_server.then(reply)
    got = chat.ask(request())
    assert (got.status, got.text) == (status, text)
    assert error in got.error
    assert got.tokens_in == 100
    assert len(openai_server.asked) == 1


@pytest.mark.parametrize(
    "bad",
    [
        wire.SERVER_ERROR,
        Reply(502, b"<html>bad gateway</html>", content_type="text/html"),
        Reply(200, b'{"id": "chatcmpl-1", "choi'),
        Reply(200, b"<html>welcome</html>", content_type="text/html"),
        Reply(200, []),
        Reply(200, {"error": {"message": "upstream is down"}}),
        Reply(200, {"choices": []}),
        Reply(200, {"choices": [None]}),
        Reply(200, {"choices": [{"message": {"content": ["not", "text"]}}]}),
        Reply(200, b""),
        Reply(200, {"a": "x" * 5000}, cut=True),
    ],
    ids=lambda reply: str(reply.body)[:30],
)
def test_a_failing_server_is_asked_again_and_then_given_up(
    openai_server: OpenAIServer, chat: OpenAIChat, pause: NotedPause, bad: Reply
) -> None:
    openai_server.then(bad)
    assert chat.ask(request()).status == "answered"
    assert len(pause.waits) == 1
    openai_server.then(*[bad] * 4)
    reply = chat.ask(request())
    assert (reply.status, reply.text) == ("error", "")
    assert reply.error
    assert len(openai_server.asked) == 2 + 4


def test_waits_grow_and_have_some_chance_in_them(
    openai_server: OpenAIServer, chat: OpenAIChat, pause: NotedPause
) -> None:
    openai_server.then(*[wire.SERVER_ERROR] * 4)
    chat.ask(request())
    assert len(pause.waits) == 3
    assert all(full / 2 <= wait <= full for wait, full in zip(pause.waits, (0.5, 1.0, 2.0), strict=True))


def test_retry_after_is_obeyed(openai_server: OpenAIServer, chat: OpenAIChat, pause: NotedPause) -> None:
    openai_server.then(wire.rate_limited("7"), wire.rate_limited("2.5"))
    assert chat.ask(request()).status == "answered"
    assert pause.waits == [7.0, 2.5]


@pytest.mark.parametrize("asked_for", ["3600", "inf", "Fri, 01 Jan 2100 00:00:00 GMT"])
def test_too_long_a_retry_after_ends_the_call(
    openai_server: OpenAIServer, chat: OpenAIChat, pause: NotedPause, asked_for: str
) -> None:
    openai_server.then(wire.rate_limited(asked_for))
    reply = chat.ask(request())
    assert reply.status == "rate_limited"
    assert "429" in reply.error
    assert pause.waits == []


def test_a_lasting_limit_ends_as_rate_limited(openai_server: OpenAIServer, chat: OpenAIChat) -> None:
    openai_server.then(*[wire.rate_limited(None)] * 4)
    assert chat.ask(request()).status == "rate_limited"


def test_an_interrupted_pause_ends_the_call(openai_server: OpenAIServer, chat: OpenAIChat, pause: NotedPause) -> None:
    pause.interrupt()
    openai_server.then(wire.rate_limited("5"))
    assert chat.ask(request()).status == "rate_limited"
    assert len(openai_server.asked) == 1


def test_silence_is_a_timeout(openai_server: OpenAIServer, pause: NotedPause, monkeypatch: pytest.MonkeyPatch) -> None:
    chat = make(openai_server.url, pause, monkeypatch, timeout_s=0.1, max_retries=1)
    openai_server.then(Reply(hang=True), Reply(hang=True))
    reply = chat.ask(request())
    assert reply.status == "timeout"
    assert len(openai_server.asked) == 2


def test_nobody_listening_is_an_error(pause: NotedPause, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/v1"
    reply = make(url, pause, monkeypatch).ask(request())
    assert reply.status == "error"
    assert "no connection to 127.0.0.1" in reply.error


@pytest.mark.parametrize("named", [True, False], ids=["the message names the format", "it does not"])
def test_a_server_without_schemas_is_asked_without_and_remembered(
    openai_server: OpenAIServer, chat: OpenAIChat, named: bool
) -> None:
    if named:
        openai_server.takes_schema = False
    else:
        openai_server.then(wire.error(400, "bad request", "invalid_request_error"))
    assert chat.ask(request()).status == "answered"
    assert chat.ask(request()).status == "answered"
    assert ["response_format" in asked.body for asked in openai_server.asked] == [True, False, False]


def test_a_400_that_is_not_about_the_schema_does_not_turn_schemas_off(
    openai_server: OpenAIServer, chat: OpenAIChat, pause: NotedPause
) -> None:
    too_long = wire.error(400, "This model's maximum context length is 8 tokens", "invalid_request_error")
    openai_server.then(too_long, too_long)
    reply = chat.ask(request())
    assert (reply.status, "maximum context length" in reply.error) == ("error", True)
    assert chat.ask(request()).status == "answered"
    openai_server.then(too_long)
    assert chat.ask(request()).status == "error"
    assert ["response_format" in asked.body for asked in openai_server.asked] == [True, False, True, True]
    assert pause.waits == []


def test_insisting_on_a_schema_that_the_server_does_not_take_says_what_to_set(
    openai_server: OpenAIServer, pause: NotedPause, monkeypatch: pytest.MonkeyPatch
) -> None:
    openai_server.takes_schema = False
    chat = make(openai_server.url, pause, monkeypatch, structured="json_schema")
    with pytest.raises(ModelUnavailableError, match="KGRAG_JUDGING__STRUCTURED"):
        chat.ask(request())


def test_structured_none_never_sends_a_schema(
    openai_server: OpenAIServer, pause: NotedPause, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(openai_server.url, pause, monkeypatch, structured="none").ask(request())
    assert "response_format" not in openai_server.asked[0].body


def test_a_reasoning_model_gets_its_own_name_for_the_limit(openai_server: OpenAIServer, chat: OpenAIChat) -> None:
    openai_server.then(
        wire.error(
            400,
            "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.",
            "invalid_request_error",
            code="unsupported_parameter",
            param="max_tokens",
        )
    )
    assert chat.ask(request()).status == "answered"
    assert chat.ask(request()).status == "answered"
    assert [asked.body.get("max_completion_tokens") for asked in openai_server.asked] == [None, 300, 300]
    assert ["max_tokens" in asked.body for asked in openai_server.asked] == [True, False, False]


def test_a_refused_temperature_says_what_to_set(openai_server: OpenAIServer, chat: OpenAIChat) -> None:
    openai_server.then(
        wire.error(400, "Unsupported value: 'temperature'", "invalid_request_error", param="temperature")
    )
    with pytest.raises(ModelUnavailableError, match="KGRAG_JUDGING__TEMPERATURE"):
        chat.ask(request())


def test_a_wrong_key_stops_everything_and_is_not_repeated(
    openai_server: OpenAIServer, chat: OpenAIChat, pause: NotedPause
) -> None:
    openai_server.key = "another"
    with pytest.raises(ModelUnavailableError, match="KGRAG_TEST_KEY") as caught:
        chat.ask(request())
    assert KEY not in str(caught.value)
    assert caught.value.__suppress_context__  # the client's exception, which may hold the key, is not shown
    assert pause.waits == []


def test_an_unknown_model_stops_everything(openai_server: OpenAIServer, chat: OpenAIChat) -> None:
    openai_server.models = {"other"}
    with pytest.raises(ModelUnavailableError, match="gpt-4o-mini"):
        chat.ask(request())


@pytest.mark.parametrize(
    "reply", [wire.OUT_OF_CREDIT, wire.error(402, "payment required", "billing"), wire.error(403, "no", "forbidden")]
)
def test_an_account_that_cannot_pay_or_may_not_stops_everything(
    openai_server: OpenAIServer, chat: OpenAIChat, pause: NotedPause, reply: Reply
) -> None:
    openai_server.then(reply)
    with pytest.raises(ModelUnavailableError, match=r"credit|allow"):
        chat.ask(request())
    assert pause.waits == []


def test_a_key_that_the_server_repeats_does_not_get_into_the_error(
    openai_server: OpenAIServer, chat: OpenAIChat
) -> None:
    openai_server.then(*[wire.error(500, f"failed for {KEY} and sk-abc***wxyz", "server_error")] * 4)
    reply = chat.ask(request())
    assert reply.status == "error"
    assert KEY not in reply.error
    assert "wxyz" not in reply.error


def test_a_missing_key_is_said_at_once_unless_the_server_is_on_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KGRAG_TEST_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with pytest.raises(ModelUnavailableError, match="KGRAG_TEST_KEY is not set"):
        endpoint.connect(None, "KGRAG_TEST_KEY", 1.0, "the test")
    with pytest.raises(ModelUnavailableError, match="KGRAG_TEST_KEY is not set"):
        endpoint.connect("https://models.example.org/v1", "KGRAG_TEST_KEY", 1.0, "the test")
    endpoint.connect("http://localhost:1/v1", "KGRAG_TEST_KEY", 1.0, "the test")
    with pytest.raises(ModelUnavailableError, match="not a URL"):
        endpoint.connect("localhost:1/v1", "KGRAG_TEST_KEY", 1.0, "the test")


def test_the_key_is_not_in_the_representation(openai_server: OpenAIServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KGRAG_TEST_KEY", KEY)
    assert KEY not in repr(endpoint.connect(openai_server.url, "KGRAG_TEST_KEY", 1.0, "the test"))


def test_a_priced_server_costs(openai_server: OpenAIServer, pause: NotedPause, monkeypatch: pytest.MonkeyPatch) -> None:
    prices = PriceList({"127.0.0.1": {"gpt-4o-mini": Price(1.0, 10.0)}})
    monkeypatch.setattr("kgrag_assets.models.prices.is_loopback", lambda _url: False)
    reply = make(openai_server.url, pause, monkeypatch, prices=prices).ask(request())
    assert reply.cost_usd == pytest.approx((100 * 1.0 + 20 * 10.0) / 1e6)
    reply = make(openai_server.url, pause, monkeypatch, prices=PriceList({})).ask(request())
    assert reply.cost_usd is None


def test_a_proxy_is_not_asked_for_a_server_on_this_machine(
    openai_server: OpenAIServer, pause: NotedPause, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    assert make(openai_server.url, pause, monkeypatch).ask(request()).status == "answered"
