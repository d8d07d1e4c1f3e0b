"""What changed in a partition since the lexicon took its rows, and making that change in the file."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from kgrag_assets.knowledge.lexicon_files import PLACES, padded, read_aliases
from kgrag_assets.knowledge.lexicon_rows import COLUMNS, entity_rows, key_bytes, name_rows, with_places, word_uses
from kgrag_assets.knowledge.name_source import spelled
from kgrag_assets.lake.changes import REMOVED, PartitionFiles, mark_of
from kgrag_assets.lake.lake import Lake
from kgrag_assets.rows.knowledge_graph import KG_ENTITIES
from kgrag_assets.rows.table import ROW_KEY

_CHANGED = pl.Schema({ROW_KEY: pl.String, "entity_id": pl.String, "added": pl.Boolean})
_HELD = pl.Schema({ROW_KEY: pl.Binary, "place": pl.Int64})
_BATCH = 500


@dataclass(frozen=True)
class PartitionState:
    """What names the rows of a partition: the mark of its rows file, and the rows that its changes add or remove.

    ``changed`` has the columns ``row_key``, ``entity_id`` and ``added``.
    """

    mark: str | None
    changed: pl.DataFrame

    def rows(self, number: int) -> Iterator[tuple[int, str, str, bool]]:
        """Yield the rows of the table ``changes``."""
        for key, entity_id, added in self.changed.iter_rows():
            yield number, key, entity_id, added


@dataclass(frozen=True)
class Change:
    """Rows to add to a partition, the places of entities to remove, and the state that it then is in."""

    partition: str
    number: int
    added: pl.DataFrame
    removed: list[int]
    state: PartitionState


def state_of(lake: Lake, partition: str) -> PartitionState:
    """Return the state of a partition as it is; of the rows that did not change, at most the keys are read."""
    files = lake.files(KG_ENTITIES, partition)
    if not files.exists():
        return PartitionState(None, pl.DataFrame(schema=_CHANGED))
    _added, removed = files.changed_keys()
    found = [pl.DataFrame(schema=_CHANGED)]
    if files.has_changes():
        added_rows = _changes(files).select(ROW_KEY, "entity_id").collect()
        removed_rows = _base(files).filter(pl.col(ROW_KEY).is_in(removed.implode())).select(ROW_KEY, "entity_id")
        found += [added_rows.with_columns(added=True), removed_rows.collect().with_columns(added=False)]
    return PartitionState(mark_of(files.rows), pl.concat(found))


def find_change(lake: Lake, connection: sqlite3.Connection, number: int, partition: str) -> Change:
    """Compare a partition's rows with those in the lexicon: by its changes, or by all keys if its file is another."""
    state = state_of(lake, partition)
    (mark,) = connection.execute("SELECT mark FROM partitions WHERE number = ?", (number,)).fetchone()
    if mark is None or mark != state.mark:
        return _compare(lake, connection, number, partition, state)
    files = lake.files(KG_ENTITIES, partition)
    known = connection.execute("SELECT row_key, entity_id, added FROM changes WHERE partition = ?", (number,))
    before = pl.DataFrame(known.fetchall(), schema={**_CHANGED, "added": pl.Int64}, orient="row").cast(_CHANGED)
    came = state.changed.join(before, on=[ROW_KEY, "added"], how="anti")
    went = before.join(state.changed, on=[ROW_KEY, "added"], how="anti")
    fresh, returning = came.filter("added")[ROW_KEY], went.filter(~pl.col("added"))[ROW_KEY]
    added = [lake.scan(KG_ENTITIES, partition, COLUMNS).head(0).collect()]
    for keys, rows in ((fresh, _changes), (returning, _base)):
        if len(keys):
            added.append(rows(files).filter(pl.col(ROW_KEY).is_in(keys.implode())).select(COLUMNS).collect())
    gone = pl.concat([came.filter(~pl.col("added")), went.filter("added")])
    held = _held(connection, number, gone["entity_id"].unique().sort().to_list())
    removed = held.filter(held[ROW_KEY].is_in(key_bytes(gone[ROW_KEY]).implode()))["place"].to_list()
    return Change(partition, number, pl.concat(added), removed, state)


def _compare(lake: Lake, connection: sqlite3.Connection, number: int, partition: str, state: PartitionState) -> Change:
    bounds = (number * PLACES, (number + 1) * PLACES)
    found = connection.execute("SELECT row_key, place FROM entities WHERE place >= ? AND place < ?", bounds)
    held = pl.DataFrame(found.fetchall(), schema=_HELD, orient="row")
    texts = lake.scan(KG_ENTITIES, partition, [ROW_KEY]).collect()[ROW_KEY]
    keys = key_bytes(texts)
    fresh = texts.filter(~keys.is_in(held[ROW_KEY].implode()))
    added = lake.scan(KG_ENTITIES, partition, COLUMNS).filter(pl.col(ROW_KEY).is_in(fresh.implode())).collect()
    removed = held.filter(~held[ROW_KEY].is_in(keys.implode()))["place"].to_list()
    return Change(partition, number, added, removed, state)


