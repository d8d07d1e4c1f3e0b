"""Hashes of a task's inputs: whether the schemas must be read again, whether its options changed."""

from __future__ import annotations

import hashlib
import time
from pathlib import Path

from kgrag_assets.rows.keys import Part, key_of
from kgrag_assets.schemas.builtin import builtin_targets
from kgrag_assets.schemas.errors import SchemaError
from kgrag_assets.schemas.readers.postgres import postgres_fingerprint
from kgrag_assets.schemas.task_folder import SchemaInput, TaskFolder

_BLOCK = 1 << 20
# A large file is not read again while its size and times stand still. The time of its last change must lie
# back a while, or a second change in the same tick of the clock would go unseen.
_REMEMBERED_BYTES = 4 * 1024 * 1024
_SETTLED_S = 10.0
_remembered: dict[tuple[str, int, int, int], str] = {}


def _file_hash(path: Path) -> str:
    status = path.stat()
    mark = (str(path), status.st_size, status.st_mtime_ns, status.st_ino)
    if mark in _remembered:
        return _remembered[mark]
    digest = hashlib.blake2b(digest_size=16)
    with path.open("rb") as handle:
        for block in iter(lambda: handle.read(_BLOCK), b""):
            digest.update(block)
    if status.st_size >= _REMEMBERED_BYTES and time.time() - status.st_mtime > _SETTLED_S:
        _remembered[mark] = digest.hexdigest()
    return digest.hexdigest()


def _content(path: Path | None, root: Path) -> Part:
    """Names and contents at a path, in a fixed order; what cannot be read is told by the kind of error."""
    if path is None:
        return None
    try:
        if path.is_dir():
            files = sorted(found for found in path.rglob("*") if found.is_file())
            return [[found.relative_to(root).as_posix(), _content(found, root)] for found in files]
        # SQLite and DuckDB keep what was written last in a file beside.
        beside = [path.with_name(path.name + ending) for ending in (".wal", "-wal")]
        hashes = [_file_hash(found) for found in (path, *beside) if found.is_file()]
    except OSError as error:
        return ["unreadable", path.name, error.errno]
    return [path.relative_to(root).as_posix(), hashes]


def _side(given: SchemaInput | None, root: Path) -> Part:
    if given is None:
        return None
    tables = list(given.tables) if given.tables is not None else None
    stated: list[Part] = [given.side, given.format, given.dialect, tables, given.schema]
    if given.connection_env is not None:
        try:
            content: Part = postgres_fingerprint(given.connection_env, given.schema)
        except SchemaError:
            content = "unreachable"
        return [*stated, "connection", given.connection_env, content]
    if given.builtin is not None:
        path = builtin_targets().get(given.builtin)
        return [*stated, "builtin", given.builtin, _content(path, path.parent) if path is not None else None]
    return [*stated, "path", _content(given.path, root), _content(given.table_descriptions, root)]


def schema_fingerprint(folder: TaskFolder) -> str:
    """Hash everything that decides a task's schemas and reference.

    Files are streamed, folders taken with all below them; of a built-in target name and content count, of a live
    database its tables, columns, keys and comments (not its values). The title and the options do not.

    Returns:
        32 hexadecimal digits. It is defined for inputs that cannot be read, too: from what is there.
    """
    return key_of(
        "task inputs",
        _side(folder.source, folder.path),
        _side(folder.target, folder.path),
        _content(folder.sheet, folder.path),
        _content(folder.reference, folder.path),
        _content(folder.entity_links, folder.path),
    )


def _plain(value: object) -> Part:
    if isinstance(value, dict):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(inner) for inner in value]
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    return repr(value)  # a date or a set, as YAML makes them: no option is one, but the hash must stand


def options_fingerprint(folder: TaskFolder) -> str:
    """Hash a task's own options, whatever the order in which they are written, and its examples for the prompt.

    Returns:
        32 hexadecimal digits.
    """
    return key_of("task options", _plain(folder.options), _content(folder.examples, folder.path))
