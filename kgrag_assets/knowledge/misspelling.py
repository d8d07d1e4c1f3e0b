"""Names that differ in a letter or two, or in where a space stands: what a phrase may have been meant to say."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations, product

from rapidfuzz import process
from rapidfuzz.distance import Levenshtein

# Shorter words are too like one another to be taken for each other.
SHORTEST_WORD = 4
# From this length on, two letters of a word may be wrong.
TWO_EDITS_FROM = 9
# Words like one word that are tried, and spellings of a phrase.
WORDS_TRIED = 12
SPELLINGS_TRIED = 500
# Longer phrases are no names.
LONGEST_PHRASE = 100

# Like words of a word: at most so many, the likest first.
SimilarWords = Callable[[str], Sequence[str]]


def edits_allowed(word: str) -> int:
    """Return how many letters of a word may be wrong."""
    if len(word) < SHORTEST_WORD:
        return 0
    return 1 if len(word) < TWO_EDITS_FROM else 2


def edits_between(one: str, other: str) -> int:
    """Return the letters to insert, drop or replace; two neighbours that changed places count as one."""
    if len(one) == len(other):
        apart = [place for place, (left, right) in enumerate(zip(one, other, strict=True)) if left != right]
        if len(apart) == 2:
            first, second = apart
            if second == first + 1 and (one[first], one[second]) == (other[second], other[first]):
                return 1
    return int(Levenshtein.distance(one, other))


def swapped(word: str) -> list[str]:
    """Return the word with each two neighbouring letters in the other order."""
    found = (word[:place] + word[place + 1] + word[place] + word[place + 2 :] for place in range(len(word) - 1))
    return [one for one in dict.fromkeys(found) if one != word]


def likest(word: str, candidates: Sequence[tuple[str, int]]) -> list[str]:
    """Return the words that a word may have been meant to be, the likest first.

    Args:
        word: the word as written.
        candidates: words of the graph, each with the number of names that have it: among equally like ones the more
            frequent is first.
    """
    most = edits_allowed(word)
    if not most:
        return []
    uses = {other: used for other, used in candidates if other != word and abs(len(other) - len(word)) <= most}
    edits: dict[str, int] = {}
    if uses:
        others = list(uses)
        found = process.cdist([word], others, scorer=Levenshtein.distance, score_cutoff=most)[0]
        edits = {others[place]: int(found[place]) for place in (found <= most).nonzero()[0].tolist()}
        edits.update({other: 1 for other in swapped(word) if other in uses})
    return sorted(edits, key=lambda other: (edits[other], -uses[other], other))[:WORDS_TRIED]


def spellings(phrase: str, similar: SimilarWords) -> dict[str, float]:
    """Return what a folded phrase may have been meant to say, with the share of letters that agree.

    At most two words are replaced by words of the graph, or one space is put in or left out. A phrase of more than
    ``LONGEST_PHRASE`` letters is taken as it is.
    """
    if len(phrase) > LONGEST_PHRASE:
        return {}
    words = phrase.split()
    longest = max(len(phrase), 1)
    found: dict[str, float] = {}
    for other in _spaced(words):
        found[other] = 1.0 - 1.0 / max(longest, len(other))
    like = [[(one, edits_between(word, one)) for one in similar(word)] for word in words]
    for replaced in _replacements(like):
        spelled = list(words)
        edits = 0
        for place, (one, cost) in replaced:
            spelled[place] = one
            edits += cost
        other = " ".join(spelled)
        share = 1.0 - edits / max(longest, len(other))
        found[other] = max(found.get(other, 0.0), share)
        if len(found) >= SPELLINGS_TRIED:
            break
    found.pop(phrase, None)
    return found


def _spaced(words: Sequence[str]) -> Iterator[str]:
    for place in range(len(words) - 1):
        yield " ".join([*words[:place], words[place] + words[place + 1], *words[place + 2 :]])
    for place, word in enumerate(words):
        for cut in range(1, len(word)):
            yield " ".join([*words[:place], word[:cut], word[cut:], *words[place + 1 :]])


def _replacements(like: Sequence[Sequence[tuple[str, int]]]) -> Iterator[list[tuple[int, tuple[str, int]]]]:
    """Yield one word replaced, then two, each as (place, (word, edits))."""
    places = [place for place, words in enumerate(like) if words]
    for count in (1, 2):
        for chosen in combinations(places, count):
            for combination in product(*(like[place] for place in chosen)):
                yield list(zip(chosen, combination, strict=True))
