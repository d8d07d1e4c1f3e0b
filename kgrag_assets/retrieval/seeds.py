"""Entity linking of attributes: which entities of the graph an attribute may speak of, by vector and by words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from kgrag_assets.indexing.port import VectorIndex
from kgrag_assets.retrieval.vectors import AttributeVectors
from kgrag_assets.schemas.attribute import Attribute
from kgrag_assets.schemas.attribute_text import query_phrases
from kgrag_assets.settings import RetrievalSettings

VERSION = "seeds-1"

VIEWS = ("name", "full")
# How much deeper than entities_per_attribute the vector search looks, so that a lexical link is given its cosine.
DEPTH = 8
# Candidates asked of the linker for each phrase.
LINKS_PER_PHRASE = 5
# A link by words closes this share of the distance to 1 that the cosine leaves, times its own score.
LEXICAL_WEIGHT = 0.5


class Link(Protocol):
    """An entity that a linker found for a text."""

    @property
    def entity_id(self) -> str:
        """The entity."""

    @property
    def score(self) -> float:
        """How well the words match, 0..1."""


class Linker(Protocol):
    """Links a text to entities by its words; ``knowledge.base.LexicalLinker`` is one."""

    def link(self, text: str, k: int) -> Sequence[Link]:
        """Return at most k entities, best first."""


@dataclass(frozen=True)
class LinkedEntity:
    """An entity linked to an attribute: the fused score, and the two that it is made of (0 where not found)."""

    entity_id: str
    score: float
    cosine: float
    lexical: float


class EntityLinking:
    """Links attributes to entities; each attribute by itself, whatever else its schema has."""

    def __init__(
        self,
        *,
        vectors: AttributeVectors,
        entity_index: VectorIndex,
        linker: Linker,
        settings: RetrievalSettings,
        phrases: Callable[[Attribute], list[str]] = query_phrases,
    ) -> None:
        """Take what is searched.

        Raises:
            RetrievalError: the index is of another model than the vectors.
        """
        vectors.refuse_other_model(entity_index, "entity_index")
        self._vectors = vectors
        self._index = entity_index
        self._linker = linker
        self._settings = settings
        self._phrases = phrases

    def key_parts(self, attribute: Attribute) -> list[str]:
        """Return what decides this attribute's links, besides index, linker and settings."""
        return [*(self._vectors.key(attribute.attribute_id, view) for view in VIEWS), *self._phrases(attribute)]

    def link(self, attributes: Iterable[Attribute]) -> dict[str, list[LinkedEntity]]:
        """Link each attribute to at most ``entities_per_attribute`` entities, best first, by attribute id."""
        distinct = {attribute.attribute_id: attribute for attribute in attributes}
        cosines = self._cosines(sorted(distinct))
        return {
            attribute_id: self._fused(cosines[attribute_id], self._lexical(attribute))
            for attribute_id, attribute in distinct.items()
        }

    def _cosines(self, attribute_ids: list[str]) -> dict[str, dict[str, float]]:
        near: dict[str, dict[str, float]] = {attribute_id: {} for attribute_id in attribute_ids}
        if not self._index.size or not attribute_ids:
            return near
        depth = self._settings.entities_per_attribute * DEPTH
        for view in VIEWS:
            hits = self._index.search(self._vectors.of(attribute_ids, view), depth)
            for row, attribute_id in enumerate(attribute_ids):
                found = near[attribute_id]
                for entity, cosine in hits.of(row):
                    found[entity] = max(found.get(entity, cosine), cosine)
        return near

    def _lexical(self, attribute: Attribute) -> dict[str, float]:
        found: dict[str, float] = {}
        for phrase in self._phrases(attribute):
            for link in self._linker.link(phrase, LINKS_PER_PHRASE):
                found[link.entity_id] = max(found.get(link.entity_id, 0.0), link.score)
        return found

    def _fused(self, cosines: Mapping[str, float], lexical: Mapping[str, float]) -> list[LinkedEntity]:
        linked: list[LinkedEntity] = []
        for entity in cosines.keys() | lexical.keys():
            cosine = max(cosines.get(entity, 0.0), 0.0)
            words = lexical.get(entity, 0.0)
            score = cosine + (1.0 - cosine) * LEXICAL_WEIGHT * words
            if max(cosine, score) >= self._settings.min_cosine:
                linked.append(LinkedEntity(entity, round(score, 6), cosine, words))
        linked.sort(key=lambda entry: (-entry.score, entry.entity_id))
        return linked[: self._settings.entities_per_attribute]
