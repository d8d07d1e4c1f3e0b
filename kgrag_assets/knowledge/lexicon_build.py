"""Keeping the lexicon of the lake up to date: changed rows in place, built anew where many changed."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from kgrag_assets.knowledge.errors import KnowledgeError
from kgrag_assets.knowledge.lexicon_changes import Change, apply_change, find_change, state_of
from kgrag_assets.knowledge.lexicon_files import FORMAT, INDEXES, PLACES, create, lexicon_path, open_to_write, padded
from kgrag_assets.knowledge.lexicon_rows import COLUMNS, entity_rows, name_rows, with_places, word_uses
from kgrag_assets.lake.files import explained, replace_file
from kgrag_assets.lake.lake import Lake
from kgrag_assets.rows.knowledge_graph import KG_ENTITIES

# From this share of changed entities on, the lexicon is built anew.
REBUILD_SHARE = 0.3


@dataclass(frozen=True)
class LexiconUpdate:
    """What was done, in rows of ``kg_entities``; ``names`` is the number of spellings that are held now.

    ``written`` is false where the lexicon was up to date, ``rebuilt`` true where all of it was built.
    """

    written: bool
    rebuilt: bool
    added: int
    removed: int
    names: int


def bring_lexicon_up_to_date(lake: Lake, partitions: Sequence[str]) -> LexiconUpdate:
    """Make the lexicon that of the rows of ``kg_entities``.

    Few changes are made in place, in one transaction; readers see all of them or none, and a kill leaves the state
    before. A whole build goes into a new file, which then takes the place of the old one.

    Args:
        lake: hold the lock of ``kg_lexicon``.
        partitions: the buckets, in order.

    Raises:
        LakeError: rows cannot be read, or the disk is full.
        KnowledgeError: the disk is full or cannot be written.
    """
    path = lexicon_path(lake)
    versions = {name: lake.version(KG_ENTITIES, name) for name in partitions}
    try:
        connection = open_to_write(path)
    except KnowledgeError:
        return _build(lake, versions, removed=0)
    try:
        with _explained(path):
            update, entities = _update(lake, connection, versions)
    finally:
        connection.close()
    return update if update is not None else _build(lake, versions, removed=entities)


def _update(lake: Lake, connection: sqlite3.Connection, versions: dict[str, str]) -> tuple[LexiconUpdate | None, int]:
    """Return what was updated in place, or None where all must be built; and the number of entities before."""
    entities = _number(connection, "SELECT coalesce(sum(entities), 0) FROM graphs")
    known = connection.execute("SELECT number, name, version FROM partitions ORDER BY number").fetchall()
    if [name for _number, name, _version in known] != list(versions):
        return None, entities
    changes: list[Change] = []
    moved = 0
    for number, name, version in known:
        if version != versions[name]:
            change = find_change(lake, connection, number, name)
            moved += max(change.added.height, len(change.removed))
            changes.append(change)
    if moved > REBUILD_SHARE * max(1, entities):
        return None, entities
    if changes:
        connection.execute("BEGIN IMMEDIATE")
        try:
            for change in changes:
                apply_change(connection, change, versions[change.partition])
            connection.execute("COMMIT")
        except BaseException:
            # Of some errors, such as a full disk, SQLite has done so itself.
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
    update = LexiconUpdate(
        written=bool(changes),
        rebuilt=False,
        added=sum(change.added.height for change in changes),
        removed=sum(len(change.removed) for change in changes),
        names=_number(connection, "SELECT CAST(value AS INTEGER) FROM meta WHERE name = 'names'"),
    )
    return update, entities


def _build(lake: Lake, versions: dict[str, str], removed: int) -> LexiconUpdate:
    path = lexicon_path(lake)
    made: list[tuple[int, int]] = []
    # One that could be opened has none; the journal of one that is lost would be played into the new file.
    with explained(path):
        path.with_name(path.name + "-journal").unlink(missing_ok=True)
    with _explained(path):
        replace_file(path, lambda temporary: made.append(_write(lake, versions, temporary)))
    added, names = made[0]
    return LexiconUpdate(written=True, rebuilt=True, added=added, removed=removed, names=names)


def _write(lake: Lake, versions: dict[str, str], path: Path) -> tuple[int, int]:
    connection = create(path)
    try:
        graphs: dict[str, int] = {}
        counts: dict[str, int] = {}
        added = names = 0
        for number, (name, version) in enumerate(versions.items()):
            state = state_of(lake, name)
            rows = lake.scan(KG_ENTITIES, name, COLUMNS).collect()
            for graph, count in rows.group_by("graph").len().sort("graph").iter_rows():
                graphs.setdefault(graph, len(graphs))
                counts[graph] = counts.get(graph, 0) + count
            added += rows.height
            names += _write_partition(connection, rows, number, graphs)
            connection.execute("INSERT INTO partitions VALUES (?, ?, ?, ?)", (number, name, version, state.mark))
            connection.executemany("INSERT INTO changes VALUES (?, ?, ?, ?)", state.rows(number))
        connection.executemany(
            "INSERT INTO graphs VALUES (?, ?, ?)", [(number, graph, counts[graph]) for graph, number in graphs.items()]
        )
        connection.executemany("INSERT INTO meta VALUES (?, ?)", [("format", FORMAT), ("names", str(names))])
        _index(connection)
        connection.execute("COMMIT")
    finally:
        connection.close()
    return added, names


def _write_partition(connection: sqlite3.Connection, rows: pl.DataFrame, number: int, graphs: dict[str, int]) -> int:
    placed = with_places(rows, number * PLACES)
    connection.executemany("INSERT INTO entities VALUES (?, ?, ?, ?, ?, ?, ?, ?)", entity_rows(placed, graphs))
    names = name_rows(placed)
    connection.executemany("INSERT INTO names VALUES (?, ?, ?)", names.iter_rows())
    connection.executemany("INSERT INTO words (word, uses) VALUES (?, ?)", word_uses(names).iter_rows())
    return names.height


def _index(connection: sqlite3.Connection) -> None:
    """Join the words of the partitions, and make the indexes."""
    connection.execute(
        "CREATE TEMP TABLE joined AS SELECT word, sum(uses) AS uses FROM words GROUP BY word ORDER BY word"
    )
    connection.execute("DELETE FROM words")
    connection.execute("INSERT INTO words (word, uses) SELECT word, uses FROM joined")
    connection.execute("DROP TABLE joined")
    connection.create_function("padded", 1, padded, deterministic=True)
    connection.execute("INSERT INTO word_trigrams (rowid, word) SELECT place, padded(word) FROM words")
    connection.execute("INSERT INTO word_trigrams (word_trigrams) VALUES ('optimize')")
    for statement in INDEXES.split(";\n"):
        connection.execute(statement)


def _number(connection: sqlite3.Connection, statement: str) -> int:
    return int(connection.execute(statement).fetchone()[0])


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise KnowledgeError(
            f"{path} cannot be written ({error}): free disk space where it is full, else delete the file; run again"
        ) from error
