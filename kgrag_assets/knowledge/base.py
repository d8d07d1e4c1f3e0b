"""The port through which any knowledge graph is asked: names to entities, entities to their names and statements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from kgrag_assets.knowledge.linking import LinkCandidate

# Statements of one entity that are looked at where nobody says otherwise.
DEFAULT_TRIPLES = 200


@dataclass(frozen=True)
class EntityInfo:
    """What a graph calls an entity.

    ``kind`` is ``entity`` or ``relation``; ``label`` is the local id where the graph has no name for it.
    """

    entity_id: str
    kind: str
    label: str
    aliases: tuple[str, ...]
    description: str


@dataclass(frozen=True)
class Triple:
    """A statement in its true direction, with labels for reading.

    Exactly one of ``tail`` (an entity's id) and ``value`` (a literal as text) is set; ``tail_label`` is the tail's
    label or the literal.
    """

    head: str
    relation: str
    tail: str | None
    value: str | None
    head_label: str
    relation_label: str
    tail_label: str


class KnowledgeBase(Protocol):
    """One knowledge graph, wherever it lies.

    The three questions are the unified access of Wang et al., "KnowledGPT: Enhancing Large Language Models with
    Retrieval and Storage Access on Knowledge Bases" (2023); ``knowledge.questions`` asks further ones over them.
    """

    @property
    def name(self) -> str:
        """What people call this graph."""

    def entity_linking(self, query: str, aliases: Sequence[str] = (), k: int = 10) -> list[LinkCandidate]:
        """Return at most ``k`` entities that a name, or one of its other names, may mean; best first."""

    def entity_info(self, entity: str) -> EntityInfo | None:
        """Return the names of an entity by its id (``wd:Q42``), or None where the graph does not know it."""

    def entity_triples(self, entity: str, limit: int = DEFAULT_TRIPLES) -> list[Triple]:
        """Return at most ``limit`` statements with the entity as head or tail, each in its true direction.

        Those that leave the entity come first: they say what it is. An unknown entity has none.
        """
