"""The page that says what an index's files hold: written with them, and checked before they are used."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

FORMAT = 2
MANIFEST_NAME = "manifest.json"
_CHUNK = 1 << 20

Storage = Literal["full", "fp16", "sq8"]


class IndexFileError(RuntimeError):
    """An index's files do not agree or cannot be read; the message names the file and what to do."""

    def __init__(self, path: Path, problem: str) -> None:
        super().__init__(f"{path}: {problem}. Delete the folder {path.parent} and run again: the index is built anew")


class FileEntry(BaseModel):
    """Size and checksums of one file of the index: of all of it, and of its first and last MiB (``ends``)."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    bytes: int
    blake2b: str
    ends: str


@dataclass(frozen=True)
class HnswParameters:
    """What decides the graph (``m``, ``ef_construction``, ``storage``) and how far a search looks (``ef_search``).

    ``storage`` is how the base keeps its vectors: as they are, in half floats, or as one byte per number.
    """

    m: int
    ef_construction: int
    ef_search: int
    storage: Storage = "full"


class Manifest(BaseModel):
    """What the files of an index hold. ``rows_version`` hashes the live rows, ``data_version`` the model too."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: int
    model_id: str
    dimension: int
    base_rows: int
    base_nodes: int
    delta_rows: int
    dead_rows: int
    live_rows: int
    parameters: HnswParameters
    rows_version: str
    data_version: str
    files: dict[str, FileEntry]


def file_entry(path: Path) -> FileEntry:
    """Measure a file by reading all of it."""
    digest = hashlib.blake2b(digest_size=16)
    with path.open("rb") as handle:
        while chunk := handle.read(_CHUNK):
            digest.update(chunk)
    return FileEntry(bytes=path.stat().st_size, blake2b=digest.hexdigest(), ends=ends_of(path))


def ends_of(path: Path) -> str:
    """Hash the first and the last MiB of a file: what opening can afford whatever the file's size."""
    digest = hashlib.blake2b(digest_size=16)
    size = path.stat().st_size
    with path.open("rb") as handle:
        digest.update(handle.read(_CHUNK))
        handle.seek(max(_CHUNK, size - _CHUNK) if size > _CHUNK else size)
        digest.update(handle.read(_CHUNK))
    return digest.hexdigest()


def looks_like(path: Path, expected: FileEntry) -> bool:
    """Whether a file is there with this size and these ends."""
    return path.is_file() and path.stat().st_size == expected.bytes and ends_of(path) == expected.ends


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write the manifest beside the files it speaks of."""
    (folder / MANIFEST_NAME).write_text(manifest.model_dump_json(indent=2) + "\n", encoding="utf-8")


def read_manifest(folder: Path, *, whole: bool = False) -> Manifest:
    """Read the manifest and check every file against it.

    Args:
        folder: the index's folder.
        whole: read every file from end to end; without it only sizes and the files' ends are compared.

    Raises:
        IndexFileError: the manifest is missing, damaged or of another format, or a file is missing or is not
            the one that was written with it.
    """
    path = folder / MANIFEST_NAME
    try:
        manifest = Manifest.model_validate_json(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise IndexFileError(path, f"cannot be read ({error.strerror or error})") from error
    except (ValidationError, UnicodeDecodeError) as error:
        raise IndexFileError(path, "is not a manifest of this version") from error
    if manifest.format != FORMAT:
        raise IndexFileError(path, f"is of format {manifest.format}, this version reads {FORMAT}")
    for name, expected in manifest.files.items():
        file = folder / name
        if "/" in name or not file.is_file():
            raise IndexFileError(file, "is missing")
        if not looks_like(file, expected) or (whole and file_entry(file) != expected):
            raise IndexFileError(file, "is not the file that was written with the manifest")
    return manifest
