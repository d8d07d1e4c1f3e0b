"""The names of entities and relations, looked up for the few that a fact speaks of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Name:
    """An entity's label, description and kind (entity or relation); the label is the id where the graph has none."""

    label: str
    description: str
    kind: str = "entity"


class Called(Protocol):
    """What one graph calls an entity."""

    @property
    def label(self) -> str:
        """Its label."""

    @property
    def description(self) -> str:
        """Its description; may be empty."""

    @property
    def kind(self) -> str:
        """``entity`` or ``relation``."""


class EntityNames(Protocol):
    """The entities' own names; ``knowledge.lexicon.Lexicon`` is one."""

    def entities(self, ids: Iterable[str]) -> Mapping[str, Sequence[Called]]:
        """Return what the graphs call each of the entities that they know, in the order of the graphs' names."""


class StatedLabels(Protocol):
    """The labels that statements give to what they speak of; ``knowledge.adjacency.Adjacency`` has them."""

    def node(self, entity_id: str) -> int | None:
        """Return the number of an entity, or None where no statement has it."""

    def label(self, node: int) -> str:
        """Return the label of a numbered entity."""

    def relation(self, relation_id: str) -> int | None:
        """Return the number of a relation, or None where no statement has it."""

    def relation_label(self, relation: int) -> str:
        """Return the label of a numbered relation."""


class GraphNames:
    """Labels and descriptions out of the lexicon and, for ids that have no row there, out of the statements."""

    def __init__(self, entities: EntityNames, stated: StatedLabels) -> None:
        """Take where names are looked up; nothing is read yet."""
        self._entities = entities
        self._stated = stated

    def of(self, ids: Iterable[str]) -> Mapping[str, Name]:
        """Return the names of all given ids, as the first graph has them; an unknown one is named by its id."""
        wanted = sorted(set(ids))
        known = self._entities.entities(wanted) if wanted else {}
        found: dict[str, Name] = {}
        for entity in wanted:
            rows = known.get(entity)
            found[entity] = (
                Name(rows[0].label, rows[0].description, rows[0].kind) if rows else self._named_by_statements(entity)
            )
        return found

    def _named_by_statements(self, entity: str) -> Name:
        relation = self._stated.relation(entity)
        if relation is not None:
            return Name(self._stated.relation_label(relation), "", "relation")
        node = self._stated.node(entity)
        return Name(entity if node is None else self._stated.label(node), "")


def local_id(entity_id: str) -> str:
    """Return an id without its graph's namespace, as people write it: ``P569`` of ``wd:P569``."""
    return entity_id.split(":", 1)[-1]
