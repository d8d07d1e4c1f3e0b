"""Telling that a graph's files changed, by their content."""

from __future__ import annotations

import hashlib
from pathlib import Path

from kgrag_assets.knowledge.graph_folder import GraphFolder
from kgrag_assets.rows.keys import Part, key_of

_BLOCK = 1 << 20
_SUFFIXES = {
    "kgtk": (".tsv", ".tsv.gz"),
    "wikidata_json": tuple(kind + packed for kind in (".json", ".jsonl", ".ndjson") for packed in ("", ".gz", ".bz2")),
}


def data_files(folder: GraphFolder) -> list[Path]:
    """List the files that hold a graph's data, sorted."""
    if folder.data_path.is_file():
        return [folder.data_path]
    suffixes = _SUFFIXES[folder.format]
    found = [path for path in folder.data_path.rglob("*") if path.is_file() and path.name.endswith(suffixes)]
    return sorted(found)


def graph_fingerprint(folder: GraphFolder) -> str:
    """Hash what decides a graph's rows: the settings in ``kg.yaml`` and the content of each data file."""
    settings: list[Part] = [folder.format, list(folder.languages), folder.namespace, folder.literals]
    root = folder.data_path if folder.data_path.is_dir() else folder.data_path.parent
    return key_of(folder.name, settings, [[str(path.relative_to(root)), _digest(path)] for path in data_files(folder)])


def _digest(path: Path) -> str:
    digest = hashlib.blake2b(digest_size=16)
    try:
        with path.open("rb") as handle:
            while block := handle.read(_BLOCK):
                digest.update(block)
    except OSError as error:
        return f"unreadable: {error.errno}"
    return digest.hexdigest()
