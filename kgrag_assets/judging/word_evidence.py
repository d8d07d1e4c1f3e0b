"""What the words of two attributes say: shared ones by how much they tell, the kind of value named, opposites."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import lru_cache

from kgrag_assets.judging.points import Point
from kgrag_assets.schemas.attribute import Attribute
from kgrag_assets.schemas.words import name_words, stem, stems, text_words

# What a shared word is worth. Words that say how a value is kept stand in half of all names; a word of the column's own
# table says where the column stands, which the tables' likeness tells already.
GENERIC_WORTH, TABLE_WORTH, WORTH = 0.25, 0.5, 1.0
# Of a description the beginning counts: what the column is comes first, then how it was made and what it is not.
DESCRIPTION_WORDS = 25

NAMES, CROSS = 3.0, 2.0
SAME_KIND, OTHER_KIND, FAR_KIND, OPPOSITE = 0.4, -0.5, -1.5, -2.0


def _stemmed(words: str) -> frozenset[str]:
    return frozenset(stem(word) for word in words.split())


GENERIC = _stemmed("identifier code value number name type flag indicator key source concept text string date time")

# The kind of value that a word in a column's name speaks of.
_KINDS: Mapping[str, frozenset[str]] = {
    "time": _stemmed("date time datetime timestamp year month day birthday"),
    "identifier": _stemmed("identifier key npi ssn"),
    "code": _stemmed("code concept class category"),
    "text": _stemmed("name title text description note comment remark street city"),
    "quantity": _stemmed("amount count quantity payment cost charge price percent rate age dose duration total weight"),
    "flag": _stemmed("flag indicator boolean"),
}
_KINDS_OF_TYPES = {"date": "time", "timestamp": "time", "time": "time", "boolean": "flag", "decimal": "quantity"}
# Identifiers, codes and names are often one another's forms; a time or a quantity is none of them.
_FORMS = frozenset({"identifier", "code", "text"})

# Words that exclude each other: two columns that differ in them are two different columns of one kind.
_OPPOSITES: tuple[tuple[frozenset[str], ...], ...] = (
    (_stemmed("start begin beginning from onset admission admit"), _stemmed("end stop thru through discharge until")),
    (_stemmed("birth born"), _stemmed("death deceased died")),
    (_stemmed("low lower minimum least"), _stemmed("high upper maximum most")),
    (_stemmed("first given"), _stemmed("last family surname"), _stemmed("middle")),
    (_stemmed("primary"), _stemmed("secondary")),
    (_stemmed("numerator"), _stemmed("denominator")),
    (_stemmed("latitude"), _stemmed("longitude")),
    (
        _stemmed("city town"),
        _stemmed("state province"),
        _stemmed("county"),
        _stemmed("country"),
        _stemmed("zip postal"),
    ),
)


@lru_cache(maxsize=16384)
def _name_words(column: str, table: str) -> Mapping[str, float]:
    """Return the stems of a column's name with what each is worth."""
    of_table = set(stems(name_words(table)))
    return {
        word: GENERIC_WORTH if word in GENERIC else TABLE_WORTH if word in of_table else WORTH
        for word in stems(name_words(column))
    }


@lru_cache(maxsize=16384)
def _text_words(description: str) -> frozenset[str]:
    return frozenset(stems(text_words(description)[:DESCRIPTION_WORDS]))


def _words(attribute: Attribute) -> tuple[Mapping[str, float], frozenset[str]]:
    """Return the stems of an attribute's name with what each is worth, and the stems of its description's beginning."""
    return _name_words(attribute.column_name, attribute.table_name), _text_words(attribute.column_description)


def attribute_words(attribute: Attribute) -> frozenset[str]:
    """Return the stems of an attribute's name and of the beginning of its description."""
    worth, text = _words(attribute)
    return text.union(worth)


def _covered(worth: Mapping[str, float], words: Collection[str]) -> float:
    total = sum(worth.values())
    return sum(value for word, value in worth.items() if word in words) / total if total else 0.0


def likeness(source: Attribute, target: Attribute) -> float:
    """Dice coefficient of the words of two names, 0..1, each word by what it is worth."""
    mine, other = _words(source)[0], _words(target)[0]
    total = sum(mine.values()) + sum(other.values())
    shared = sum(mine[word] + other[word] for word in mine.keys() & other.keys())
    return shared / total if total else 0.0


def cross_likeness(source: Attribute, target: Attribute) -> float:
    """Share of each name's words that the other side's description has, beyond what its name has; the mean, 0..1."""
    (mine, my_text), (other, other_text) = _words(source), _words(target)
    forward = _covered({word: worth for word, worth in mine.items() if word not in other}, other_text)
    backward = _covered({word: worth for word, worth in other.items() if word not in mine}, my_text)
    return (forward + backward) / 2.0


def kinds(attribute: Attribute) -> frozenset[str]:
    """Return the kinds of value that the name, or else the type, speaks of; none where neither does."""
    words = _words(attribute)[0]
    found = {kind for kind, names in _KINDS.items() if names & words.keys()}
    if not found and attribute.type_family in _KINDS_OF_TYPES:
        found = {_KINDS_OF_TYPES[attribute.type_family]}
    return frozenset(found)


def opposed(source: Attribute, target: Attribute) -> bool:
    """Whether the two names hold words that exclude each other, such as start and end."""
    mine, other = _words(source)[0].keys(), _words(target)[0].keys()
    for group in _OPPOSITES:
        left = {place for place, words in enumerate(group) if words & mine}
        right = {place for place, words in enumerate(group) if words & other}
        if left and right and not left & right:
            return True
    return False


def kind_weight(left: Collection[str], right: Collection[str]) -> float:
    """Weigh how two attributes' kinds of value go together; 0 where one is unknown."""
    if not left or not right:
        return 0.0
    if set(left) & set(right):
        return SAME_KIND
    return OTHER_KIND if set(left) & _FORMS and set(right) & _FORMS else FAR_KIND


def word_evidence(source: Attribute, target: Attribute) -> list[Point]:
    """Compare the names by the words that they share, and each name with the other side's description."""
    points = []
    alike, crossed = likeness(source, target), cross_likeness(source, target)
    if alike:
        points.append(Point(NAMES * alike, f"the names share {', '.join(_shared(source, target)) or 'words'}"))
    if crossed:
        points.append(Point(CROSS * crossed, "the name of one stands in the description of the other"))
    return points


def kind_evidence(source: Attribute, target: Attribute) -> list[Point]:
    """Compare the kinds of value that the names speak of, and look for words that exclude each other."""
    points = []
    left, right = kinds(source), kinds(target)
    weight = kind_weight(left, right)
    if weight > 0:
        points.append(Point(weight, f"both are of the kind {'/'.join(sorted(left & right))}"))
    elif weight < 0:
        points.append(Point(weight, f"the kinds are {'/'.join(sorted(left))} and {'/'.join(sorted(right))}"))
    if opposed(source, target):
        points.append(Point(OPPOSITE, "the names exclude each other"))
    return points


def _shared(source: Attribute, target: Attribute) -> list[str]:
    """Return the shared words as the source's name has them, spelled out."""
    other = _words(target)[0]
    return list(dict.fromkeys(f"“{word}”" for word in name_words(source.column_name) if stem(word) in other))
