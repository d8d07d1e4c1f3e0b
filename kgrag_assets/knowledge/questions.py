"""Questions over any knowledge base: what an entity's relation holds, and how two entities are related.

After Wang et al., "KnowledGPT: Enhancing Large Language Models with Retrieval and Storage Access on Knowledge Bases"
(2023): the relation is found by the similarity of its name, the description stands in where there is none, and the
other entity of a statement is recognised by its id or by how it is written.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from rapidfuzz.distance import Levenshtein

from kgrag_assets.knowledge.base import EntityInfo, KnowledgeBase, Triple
from kgrag_assets.knowledge.linking import folded

# Cosines of a text with each of several, such as an embedder's.
Similarity = Callable[[str, Sequence[str]], Sequence[float]]

MIN_SIMILARITY = 0.5
# Share of equal characters from which two names that share a word are one: "Bayer AG" and "Bayer A.G." are.
MIN_RATIO = 0.75
# Entities of one name that are tried, the best first.
TRIED_ENTITIES = 3
MAX_TRIPLES = 500


@dataclass(frozen=True)
class FoundValue:
    """One tail: an entity's id or a literal as text, and how it reads."""

    tail: str | None
    value: str | None
    label: str


@dataclass(frozen=True)
class ValueAnswer:
    """What was found for an entity and a relation.

    ``source`` says where the answer comes from: ``statements`` (then ``values`` holds them, and ``score`` is the
    relation's), ``description`` (no relation is similar enough; the entity's description may say it, and ``score`` is
    that of the best relation there was), or ``nothing`` (no such entity, or it has neither). ``score`` is 0 where
    nothing was compared.
    """

    source: Literal["statements", "description", "nothing"]
    entity: EntityInfo | None
    relation: str | None
    relation_label: str
    score: float
    values: tuple[FoundValue, ...]
    description: str


@dataclass(frozen=True)
class Relationship:
    """A statement between the two: ``forward`` where its head is the first; ``score`` is 1 where both are meant by id.

    Elsewhere ``score`` is the share of characters in which the other name agrees.
    """

    triple: Triple
    forward: bool
    score: float


@dataclass(frozen=True)
class RelationshipAnswer:
    """The statements between two entities, the surest first; empty where none was found.

    ``first`` and ``second`` are the entities that were looked at; None where the name means none of this graph.
    """

    first: EntityInfo | None
    second: EntityInfo | None
    relationships: tuple[Relationship, ...]


def find_entity_or_value(
    base: KnowledgeBase,
    entity: str,
    relation: str,
    similarity: Similarity,
    min_similarity: float = MIN_SIMILARITY,
    max_triples: int = MAX_TRIPLES,
) -> ValueAnswer:
    """Return what a relation of an entity holds: ``("diabetes", "drug used for treatment")``.

    Of the entities that the name may mean, the first with a similar relation answers. A relation given by its id,
    or by its name but for case, needs no similarity.

    Args:
        base: the graph.
        entity: id or name.
        relation: name or id of the relation, in anybody's words.
        similarity: cosines of a text with texts, at most 1 and of equal number; called once for each entity tried.
        min_similarity: below it the best relation is not the one that was meant.
        max_triples: statements of an entity that are looked at.

    Raises:
        ValueError: ``similarity`` gave another number of values than there were texts.
    """
    fallback: ValueAnswer | None = None
    for entity_id in _meant(base, entity):
        info = base.entity_info(entity_id)
        if info is None:
            continue
        leaving = [triple for triple in base.entity_triples(entity_id, max_triples) if triple.head == entity_id]
        best, score = _best_relation(leaving, relation, similarity)
        if best is not None and score >= min_similarity:
            values = dict.fromkeys(
                FoundValue(triple.tail, triple.value, triple.tail_label)
                for triple in leaving
                if triple.relation == best
            )
            label = next(triple.relation_label for triple in leaving if triple.relation == best)
            return ValueAnswer("statements", info, best, label, score, tuple(values), info.description)
        if fallback is None or (fallback.source == "nothing" and info.description):
            source: Literal["description", "nothing"] = "description" if info.description else "nothing"
            fallback = ValueAnswer(source, info, None, "", score, (), info.description)
    return fallback or ValueAnswer("nothing", None, None, "", 0.0, (), "")


