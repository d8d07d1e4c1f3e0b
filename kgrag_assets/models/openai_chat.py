"""Chat models behind any OpenAI-compatible endpoint, through the ``openai`` client."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, cast

import openai
from openai.types.chat import ChatCompletion

from kgrag_assets.models.asking import asked
from kgrag_assets.models.chat import ChatReply, ChatRequest
from kgrag_assets.models.endpoints import without_secrets
from kgrag_assets.models.errors import ModelUnavailableError, PermanentFailure, TransientFailure
from kgrag_assets.models.formats import FormatRefused, Schema, Structured, StructuredOutput
from kgrag_assets.models.openai_server import OpenAIServer, failure_of
from kgrag_assets.models.prices import PriceList, default_prices
from kgrag_assets.models.retrying import Pause, with_retries

_SCHEMA_NAME = "answer"
_FORMAT_WORDS = ("response_format", "json_schema", "schema", "grammar", "structured output", "guided")


class OpenAIChat:
    """A chat model at an OpenAI-compatible endpoint."""

    provider = "openai"

    def __init__(
        self,
        server: OpenAIServer,
        model: str,
        *,
        structured: Structured = "auto",
        max_retries: int = 3,
        pause: Pause | None = None,
        on_wait: Callable[[float], None] | None = None,
        prices: PriceList | None = None,
    ) -> None:
        self.model = model
        self._server = server
        self._max_retries = max_retries
        self._on_wait = on_wait
        self.pause = pause or Pause()
        self._price = (prices or default_prices()).price(server.base_url, model)
        self._format = StructuredOutput(structured, "KGRAG_JUDGING__STRUCTURED")
        self._lock = threading.Lock()
        # Reasoning models take only max_completion_tokens, other servers only the older max_tokens.
        self._limit_name = "max_tokens"

    def ask(self, request: ChatRequest) -> ChatReply:
        """Ask once, with retries; see ``ChatModel``."""
        return asked(
            lambda: self._format.ask(
                request.json_schema,
                lambda schema: with_retries(
                    lambda: self._call(request, schema), self._max_retries, self.pause, self._on_wait
                ),
            ),
            self._price,
            self._server.key,
        )

    def _call(self, request: ChatRequest, schema: Schema | None) -> ChatReply:
        limit_name = self._limit_name
        arguments: dict[str, Any] = {
            "model": request.model,
            "messages": [{"role": message.role, "content": message.content} for message in request.messages],
            "temperature": request.temperature,
            limit_name: request.max_tokens,
        }
        if request.seed is not None:
            arguments["seed"] = request.seed
        if schema is not None:
            arguments["response_format"] = {
                "type": "json_schema",
                "json_schema": {"name": _SCHEMA_NAME, "strict": True, "schema": dict(schema)},
            }
        try:
            completion = self._server.client.chat.completions.create(**arguments)
        except (openai.BadRequestError, openai.UnprocessableEntityError) as error:
            return self._after_refusal(error, request, schema, limit_name)
        except (openai.OpenAIError, ValueError) as error:
            # ValueError: a body that claims to be JSON and is not.
            raise failure_of(error, self._server, self.model) from None
        return _reply_of(completion)

    def _after_refusal(
        self, error: openai.APIStatusError, request: ChatRequest, schema: Schema | None, limit_name: str
    ) -> ChatReply:
        text = without_secrets(f"HTTP {error.status_code}: {error.message}", self._server.key)
        lowered = text.lower()
        if limit_name == "max_tokens" and "max_completion_tokens" in lowered:
            with self._lock:
                self._limit_name = "max_completion_tokens"
            return self._call(request, schema)
        if error.param == "temperature":
            raise ModelUnavailableError(
                f"{self.model} does not take temperature {request.temperature} ({text}): "
                f"set KGRAG_JUDGING__TEMPERATURE to a value that it takes"
            ) from None
        failure = PermanentFailure(text)
        if schema is None:
            raise failure from None
        names_format = error.param == "response_format" or any(word in lowered for word in _FORMAT_WORDS)
        raise FormatRefused(failure, names_format=names_format) from None


def _reply_of(completion: ChatCompletion) -> ChatReply:
    """Read a completion. The client does not check types, so nothing in it is taken for granted."""
    body = cast("Any", completion)
    choices = getattr(body, "choices", None)
    if not isinstance(choices, list) or not choices:
        # Some gateways answer 200 with an error object; others send a page that is not JSON at all.
        said = getattr(body, "error", None) or (body if isinstance(body, str) else "")
        raise TransientFailure("error", f"the server's answer is not a chat completion: {str(said)[:200]}".rstrip(": "))
    choice = choices[0]
    message = getattr(choice, "message", None)
    text, refusal = getattr(message, "content", None), getattr(message, "refusal", None)
    finish = getattr(choice, "finish_reason", None)
    usage = getattr(body, "usage", None)
    tokens = (_count(usage, "prompt_tokens"), _count(usage, "completion_tokens"))
    if message is None or not (text is None or isinstance(text, str)):
        raise TransientFailure("error", "the server's answer holds no message text")
    if isinstance(refusal, str) and refusal:
        return ChatReply(text or "", "refused", f"the model refused: {refusal}", *tokens)
    if finish == "content_filter":
        return ChatReply(text or "", "refused", "the server's content filter stopped the answer", *tokens)
    if finish == "length":
        return ChatReply(text or "", "truncated", "cut for length: raise KGRAG_JUDGING__MAX_TOKENS", *tokens)
    return ChatReply(text or "", "answered", "", *tokens)


def _count(usage: object, name: str) -> int:
    value = getattr(usage, name, None)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else 0
