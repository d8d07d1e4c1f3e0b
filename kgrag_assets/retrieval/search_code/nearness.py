"""How near what a program found lies to an attribute, on the scale of all methods' scores."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from kgrag_assets.knowledge.base import Triple
from kgrag_assets.retrieval.entity_paths import HOP_DECAY
from kgrag_assets.retrieval.pair_links import LinkedEntity
from kgrag_assets.retrieval.search_code.questions import Findings, FoundEntity
from kgrag_assets.retrieval.search_code.similarity import TextSimilarity, WordSimilarity
from kgrag_assets.retrieval.seeds import PART_SUPPORT, RELATION_BONUS, WHOLE_PHRASE
from kgrag_assets.retrieval.support import AttributeWords, is_telling, sides_of, support_of, supported
from kgrag_assets.schemas.attribute import Attribute

# What an entity is worth that a program asked for by name, however little that is like the attribute's words: as much
# as one that is named by a whole phrase of them. To find what has other words is what the model is asked for.
ASKED = WHOLE_PHRASE
# What the likeness of another name of an entity is worth beside that of its label: other names are often shared.
OTHER_NAME = 0.9
# Characters of a label that is compared; a literal may be a whole text.
MAX_LABEL = 200
# Other names of an entity that are compared.
MAX_OTHERS = 20


@dataclass(frozen=True)
class Side:
    """What speaks for one attribute: entities, best first, and how near each statement is."""

    links: tuple[LinkedEntity, ...]
    statements: Mapping[Triple, float]


class Nearness:
    """Says how near findings are to attributes."""

    def __init__(
        self, similarity: TextSimilarity, words: Callable[[Attribute], AttributeWords], min_cosine: float
    ) -> None:
        """Take what compares texts, what gives an attribute's own words, and the least cosine of an entity."""
        self._similarity = similarity
        self._by_words = WordSimilarity()
        self._words = words
        self._min_cosine = min_cosine

    def of_attribute(self, attribute: Attribute, found: Findings) -> Side:
        """Weigh what the program for one attribute found.

        What an entity is worth is the best cosine of its names with the attribute's phrases, or ``ASKED`` times how
        well its name matches what was asked for. Its score is that, less up to ``UNSUPPORTED_LOSS`` of it for the words
        of its label that the attribute does not have, so that what two programs asked for, and neither attribute has
        words of, is less than sure: some models ask the same about every column. Relations have ``RELATION_BONUS``.
        Left out is what is worth less than ``min_cosine``, and what only says that it is an identifier. A statement is
        worth the cosine of its text, or what its asked entity is by name, one hop further.
        """
        return self._side(found, self._words(attribute), lambda _name: True)

    def of_pair(self, source: Attribute, target: Attribute, found: Findings) -> tuple[Side, Side]:
        """Weigh what one program for both attributes found, as ``of_attribute`` does for each.

        What stands with the words of one attribute alone belongs to that side; all else to both
        (``support.sides_of``).
        """
        words = self._words(source), self._words(target)
        first = self._side(found, words[0], lambda name: sides_of(name, *words)[0] is not None)
        second = self._side(found, words[1], lambda name: sides_of(name, *words)[1] is not None)
        return first, second

    def _side(self, found: Findings, words: AttributeWords, speaks: Callable[[str], bool]) -> Side:
        # "unique identifier" is near to every key column of every schema, and says nothing about any.
        entities = [one for one in found.entities if is_telling(one.info.label) and speaks(one.info.label)]
        statements = [triple for triple in found.statements if speaks(_ends(triple))]
        texts = [*(one.info.label for one in entities), *map(_text, statements)]
        cosines = _best(self._similarity, words, texts)
        links = []
        for one in entities:
            cosine = max(cosines[one.info.label], self._cosine_of_others(one, words))
            worth = max(cosine, ASKED * one.link)
            if worth >= self._min_cosine:
                links.append(_linked(one, supported(worth, _support(one, words)), cosine))
        asked = {one.info.entity_id: one.link for one in found.entities}
        near = {}
        for triple in statements:
            link = max(asked.get(end, 0.0) for end in (triple.head, triple.tail or ""))
            worth = max(cosines[_text(triple)], HOP_DECAY * ASKED * link)
            near[triple] = supported(worth, support_of(_ends(triple), words.content))
        return Side(tuple(sorted(links, key=lambda one: (-one.score, one.entity_id))), near)

    def _cosine_of_others(self, one: FoundEntity, words: AttributeWords) -> float:
        # By their words whatever compares labels: an entity has tens of other names, and a model would read them all.
        others = _best(self._by_words, words, one.info.aliases[:MAX_OTHERS])
        return OTHER_NAME * max(others.values(), default=0.0)


def _linked(one: FoundEntity, score: float, cosine: float) -> LinkedEntity:
    bonus = RELATION_BONUS if one.info.kind == "relation" else 1.0
    return LinkedEntity(one.info.entity_id, round(min(score * bonus, 1.0), 6), cosine, one.link)


def _support(one: FoundEntity, words: AttributeWords) -> float:
    others = (support_of(alias, words.content) for alias in one.info.aliases[:MAX_OTHERS])
    return max(support_of(one.info.label, words.content), PART_SUPPORT * max(others, default=0.0))


def _best(similarity: TextSimilarity, words: AttributeWords, texts: Sequence[str]) -> Mapping[str, float]:
    """Return for each text the best cosine, 0 to 1, that a phrase of the attribute has with it."""
    best = dict.fromkeys(texts, 0.0)
    if best:
        cut = [text[:MAX_LABEL] for text in best]
        for phrase in words.phrases:
            for text, cosine in zip(best, similarity(phrase, cut), strict=True):
                best[text] = min(max(best[text], cosine), 1.0)
    return best


def _ends(triple: Triple) -> str:
    return f"{triple.head_label[:MAX_LABEL]} {triple.tail_label[:MAX_LABEL]}"


def _text(triple: Triple) -> str:
    return f"{triple.head_label[:MAX_LABEL]} {triple.relation_label} {triple.tail_label}"
