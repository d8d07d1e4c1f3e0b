"""Scoring a text against a question with both in view: the port, and a sentence-transformers cross-encoder."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from kgrag_assets.models.errors import EmbeddingError, ModelUnavailableError
from kgrag_assets.models.model_folder import fingerprint, forbid_downloads

_NOISY = ("sentence_transformers", "transformers", "huggingface_hub")


class PairScorer(Protocol):
    """Says how much a text has to do with a question."""

    @property
    def model_id(self) -> str:
        """Kind and name; scores of equal ids may be compared."""

    def score(self, pairs: Sequence[tuple[str, str]]) -> np.ndarray:
        """Score pairs of question and text.

        Returns:
            float64 of shape (pairs,), 0..1, in order.

        Raises:
            EmbeddingError: the model gave something that is not one finite number per pair.
            ModelUnavailableError: the model cannot be used at all until somebody changes something.
        """


class CrossEncoderScorer:
    """A sentence-transformers ``CrossEncoder`` on this machine's CPU, loaded on first use.

    A model without an activation of its own gives any number; a sigmoid brings it to 0..1.
    """

    def __init__(self, model: str, batch_size: int = 32) -> None:
        """Take the model's name: a folder, or a name that the model library knows or has in its cache."""
        self._name = model
        self._batch_size = batch_size
        self._lock = threading.Lock()
        self._model: Any = None

    @property
    def model_id(self) -> str:
        """Kind and name, and of a model's folder a hash of its files."""
        folder = Path(self._name)
        return (
            f"cross-encoder/{folder.name}@{fingerprint(folder)}" if folder.is_dir() else f"cross-encoder/{self._name}"
        )

    def score(self, pairs: Sequence[tuple[str, str]]) -> np.ndarray:
        """Score pairs of question and text; see ``PairScorer``."""
        if not pairs:
            return np.zeros(0)
        model = self._loaded()
        # Sorted by length, texts of a batch need little padding.
        order = sorted(range(len(pairs)), key=lambda place: len(pairs[place][0]) + len(pairs[place][1]))
        given = model.predict(
            [list(pairs[place]) for place in order], batch_size=self._batch_size, show_progress_bar=False
        )
        raw = np.asarray(given, dtype=np.float64)
        if raw.shape not in ((len(pairs),), (len(pairs), 1)) or not np.isfinite(raw).all():
            raise EmbeddingError(f"{self._name} gave {raw.shape} for {len(pairs)} pairs: it is no model of relevance")
        scores = np.empty(len(pairs))
        scores[order] = raw.reshape(-1)
        return np.clip(scores, 0.0, 1.0)

    def _loaded(self) -> Any:  # noqa: ANN401 - the library ships no types we could name
        with self._lock:
            if self._model is None:
                self._model = self._load()
            return self._model

    def _load(self) -> Any:  # noqa: ANN401 - as above
        # See the embedder on this machine's CPU: threads that spin starve every other process.
        os.environ.setdefault("OMP_WAIT_POLICY", "passive")
        os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
        local = Path(self._name).is_dir()
        if local:
            forbid_downloads()
        from sentence_transformers import CrossEncoder
        from torch import nn

        for name in _NOISY:
            logging.getLogger(name).setLevel(logging.ERROR)
        try:
            return CrossEncoder(self._name, device="cpu", local_files_only=local, activation_fn=nn.Sigmoid())
        # What the library raises for an unknown name, a damaged folder or no network.
        except (OSError, ValueError, KeyError, RuntimeError, AttributeError) as error:
            raise ModelUnavailableError(
                f"cannot load the cross-encoder {self._name}: {str(error).splitlines()[0]}: set "
                "KGRAG_RANKING__CROSS_ENCODER to a folder with the model, or let this machine fetch it once"
            ) from error
