"""The file of the lexicon: its tables, its format, and how it is opened."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

from kgrag_assets.knowledge.errors import KnowledgeError
from kgrag_assets.lake.lake import Lake

# Changes with the tables below and with how names are folded: a file of another format is built anew.
FORMAT = "lexicon-1"
# Entities of a partition are numbered from its number times this on, so that they lie together.
PLACES = 1 << 32
_CACHE_KIB = 16_000
# How long one process waits for another that writes, or reads while the first wants to write.
_WAIT_S = 120.0

_JSON = json.JSONEncoder(ensure_ascii=False)

TABLES = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE partitions (number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, version TEXT NOT NULL, mark TEXT);
CREATE TABLE changes (
  partition INTEGER, row_key TEXT, entity_id TEXT NOT NULL, added INTEGER NOT NULL, PRIMARY KEY (partition, row_key)
) WITHOUT ROWID;
CREATE TABLE graphs (number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, entities INTEGER NOT NULL);
CREATE TABLE entities (
  place INTEGER PRIMARY KEY, entity_id TEXT NOT NULL, graph INTEGER NOT NULL, kind TEXT NOT NULL,
  label TEXT NOT NULL, aliases TEXT NOT NULL, description TEXT NOT NULL, row_key BLOB NOT NULL
);
CREATE TABLE names (
  spelling TEXT, entity INTEGER, way INTEGER, PRIMARY KEY (spelling, entity, way)
) WITHOUT ROWID;
CREATE TABLE words (place INTEGER PRIMARY KEY, word TEXT NOT NULL, uses INTEGER NOT NULL);
CREATE VIRTUAL TABLE word_trigrams USING fts5 (
  word, tokenize = 'trigram case_sensitive 1', content = '', detail = none, columnsize = 0
);
"""
# Made after the rows of a whole build: sorting once is cheaper than inserting in any order.
INDEXES = """
CREATE INDEX entities_by_id ON entities (entity_id, graph);
CREATE UNIQUE INDEX words_by_word ON words (word);
"""


def lexicon_path(lake: Lake) -> Path:
    """Return where the lake's lexicon lies."""
    return lake.paths.stage("kg_lexicon") / "lexicon.sqlite"


def create(path: Path) -> sqlite3.Connection:
    """Open an empty file that nobody else knows of, for a whole build: without a journal."""
    connection = sqlite3.connect(path, isolation_level=None)
    for pragma in ("journal_mode = off", "synchronous = off", "cache_size = -128000", "temp_store = memory"):
        connection.execute(f"PRAGMA {pragma}")
    connection.execute("BEGIN")
    for statement in TABLES.split(";\n"):
        connection.execute(statement)
    return connection


def open_to_write(path: Path) -> sqlite3.Connection:
    """Open a lexicon to change it; what a killed writer left half done is undone.

    Raises:
        KnowledgeError: there is none, or it is damaged or of another format.
    """
    if not path.is_file():
        raise KnowledgeError(f"{path} is missing: run `kgrag run TASK`, or materialize kg_lexicon")
    connection = sqlite3.connect(path, isolation_level=None, timeout=_WAIT_S)
    try:
        _check(connection, path)
    except BaseException:
        connection.close()
        raise
    connection.execute("PRAGMA cache_size = -64000")
    return connection


def open_to_read(path: Path) -> sqlite3.Connection:
    """Open a lexicon that other processes may read or change at the same time; usable from several threads.

    Raises:
        KnowledgeError: there is none, or it is damaged or of another format.
    """
    if not path.is_file():
        raise KnowledgeError(f"{path} is missing: run `kgrag run TASK`, or materialize kg_lexicon")
    address = f"file:{quote(str(path.resolve()))}?mode=ro"
    connection = sqlite3.connect(address, uri=True, isolation_level=None, timeout=_WAIT_S, check_same_thread=False)
    try:
        try:
            _check(connection, path)
        except _HalfDoneError:
            # Readers may not undo; the next writer would do the same.
            open_to_write(path).close()
            _check(connection, path)
    except BaseException:
        connection.close()
        raise
    connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
    return connection


class _HalfDoneError(KnowledgeError):
    """A writer was killed, and what it had half done is still to be undone."""


def _check(connection: sqlite3.Connection, path: Path) -> None:
    try:
        found = connection.execute("SELECT value FROM meta WHERE name = 'format'").fetchone()
    except sqlite3.Error as error:
        if error.sqlite_errorcode == sqlite3.SQLITE_READONLY_ROLLBACK:
            raise _HalfDoneError(f"{path} was left half written: materialize kg_lexicon") from error
        raise KnowledgeError(f"{path} cannot be read ({error}): delete it and run again (asset kg_lexicon)") from error
    if found is None or found[0] != FORMAT:
        raise KnowledgeError(f"{path} is of another version: delete it and run again (asset kg_lexicon)")


def written_aliases(aliases: Sequence[str]) -> str:
    """Write aliases as one text."""
    return _JSON.encode(aliases) if aliases else ""


def read_aliases(text: str) -> list[str]:
    """Read what ``written_aliases`` wrote."""
    return [str(alias) for alias in json.loads(text)] if text else []


def padded(word: str) -> str:
    """Write a word as its trigrams are taken: its ends count, too."""
    return f" {word} "
