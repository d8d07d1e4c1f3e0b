"""Making static models: a token table from a sentence-transformers model, and fitting it to that model's vectors."""

from __future__ import annotations

import hashlib
import heapq
import logging
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from kgrag_assets.models.embedders import Embedder
from kgrag_assets.models.errors import ModelUnavailableError
from kgrag_assets.models.model_folder import ModelFolder, find_model, fingerprint, forbid_downloads
from kgrag_assets.models.static_files import is_static, read_tokenizer, write_static
from kgrag_assets.models.token_ids import TokenIds
from kgrag_assets.rows.keys import key_of

# The distillation's own parameters; model2vec's defaults, which bench/embedding.py finds best of those it tries.
DIMENSION = 256
SIF = 1e-4
RECIPE = f"distil-1,mean,pca={DIMENSION},sif={SIF:g}"

# Texts that a fit embeds in full: with more of them recall grows (bench/embedding.py).
FIT_TEXTS = 100_000
RIDGE = 0.03
FIT_RECIPE = f"fit-1,sif={SIF:g},ridge={RIDGE:g}"
_STEPS = 15
# Columns solved at once: bounds the memory of a fit to a few times this many floats a text.
_COLUMNS = 96
_BATCH = 256


def cache_folder() -> Path:
    """Return the user's folder of distilled models: ``$XDG_CACHE_HOME/kgrag`` or ``~/.cache/kgrag``.

    Raises:
        ModelUnavailableError: the user has no home folder.
    """
    base = os.environ.get("XDG_CACHE_HOME", "")
    if base and Path(base).is_absolute():
        return Path(base) / "kgrag" / "static"
    try:
        return Path.home() / ".cache" / "kgrag" / "static"
    except RuntimeError:
        raise ModelUnavailableError(
            "there is no home folder to keep a distilled model in: set XDG_CACHE_HOME or KGRAG_EMBEDDER__STATIC_CACHE"
        ) from None


def distilled(folder: ModelFolder, cache: Path | None = None) -> Path:
    """Return the folder of the static model distilled from a model, distilling it if that was not done yet.

    Args:
        folder: a sentence-transformers model over one transformer.
        cache: where distilled models are kept; ``cache_folder()`` by default.

    Raises:
        ModelUnavailableError: the model cannot be loaded or has no fast tokenizer.
        LakeError: the cache cannot be written.
    """
    name = f"{folder.name.replace('/', '--')}-{fingerprint(folder.path)}-{_short(RECIPE)}"
    target = (cache_folder() if cache is None else cache) / name
    if not is_static(target):
        rows, tokenizer = token_vectors(folder)
        rows = reduced(rows, DIMENSION) * sif_weights(tokenizer, len(rows))[:, None]
        config = {"distilled_from": f"{folder.name}@{fingerprint(folder.path)}", "recipe": RECIPE}
        write_static(target, rows, tokenizer, {**config, "apply_pca": DIMENSION, "sif_coefficient": SIF})
    return target


