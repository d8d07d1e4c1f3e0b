"""The names of all entities of the lake, looked up on disk: a process holds a few megabytes of them."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from kgrag_assets.knowledge.errors import KnowledgeError
from kgrag_assets.knowledge.lexicon_files import PLACES, lexicon_path, open_to_read, padded, read_aliases
from kgrag_assets.knowledge.misspelling import edits_allowed, likest, swapped
from kgrag_assets.knowledge.name_source import NamedEntity
from kgrag_assets.lake.lake import Lake
from kgrag_assets.rows.keys import data_version_of

# Values bound to one statement; SQLite takes 32,766.
_BATCH = 500


@dataclass(frozen=True)
class LexiconEntity:
    """What one graph calls an entity; ``kind`` is ``entity`` or ``relation``."""

    entity_id: str
    graph: str
    kind: str
    label: str
    aliases: tuple[str, ...]
    description: str


class Lexicon:
    """An opened lexicon, or a view of it that sees only some graphs. Safe to use from several threads."""

    def __init__(self, path: Path) -> None:
        """Open the file to read; ``of_lake`` finds it.

        Raises:
            KnowledgeError: there is none, or it is damaged or of another format.
        """
        self._path = path
        self._connection = open_to_read(path)
        self._one_at_a_time = threading.Lock()
        rows = self._select("SELECT number, name, entities FROM graphs ORDER BY name")
        self._graphs: dict[int, str] = {number: name for number, name, _entities in rows}
        self.graphs: tuple[str, ...] = tuple(name for _number, name, entities in rows if entities)
        self.data_version = data_version_of([version for (version,) in self._select("SELECT version FROM partitions")])
        self._seen: frozenset[int] | None = None

    @classmethod
    def of_lake(cls, lake: Lake) -> Lexicon:
        """Open the lake's lexicon.

        Raises:
            KnowledgeError: there is none, or it is damaged or of another format.
        """
        return cls(lexicon_path(lake))

    def restricted_to(self, graphs: Collection[str]) -> Lexicon:
        """Return a view that sees only these graphs, over the same open file.

        Raises:
            KnowledgeError: the lexicon does not have one of them.
        """
        unknown = sorted(set(graphs) - set(self.graphs))
        if unknown:
            raise KnowledgeError(
                f"the lexicon does not have the knowledge graph {unknown[0]!r}; it has "
                f"{', '.join(self.graphs) or 'none'}: materialize kg_lexicon, or choose another"
            )
        view = object.__new__(Lexicon)
        view.__dict__.update(self.__dict__)
        view.graphs = tuple(graph for graph in self.graphs if graph in set(graphs))
        view._seen = frozenset(number for number, name in self._graphs.items() if name in set(graphs))
        return view

    def close(self) -> None:
        """Close the file, for this and all views of it."""
        self._connection.close()

    def named(self, spellings: Collection[str]) -> Mapping[str, Sequence[NamedEntity]]:
        """Return the entities of each folded spelling that has any; see ``NameSource``."""
        found: dict[str, list[tuple[str, str, int, str, str]]] = {}
        for batch in _batches(spellings):
            rows = self._select(
                "SELECT n.spelling, e.entity_id, e.graph, n.way, e.label, e.aliases FROM names n "  # noqa: S608 (?, ?)
                f"CROSS JOIN entities e ON e.place = n.entity WHERE n.spelling IN ({batch.marks})",
                batch.values,
            )
            for spelling, entity_id, graph, way, label, aliases in rows:
                if self._seen is None or graph in self._seen:
                    found.setdefault(spelling, []).append((entity_id, self._graphs[graph], way, label, aliases))
        return {spelling: [_named(*entry) for entry in sorted(entries)] for spelling, entries in found.items()}

    def similar_words(self, word: str) -> Sequence[str]:
        """Return words of the names, of any graph, that a folded word may have been meant to be, the likest first.

        With one wrong letter one half of the word is whole, with two a third of it: words with all trigrams of
        such a part are compared.
        """
        edits = edits_allowed(word)
        if not edits:
            return []
        groups = [_all_of(part) for part in _parts(padded(word), edits + 1)]
        candidates: dict[str, int] = dict(
            self._select(
                "SELECT w.word, w.uses FROM word_trigrams t CROSS JOIN words w ON w.place = t.rowid "
                "WHERE t.word_trigrams MATCH ? AND length(w.word) BETWEEN ? AND ?",
                [" OR ".join(filter(None, groups)), len(word) - edits, len(word) + edits],
            )
        )
        # Two neighbours that changed places may stand in two parts.
        for batch in _batches(swapped(word)):
            marks = batch.marks
            candidates.update(
                self._select(f"SELECT word, uses FROM words WHERE word IN ({marks})", batch.values)  # noqa: S608 (?, ?)
            )
        return likest(word, list(candidates.items()))

    def entities(self, ids: Iterable[str]) -> dict[str, list[LexiconEntity]]:
        """Return what the graphs call each of the entities that they know, in the order of the graphs' names."""
        found: dict[str, list[LexiconEntity]] = {}
        for batch in _batches(dict.fromkeys(ids)):
            rows = self._select(
                "SELECT entity_id, graph, kind, label, aliases, description FROM entities "  # noqa: S608 (?, ?)
                f"WHERE entity_id IN ({batch.marks})",
                batch.values,
            )
            for entity_id, graph, kind, label, aliases, description in rows:
                if self._seen is None or graph in self._seen:
                    found.setdefault(entity_id, []).append(
                        LexiconEntity(
                            entity_id, self._graphs[graph], kind, label, tuple(read_aliases(aliases)), description
                        )
                    )
        return {entity_id: sorted(known, key=lambda one: one.graph) for entity_id, known in found.items()}

    def partition_of(self, entity_id: str) -> str | None:
        """Return the partition of ``kg_entities`` in which an entity's rows lie; None for one that has none."""
        found = self._select(
            "SELECT p.name FROM entities e CROSS JOIN partitions p ON p.number = e.place / ? "
            "WHERE e.entity_id = ? LIMIT 1",
            [PLACES, entity_id],
        )
        return str(found[0][0]) if found else None

    def _select(self, statement: str, values: Sequence[object] = ()) -> list[tuple]:  # type: ignore[type-arg]
        try:
            # One thread at a time, and all rows at once: a writer waits until nothing is being read.
            with self._one_at_a_time:
                return self._connection.execute(statement, values).fetchall()
        except sqlite3.Error as error:
            raise KnowledgeError(
                f"{self._path} cannot be read ({error}): delete it and run again (asset kg_lexicon)"
            ) from error


@dataclass(frozen=True)
class _Batch:
    values: list[object]

    @property
    def marks(self) -> str:
        return ",".join("?" * len(self.values))


def _batches(values: Collection[object]) -> Iterator[_Batch]:
    listed = list(values)
    for start in range(0, len(listed), _BATCH):
        yield _Batch(listed[start : start + _BATCH])


def _named(entity_id: str, _graph: str, way: int, label: str, aliases: str) -> NamedEntity:
    place, one = divmod(way, 2)
    return NamedEntity(entity_id, label, read_aliases(aliases)[place - 1] if place else label, place > 0, bool(one))


def _parts(text: str, count: int) -> list[str]:
    ends = [round(number * len(text) / count) for number in range(count + 1)]
    return [text[start:end] for start, end in pairwise(ends)]


def _all_of(part: str) -> str:
    """Return the query for words with all trigrams of a part; empty where it is too short to have one."""
    # A folded word is letters and digits; quotes cannot be in it.
    trigrams = dict.fromkeys(part[place : place + 3] for place in range(len(part) - 2))
    quoted = " AND ".join(f'"{one}"' for one in trigrams)
    return f"({quoted})" if trigrams else ""
