"""Embedding with an Ollama server, through the ``ollama`` client."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np
import ollama

from kgrag_assets.models.distinct import embed_distinct
from kgrag_assets.models.embedders import EmbedProgress, to_array
from kgrag_assets.models.endpoints import without_secrets
from kgrag_assets.models.errors import EmbeddingError, TransientFailure
from kgrag_assets.models.ollama_server import CLIENT_ERRORS, connect, failure_of
from kgrag_assets.models.retrying import Pause, with_retries
from kgrag_assets.settings import EmbedderSettings

MAX_RETRIES = 5


class OllamaEmbedder:
    """An embedding model at an Ollama server."""

    def __init__(self, settings: EmbedderSettings, pause: Pause | None = None) -> None:
        self._model = settings.model
        self._batch_size = settings.batch_size
        self._server = connect(settings.base_url, settings.timeout_s)
        self._pause = pause or Pause()
        self._lock = threading.Lock()
        self._dimension: int | None = None
        # Tokens that the server has counted so far.
        self.tokens_used = 0

    @property
    def model_id(self) -> str:
        """Kind, name and dimensions."""
        return f"ollama/{self._model}@{self.dimension}"

    @property
    def dimension(self) -> int:
        """Length of the vectors; the server is asked once."""
        if self._dimension is None:
            self._dimension = int(self._batch(["dimension"]).shape[1])
        return self._dimension

    def embed(self, texts: Sequence[str], progress: EmbedProgress | None = None) -> np.ndarray:
        """Embed texts; see ``Embedder``. An empty text, which gives an empty vector, is sent as a space."""
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
            response = self._server.client.embed(model=self._model, input=texts)
        except CLIENT_ERRORS as error:
            if isinstance(error, ollama.ResponseError) and error.status_code in (400, 422):
                said = without_secrets(str(error.error), self._server.key)
                raise EmbeddingError(f"{self._model} refused a batch of {len(texts)} texts: {said}") from None
            raise failure_of(error, self._server, self._model) from None
        with self._lock:
            self.tokens_used += response.prompt_eval_count or 0
        if len(response.embeddings) != len(texts):
            raise EmbeddingError(
                f"{self._model} gave {len(response.embeddings)} vectors for {len(texts)} texts; "
                f"nothing of this batch was kept"
            )
        return to_array(response.embeddings, self._model)
