"""Whether a name's words stand in an attribute's own words: the second opinion on a cosine."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from kgrag_assets.schemas.attribute import Attribute
from kgrag_assets.schemas.attribute_text import query_phrases
from kgrag_assets.schemas.words import STOP_WORDS, stem

VERSION = "support-1"

# How much of a cosine is lost where no word of the name is the attribute's. Models of sentences put "Filmstarts
# title ID" as near to a column of titles as "title" itself: the words that the attribute does not have tell them apart.
UNSUPPORTED_LOSS = 0.3

_WORD = re.compile(r"[^\W_]+")
# Words that say how a value is kept, not what it is of: that both columns hold an identifier is no evidence.
GENERIC_WORDS = frozenset({"identifier", "code", "value", "number", "type", "flag", "indicator", "key", "unique"})

_SAME = {"id": "identifier", "ids": "identifier", "identification": "identifier"}


_GENERIC_STEMS = frozenset(stem(word) for word in GENERIC_WORDS)


def content_words(text: str) -> frozenset[str]:
    """Return the stems of a text's words, without those that carry no meaning alone."""
    words = (word for word in _WORD.findall(text.casefold()) if word not in STOP_WORDS)
    return frozenset(stem(_SAME.get(word, word)) for word in words)


@lru_cache(maxsize=65536)
def _telling_words(name: str) -> frozenset[str]:
    return content_words(name) - _GENERIC_STEMS


def is_telling(name: str) -> bool:
    """Whether a name has a word that says what something is of."""
    return bool(_telling_words(name))


def has_several_words(name: str) -> bool:
    """Whether a name has more than one word that says what something is of."""
    return len(_telling_words(name)) > 1


def support_of(name: str, attribute_words: frozenset[str]) -> float:
    """Return the share, 0..1, of a name's telling words that are the attribute's; 0 where it has none."""
    words = _telling_words(name)
    return len(words & attribute_words) / len(words) if words else 0.0


def supported(cosine: float, support: float) -> float:
    """Weigh a cosine by the support of its name: all of it where every word is the attribute's."""
    return cosine * (1.0 - UNSUPPORTED_LOSS * (1.0 - support))


@dataclass(frozen=True)
class AttributeWords:
    """An attribute's own words, without its table's: the phrases it is linked by, and what decides support."""

    phrases: tuple[str, ...]
    content: frozenset[str]

    @classmethod
    def of(cls, attribute: Attribute) -> AttributeWords:
        """Take the words of the column's name, written out, and of its description."""
        return _words_of(attribute)

    def key_parts(self) -> list[list[str]]:
        """Return what decides links and support, for a row key."""
        return [list(self.phrases), sorted(self.content)]


@lru_cache(maxsize=16384)
def _words_of(attribute: Attribute) -> AttributeWords:
    # An attribute stands in many pairs, and its words are part of each pair's key.
    phrases = tuple(query_phrases(attribute))
    return AttributeWords(phrases, content_words(" ".join([*phrases, attribute.column_description])))


def sides_of(name: str, source: AttributeWords, target: AttributeWords) -> tuple[float | None, float | None]:
    """Say for which attributes of a pair something speaks that the question about both has led to.

    Args:
        name: its words: an entity's label, or the labels of a triple's head and tail.
        source: the words of the source attribute.
        target: the words of the target attribute.

    Returns:
        For each side the support of the name by that attribute's words, 0..1, or None where it does not speak for that
        side: its words stand with the other attribute alone. What has words of neither was near to the question as a
        whole: it speaks for both, without support.
    """
    supports = support_of(name, source.content), support_of(name, target.content)
    if any(supports) and not all(supports):
        return supports[0] or None, supports[1] or None
    return supports
