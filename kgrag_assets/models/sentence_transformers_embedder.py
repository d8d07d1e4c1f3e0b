"""Embedding on this machine's CPU with a sentence-transformers model."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from kgrag_assets.models.distinct import embed_distinct
from kgrag_assets.models.embedders import EmbedProgress
from kgrag_assets.models.errors import ModelUnavailableError
from kgrag_assets.models.model_folder import declared_dimension, find_model, fingerprint, forbid_downloads

_NOISY = ("sentence_transformers", "transformers", "huggingface_hub")


class SentenceTransformersEmbedder:
    """A sentence-transformers model, loaded on first use.

    The same text gets the same vector to about 1e-6 whatever else is embedded with it: padding and the
    shape of a batch change the order of float additions. The same set of texts gets the same bits. In bfloat16 it
    is several times as fast on processors that compute in it, and that agreement is to about 1e-2.
    """

    def __init__(self, model: str, batch_size: int = 64, precision: Literal["float32", "bfloat16"] = "float32") -> None:
        self._folder = find_model(model)
        self._batch_size = batch_size
        self._precision = precision
        self._lock = threading.Lock()
        self._model: Any = None

    @property
    def model_id(self) -> str:
        """Kind, name and a hash of the model's files, and a lower precision; computed without loading the model."""
        precision = "" if self._precision == "float32" else f"/{self._precision}"
        return f"sentence-transformers/{self._folder.name}@{fingerprint(self._folder.path)}{precision}"

    @property
    def dimension(self) -> int:
        """Length of the vectors, as the model's configuration says (else the model is loaded)."""
        declared = declared_dimension(self._folder.path)
        if declared is not None:
            return declared
        size = self._loaded().get_embedding_dimension()
        if not isinstance(size, int):
            raise ModelUnavailableError(f"{self._folder.path} does not say how long its vectors are")
        return size

    def embed(self, texts: Sequence[str], progress: EmbedProgress | None = None) -> np.ndarray:
        """Embed texts; see ``Embedder``."""
        if not texts:
            return np.zeros((0, self.dimension), dtype=np.float32)
        model = self._loaded()

        def embed_batch(batch: list[str]) -> np.ndarray:
            vectors = model.encode(batch, batch_size=self._batch_size, show_progress_bar=False, convert_to_numpy=True)
            return np.asarray(vectors, dtype=np.float32)

        return embed_distinct(
            texts,
            embed_batch,
            batch_size=self._batch_size,
            dimension=self.dimension,
            who=self._folder.name,
            progress=progress,
        )

    def _loaded(self) -> Any:  # noqa: ANN401 - the library ships no types we could name
        with self._lock:
            if self._model is None:
                self._model = self._load()
            return self._model

    def _load(self) -> Any:  # noqa: ANN401 - as above
        # Threads that spin while they wait bring torch to a crawl beside another busy process; the
        # setting is read once, when torch is imported.
        os.environ.setdefault("OMP_WAIT_POLICY", "passive")
        # Its warning about threads and forks is not for people who map schemas.
        os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
        if self._folder.offline:
            forbid_downloads()
        from sentence_transformers import SentenceTransformer
        from transformers.utils import logging as transformers_logging

        for name in _NOISY:
            logging.getLogger(name).setLevel(logging.ERROR)
        bars: Any = transformers_logging  # has no types
        bars.disable_progress_bar()
        try:
            model = SentenceTransformer(str(self._folder.path), device="cpu", local_files_only=True)
            return model.bfloat16() if self._precision == "bfloat16" else model
        # What the library raises for a damaged or foreign folder.
        except (OSError, ValueError, KeyError, RuntimeError, AttributeError) as error:
            raise ModelUnavailableError(f"cannot load the model in {self._folder.path}: {error}") from error