def token_vectors(folder: ModelFolder) -> tuple[np.ndarray, str]:
    """Ask a model for the vector of each token by itself, between its begin and end marks; some 20 s.

    This is model2vec's way (https://github.com/MinishLab/model2vec).

    Returns:
        float32 of shape (tokens, dimension), the mean over the three positions; and the tokenizer's JSON.

    Raises:
        ModelUnavailableError: the model cannot be loaded or has no fast tokenizer.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    if folder.offline:
        forbid_downloads()
    import torch
    from transformers import AutoModel
    from transformers.utils import logging as transformers_logging

    logging.getLogger("transformers").setLevel(logging.ERROR)
    bars: Any = transformers_logging
    bars.disable_progress_bar()
    tokenizer = read_tokenizer(folder.path)
    try:
        model = AutoModel.from_pretrained(str(folder.path), local_files_only=True).eval()
    except (OSError, ValueError, KeyError, RuntimeError) as error:
        raise ModelUnavailableError(f"cannot distil the model in {folder.path}: {error}") from error
    tokenizer.no_truncation()
    tokenizer.no_padding()
    marks = tokenizer.encode("").ids
    half = (len(marks) + 1) // 2
    before, after = torch.tensor(marks[:half]), torch.tensor(marks[half:])
    found = []
    with torch.inference_mode():
        for start in range(0, tokenizer.get_vocab_size(), _BATCH):
            tokens = torch.arange(start, min(start + _BATCH, tokenizer.get_vocab_size()))[:, None]
            wide = (before.expand(len(tokens), -1), tokens, after.expand(len(tokens), -1))
            asked = torch.cat(wide, dim=1).to(torch.long)
            hidden = model(input_ids=asked, attention_mask=torch.ones_like(asked)).last_hidden_state
            found.append(hidden.mean(dim=1).float().numpy())
    return np.concatenate(found), tokenizer.to_str()


def reduced(rows: np.ndarray, dimension: int) -> np.ndarray:
    """Centre the rows and turn them to their ``dimension`` principal axes (all, where they have fewer)."""
    centred = rows.astype(np.float64) - rows.mean(axis=0, dtype=np.float64)
    values, axes = np.linalg.eigh(centred.T @ centred)
    axes = axes[:, np.argsort(-values)[:dimension]]
    # The sign of an axis is chance: fixed, so that every machine makes the same table.
    axes *= np.where(axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])] < 0, -1.0, 1.0)
    return np.asarray(centred @ axes, dtype=np.float32)


def sif_weights(tokenizer: str, size: int) -> np.ndarray:
    """Weigh tokens down that are frequent, taking their order in the vocabulary for their rank (Zipf).

    Smooth inverse frequency: Arora, Liang, Ma, "A simple but tough-to-beat baseline for sentence embeddings", 2017.
    Tokens that the vocabulary only holds in reserve (``[unused1]``) have no rank.
    """
    from tokenizers import Tokenizer

    vocabulary = Tokenizer.from_str(tokenizer).get_vocab(with_added_tokens=True)
    reserved = np.zeros(size, dtype=bool)
    reserved[[place for token, place in vocabulary.items() if token.startswith("[unused")]] = True
    share = 1.0 / (np.cumsum(~reserved) + 1.0)
    share /= share[~reserved].sum()
    return np.asarray(SIF / (SIF + share), dtype=np.float32)


def sample_of(texts: Iterable[str], size: int) -> list[str]:
    """Choose ``size`` different texts evenly, the same ones whatever their order: those of the smallest hashes."""
    kept: dict[str, int] = {}
    heap: list[tuple[int, str]] = []
    for text in texts:
        if text in kept:
            continue
        rank = -int.from_bytes(hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=8).digest(), "big")
        if len(heap) < size:
            heapq.heappush(heap, (rank, text))
        elif size and rank > heap[0][0]:
            del kept[heapq.heapreplace(heap, (rank, text))[1]]
        else:
            continue
        kept[text] = rank
    return sorted(kept)


def fitted_folder(place: Path, full_model_id: str, size: int = FIT_TEXTS) -> Path:
    """Return the folder below ``place`` where ``fit_static`` puts the model; ``is_static`` says whether it is there."""
    return place / f"fitted-{_short(key_of(full_model_id, FIT_RECIPE, size))}"


def fit_static(
    model: str,
    full: Embedder,
    texts: Iterable[str],
    place: Path,
    *,
    size: int = FIT_TEXTS,
    progress: Callable[[int], None] | None = None,
) -> Path:
    """Fit a static model to a model's own vectors of a sample of texts, and keep it; one that is there stays as it is.

    The table's rows lie in the space of the full model: the cosine of a question's full vector and a text's static
    vector approximates that of their full vectors. So no question needs a static vector.

    Args:
        model: the sentence-transformers model that ``full`` runs, as ``find_model`` takes it.
        full: makes the vectors of the sample.
        texts: texts of the graph, entities and triples; ``sample_of`` them is embedded in full.
        place: folder of fitted models.
        size: texts embedded in full; the more, the better the fit.
        progress: called with the number of texts embedded since.

    Returns:
        the model's folder (``fitted_folder``), for ``StaticEmbedder``.

    Raises:
        ModelUnavailableError: the model cannot be loaded, or its vectors are not of the length that ``full`` makes.
        EmbeddingError: ``full`` could not embed the texts.
        ValueError: there is no text.
        LakeError: the folder cannot be written.
    """
    folder = fitted_folder(place, full.model_id, size)
    if is_static(folder):
        return folder
    source = find_model(model)
    sample = sample_of(texts, size)
    if not sample:
        raise ValueError("a static model cannot be fitted without a text")
    rows, tokenizer = token_vectors(source)
    if rows.shape[1] != full.dimension:
        raise ModelUnavailableError(
            f"{source.name} has vectors of {rows.shape[1]} numbers, {full.model_id} of {full.dimension}: "
            "a static model can be fitted only to the model that it is distilled from"
        )
    rows *= sif_weights(tokenizer, len(rows))[:, None]
    config = {
        "imitates": full.model_id,
        "distilled_from": f"{source.name}@{fingerprint(source.path)}",
        "recipe": FIT_RECIPE,
        "fit_texts": len(sample),
    }
    write_static(folder, fitted_rows(rows, tokenizer, sample, full.embed(sample, progress)), tokenizer, config)
    return folder


def fitted_rows(rows: np.ndarray, tokenizer: str, texts: Sequence[str], targets: np.ndarray) -> np.ndarray:
    """Move the rows of a table so that the mean of a text's rows is near the text's full vector.

    Ridge regression towards the given rows (scaled to the targets), by conjugate gradients with the diagonal as
    preconditioner: a token that the texts do not have keeps its row.

    Args:
        rows: where the fit starts, shape (tokens, dimension).
        tokenizer: the tokenizer's JSON.
        texts: the texts.
        targets: their vectors, shape (texts, dimension).

    Returns:
        float32, shape of ``rows``.
    """
    from scipy.sparse import csr_matrix, diags
    from tokenizers import Tokenizer

    tokens, bounds = TokenIds(Tokenizer.from_str(tokenizer)).of(texts)
    shares = np.repeat(1.0 / np.maximum(np.diff(bounds), 1), np.diff(bounds)).astype(np.float32)
    means = csr_matrix((shares, tokens, bounds), shape=(len(texts), len(rows)))
    means.sum_duplicates()
    first = means @ rows
    power = float(np.einsum("ij,ij->", first, first, dtype=np.float64))
    scale = float(np.einsum("ij,ij->", first, targets, dtype=np.float64)) / power if power > 0 else 1.0
    turned = means.T.tocsr()
    diagonal = np.asarray(turned.multiply(turned).sum(axis=1), dtype=np.float32).ravel() + RIDGE
    inverse = diags(1.0 / diagonal)
    fitted = np.asarray(rows * scale, dtype=np.float32)
    for start in range(0, rows.shape[1], _COLUMNS):
        columns = slice(start, start + _COLUMNS)
        left = turned @ (targets[:, columns] - scale * first[:, columns])
        fitted[:, columns] += _solved(means, turned, inverse, np.asarray(left, dtype=np.float32))
    return fitted


def _solved(means: Any, turned: Any, inverse: Any, left: np.ndarray) -> np.ndarray:  # noqa: ANN401 - scipy's, untyped
    """Solve ``(turned @ means + RIDGE) x = left`` for each column of ``left``, to ``_STEPS`` steps."""
    found = np.zeros_like(left)
    ahead = inverse @ left
    along = ahead.copy()
    power = (left * ahead).sum(axis=0)
    for _ in range(_STEPS):
        pushed = turned @ (means @ along) + RIDGE * along
        step = power / np.maximum((along * pushed).sum(axis=0), 1e-30)
        found += step * along
        left = left - step * pushed
        ahead = inverse @ left
        fresh = (left * ahead).sum(axis=0)
        along = ahead + (fresh / np.maximum(power, 1e-30)) * along
        power = fresh
    return np.asarray(found, dtype=np.float32)


def _short(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=4).hexdigest()
