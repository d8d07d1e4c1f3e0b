"""Chat models behind an Ollama server, through the ``ollama`` client."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ollama

from kgrag_assets.models.asking import asked
from kgrag_assets.models.chat import ChatReply, ChatRequest
from kgrag_assets.models.endpoints import host_of, without_secrets
from kgrag_assets.models.errors import PermanentFailure
from kgrag_assets.models.formats import FormatRefused, Schema, Structured, StructuredOutput
from kgrag_assets.models.ollama_server import CLIENT_ERRORS, OllamaServer, failure_of
from kgrag_assets.models.prices import FREE
from kgrag_assets.models.retrying import Pause, with_retries

_FORMAT_WORDS = ("format", "schema", "grammar")
# Ollama cuts a prompt silently to its context window, 4096 tokens or less by default. Three characters a
# token is on the safe side for European languages.
_CONTEXT = 4096
_CHARACTERS_PER_TOKEN = 3


class OllamaChat:
    """A chat model at an Ollama server."""

    provider = "ollama"

    def __init__(
        self,
        server: OllamaServer,
        model: str,
        *,
        structured: Structured = "auto",
        max_retries: int = 3,
        pause: Pause | None = None,
        on_wait: Callable[[float], None] | None = None,
    ) -> None:
        self.model = model
        self._server = server
        self._max_retries = max_retries
        self._on_wait = on_wait
        self.pause = pause or Pause()
        self._format = StructuredOutput(structured, "KGRAG_JUDGING__STRUCTURED")
        self._price = None if is_hosted(server.base_url, model) else FREE

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
        options: dict[str, Any] = {
            "temperature": request.temperature,
            "num_predict": request.max_tokens,
            "num_ctx": context_for(request),
        }
        if request.seed is not None:
            options["seed"] = request.seed
        try:
            response = self._server.client.chat(
                model=request.model,
                messages=[{"role": message.role, "content": message.content} for message in request.messages],
                format=None if schema is None else dict(schema),
                options=options,
            )
        except CLIENT_ERRORS as error:
            if isinstance(error, ollama.ResponseError) and error.status_code in (400, 422):
                failure = PermanentFailure(without_secrets(f"HTTP {error.status_code}: {error.error}"))
                if schema is None:
                    raise failure from None
                named = any(word in str(error.error).lower() for word in _FORMAT_WORDS)
                raise FormatRefused(failure, names_format=named) from None
            raise failure_of(error, self._server, self.model) from None
        return _reply_of(response)


def is_hosted(base_url: str, model: str) -> bool:
    """Say whether a model runs at Ollama's own site: then it has a price, which we do not know."""
    return host_of(base_url).endswith("ollama.com") or model.endswith(("-cloud", ":cloud"))


def context_for(request: ChatRequest) -> int:
    """Return the context window to ask for: room for the prompt and its answer, in powers of two from 4096.

    Steps, because the server loads the model anew for each size.
    """
    characters = sum(len(message.content) for message in request.messages)
    needed = characters // _CHARACTERS_PER_TOKEN + request.max_tokens
    size = _CONTEXT
    while size < needed:
        size *= 2
    return size


def _reply_of(response: ollama.ChatResponse) -> ChatReply:
    text = response.message.content or ""
    tokens = (response.prompt_eval_count or 0, response.eval_count or 0)
    if response.done_reason == "length":
        return ChatReply(text, "truncated", "cut for length: raise KGRAG_JUDGING__MAX_TOKENS", *tokens)
    if response.done is False:
        return ChatReply(text, "error", "the server stopped before the answer was done", *tokens)
    return ChatReply(text, "answered", "", *tokens)
