"""What one run may spend on a model, in money and tokens: reserved before each call, settled after it."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from kgrag_assets.models.errors import ModelUnavailableError
from kgrag_assets.models.prices import Price


class BudgetSpentError(ModelUnavailableError):
    """The next call could pass the run's budget; the message says what was spent and which setting allows more."""


@dataclass(frozen=True)
class Reserve:
    """What a call may cost at most, held back until it is known."""

    tokens: int
    cost_usd: float


class Budget:
    """Counts what calls cost, and refuses a call whose worst case would pass the limit; safe in several threads.

    A call is known only when it is over, so its longest answer is reserved first: the sum of what was spent and of
    all reserves never passes the limit, however many calls are under way.
    """

    def __init__(
        self, max_cost_usd: float | None, max_total_tokens: int | None, price: Price | None, settings_prefix: str
    ) -> None:
        """Take the limits; None is no limit.

        Args:
            max_cost_usd: US dollars.
            max_total_tokens: prompt and answer tokens together.
            price: of the model; None where none is known.
            settings_prefix: environment prefix of the settings, for messages (``KGRAG_JUDGING__``).

        Raises:
            ModelUnavailableError: there is a limit in money and no known price.
        """
        if max_cost_usd is not None and price is None:
            raise ModelUnavailableError(
                f"{settings_prefix}MAX_COST_USD is set, but the price of the model is not known: add it to the price "
                f"list (models/prices.yaml), or limit {settings_prefix}MAX_TOTAL_TOKENS instead"
            )
        self._max_cost = max_cost_usd
        self._max_tokens = max_total_tokens
        self._price = price
        self._prefix = settings_prefix
        self._lock = threading.Lock()
        self._spent_tokens = self._held_tokens = 0
        self._spent_cost = self._held_cost = 0.0

    @property
    def spent(self) -> tuple[int, float]:
        """Tokens and US dollars spent so far."""
        with self._lock:
            return self._spent_tokens, self._spent_cost

    def reserve(self, tokens_in: int, max_tokens_out: int) -> Reserve:
        """Hold back what a call may cost at most.

        Raises:
            BudgetSpentError: it could pass the limit.
        """
        cost = 0.0 if self._price is None else self._price.of(tokens_in, max_tokens_out)
        reserve = Reserve(tokens_in + max_tokens_out, cost)
        with self._lock:
            tokens = self._spent_tokens + self._held_tokens + reserve.tokens
            money = self._spent_cost + self._held_cost + reserve.cost_usd
            if self._max_tokens is not None and tokens > self._max_tokens:
                raise self._spent_error(f"{self._max_tokens:,} tokens", "MAX_TOTAL_TOKENS")
            if self._max_cost is not None and money > self._max_cost:
                raise self._spent_error(f"{self._max_cost:.2f} US dollars", "MAX_COST_USD")
            self._held_tokens += reserve.tokens
            self._held_cost += reserve.cost_usd
        return reserve

    def settle(self, reserve: Reserve, tokens: int, cost_usd: float | None) -> None:
        """Replace a reserve by what the call cost."""
        with self._lock:
            self._held_tokens -= reserve.tokens
            self._held_cost -= reserve.cost_usd
            self._spent_tokens += tokens
            self._spent_cost += cost_usd or 0.0

    def _spent_error(self, limit: str, setting: str) -> BudgetSpentError:
        return BudgetSpentError(
            f"the budget of this run, {limit}, does not allow the next call: {self._spent_tokens:,} tokens and "
            f"{self._spent_cost:.4f} US dollars are spent; what was answered is kept. Raise {self._prefix}{setting} "
            "and run again for the rest"
        )
