"""What a chat model is asked and answers, and what every chat model can do."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

from kgrag_assets.models.retrying import Pause
from kgrag_assets.rows.keys import key_of
from kgrag_assets.rows.llm_calls import CALL_STATUSES

# Replies that brought text; all others are asked again.
REPLIED_STATUSES = ("answered", "truncated")


@dataclass(frozen=True)
class Message:
    """One message: ``role`` is system, user or assistant."""

    role: str
    content: str


@dataclass(frozen=True)
class ChatRequest:
    """One question to one model, with everything that decides the answer, and no key.

    ``json_schema`` is the form the answer should have; None asks for plain text.
    """

    provider: str
    model: str
    messages: tuple[Message, ...]
    temperature: float = 0.0
    max_tokens: int = 300
    json_schema: Mapping[str, Any] | None = None
    seed: int | None = None

    @cached_property
    def request_hash(self) -> str:
        """Hash of all fields; equal requests have equal hashes."""
        return key_of(
            "chat",
            self.provider,
            self.model,
            [[message.role, message.content] for message in self.messages],
            float(self.temperature),
            self.max_tokens,
            # As text: the order of the properties is the order in which the model writes them.
            None if self.json_schema is None else json.dumps(self.json_schema),
            self.seed,
        )

    def as_json(self) -> str:
        """Return the request as a JSON object, for the ledger."""
        return json.dumps(
            {
                "messages": [{"role": message.role, "content": message.content} for message in self.messages],
                "temperature": self.temperature,
                "max_tokens": self.max_tokens,
                "json_schema": None if self.json_schema is None else dict(self.json_schema),
                "seed": self.seed,
            },
            ensure_ascii=True,
        )


@dataclass(frozen=True)
class ChatReply:
    """What came of a question. ``error`` says what went wrong where ``status`` is not answered, and holds no key."""

    text: str
    status: str
    error: str = ""
    tokens_in: int = 0
    tokens_out: int = 0
    latency_s: float = 0.0
    cost_usd: float | None = None

    def __post_init__(self) -> None:
        if self.status not in CALL_STATUSES:
            raise ValueError(f"unknown call status {self.status!r}: use one of {', '.join(CALL_STATUSES)}")

    @property
    def brought_text(self) -> bool:
        """Whether there is text worth keeping; everything else is worth asking again."""
        return self.status in REPLIED_STATUSES and bool(self.text.strip())


class ChatModel(Protocol):
    """A chat model behind some server."""

    @property
    def provider(self) -> str:
        """The kind of server: openai or ollama."""

    @property
    def model(self) -> str:
        """The model's name."""

    @property
    def pause(self) -> Pause:
        """How its calls wait before they try again; interrupting it ends the waits."""

    def ask(self, request: ChatRequest) -> ChatReply:
        """Ask once, with retries; safe to call from several threads.

        Whatever a server does to one question (refusal, cut, timeout, limit, failure) is a status.

        Raises:
            ModelUnavailableError: no question can be answered until somebody changes something.
        """
