"""The graph's cheap embedder in two-stage search: a static model fitted once to the full model, and kept."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from kgrag_assets.models.distilling import FIT_RECIPE, FIT_TEXTS, fit_static, fitted_folder
from kgrag_assets.models.embedders import Embedder, EmbedProgress
from kgrag_assets.models.errors import ModelUnavailableError
from kgrag_assets.models.static_embedder import VERSION, StaticEmbedder
from kgrag_assets.models.static_files import is_static


class FirstStage:
    """An embedder that must be fitted before it can be used; ``fit`` does so once, and later processes find it.

    It is fitted to texts of the graph as that was then, and stays as it is when the graph changes: fitted again, it
    would be another model, and everything would be embedded again. For that, remove its folder.
    """

    def __init__(self, model: str, full: Embedder, place: Path, size: int = FIT_TEXTS) -> None:
        """Take what it is fitted to; nothing is loaded yet.

        Args:
            model: the sentence-transformers model that ``full`` runs, as ``find_model`` takes it.
            full: the embedder of the questions.
            place: folder of fitted models.
            size: texts of the graph that are embedded in full for the fit.
        """
        self._model = model
        self._full = full
        self._place = place
        self._size = size
        self._lock = threading.Lock()
        self._fitted: StaticEmbedder | None = None

    @property
    def family(self) -> str:
        """What decides the fit besides the texts; known before the fit, for the assets' code version."""
        return f"first-stage/{FIT_RECIPE},texts={self._size}/{VERSION}/{self._full.model_id}"

    @property
    def ready(self) -> bool:
        """Whether it is fitted."""
        return is_static(fitted_folder(self._place, self._full.model_id, self._size))

    @property
    def model_id(self) -> str:
        """Id of the fitted model, with a hash of its table.

        Raises:
            ModelUnavailableError: it is not fitted yet.
        """
        return self._static().model_id

    @property
    def imitates(self) -> str:
        """``model_id`` of the full model, whose vectors may be compared with its own."""
        return self._full.model_id

    @property
    def dimension(self) -> int:
        """Length of the vectors: the full model's."""
        return self._full.dimension

    def fit(self, texts: Iterable[str], progress: EmbedProgress | None = None) -> None:
        """Fit to a sample of the graph's texts; does nothing, and reads no text, where that was done.

        Raises:
            ValueError: there is no text.
            ModelUnavailableError: a model cannot be loaded, or the two do not go together.
            EmbeddingError: the full model could not embed the texts.
            LakeError: the place cannot be written.
        """
        fit_static(self._model, self._full, texts, self._place, size=self._size, progress=progress)

    def embed(self, texts: Sequence[str], progress: EmbedProgress | None = None) -> np.ndarray:
        """Embed texts; see ``Embedder``.

        Raises:
            ModelUnavailableError: it is not fitted yet.
        """
        return self._static().embed(texts, progress)

    def _static(self) -> StaticEmbedder:
        with self._lock:
            if self._fitted is None:
                folder = fitted_folder(self._place, self._full.model_id, self._size)
                if not is_static(folder):
                    raise ModelUnavailableError(
                        "the first stage's vectors are not fitted yet: bring first_stage_model up to date, which "
                        f"embeds {self._size} texts of the graph with {self._full.model_id}"
                    )
                self._fitted = StaticEmbedder(str(folder))
            return self._fitted
