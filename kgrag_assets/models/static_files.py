"""The files of a static model in model2vec's format: reading them, and writing them as a whole."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kgrag_assets.lake.files import explained, sync_file, sync_folder
from kgrag_assets.models.errors import ModelUnavailableError

# The format: https://github.com/MinishLab/model2vec, version 0.10.
TABLE_FILE, TOKENIZER_FILE, CONFIG_FILE = "model.safetensors", "tokenizer.json", "config.json"


@dataclass(frozen=True)
class StaticFiles:
    """A static model: ``rows[token]`` is the vector of a token, float32; ``tokenizer`` a ``tokenizers.Tokenizer``."""

    rows: np.ndarray
    tokenizer: Any
    config: Mapping[str, Any]


def static_config(folder: Path) -> dict[str, Any]:
    """Read a model's ``config.json``; empty where there is none.

    Raises:
        ModelUnavailableError: it is not JSON.
    """
    path = folder / CONFIG_FILE
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise ModelUnavailableError(f"cannot read {path}: {error}") from error
    return config if isinstance(config, dict) else {}


def is_static(folder: Path) -> bool:
    """Say whether a folder holds a static model."""
    return static_config(folder).get("model_type") == "model2vec"


def read_static(folder: Path) -> StaticFiles:
    """Read a static model.

    Raises:
        ModelUnavailableError: a file is missing or damaged, or the files do not agree.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    tokenizer = read_tokenizer(folder)
    try:
        tensors = load_file(folder / TABLE_FILE)
    except (OSError, ValueError, SafetensorError) as error:
        raise ModelUnavailableError(f"cannot read the static model in {folder}: {error}") from error
    rows = tensors.get("embeddings")
    if rows is None or rows.ndim != 2:
        raise ModelUnavailableError(f"{folder / TABLE_FILE} holds no table of token vectors called 'embeddings'")
    # Models with a quantised vocabulary share rows between tokens and keep the tokens' weights apart.
    mapping, weights = tensors.get("mapping"), tensors.get("weights")
    if mapping is not None:
        if mapping.size and not 0 <= int(mapping.min()) <= int(mapping.max()) < len(rows):
            raise ModelUnavailableError(f"{folder / TABLE_FILE}: 'mapping' names rows that the table does not have")
        rows = rows[mapping]
    rows = np.ascontiguousarray(rows, dtype=np.float32)
    if weights is not None and len(weights) == len(rows):
        rows *= weights.astype(np.float32)[:, None]
    largest = max(tokenizer.get_vocab(with_added_tokens=True).values(), default=-1)
    if largest >= len(rows) or not np.isfinite(rows).all():
        raise ModelUnavailableError(
            f"{folder}: the table has {len(rows)} rows for tokens up to {largest}, or rows that are not finite"
        )
    return StaticFiles(rows, tokenizer, static_config(folder))


def read_tokenizer(folder: Path) -> Any:  # noqa: ANN401 - the library's own class
    """Read the fast tokenizer of a model, a ``tokenizers.Tokenizer``.

    Raises:
        ModelUnavailableError: the model has none, or it cannot be read.
    """
    from tokenizers import Tokenizer

    path = folder / TOKENIZER_FILE
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise ModelUnavailableError(f"cannot read the tokenizer {path}: {error}") from error
    try:
        return Tokenizer.from_str(text)
    # The library raises nothing more special for a damaged file.
    except Exception as error:
        raise ModelUnavailableError(f"{path} is not a tokenizer: {error}") from error


def write_static(folder: Path, rows: np.ndarray, tokenizer: str, config: Mapping[str, Any]) -> None:
    """Write a static model beside ``folder`` and move it there in one rename; one that is there already stays.

    Args:
        folder: where it will lie.
        rows: vectors by token, written as 16-bit floats.
        tokenizer: the tokenizer's JSON.
        config: what ``config.json`` says besides the format's own fields.

    Raises:
        LakeError: the disk is full or the place cannot be written.
    """
    from safetensors.numpy import save_file

    own = {
        "model_type": "model2vec",
        "architectures": ["StaticModel"],
        "hidden_dim": int(rows.shape[1]),
        "embedding_dtype": "float16",
        "normalize": True,
        "max_length": None,
    }
    with explained(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        fresh = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}."))
        try:
            fresh.chmod(0o755)
            save_file({"embeddings": np.ascontiguousarray(rows, dtype=np.float16)}, fresh / TABLE_FILE)
            (fresh / TOKENIZER_FILE).write_text(tokenizer, encoding="utf-8")
            (fresh / CONFIG_FILE).write_text(json.dumps({**own, **config}, indent=1), encoding="utf-8")
            for path in fresh.iterdir():
                path.chmod(0o644)
                sync_file(path)
            if not _moved(fresh, folder):
                shutil.rmtree(fresh)
            sync_folder(folder.parent)
        except BaseException:
            shutil.rmtree(fresh, ignore_errors=True)
            raise


def _moved(fresh: Path, folder: Path) -> bool:
    """Move a folder; False where another process was first."""
    try:
        fresh.rename(folder)
    except OSError:
        if is_static(folder):
            return False
        raise
    return True
