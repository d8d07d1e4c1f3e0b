"""A knowledge base that remembers what it answered: the programs for many attributes ask for the same entities."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

from kgrag_assets.knowledge.base import DEFAULT_TRIPLES, EntityInfo, KnowledgeBase, Triple
from kgrag_assets.knowledge.linking import LinkCandidate

# Entities and names kept, and statements; an entity may have hundreds.
KEPT_NAMES = 8192
KEPT_STATEMENTS = 100_000

Asked = TypeVar("Asked", bound=Hashable)
Answer = TypeVar("Answer")


class RememberingBase:
    """Asks another knowledge base once for what is asked again soon."""

    def __init__(self, base: KnowledgeBase) -> None:
        self._base = base
        self._linked: dict[tuple[str, tuple[str, ...], int], list[LinkCandidate]] = {}
        self._infos: dict[str, EntityInfo | None] = {}
        self._statements: dict[tuple[str, int], list[Triple]] = {}
        self._held = 0

    @property
    def name(self) -> str:
        """What people call this graph."""
        return self._base.name

    def entity_linking(self, query: str, aliases: Sequence[str] = (), k: int = 10) -> list[LinkCandidate]:
        """Return at most ``k`` entities that a name, or one of its other names, may mean; best first."""
        asked = (query, tuple(aliases), k)
        return _remembered(self._linked, asked, lambda: list(self._base.entity_linking(query, aliases, k)))

    def entity_info(self, entity: str) -> EntityInfo | None:
        """Return the names of an entity by its id, or None where the graph does not know it."""
        return _remembered(self._infos, entity, lambda: self._base.entity_info(entity))

    def entity_triples(self, entity: str, limit: int = DEFAULT_TRIPLES) -> list[Triple]:
        """Return at most ``limit`` statements with the entity as head or tail, each in its true direction."""
        found = self._statements.get((entity, limit))
        if found is None:
            found = list(self._base.entity_triples(entity, limit))
            # Nothing is kept for free: an entity without statements counts as one.
            held = max(len(found), 1)
            if self._held + held > KEPT_STATEMENTS:
                self._statements.clear()
                self._held = 0
            self._held += held
            self._statements[entity, limit] = found
        return found


def _remembered(known: dict[Asked, Answer], asked: Asked, ask: Callable[[], Answer]) -> Answer:
    if asked not in known:
        answer = ask()
        if len(known) >= KEPT_NAMES:
            known.clear()
        known[asked] = answer
    return known[asked]
