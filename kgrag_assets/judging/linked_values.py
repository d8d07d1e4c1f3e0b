"""What class of things the values of an attribute name, by the graph: both sexes, both countries, both units."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from kgrag_assets.judging.instance_evidence import KIND, METHOD
from kgrag_assets.judging.masking import is_personal_column
from kgrag_assets.judging.protocol import Evidence
from kgrag_assets.judging.word_evidence import GENERIC, attribute_words
from kgrag_assets.knowledge.base import KnowledgeBase
from kgrag_assets.knowledge.linking import LinkCandidate
from kgrag_assets.models.prompt_text import shown
from kgrag_assets.schemas.attribute import Attribute
from kgrag_assets.schemas.words import name_words, stems, text_words

# Columns of more different values are no lists of kinds.
MOST_DISTINCT = 50
# Entities that one value may mean, and how well a name must fit: an alias does, a misspelling does not.
CANDIDATES, MIN_LINK = 5, 0.75
# Share of a side's values that must be of one class, and how many of them at least.
MIN_SHARE, MIN_VALUES = 0.5, 2
# What a class is worth that one side's values have and the other side's words name.
NAMED_ONLY = 0.8
LABEL_LENGTH = 60

_CLASS_ID = "values:class:"
_CLASS_RELATIONS = frozenset({"instance of", "subclass of", "is a", "isa", "type"})
# Classes of the graph's own housekeeping: what is in one has nothing else in common.
_HOUSEKEEPING = ("wikimedia", "wikidata", "wikibase", "class", "metaclass", "entity", "term", "concept")

Link = Callable[[str, int], Sequence[LinkCandidate]]
ClassesOf = Callable[[str], Mapping[str, str]]


@dataclass(frozen=True)
class ValueClass:
    """A class that values of an attribute belong to, and the share (0..1) of the values looked at that do."""

    class_id: str
    label: str
    share: float


def classes_from(base: KnowledgeBase) -> ClassesOf:
    """Return what tells the classes of an entity, label by id, from a knowledge base's own statements.

    Followed are "instance of", "subclass of" and what other graphs call them, one step.
    """

    def classes_of(entity: str) -> dict[str, str]:
        return {
            triple.tail: triple.tail_label
            for triple in base.entity_triples(entity)
            if triple.tail is not None
            and triple.head == entity
            and triple.relation_label.casefold().replace("_", " ") in _CLASS_RELATIONS
        }

    return classes_of


def value_classes(attribute: Attribute, link: Link, classes_of: ClassesOf) -> list[ValueClass]:
    """Link the sample values of an attribute to entities, and tell the classes that these share, the best first.

    Only a list of kinds is looked at: of at most ``MOST_DISTINCT`` different values, none about a person. Values too
    short to be linked (``M``) count as not of any class.

    Args:
        attribute: the attribute.
        link: finds entities by a name, as ``LexicalLinker.link`` does.
        classes_of: the classes of an entity, see ``classes_from``.
    """
    values = list(dict.fromkeys(value.strip().casefold() for value in attribute.sample_values if value.strip()))
    listed = attribute.distinct_count is None or attribute.distinct_count <= MOST_DISTINCT
    if len(values) < MIN_VALUES or not listed or is_personal_column(name_words(attribute.column_name)):
        return []
    members: dict[str, set[str]] = defaultdict(set)
    labels: dict[str, str] = {}
    for value in values:
        for found in link(value, CANDIDATES):
            if found.score < MIN_LINK:
                continue
            for class_id, label in classes_of(found.entity_id).items():
                if not label.casefold().startswith(_HOUSEKEEPING):
                    members[class_id].add(value)
                    labels[class_id] = label
    told = [
        ValueClass(class_id, labels[class_id], len(named) / len(values))
        for class_id, named in members.items()
        if len(named) >= MIN_VALUES and len(named) >= MIN_SHARE * len(values)
    ]
    return sorted(told, key=lambda one: (-one.share, one.class_id))


def linked_values(
    source: Attribute, target: Attribute, link: Link, classes_of: ClassesOf, policy: str
) -> tuple[Evidence, ...]:
    """Tell the class of things that both attributes' values name, or one's values and the other's words.

    Args:
        source: source attribute.
        target: target attribute.
        link: finds entities by a name, as ``LexicalLinker.link`` does.
        classes_of: the classes of an entity, see ``classes_from``.
        policy: as of ``value_lines``; under ``local`` nothing that is derived from a value is told.

    Returns:
        At most one piece of evidence of kind ``values``; its id names the class, its text the class's label, and its
        score is the share of the values of the side that has fewer of them. No value is told.
    """
    if policy == "local":
        return ()
    mine, other = (value_classes(side, link, classes_of) for side in (source, target))
    shares = {one.class_id: one.share for one in other}
    both = [(min(one.share, shares[one.class_id]), one) for one in mine if one.class_id in shares]
    if both:
        score, best = max(both, key=lambda entry: (entry[0], entry[1].class_id))
        return (_evidence(best, "the values of both sides are of one class in the graph", score),)
    for side, classes, text in (
        ("source", mine, attribute_words(target)),
        ("target", other, attribute_words(source)),
    ):
        for one in classes:
            words = frozenset(word for word in stems(text_words(one.label)) if word not in GENERIC)
            if words and words <= text:
                opposite = "target" if side == "source" else "source"
                said = f"the values of the {side} are of a class in the graph that the {opposite} speaks of"
                return (_evidence(one, said, NAMED_ONLY * one.share),)
    return ()


def is_class_evidence(evidence: Evidence) -> bool:
    """Whether evidence is of ``linked_values``."""
    return evidence.kind == KIND and evidence.fact_id.startswith(_CLASS_ID)


def _evidence(found: ValueClass, said: str, score: float) -> Evidence:
    text = f"{said}: {shown(found.label, LABEL_LENGTH)}"
    return Evidence(f"{_CLASS_ID}{found.class_id}", text, KIND, METHOD, round(score, 3))
