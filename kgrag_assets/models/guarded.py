"""A chat model within its limits: every call keeps the rate, fits the budget and ends in time."""

from __future__ import annotations

from kgrag_assets.models.budget import Budget
from kgrag_assets.models.chat import ChatModel, ChatReply, ChatRequest
from kgrag_assets.models.limits import RateLimit
from kgrag_assets.models.retrying import Pause
from kgrag_assets.models.tokens import count_tokens

# Tokens that a chat format adds to each message, and a little for a tokenizer that cuts finer than ours.
_PER_MESSAGE = 8
_FINER = 1.25


class GuardedChat:
    """Asks another chat model, after the rate limit and the budget have let the call go."""

    def __init__(self, model: ChatModel, limit: RateLimit, budget: Budget) -> None:
        self._model = model
        self._limit = limit
        self._budget = budget

    @property
    def provider(self) -> str:
        """The kind of server."""
        return self._model.provider

    @property
    def model(self) -> str:
        """The model's name."""
        return self._model.model

    @property
    def pause(self) -> Pause:
        """How its calls wait."""
        return self._model.pause

    @property
    def budget(self) -> Budget:
        """What was spent."""
        return self._budget

    def ask(self, request: ChatRequest) -> ChatReply:
        """Ask once; see ``ChatModel``.

        Raises:
            BudgetSpentError: the call could pass the budget; nothing was sent.
        """
        tokens_in = estimated_tokens(request)
        reserve = self._budget.reserve(tokens_in, request.max_tokens)
        reply: ChatReply | None = None
        try:
            if not self._limit.wait(tokens_in + request.max_tokens, self.pause):
                return ChatReply("", "rate_limited", "interrupted while it waited for its turn")
            reply = self._model.ask(request)
        finally:
            used = 0 if reply is None else reply.tokens_in + reply.tokens_out
            self._budget.settle(reserve, used, None if reply is None else reply.cost_usd)
        return reply


def estimated_tokens(request: ChatRequest) -> int:
    """Estimate the prompt tokens of a request, rather too many than too few."""
    counted = sum(count_tokens(message.content) for message in request.messages)
    return int(counted * _FINER) + _PER_MESSAGE * len(request.messages)
