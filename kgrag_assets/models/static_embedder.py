"""Embedding with a static model: a table with one vector per token, added up over a text; no network is run."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from kgrag_assets.models.distilling import RECIPE, distilled
from kgrag_assets.models.embedders import EmbedProgress
from kgrag_assets.models.errors import ModelUnavailableError
from kgrag_assets.models.model_folder import ModelFolder, find_model, fingerprint
from kgrag_assets.models.static_files import StaticFiles, is_static, read_static, static_config
from kgrag_assets.models.token_ids import TokenIds

# Changes when the same table would give another vector.
VERSION = "static-1"
# Texts that one thread turns into vectors at a time.
_CHUNK = 8192
_SMALLEST_NORM = 1e-6


class StaticEmbedder:
    """A static model in model2vec's format, or one distilled from a sentence-transformers model on first use.

    The vector of a text is the mean of its tokens' vectors, scaled to unit length; it does not depend on what else
    is embedded with it. A text without any known token gets the vector of the unknown token (the first axis, where
    the model has none): unit length, and the same for all such texts.
    """

    def __init__(self, model: str, cache: Path | None = None, threads: int | None = None) -> None:
        """Find the model; nothing is distilled or loaded yet.

        Args:
            model: a folder with a saved static model, or what ``find_model`` takes: that model is distilled into
                ``cache`` on first use and taken from there afterwards.
            cache: folder of distilled models; the user's cache folder by default.
            threads: texts are spread over so many; as many as there are cores by default.

        Raises:
            ModelUnavailableError: there is no such model.
        """
        self._folder = find_model(model)
        self._cache = cache
        self._threads = threads or len(os.sched_getaffinity(0))
        self._lock = threading.Lock()
        self._table: _Table | None = None

    @property
    def model_id(self) -> str:
        """Kind, name and hash of the model's files, and how it was distilled; computed without distilling."""
        stem = f"static/{self._folder.name}@{fingerprint(self._folder.path)}"
        return f"{stem}/{VERSION}" if is_static(self._folder.path) else f"{stem}/{RECIPE}/{VERSION}"

    @property
    def dimension(self) -> int:
        """Length of the vectors; a model that was never distilled is distilled now."""
        return int(self._loaded().rows.shape[1])

    @property
    def imitates(self) -> str | None:
        """``model_id`` of the model whose vectors a fitted table approximates; None for other tables.

        Vectors of the two may be compared: that is what the table was fitted for.
        """
        if not is_static(self._folder.path):
            return None
        named = static_config(self._folder.path).get("imitates")
        return named if isinstance(named, str) else None

    def embed(self, texts: Sequence[str], progress: EmbedProgress | None = None) -> np.ndarray:
        """Embed texts; see ``Embedder``. Some 100,000 short texts a second on two cores."""
        table = self._loaded()
        vectors = np.empty((len(texts), table.rows.shape[1]), dtype=np.float32)
        starts = range(0, len(texts), _CHUNK)

        def fill(start: int) -> int:
            chunk = texts[start : start + _CHUNK]
            vectors[start : start + len(chunk)] = table.vectors(chunk)
            return len(chunk)

        if len(starts) <= 1:
            done = map(fill, starts)
            for count in done:
                if progress is not None:
                    progress(count)
            return vectors
        with ThreadPoolExecutor(max_workers=self._threads) as pool:
            for count in pool.map(fill, starts):
                if progress is not None:
                    progress(count)
        return vectors

    def _loaded(self) -> _Table:
        with self._lock:
            if self._table is None:
                self._table = _Table(read_static(self._static_folder(self._folder)))
            return self._table

    def _static_folder(self, folder: ModelFolder) -> Path:
        return folder.path if is_static(folder.path) else distilled(folder, self._cache)


class _Table:
    """A loaded table: rows by token, and how texts become tokens."""

    def __init__(self, files: StaticFiles) -> None:
        self.rows = files.rows
        self._tokens = TokenIds(files.tokenizer)
        self._unknown = _fallback(files)

    def vectors(self, texts: Sequence[str]) -> np.ndarray:
        from scipy.sparse import csr_matrix

        tokens, bounds = self._tokens.of(texts)
        ones = np.ones(len(tokens), dtype=np.float32)
        counts = csr_matrix((ones, tokens, bounds), shape=(len(texts), len(self.rows)))
        sums: np.ndarray = counts @ self.rows
        norms = np.sqrt(np.einsum("ij,ij->i", sums, sums))
        nothing = ~(norms > _SMALLEST_NORM)
        if nothing.any():
            sums[nothing] = self._unknown
            norms[nothing] = 1.0
        sums /= norms[:, None]
        return sums


def _fallback(files: StaticFiles) -> np.ndarray:
    rows, tokenizer = files.rows, files.tokenizer
    unknown = _unknown_row(tokenizer)
    if unknown is not None:
        norm = float(np.linalg.norm(rows[unknown]))
        if norm > _SMALLEST_NORM:
            return np.asarray(rows[unknown] / norm, dtype=np.float32)
    axis = np.zeros(rows.shape[1], dtype=np.float32)
    axis[0] = 1.0
    return axis


def _unknown_row(tokenizer: Any) -> int | None:  # noqa: ANN401 - the library's own class
    model = json.loads(tokenizer.to_str())["model"]
    name = model.get("unk_token")
    place = tokenizer.token_to_id(name) if isinstance(name, str) else model.get("unk_id")
    return place if isinstance(place, int) and place >= 0 else None


def require_imitation(embedder: StaticEmbedder, model_id: str) -> None:
    """Refuse a static model that was not fitted to the vectors of ``model_id``.

    Raises:
        ModelUnavailableError: its vectors must not be compared with those of ``model_id``.
    """
    if embedder.imitates != model_id:
        raise ModelUnavailableError(
            f"{embedder.model_id} was fitted to {embedder.imitates or 'no model'}, the questions are of {model_id}: "
            "fit it again (fit_static), or ask with the model it was fitted to"
        )
