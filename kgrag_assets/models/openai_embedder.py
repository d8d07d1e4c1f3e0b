"""Embedding with any OpenAI-compatible endpoint, through the ``openai`` client."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import openai

from kgrag_assets.models.distinct import embed_distinct
from kgrag_assets.models.embedders import EmbedProgress, to_array
from kgrag_assets.models.endpoints import without_secrets
from kgrag_assets.models.errors import EmbeddingError, TransientFailure
from kgrag_assets.models.openai_server import connect, failure_of
from kgrag_assets.models.retrying import Pause, with_retries
from kgrag_assets.settings import EmbedderSettings

# So that rows can be keyed before the first call.
KNOWN_DIMENSIONS = {"text-embedding-3-small": 1536, "text-embedding-3-large": 3072, "text-embedding-ada-002": 1536}

MAX_RETRIES = 5


class OpenAIEmbedder:
    """An embedding model at an OpenAI-compatible endpoint."""

    def __init__(self, settings: EmbedderSettings, pause: Pause | None = None) -> None:
        self._model = settings.model
        self._batch_size = settings.batch_size
        self._server = connect(
            settings.base_url, settings.api_key_env, settings.timeout_s, f"embedding with {self._model}"
        )
        self._pause = pause or Pause()
        self._lock = threading.Lock()
        self._dimension = KNOWN_DIMENSIONS.get(self._model)
        # Tokens that the server has counted so far, for whoever wants to know the cost.
        self.tokens_used = 0

    @property
    def model_id(self) -> str:
        """Kind, name and dimensions."""
        return f"openai/{self._model}@{self.dimension}"

    @property
    def dimension(self) -> int:
        """Length of the vectors; of a model that is not known beforehand, the server is asked once."""
        if self._dimension is None:
            self._dimension = int(self._batch(["dimension"]).shape[1])
        return self._dimension

    def embed(self, texts: Sequence[str], progress: EmbedProgress | None = None) -> np.ndarray:
        """Embed texts; see ``Embedder``. An empty text, which the service refuses, is sent as a space."""
        return embed_distinct(
            [text or " " for text in texts],
            self._batch,
            batch_size=self._batch_size,
            dimension=self.dimension,
            who=self._model,
            progress=progress,
        )

    def _batch(self, texts: list[str]) -> np.ndarray:
        try:
            return with_retries(lambda: self._call(texts), MAX_RETRIES, self._pause)
        except TransientFailure as failure:
            raise EmbeddingError(f"{self._model}: {failure.message}; finished vectors are kept, run again") from None

    def _call(self, texts: list[str]) -> np.ndarray:
        try:
            response = self._server.client.embeddings.create(model=self._model, input=texts, encoding_format="float")
        except (openai.BadRequestError, openai.UnprocessableEntityError) as error:
            said = without_secrets(error.message, self._server.key)
            raise EmbeddingError(f"{self._model} refused a batch of {len(texts)} texts: {said}") from None
        except (openai.OpenAIError, ValueError) as error:
            # ValueError: not JSON, or JSON without data.
            raise failure_of(error, self._server, self._model) from None
        body = cast("Any", response)
        data = getattr(body, "data", None)
        usage = getattr(getattr(body, "usage", None), "total_tokens", None)
        with self._lock:
            self.tokens_used += usage if isinstance(usage, int) else 0
        return to_array(_in_order(data, len(texts), self._model), self._model)


def _in_order(data: object, n: int, model: str) -> list[Any]:
    if not isinstance(data, list):
        raise TransientFailure("error", "the server's answer is not a list of embeddings")
    if len(data) != n:
        raise EmbeddingError(f"{model} gave {len(data)} vectors for {n} texts; nothing of this batch was kept")
    by_index = {getattr(item, "index", None): getattr(item, "embedding", None) for item in data}
    if set(by_index) != set(range(n)):
        raise EmbeddingError(f"{model} numbered its {n} vectors wrongly; nothing of this batch was kept")
    return [by_index[index] for index in range(n)]
