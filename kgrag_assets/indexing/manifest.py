"""The page that says what an index's files hold: written with them, and checked before they are used."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

FORMAT = 1
MANIFEST_NAME = "manifest.json"
_CHUNK = 1 << 20


class IndexFileError(RuntimeError):
    """An index's files do not agree or cannot be read; the message names the file and what to do."""

    def __init__(self, path: Path, problem: str) -> None:
        super().__init__(f"{path}: {problem}. Delete the folder {path.parent} and run again: the index is built anew")


class FileEntry(BaseModel):
    """Size and checksum of one file of the index."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    bytes: int
    blake2b: str


@dataclass(frozen=True)
class HnswParameters:
    """What decides the graph (``m``, ``ef_construction``) and how far a search looks (``ef_search``)."""

    m: int
    ef_construction: int
    ef_search: int


class Manifest(BaseModel):
    """What the files of an index hold."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: int
    model_id: str
    dimension: int
    base_rows: int
    delta_rows: int
    dead_rows: int
    live_rows: int
    parameters: HnswParameters
    data_version: str
    files: dict[str, FileEntry]


def file_entry(path: Path) -> FileEntry:
    """Measure a file: its size in bytes and its blake2b."""
    digest = hashlib.blake2b(digest_size=16)
    with path.open("rb") as handle:
        while chunk := handle.read(_CHUNK):
            digest.update(chunk)
    return FileEntry(bytes=path.stat().st_size, blake2b=digest.hexdigest())


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write the manifest beside the files it speaks of."""
    (folder / MANIFEST_NAME).write_text(manifest.model_dump_json(indent=2) + "\n", encoding="utf-8")


def read_manifest(folder: Path) -> Manifest:
    """Read the manifest and check every file against it.

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
        if file_entry(file) != expected:
            raise IndexFileError(file, "is not the file that was written with the manifest")
    return manifest
