"""The choice of a chat model by the settings, with its limits and its budget around it."""

from __future__ import annotations

from dataclasses import dataclass

from kgrag_assets.models.budget import Budget
from kgrag_assets.models.chat import ChatModel
from kgrag_assets.models.errors import ModelUnavailableError
from kgrag_assets.models.guarded import GuardedChat
from kgrag_assets.models.limits import RateLimit
from kgrag_assets.models.prices import FREE, Price, default_prices
from kgrag_assets.models.retrying import Pause
from kgrag_assets.settings import LanguageModelSettings


@dataclass(frozen=True)
class _Opened:
    model: ChatModel
    price: Price | None


def open_chat_model(settings: LanguageModelSettings, what_for: str, settings_prefix: str = "KGRAG_") -> GuardedChat:
    """Make the chat model that the settings name, for one run; a server on this machine is asked for its models.

    Args:
        settings: provider, model, endpoint, limits and budget.
        what_for: who wants it, for error messages: ``the judge``.
        settings_prefix: environment prefix of these settings, for error messages: ``KGRAG_JUDGING__``.

    Raises:
        ModelUnavailableError: no provider is set, a key is missing, the endpoint is not a URL, the model is not
            pulled, or there is a budget in money without a known price.
    """
    pause = Pause()
    limit = RateLimit(settings.requests_per_minute, settings.tokens_per_minute)
    opened = _open(settings, what_for, pause, limit)
    budget = Budget(settings.max_cost_usd, settings.max_total_tokens, opened.price, settings_prefix)
    return GuardedChat(opened.model, limit, budget)


def price_of(settings: LanguageModelSettings) -> Price | None:
    """Return the price of the model that the settings name, without asking anybody; None where none is known."""
    if settings.provider == "ollama":
        from kgrag_assets.models.ollama_chat import is_hosted

        return None if is_hosted(settings.base_url or "", settings.model) else FREE
    if settings.provider == "openai":
        from kgrag_assets.models.openai_server import server_url

        return default_prices().price(server_url(settings.base_url), settings.model)
    return FREE


def _open(settings: LanguageModelSettings, what_for: str, pause: Pause, limit: RateLimit) -> _Opened:
    # Each adapter imports its client, which takes half a second; only the one in use is paid for.
    if settings.provider == "openai":
        from kgrag_assets.models import openai_server
        from kgrag_assets.models.openai_chat import OpenAIChat

        server = openai_server.connect(
            settings.base_url, settings.api_key_env, settings.timeout_s, f"{what_for} with {settings.model}"
        )
        openai_chat = OpenAIChat(
            server,
            settings.model,
            structured=settings.structured,
            max_retries=settings.max_retries,
            pause=pause,
            on_wait=limit.close_for,
        )
        return _Opened(openai_chat, price_of(settings))
    if settings.provider == "ollama":
        from kgrag_assets.models import ollama_server
        from kgrag_assets.models.ollama_chat import OllamaChat

        ollama = ollama_server.connect(settings.base_url, settings.timeout_s)
        ollama_server.require_model(ollama, settings.model)
        ollama_chat = OllamaChat(
            ollama,
            settings.model,
            structured=settings.structured,
            max_retries=settings.max_retries,
            pause=pause,
            on_wait=limit.close_for,
        )
        return _Opened(ollama_chat, price_of(settings))
    raise ModelUnavailableError(f"{what_for} needs a language model: set its provider to openai or ollama")
