"""What the facts of the graph are worth to a judge that adds up evidence: by kind, by relation, by whose words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from kgrag_assets.judging.protocol import Evidence
from kgrag_assets.judging.word_evidence import GENERIC, attribute_words
from kgrag_assets.schemas.attribute import Attribute
from kgrag_assets.schemas.words import stems, text_words

# An entity that both attributes are linked to. Links begin to mean something at WEAK, where retrieval begins to show
# them, and are as sure as they get at SURE: a name of the entity, or a text near to it, on both sides.
SHARED, WEAK, SURE = 1.5, 0.4, 0.65
# More where each side has the words of its label itself: then the link does not rest on likeness of vectors alone.
NAMED_BY_BOTH = 1.5

# A way between two different entities says at most that they belong together, and mostly that they are two things.
# What is the same thing under two names counts as nearly one; what is a kind of the other may be meant by a broader
# column; two kinds of one thing (start time and end time) are two things, and any other relation says next to nothing.
LINKED = 0.8
SAME_AS, KIND_OF, OTHER = 1.0, 0.4, 0.1
_SAME = ("same as", "equivalent", "exact match", "synonym", "identical")
_KIND = (
    "subclass",
    "subproperty",
    "instance of",
    "is a",
    "isa",
    "kind of",
    "broader",
    "narrower",
    "child of",
    "parent of",
)

# A step of a path as its text has it, forwards or backwards.
_STEP = re.compile(r"—([^—→←]+)→|←([^—→←]+)—")
_NAMED = 0.5


def relation_worth(text: str) -> float:
    """Weigh a triple or path, 0..1, by the relations in its text, as ``a —relation→ b ←relation— c``.

    The steps multiply. Steps to a kind and back again, to another thing of that kind, are worth nothing.
    """
    worth, directions = 1.0, set()
    steps = _STEP.findall(text)
    for forward, backward in steps:
        relation = " ".join((forward or backward).casefold().replace("_", " ").split())
        if any(name in relation for name in _SAME):
            worth *= SAME_AS
        elif any(name in relation for name in _KIND):
            worth *= KIND_OF
            directions.add(bool(forward))
        else:
            worth *= OTHER
    if len(directions) > 1:
        return 0.0
    return worth if steps else OTHER


@lru_cache(maxsize=16384)
def _label_words(text: str) -> frozenset[str]:
    # A shared entity's text is its label, its id in brackets, and its description.
    return frozenset(word for word in stems(text_words(text.split(" (", 1)[0])) if word not in GENERIC)


def named_by(fact: Evidence, attribute: Attribute) -> bool:
    """Whether most words of a shared entity's label are the attribute's own."""
    words = _label_words(fact.text)
    return bool(words) and len(words & attribute_words(attribute)) > _NAMED * len(words)


def fact_weight(fact: Evidence, source: Attribute, target: Attribute) -> float:
    """Weigh one fact for a pair in log odds, 0 or more: a missing fact says nothing, for no graph is complete."""
    score = max(0.0, min(1.0, fact.score))
    if fact.kind == "shared_entity":
        sure = max(0.0, min(1.0, (score - WEAK) / (SURE - WEAK)))
        named = named_by(fact, source) and named_by(fact, target)
        return SHARED * sure * (NAMED_BY_BOTH if named else 1.0)
    if fact.kind in ("triple", "path"):
        return LINKED * score * relation_worth(fact.text)
    return 0.0


def strongest(facts: Sequence[Evidence], source: Attribute, target: Attribute) -> tuple[Evidence | None, float]:
    """Return the fact that weighs most, and its weight; None and 0 where none weighs anything.

    The others are not added: the facts shown for a pair mostly say the same thing in several ways.
    """
    weighed = [(fact_weight(fact, source, target), -place, fact) for place, fact in enumerate(facts)]
    weight, _, fact = max(weighed, key=lambda item: item[:2], default=(0.0, 0, None))
    return (fact, weight) if weight > 0 else (None, 0.0)