def _changes(files: PartitionFiles) -> pl.LazyFrame:
    """Return the rows that a partition's changes add."""
    return pl.scan_parquet(files.changes, hive_partitioning=False).filter(pl.col(REMOVED).is_null())


def _base(files: PartitionFiles) -> pl.LazyFrame:
    """Return a partition's rows without its changes."""
    return pl.scan_parquet(files.rows, hive_partitioning=False)


def apply_change(connection: sqlite3.Connection, change: Change, version: str) -> None:
    """Make a change, within a transaction of the caller's."""
    graphs = dict(connection.execute("SELECT name, number FROM graphs").fetchall())
    for graph in change.added["graph"].unique().sort():
        if graph not in graphs:
            graphs[graph] = len(graphs)
            connection.execute("INSERT INTO graphs VALUES (?, ?, 0)", (graphs[graph], graph))
    count = Counter[int]()
    words = Counter[str]()
    names = 0
    for place in change.removed:
        graph, names_gone = _remove(connection, place, words)
        count[graph] -= 1
        names -= names_gone
    first = connection.execute(
        "SELECT coalesce(max(place) + 1, ?) FROM entities WHERE place >= ? AND place < ?",
        (change.number * PLACES, change.number * PLACES, (change.number + 1) * PLACES),
    ).fetchone()[0]
    placed = with_places(change.added, first)
    connection.executemany("INSERT INTO entities VALUES (?, ?, ?, ?, ?, ?, ?, ?)", entity_rows(placed, graphs))
    fresh = name_rows(placed)
    connection.executemany("INSERT INTO names VALUES (?, ?, ?)", fresh.iter_rows())
    words.update(dict(word_uses(fresh).iter_rows()))
    names += fresh.height
    for graph_name, number in change.added.group_by("graph").len().iter_rows():
        count[graphs[graph_name]] += number
    connection.executemany(
        "UPDATE graphs SET entities = entities + ? WHERE number = ?", [(by, graph) for graph, by in count.items()]
    )
    _count_words(connection, words)
    connection.execute(
        "UPDATE meta SET value = CAST(value AS INTEGER) + ? WHERE name = 'names'",
        (names,),
    )
    connection.execute("DELETE FROM changes WHERE partition = ?", (change.number,))
    connection.executemany("INSERT INTO changes VALUES (?, ?, ?, ?)", change.state.rows(change.number))
    connection.execute(
        "UPDATE partitions SET version = ?, mark = ? WHERE number = ?", (version, change.state.mark, change.number)
    )


def _remove(connection: sqlite3.Connection, place: int, words: Counter[str]) -> tuple[int, int]:
    """Remove an entity and its names, count its words off, and return its graph and how many names it had."""
    graph, label, aliases = connection.execute(
        "SELECT graph, label, aliases FROM entities WHERE place = ?", (place,)
    ).fetchone()
    gone = list(spelled(label, read_aliases(aliases)))
    connection.executemany(
        "DELETE FROM names WHERE spelling = ? AND entity = ? AND way = ?",
        [(spelling, place, 2 * name + one) for spelling, name, one in gone],
    )
    for spelling, _name, one in gone:
        if not one:
            words.subtract(spelling.split())
    connection.execute("DELETE FROM entities WHERE place = ?", (place,))
    return graph, len(gone)


def _count_words(connection: sqlite3.Connection, words: Counter[str]) -> None:
    """Add to the words' uses; a word that no name has any more goes, a new one comes."""
    for word, by in sorted(words.items()):
        if not by:
            continue
        found = connection.execute("SELECT place, uses FROM words WHERE word = ?", (word,)).fetchone()
        if found is None:
            place = connection.execute("INSERT INTO words (word, uses) VALUES (?, ?)", (word, by)).lastrowid
            connection.execute("INSERT INTO word_trigrams (rowid, word) VALUES (?, ?)", (place, padded(word)))
        elif found[1] + by > 0:
            connection.execute("UPDATE words SET uses = ? WHERE place = ?", (found[1] + by, found[0]))
        else:
            connection.execute("DELETE FROM words WHERE place = ?", (found[0],))
            connection.execute(
                "INSERT INTO word_trigrams (word_trigrams, rowid, word) VALUES ('delete', ?, ?)",
                (found[0], padded(word)),
            )


def _held(connection: sqlite3.Connection, number: int, ids: list[str]) -> pl.DataFrame:
    """Return ``row_key, place`` of all rows of these entities in a partition."""
    rows: list[tuple[bytes, int]] = []
    for start in range(0, len(ids), _BATCH):
        batch = ids[start : start + _BATCH]
        rows += connection.execute(
            "SELECT row_key, place FROM entities WHERE entity_id IN "  # noqa: S608 (?, ?)
            f"({','.join('?' * len(batch))}) AND place >= ? AND place < ?",
            (*batch, number * PLACES, (number + 1) * PLACES),
        ).fetchall()
    return pl.DataFrame(rows, schema=_HELD, orient="row")
