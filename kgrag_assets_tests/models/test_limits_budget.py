"""Rates, budgets and the model that keeps both."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from kgrag_assets.models.budget import Budget, BudgetSpentError
from kgrag_assets.models.chat import ChatReply, ChatRequest, Message
from kgrag_assets.models.errors import ModelUnavailableError
from kgrag_assets.models.guarded import GuardedChat, estimated_tokens
from kgrag_assets.models.limits import MINUTE_S, RateLimit
from kgrag_assets.models.prices import Price
from kgrag_assets.models.retrying import Pause


class Clock(Pause):
    """Time that passes only by waiting."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now

    def wait(self, seconds: float) -> bool:
        self.now += seconds + 1e-6
        return super().wait(0)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(1, 120), max_size=40), st.integers(1, 6), st.integers(50, 200))
def test_no_minute_holds_more_than_is_allowed(calls: list[int], requests: int, tokens: int) -> None:
    clock = Clock()
    limit = RateLimit(requests, tokens, clock)
    gone: list[tuple[float, int]] = []
    for count in calls:
        assert limit.wait(count, clock)
        gone.append((clock.now, count))
    for when, _ in gone:
        window = [count for other, count in gone if when <= other < when + MINUTE_S]
        assert len(window) <= requests
        # A call that is larger than a minute allows goes alone.
        assert sum(window) <= tokens or len(window) == 1


def test_without_limits_nothing_waits_and_a_servers_pause_holds_for_all() -> None:
    clock = Clock()
    limit = RateLimit(None, None, clock)
    assert all(limit.wait(10**9, clock) for _ in range(1000))
    assert clock.now == 1000.0
    limit.close_for(30.0)
    assert limit.wait(1, clock)
    assert clock.now >= 1030.0


def test_an_interrupted_wait_does_not_go() -> None:
    pause = Pause()
    pause.interrupt()
    limit = RateLimit(1, None)
    assert limit.wait(1, pause)
    assert not limit.wait(1, pause)


def test_the_budget_is_never_passed_whatever_is_under_way() -> None:
    budget = Budget(None, 1000, None, "KGRAG_JUDGING__")
    most: list[int] = []
    lock = threading.Lock()
    held = 0

    def call(_number: int) -> bool:
        nonlocal held
        try:
            reserve = budget.reserve(30, 20)
        except BudgetSpentError:
            return False
        with lock:
            held += 50
            most.append(budget.spent[0] + held)
        with lock:
            held -= 50
            budget.settle(reserve, 40, None)
        return True

    with ThreadPoolExecutor(8) as executor:
        answered = sum(executor.map(call, range(200)))
    assert budget.spent[0] == 40 * answered <= 1000
    assert max(most) <= 1000
    # The last call is refused although it would have fitted: it could have been longer.
    assert answered == 24


def test_money_needs_a_price_and_says_which_setting_allows_more() -> None:
    with pytest.raises(ModelUnavailableError, match=r"KGRAG_JUDGING__MAX_COST_USD .* price"):
        Budget(1.0, None, None, "KGRAG_JUDGING__")
    budget = Budget(0.01, None, Price(1.0, 10.0), "KGRAG_JUDGING__")
    reserve = budget.reserve(1000, 800)
    with pytest.raises(BudgetSpentError, match="KGRAG_JUDGING__MAX_COST_USD"):
        budget.reserve(1000, 800)
    budget.settle(reserve, 1100, 0.002)
    assert budget.spent == (1100, 0.002)
    budget.settle(budget.reserve(1000, 600), 0, None)


class Echo:
    """A model that answers with ten tokens, or fails."""

    provider = "openai"
    model = "echo"

    def __init__(self) -> None:
        self.pause = Pause()
        self.asked = 0
        self.broken = False

    def ask(self, request: ChatRequest) -> ChatReply:
        self.asked += 1
        if self.broken:
            raise ModelUnavailableError("gone")
        return ChatReply(request.messages[0].content, "answered", "", 100, 10, 0.0, 0.001)


def request_of(text: str, max_tokens: int = 50) -> ChatRequest:
    return ChatRequest("openai", "echo", (Message("user", text),), max_tokens=max_tokens)


def test_a_guarded_model_refuses_before_it_asks_and_gives_back_what_a_failure_held() -> None:
    echo = Echo()
    tokens = estimated_tokens(request_of("hello")) + 50
    guarded = GuardedChat(echo, RateLimit(None, None), Budget(None, tokens + 100, None, "KGRAG_"))
    echo.broken = True
    for _ in range(5):
        with pytest.raises(ModelUnavailableError, match="gone"):
            guarded.ask(request_of("hello"))
    echo.broken = False
    assert guarded.ask(request_of("hello")).text == "hello"
    with pytest.raises(BudgetSpentError, match="110 tokens"):
        guarded.ask(request_of("hello"))
    assert echo.asked == 6
    assert (guarded.provider, guarded.model) == ("openai", "echo")


def test_an_interrupted_call_is_not_sent() -> None:
    echo = Echo()
    guarded = GuardedChat(echo, RateLimit(1, None), Budget(None, None, None, "KGRAG_"))
    assert guarded.ask(request_of("one")).status == "answered"
    echo.pause.interrupt()
    assert guarded.ask(request_of("two")).status == "rate_limited"
    assert echo.asked == 1
