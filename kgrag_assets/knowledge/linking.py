"""Entity linking: from a phrase to entities whose names say the same, or whose vectors lie near."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import polars as pl

from kgrag_assets.knowledge.folding import folded, singular
from kgrag_assets.knowledge.misspelling import spellings
from kgrag_assets.knowledge.name_source import MIN_PHRASE, NamedEntity, NamesInMemory, NameSource
from kgrag_assets.knowledge.relation_ids import is_relation_id
from kgrag_assets.schemas.words import expand_words

__all__ = [
    "EXACT_ALIAS",
    "EXACT_LABEL",
    "FOLDED_LABEL",
    "MIN_PHRASE",
    "LexicalLinker",
    "LinkCandidate",
    "MatchKind",
    "folded",
    "singular",
]

# What a match of each kind is worth. An exact label is the entity's own name; an alias is often shared.
EXACT_LABEL, FOLDED_LABEL, EXACT_ALIAS, SINGULAR_LABEL, SINGULAR_ALIAS = 1.0, 0.98, 0.9, 0.85, 0.75
# What is left of that where abbreviations were spelled out, and where letters differ.
ABBREVIATION, FUZZY = 0.8, 0.75
# Share of equal letters from which a name is taken for a misspelled phrase.
MIN_SIMILARITY = 0.8

MatchKind = Literal["exact", "folded", "alias", "singular", "abbreviation", "fuzzy", "vector"]


@dataclass(frozen=True)
class LinkCandidate:
    """An entity that a phrase may mean, with a score in 0..1, the name that matched, and how it did."""

    entity_id: str
    label: str
    score: float
    matched: str
    kind: MatchKind = "folded"


def order_of(found: LinkCandidate) -> tuple[float, bool, str]:
    """Return what candidates are sorted by: best first, among equals relations before entities, then by id."""
    return -found.score, not is_relation_id(found.entity_id.partition(":")[2]), found.entity_id


class LexicalLinker:
    """Names of the graph's entities, looked up by what they say."""

    def __init__(self, names: NameSource) -> None:
        """Take where names are looked up: a ``Lexicon``, or names in memory."""
        self._names = names

    @classmethod
    def from_entities(cls, entities: pl.DataFrame) -> LexicalLinker:
        """Index labels and aliases of rows of ``kg_entities`` in memory."""
        return cls(NamesInMemory(entities))

    def link(self, text: str, k: int) -> list[LinkCandidate]:
        """Return at most ``k`` entities named by a phrase, best first; among equals relations before entities.

        A relation of the graph (``date of birth``) says what a column holds; an item of the same name is more
        often a work or a place.

        Args:
            text: the phrase; shorter than three letters or digits it is linked to nothing.
            k: candidates wanted.
        """
        plain = folded(text)
        if len(plain) < MIN_PHRASE:
            return []
        best: dict[str, LinkCandidate] = {}
        self._take(best, _asked(plain), lambda entry, share: _plainly(entry, share, text))
        return sorted(best.values(), key=order_of)[:k]

    def link_fuzzy(
        self,
        text: str,
        k: int,
        *,
        abbreviations: bool = True,
        misspellings: bool = True,
        min_similarity: float = MIN_SIMILARITY,
    ) -> list[LinkCandidate]:
        """As ``link``, and further by other ways of writing the phrase, which are worth less.

        Args:
            text: the phrase.
            k: candidates wanted.
            abbreviations: also look up the phrase with the usual abbreviations spelled out (``dob``).
            misspellings: where nothing else is found, also look up what the phrase may have been meant to say:
                one letter of a word is wrong, two of a long one, or a space is missing or too many. At most two
                words are wrong.
            min_similarity: share of equal letters from which on another spelling counts, 0 to 1.
        """
        plain = folded(text)
        if len(plain) < MIN_PHRASE:
            return []
        best: dict[str, LinkCandidate] = {}
        self._take(best, _asked(plain), lambda entry, share: _plainly(entry, share, text))
        spelled_out = " ".join(expand_words(plain.split()))
        if abbreviations and spelled_out != plain:
            self._take(best, _asked(spelled_out, ABBREVIATION), _as("abbreviation"))
        if misspellings and not best:
            meant: dict[str, float] = {}
            for phrase, share in _asked(plain).items():
                for other, similarity in spellings(phrase, self._names.similar_words).items():
                    if similarity >= min_similarity:
                        meant[other] = max(meant.get(other, 0.0), similarity * share * FUZZY)
            self._take(best, meant, _as("fuzzy"))
        return sorted(best.values(), key=order_of)[:k]

    def _take(
        self,
        best: dict[str, LinkCandidate],
        asked: dict[str, float],
        judged: Callable[[NamedEntity, float], tuple[float, MatchKind]],
    ) -> None:
        """Keep each entity that is called by one of the spellings, with the best of its names."""
        found = self._names.named(list(asked))
        for spelling, share in asked.items():
            for entry in found.get(spelling, ()):
                score, kind = judged(entry, share)
                known = best.get(entry.entity_id)
                if known is None or known.score < score:
                    best[entry.entity_id] = LinkCandidate(entry.entity_id, entry.label, score, entry.name, kind)


def linked_by_names(
    link: Callable[[str, int], Sequence[LinkCandidate]], names: Sequence[tuple[str, float]], k: int
) -> list[LinkCandidate]:
    """Link an entity's names, each with what it is worth, and return the best candidates of all."""
    best: dict[str, LinkCandidate] = {}
    for name, worth in names:
        for found in link(name, k):
            known = best.get(found.entity_id)
            if known is None or known.score < found.score * worth:
                best[found.entity_id] = LinkCandidate(
                    found.entity_id, found.label, found.score * worth, found.matched, found.kind
                )
    return sorted(best.values(), key=order_of)[: max(0, k)]


def _asked(plain: str, worth: float = 1.0) -> dict[str, float]:
    """Return a folded phrase and its singular, each with what a match is worth."""
    asked = {plain: worth}
    asked.setdefault(singular(plain), worth * SINGULAR_LABEL)
    return asked


def _worth(entry: NamedEntity) -> float:
    if entry.singular:
        return SINGULAR_ALIAS if entry.alias else SINGULAR_LABEL
    return EXACT_ALIAS if entry.alias else FOLDED_LABEL


def _plainly(entry: NamedEntity, share: float, text: str) -> tuple[float, MatchKind]:
    if share == 1.0 and entry.name == text and entry.name == entry.label:
        return EXACT_LABEL, "exact"
    if share != 1.0 or entry.singular:
        return _worth(entry) * share, "singular"
    return _worth(entry), "alias" if entry.alias else "folded"


def _as(kind: MatchKind) -> Callable[[NamedEntity, float], tuple[float, MatchKind]]:
    return lambda entry, share: (_worth(entry) * share, kind)
