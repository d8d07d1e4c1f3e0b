"""A server that speaks the Ollama protocol: chat and embed, with the errors as Ollama words them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kgrag_assets_tests.servers.openai_server import GOOD_ANSWER
from kgrag_assets_tests.servers.scripted import Asked, Reply, ScriptedServer, vector_of


def error(status: int, message: str, **headers: str) -> Reply:
    """Make an error object."""
    return Reply(status, {"error": message}, {name.replace("_", "-"): value for name, value in headers.items()})


def chat(text: str, done_reason: str = "stop", tokens: tuple[int, int] = (100, 20), *, done: bool = True) -> Reply:
    """Make a whole chat answer, not streamed."""
    return Reply(
        200,
        {
            "model": "llama3.2",
            "created_at": "2026-06-01T12:00:00.000000Z",
            "message": {"role": "assistant", "content": text},
            "done_reason": done_reason,
            "done": done,
            "total_duration": 5_000_000,
            "load_duration": 1_000_000,
            "prompt_eval_count": tokens[0],
            "prompt_eval_duration": 2_000_000,
            "eval_count": tokens[1],
            "eval_duration": 2_000_000,
        },
    )


TRUNCATED = chat('{"reason": "both', done_reason="length")
SERVER_ERROR = error(500, "llama runner process has terminated")
NO_SCHEMA = error(400, 'invalid format: expected "json" or a JSON schema')
OVERLOADED = error(503, "server busy, please try again. maximum pending requests exceeded")


def embeddings(vectors: list[Any], tokens: int = 1) -> Reply:
    """Vectors in the order of the texts."""
    body = {
        "model": "nomic-embed-text",
        "embeddings": vectors,
        "total_duration": 5_000_000,
        "load_duration": 1_000_000,
        "prompt_eval_count": tokens,
    }
    return Reply(200, body)


class OllamaServer(ScriptedServer):
    """Serves ``models``; answers chats by ``text_for``."""

    def __init__(self) -> None:
        super().__init__()
        self.models = {"llama3.2", "nomic-embed-text"}
        self.takes_schema = True
        self.dimension = 8
        self.text_for: Callable[[dict[str, Any]], str] = lambda _request: GOOD_ANSWER

    @property
    def url(self) -> str:
        """The base_url for clients."""
        return self.address

    def answer(self, asked: Asked) -> Reply:  # noqa: PLR0911 - one return for each thing it is asked
        """Answer a chat or embed request."""
        body = asked.body
        if body.get("model") not in self.models:
            return error(404, f"model '{body.get('model')}' not found")
        if asked.path == "/api/show":
            return Reply(200, {"details": {"family": "test"}, "model_info": {}, "capabilities": ["completion"]})
        if asked.path == "/api/chat":
            if body.get("stream") is not False:
                return error(400, "this server does not stream")
            wanted = body.get("format")
            if wanted is not None and (not self.takes_schema or not isinstance(wanted, dict)):
                return NO_SCHEMA
            return chat(self.text_for(body))
        if asked.path == "/api/embed":
            texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
            # As the real one: an empty text has an empty vector.
            vectors = [vector_of(text, self.dimension) if text else [] for text in texts]
            return embeddings(vectors, tokens=sum(len(text.split()) for text in texts))
        return Reply(404, b"404 page not found", content_type="text/plain")
