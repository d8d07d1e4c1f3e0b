"""Where a linker looks names up, and names of a few entities held in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

import polars as pl

from kgrag_assets.knowledge.folding import folded, singular
from kgrag_assets.knowledge.misspelling import likest

# Shorter names and phrases are linked to nothing.
MIN_PHRASE = 3


class NamedEntity(NamedTuple):
    """An entity whose label or alias, folded, is a spelling; ``singular`` where it is that name's singular."""

    entity_id: str
    label: str
    name: str
    alias: bool
    singular: bool


class NameSource(Protocol):
    """The names of a graph's entities by how they are spelled."""

    def named(self, spellings: Collection[str]) -> Mapping[str, Sequence[NamedEntity]]:
        """Return the entities of each folded spelling that has any.

        They stand in the order of entity id and graph, and those of one entity label first, then aliases in order.
        """

    def similar_words(self, word: str) -> Sequence[str]:
        """Return words of the names that a folded word may have been meant to be, the likest first."""


def spelled(label: str, aliases: Sequence[str]) -> Iterator[tuple[str, int, bool]]:
    """Yield (folded spelling, place of the name, whether it is its singular); the label's place is 0."""
    for place, name in enumerate((label, *aliases)):
        plain = folded(name)
        if len(plain) < MIN_PHRASE:
            continue
        yield plain, place, False
        one = singular(plain)
        if one != plain:
            yield one, place, True


class NamesInMemory:
    """The names of rows of ``kg_entities``, for graphs that are small."""

    def __init__(self, entities: pl.DataFrame) -> None:
        """Take the rows, in any order."""
        self._named: dict[str, list[NamedEntity]] = {}
        self._words: Counter[str] = Counter()
        ordered = entities.sort("entity_id", "graph", maintain_order=True)
        for entity_id, label, aliases in ordered.select("entity_id", "label", "aliases").iter_rows():
            for spelling, place, one in spelled(label, aliases):
                name = label if place == 0 else aliases[place - 1]
                self._named.setdefault(spelling, []).append(NamedEntity(entity_id, label, name, place > 0, one))
                if not one:
                    self._words.update(spelling.split())

    def named(self, spellings: Collection[str]) -> Mapping[str, Sequence[NamedEntity]]:
        """Return the entities of each folded spelling that has any."""
        return {spelling: self._named[spelling] for spelling in spellings if spelling in self._named}

    def similar_words(self, word: str) -> Sequence[str]:
        """Return words of the names that a folded word may have been meant to be: every word is compared."""
        return likest(word, list(self._words.items()))
