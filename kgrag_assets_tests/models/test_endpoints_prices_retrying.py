"""The small parts: addresses and secrets, the price list, waiting."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgrag_assets.models.endpoints import is_loopback, storable, without_secrets
from kgrag_assets.models.errors import TransientFailure
from kgrag_assets.models.prices import Price, PriceListError, default_prices, read_prices
from kgrag_assets.models.retrying import Pause, retry_after_seconds, with_retries


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://127.0.0.1:8000/v1", True),
        ("http://127.8.8.8/v1", True),
        ("http://localhost/v1", True),
        ("http://[::1]:80/", True),
        ("https://api.openai.com/v1", False),
        ("http://127.0.0.1.evil.org/v1", False),
        ("http://localhost.evil.org/v1", False),
        ("http://localhost@evil.org/v1", False),
        ("http://10.0.0.1/v1", False),
        ("http://[bad", False),
        ("", False),
        (None, False),
    ],
)
def test_loopback(url: str | None, expected: bool) -> None:
    assert is_loopback(url) is expected


@given(st.text(), st.text(min_size=4).filter(lambda key: key not in "[key]"), st.text())
def test_a_key_never_stays_in_an_error_text(before: str, key: str, after: str) -> None:
    if key in f"{before}[key]{after}" or key in " [cut]" or "[user]@" in before + after:
        return
    assert key not in without_secrets(before + key + after, key) or key.isspace()


def test_secrets_of_known_shape_go_even_unnamed() -> None:
    text = without_secrets("at http://me:secret@host/v1\nBearer abc.def, sk-proj-abcdef123456, sk-ab***yz")
    assert "secret" not in text
    assert "abc.def" not in text
    assert "abcdef123456" not in text
    assert "yz" not in text
    assert "\n" not in text
    assert len(without_secrets("x " * 5000)) <= 500


@given(st.text(alphabet=st.characters()))
def test_storable_text_can_be_encoded(text: str) -> None:
    assert storable(text).encode().decode() == storable(text)
    if not any("\ud800" <= character <= "\udfff" for character in text):
        assert storable(text) == text


def test_the_shipped_price_list_is_sound() -> None:
    prices = default_prices()
    url = "https://api.openai.com/v1"
    assert prices.price(url, "gpt-4o-mini") == Price(0.15, 0.60)
    assert prices.price(url, "gpt-4o-mini-2024-07-18") == Price(0.15, 0.60)
    assert prices.price(url, "some-new-model") is None
    assert prices.price("https://models.example.org/v1", "gpt-4o-mini") is None
    assert prices.price("http://127.0.0.1:1/v1", "anything") == Price(0.0, 0.0)
    assert Price(0.15, 0.60).of(1_000_000, 500_000) == pytest.approx(0.45)


@pytest.mark.parametrize(
    "text",
    [
        "servers: [",
        "",
        "servers: 3",
        "servers: {h: 3}",
        "servers: {h: {m: 3}}",
        "servers: {h: {m: {input: 1}}}",
        "servers: {h: {m: {input: 1, output: -1}}}",
        "servers: {h: {m: {input: 1, output: .nan}}}",
        "servers: {h: {m: {input: 1, output: cheap}}}",
    ],
)
def test_a_price_list_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(PriceListError, match=r"prices\.yaml"):
        read_prices(text, "prices.yaml")


def test_retry_after_is_seconds_or_a_date() -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    assert retry_after_seconds("3", now) == 3.0
    assert retry_after_seconds("-3", now) == 0.0
    assert retry_after_seconds("Thu, 01 Jan 2026 00:00:30 GMT", now) == 30.0
    assert retry_after_seconds("Wed, 31 Dec 2025 00:00:30 GMT", now) == 0.0
    assert retry_after_seconds("soon", now) is None
    assert retry_after_seconds("nan", now) is None
    assert retry_after_seconds(None, now) is None


@given(st.text())
def test_retry_after_never_raises(header: str) -> None:
    assert retry_after_seconds(header) is None or retry_after_seconds(header) >= 0  # type: ignore[operator]


def test_an_interrupted_wait_ends() -> None:
    pause = Pause()
    assert pause.wait(0)
    pause.interrupt()
    assert not pause.wait(3600)
    pause.reset()
    assert pause.wait(0)


def test_other_exceptions_are_not_retried() -> None:
    calls = []

    def call() -> None:
        calls.append(1)
        raise KeyError("a mistake")

    with pytest.raises(KeyError):
        with_retries(call, 3, Pause())
    assert len(calls) == 1


def test_no_retries_means_one_call() -> None:
    calls = []

    def call() -> None:
        calls.append(1)
        raise TransientFailure("error", "no")

    with pytest.raises(TransientFailure):
        with_retries(call, 0, Pause())
    assert len(calls) == 1
