"""Telling that a graph's files changed, by their content; a file that was not touched is not read again."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from kgrag_assets.knowledge.graph_folder import GraphFolder
from kgrag_assets.knowledge.opening import data_files
from kgrag_assets.lake.files import LakeError, write_whole
from kgrag_assets.lake.lake import Lake
from kgrag_assets.rows.keys import Part, key_of

# What a file was when it was hashed: size, time of change in ns, inode; and its hash.
_Known = dict[str, tuple[int, int, int, str]]


class Fingerprints:
    """Hashes of graph files, kept beside the lake's stages, so that a look at 100 GB takes no reading."""

    def __init__(self, lake: Lake) -> None:
        """Open the hashes of a lake; without any, or with damaged ones, files are read."""
        self._path = lake.paths.stage("kg_fingerprints") / "files.json"
        self._known = _read(self._path)
        self._seen: _Known = {}

    def of(self, folder: GraphFolder) -> str:
        """Hash what decides a graph's rows: the settings in ``kg.yaml`` and the content of each data file."""
        settings: list[Part] = [folder.format, folder.namespace, repr(folder.read), repr(folder.filter)]
        settings.append({name: value for name, value in folder.sparql.items() if name != "contact"})
        if "query" in folder.sparql:
            settings.append(self._digest(folder.path / folder.sparql["query"]))
        root = folder.data_path if folder.data_path.is_dir() else folder.data_path.parent
        files: list[Part] = [[str(path.relative_to(root)), self._digest(path)] for path in data_files(folder)]
        return key_of(folder.name, settings, files)

    def save(self) -> None:
        """Keep the hashes of all files that were looked at; a lake that cannot be written is none the worse."""
        if self._seen == self._known:
            return
        text = json.dumps(self._seen)
        try:
            write_whole(self._path, text)
        except LakeError:
            return

    def _digest(self, path: Path) -> str:
        try:
            status = path.stat()
            state = (status.st_size, status.st_mtime_ns, status.st_ino)
            known = self._known.get(str(path))
            digest = known[3] if known is not None and tuple(known[:3]) == state else _hash(path)
        except OSError as error:
            return f"unreadable: {error.errno}"
        self._seen[str(path)] = (*state, digest)
        return digest


def _hash(path: Path) -> str:
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, lambda: hashlib.blake2b(digest_size=16)).hexdigest()


def _read(path: Path) -> _Known:
    try:
        known = json.loads(path.read_text(encoding="utf-8"))
        return {name: (int(a), int(b), int(c), str(digest)) for name, (a, b, c, digest) in known.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}
