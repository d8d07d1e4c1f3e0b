"""A server that speaks the OpenAI protocol: chat completions and embeddings, with the errors as OpenAI words them."""

from __future__ import annotations

import base64
import struct
from collections.abc import Callable
from typing import Any

from kgrag_assets_tests.servers.scripted import Asked, Reply, ScriptedServer, vector_of

GOOD_ANSWER = '{"reason": "both hold a birth date", "match": true, "confidence": 0.9, "facts": ["F1"]}'


def error(status: int, message: str, kind: str, code: str | None = None, param: str | None = None) -> Reply:
    """Make an error object."""
    return Reply(status, {"error": {"message": message, "type": kind, "param": param, "code": code}})


def completion(
    text: str | None,
    finish_reason: str = "stop",
    refusal: str | None = None,
    tokens: tuple[int, int] = (100, 20),
    model: str = "gpt-4o-mini",
) -> Reply:
    """Make a chat completion."""
    return Reply(
        200,
        {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1_700_000_000,
            "model": model,
            "choices": [
                {
                    "index": 0,
                    "message": {"role": "assistant", "content": text, "refusal": refusal},
                    "logprobs": None,
                    "finish_reason": finish_reason,
                }
            ],
            "usage": {"prompt_tokens": tokens[0], "completion_tokens": tokens[1], "total_tokens": sum(tokens)},
        },
    )


REFUSAL = completion(None, refusal="I cannot help with that.")
CONTENT_FILTER = completion("", finish_reason="content_filter")
TRUNCATED = completion('{"reason": "both hold a bi', finish_reason="length", tokens=(100, 300))
SERVER_ERROR = error(500, "The server had an error while processing your request", "server_error")
NO_SCHEMA = error(
    400,
    "Invalid parameter: 'response_format' of type 'json_schema' is not supported",
    "invalid_request_error",
    param="response_format",
)
OUT_OF_CREDIT = error(429, "You exceeded your current quota", "insufficient_quota", code="insufficient_quota")


def rate_limited(retry_after: str | None) -> Reply:
    """429, with the pause that the server asks for."""
    reply = error(429, "Rate limit reached for requests", "requests", code="rate_limit_exceeded")
    return Reply(429, reply.body, {} if retry_after is None else {"retry-after": retry_after})


class OpenAIServer(ScriptedServer):
    """Serves ``models``; wants ``key`` where one is set; answers chats by ``text_for``."""

    def __init__(self) -> None:
        super().__init__()
        self.models = {"gpt-4o-mini", "text-embedding-test"}
        self.key: str | None = None
        self.takes_schema = True
        self.dimension = 8
        self.text_for: Callable[[dict[str, Any]], str] = lambda _request: GOOD_ANSWER

    @property
    def url(self) -> str:
        """The base_url for clients."""
        return f"{self.address}/v1"

    def answer(self, asked: Asked) -> Reply:
        """Answer a chat or embedding request."""
        sent = asked.headers.get("authorization", "").removeprefix("Bearer ")
        if self.key is not None and sent != self.key:
            return error(401, f"Incorrect API key provided: {sent}.", "invalid_request_error", code="invalid_api_key")
        body = asked.body
        if body.get("model") not in self.models:
            return error(
                404, f"The model `{body.get('model')}` does not exist", "invalid_request_error", code="model_not_found"
            )
        if asked.path == "/v1/chat/completions":
            return self._chat(body)
        if asked.path == "/v1/embeddings":
            return self._embeddings(body)
        return error(404, f"Invalid URL (POST {asked.path})", "invalid_request_error")

    def _chat(self, body: dict[str, Any]) -> Reply:
        if not body.get("messages"):
            return error(400, "[] is too short - 'messages'", "invalid_request_error", param="messages")
        wanted = body.get("response_format")
        if wanted is not None:
            schema = wanted.get("json_schema", {})
            if wanted.get("type") != "json_schema" or not schema.get("name") or "schema" not in schema:
                return error(400, "Invalid response_format", "invalid_request_error", param="response_format")
            if not self.takes_schema:
                return NO_SCHEMA
        return completion(self.text_for(body), model=body["model"])

    def _embeddings(self, body: dict[str, Any]) -> Reply:
        texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
        if not texts or "" in texts:
            return error(400, "'$.input' is invalid: an input is empty", "invalid_request_error")
        vectors: list[Any] = [vector_of(text, self.dimension) for text in texts]
        if body.get("encoding_format") == "base64":
            vectors = [base64.b64encode(struct.pack(f"<{len(v)}f", *v)).decode() for v in vectors]
        return embeddings(vectors, tokens=sum(len(text.split()) for text in texts))


def embeddings(vectors: list[Any], tokens: int = 1) -> Reply:
    """Make a list of embeddings. The order in the list is not that of the texts: the index says which is which."""
    data = [{"object": "embedding", "index": index, "embedding": vector} for index, vector in enumerate(vectors)]
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return Reply(200, {"object": "list", "data": data[::-1], "model": "text-embedding-test", "usage": usage})