def find_relationship(
    base: KnowledgeBase,
    first: str,
    second: str,
    min_ratio: float = MIN_RATIO,
    max_triples: int = MAX_TRIPLES,
) -> RelationshipAnswer:
    """Return the statements between two entities, in either direction.

    The statements of the first are looked through for the second; where there are none, those of the second for the
    first: one of them may be a hub with more statements than are looked at. The other end of a statement is the one
    that was meant where it has one of the ids that its name is linked to, or where the two names share a word and
    agree in enough characters. An entity given by id is that one only, whatever others are called.

    Args:
        base: the graph.
        first: id or name.
        second: id or name of the other; a literal's text is found too.
        min_ratio: share of agreeing characters from which two names are one, 0 to 1.
        max_triples: statements of an entity that are looked at.
    """
    firsts, seconds = _meant(base, first), _meant(base, second)
    found = _between(base, firsts, _Other(second, seconds), min_ratio, max_triples, turned=False)
    if not found:
        found = _between(base, seconds, _Other(first, firsts), min_ratio, max_triples, turned=True)
    ordered = sorted(found, key=lambda one: (-one.score, not one.forward, one.triple.relation, one.triple.tail_label))
    return RelationshipAnswer(
        first=base.entity_info(_shown(ordered, firsts, first=True)) if firsts else None,
        second=base.entity_info(_shown(ordered, seconds, first=False)) if seconds else None,
        relationships=tuple(ordered),
    )


def _shown(found: Sequence[Relationship], meant: Sequence[str], *, first: bool) -> str:
    """Return the entity of the surest statement on one side, or the one most likely meant."""
    for one in found:
        end = one.triple.head if one.forward == first else one.triple.tail
        if end is not None:
            return end
    return meant[0]


def _meant(base: KnowledgeBase, entity: str) -> list[str]:
    """Return the entities that an id or a name may mean, the likeliest first."""
    namespace, colon, local = entity.partition(":")
    if colon and namespace.isalnum() and local and not any(char.isspace() for char in entity):
        info = base.entity_info(entity)
        if info is not None:
            return [entity]
    return [candidate.entity_id for candidate in base.entity_linking(entity, k=TRIED_ENTITIES)]


@dataclass(frozen=True)
class _Other:
    """The entity that is looked for at the other end of a statement: as given, and the ids that it may mean."""

    given: str
    ids: Sequence[str]

    def likeness(self, end: str | None, label: str) -> float:
        """Return how surely an end of a statement is the one that was meant, 0 to 1."""
        if end is not None and end in self.ids:
            return 1.0
        # Namesakes of an entity that was given by id are others.
        return 0.0 if list(self.ids) == [self.given] else _likeness(self.given, label)


def _between(
    base: KnowledgeBase,
    ones: Sequence[str],
    other: _Other,
    min_ratio: float,
    max_triples: int,
    *,
    turned: bool,
) -> list[Relationship]:
    found: dict[Triple, Relationship] = {}
    for one in ones:
        for triple in base.entity_triples(one, max_triples):
            leaves = triple.head == one
            end, label = (triple.tail, triple.tail_label) if leaves else (triple.head, triple.head_label)
            if end == one:
                continue
            score = other.likeness(end, label)
            if score >= min_ratio and (triple not in found or found[triple].score < score):
                found[triple] = Relationship(triple, leaves != turned, score)
    return list(found.values())


def _likeness(one: str, other: str) -> float:
    """Return the share of characters in which two names agree, by edit distance; 0 where they share no word."""
    plain, beside = folded(one), folded(other)
    if not set(plain.split()) & set(beside.split()):
        return 0.0
    return float(Levenshtein.normalized_similarity(plain, beside))


def _best_relation(triples: Sequence[Triple], relation: str, similarity: Similarity) -> tuple[str | None, float]:
    """Return the relation most like the one that was asked for, and how like it is."""
    labels = dict(sorted({triple.relation: triple.relation_label for triple in triples}.items()))
    if not labels:
        return None, 0.0
    wanted = folded(relation)
    for relation_id, label in labels.items():
        if relation in (relation_id, relation_id.partition(":")[2]) or (wanted and folded(label) == wanted):
            return relation_id, 1.0
    texts = list(dict.fromkeys(labels.values()))
    scores = [float(score) for score in similarity(relation, texts)]
    if len(scores) != len(texts):
        raise ValueError(f"similarity gave {len(scores)} values for {len(texts)} texts")
    of = dict(zip(texts, scores, strict=True))
    # What is no number is like nothing.
    usable = [(of[label], relation_id) for relation_id, label in labels.items() if math.isfinite(of[label])]
    if not usable:
        return None, 0.0
    score, best = min(usable, key=lambda pair: (-pair[0], pair[1]))
    return best, score
