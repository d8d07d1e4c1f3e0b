"""Entity linking of attributes: which entities of the graph an attribute may speak of, by vector and by words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from kgrag_assets.indexing.port import VectorIndex
from kgrag_assets.retrieval.names import GraphNames, Name
from kgrag_assets.retrieval.pair_links import LinkedEntity, PairLinks
from kgrag_assets.retrieval.protocol import RetrievalQuery
from kgrag_assets.retrieval.support import VERSION as SUPPORT_VERSION
from kgrag_assets.retrieval.support import AttributeWords, has_several_words, is_telling, support_of, supported
from kgrag_assets.retrieval.vectors import AttributeVectors
from kgrag_assets.rows.keys import key_of
from kgrag_assets.schemas.attribute import Attribute
from kgrag_assets.settings import RetrievalSettings

VERSION = f"seeds-1/{SUPPORT_VERSION}"

VIEWS = ("column", "full")
# How much deeper than entities_per_attribute the vector search looks: an entity that both attributes are near to is
# found also where others are nearer to one of them.
DEPTH = 8
# Candidates asked of the linker for each phrase.
LINKS_PER_PHRASE = 5
# What an entity is worth whose name is the whole phrase, however far its vector lies: names like "sex" are too short
# to have a vector that says much. The cosine adds its share, so that of several of that name the nearest is first.
WHOLE_PHRASE = 0.5
WHOLE_PHRASE_COSINE = 0.1
# From which score on a link is by an entity's own label, not by an alias.
SURE_LINK = 0.95
# How far below min_cosine an entity may lie that is named by the attribute's own words.
NAMED_ALLOWANCE = 0.1
# What a name among the parts of a phrase is worth as support: less than the label's own words, an alias is often
# shared.
PART_SUPPORT = 0.7
# What a relation of the graph has over an item of like name: a column holds what a relation states ("date of birth"),
# an item of that name is more often a work or a place.
RELATION_BONUS = 1.05
# Longest part of a phrase, in words, that is looked up as a name.
LONGEST_PART = 4


class Link(Protocol):
    """An entity that a linker found for a text."""

    @property
    def entity_id(self) -> str:
        """The entity."""

    @property
    def score(self) -> float:
        """How well the words match, 0..1."""


class Linker(Protocol):
    """Links a text to entities by its words; ``knowledge.linking.LexicalLinker`` is one."""

    def link(self, text: str, k: int) -> Sequence[Link]:
        """Return at most k entities, best first."""


@dataclass(frozen=True)
class _WordLink:
    """How well a name matches a part of a phrase, and the whole of one (or a part of several words)."""

    part: float
    whole: float


class EntityLinking:
    """Links attributes to entities; each attribute by itself, whatever else its schema has."""

    def __init__(
        self,
        *,
        vectors: AttributeVectors,
        entity_index: VectorIndex,
        linker: Linker,
        names: GraphNames,
        settings: RetrievalSettings,
        words: Callable[[Attribute], AttributeWords] = AttributeWords.of,
    ) -> None:
        """Take what is searched.

        Raises:
            RetrievalError: the index is of another model than the vectors.
        """
        vectors.refuse_other_model(entity_index, "entity_index")
        self._vectors = vectors
        self._index = entity_index
        self._linker = linker
        self._names = names
        self._settings = settings
        self._words = words
        self._known: dict[str, list[LinkedEntity]] = {}
        self._keys: dict[str, str] = {}

    def key(self, query: RetrievalQuery) -> str:
        """Hash what decides the links of a pair's two attributes, besides index, linker and settings."""
        return key_of(VERSION, self._key(query.source), self._key(query.target))

    def _key(self, attribute: Attribute) -> str:
        # An attribute stands in many pairs.
        found = self._keys.get(attribute.attribute_id)
        if found is None:
            vectors = [self._vectors.key(attribute.attribute_id, view) for view in VIEWS]
            found = self._keys[attribute.attribute_id] = key_of(vectors, self._words(attribute).key_parts())
        return found

    def link_pairs(self, queries: Sequence[RetrievalQuery]) -> list[PairLinks]:
        """Link both attributes of each pair; see ``link``."""
        linked = self.link(side for query in queries for side in (query.source, query.target))
        return [
            PairLinks(tuple(linked[query.source.attribute_id]), tuple(linked[query.target.attribute_id]))
            for query in queries
        ]

    def link(self, attributes: Iterable[Attribute]) -> dict[str, list[LinkedEntity]]:
        """Link each attribute to all entities that are near enough, best first, by attribute id.

        Entities are proposed by vector and by words; those proposed by words are given their cosine too. The
        score is the cosine, less up to ``UNSUPPORTED_LOSS`` of it for the words of the entity's label that the
        attribute does not have; an alias among the attribute's words is support as well. An entity named by a
        whole phrase has at least ``WHOLE_PHRASE``, less for an item's alias; relations have ``RELATION_BONUS``. Left
        out is what lies below ``min_cosine`` before that loss, and what only says that it is an identifier.
        """
        asked = {attribute.attribute_id: attribute for attribute in attributes}
        # An attribute stands in many pairs: it is linked once.
        distinct = {name: attribute for name, attribute in asked.items() if name not in self._known}
        words = {attribute_id: self._words(attribute) for attribute_id, attribute in distinct.items()}
        by_words = {attribute_id: self._links(own) for attribute_id, own in words.items()}
        linked = {entity for links in by_words.values() for entity in links}
        cosines = self._cosines(sorted(distinct), linked)
        names = self._names.of(linked | {entity for found in cosines.values() for entity in found})
        for attribute_id in distinct:
            self._known[attribute_id] = self._fused(
                words[attribute_id], cosines[attribute_id], by_words[attribute_id], names
            )
        return {attribute_id: self._known[attribute_id] for attribute_id in asked}

    def _links(self, words: AttributeWords) -> dict[str, _WordLink]:
        """Return the entities whose name is a phrase of the attribute, or a part of one."""
        found: dict[str, _WordLink] = {}
        for phrase in words.phrases:
            for part, whole in _parts(phrase):
                if not is_telling(part):
                    continue
                several = has_several_words(part)
                for link in self._linker.link(part, LINKS_PER_PHRASE):
                    # A label of several words inside a phrase is hardly chance: as good as the whole phrase.
                    named = whole or (several and link.score >= SURE_LINK)
                    known = found.get(link.entity_id, _WordLink(0.0, 0.0))
                    found[link.entity_id] = _WordLink(
                        max(known.part, link.score), max(known.whole, link.score) if named else known.whole
                    )
        return found

    def _cosines(self, attribute_ids: list[str], linked: set[str]) -> dict[str, dict[str, float]]:
        """Return the cosines of the nearest entities, and of all that any attribute is linked to by words."""
        near: dict[str, dict[str, float]] = {attribute_id: {} for attribute_id in attribute_ids}
        if not self._index.size or not attribute_ids:
            return near
        proposed = self._index.restricted_to(linked)
        for view in VIEWS:
            queries = self._vectors.of(attribute_ids, view)
            searches = [self._index.search(queries, self._settings.entities_per_attribute * DEPTH)]
            if proposed.size:
                searches.append(proposed.search(queries, proposed.size))
            for hits in searches:
                for row, attribute_id in enumerate(attribute_ids):
                    found = near[attribute_id]
                    for entity, cosine in hits.of(row):
                        found[entity] = max(found.get(entity, cosine), cosine)
        return near

    def _fused(
        self,
        words: AttributeWords,
        cosines: Mapping[str, float],
        links: Mapping[str, _WordLink],
        names: Mapping[str, Name],
    ) -> list[LinkedEntity]:
        linked: list[LinkedEntity] = []
        least = self._settings.min_cosine
        for entity in cosines.keys() | links.keys():
            cosine, link = max(cosines.get(entity, 0.0), 0.0), links.get(entity, _WordLink(0.0, 0.0))
            name = names[entity]
            # "unique identifier" is near to every key column of every schema, and says nothing about any.
            if not is_telling(name.label):
                continue
            relation = name.kind == "relation"
            # Squared for items: the alias of one, worth less than 1, is often one of several meanings; relations are
            # given the aliases that people use for columns ("start date").
            named = link.whole if relation else link.whole**2
            whole = WHOLE_PHRASE * named + (WHOLE_PHRASE_COSINE * cosine if named else 0.0)
            if max(cosine + NAMED_ALLOWANCE * link.part, whole) < least:
                continue
            support = max(link.whole, PART_SUPPORT * link.part, support_of(name.label, words.content))
            score = max(supported(cosine, support), whole) * (RELATION_BONUS if relation else 1.0)
            linked.append(LinkedEntity(entity, round(min(score, 1.0), 6), cosine, link.part))
        linked.sort(key=lambda entry: (-entry.score, entry.entity_id))
        return linked


def _parts(phrase: str) -> Iterator[tuple[str, bool]]:
    """Yield the runs of at most ``LONGEST_PART`` words of a phrase, and whether one is the whole phrase."""
    words = phrase.split()
    yield phrase, True
    for length in range(1, min(LONGEST_PART, len(words) - 1) + 1):
        for start in range(len(words) - length + 1):
            yield " ".join(words[start : start + length]), False
