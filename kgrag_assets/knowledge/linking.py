"""Lexical entity linking: from a phrase to entities whose label or alias says the same."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

import polars as pl

from kgrag_assets.knowledge.statements import is_relation_id

_WORD = re.compile(r"[^\W_]+")

# What a match of each kind is worth. An exact label is the entity's own name; an alias is often shared.
EXACT_LABEL, FOLDED_LABEL, EXACT_ALIAS, SINGULAR_LABEL, SINGULAR_ALIAS = 1.0, 0.98, 0.9, 0.85, 0.75
MIN_PHRASE = 3


@dataclass(frozen=True)
class LinkCandidate:
    """An entity that a phrase may mean, with a score in 0..1 and the name that matched."""

    entity_id: str
    label: str
    score: float
    matched: str


def folded(text: str) -> str:
    """Write a name without case, accents and punctuation, its words joined by single spaces."""
    # Decomposing can bring capitals (the trademark sign is TM), and folding letters with accents.
    plain = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    return " ".join(_WORD.findall("".join(char for char in plain if not unicodedata.combining(char))))


def singular(text: str) -> str:
    """Write a folded name with its last word in the singular, as far as English spelling tells."""
    words = text.split()
    if not words:
        return text
    last = words[-1]
    if last.endswith("ies") and len(last) > 4:
        last = last[:-3] + "y"
    elif last.endswith(("sses", "xes", "shes", "tches", "nches", "rches")):
        last = last[:-2]
    elif last.endswith("s") and not last.endswith(("ss", "us", "is")) and len(last) > 3:
        last = last[:-1]
    return " ".join([*words[:-1], last])


def _order(found: LinkCandidate) -> tuple[float, bool, str]:
    return -found.score, not is_relation_id(found.entity_id.partition(":")[2]), found.entity_id


class LexicalLinker:
    """Names of the graph's entities, looked up by what they say."""

    def __init__(self, names: dict[str, list[tuple[str, str, float, str]]]) -> None:
        """Take folded names, each with (entity id, label, score, matched name); use ``from_entities``."""
        self._names = names

    @classmethod
    def from_entities(cls, entities: pl.DataFrame) -> LexicalLinker:
        """Index labels and aliases of rows of ``kg_entities``."""
        names: dict[str, list[tuple[str, str, float, str]]] = {}
        for entity_id, label, aliases in entities.select("entity_id", "label", "aliases").iter_rows():
            spellings = [(label, FOLDED_LABEL, SINGULAR_LABEL)]
            spellings += [(alias, EXACT_ALIAS, SINGULAR_ALIAS) for alias in aliases]
            for spelling, whole, one in spellings:
                plain = folded(spelling)
                if len(plain) < MIN_PHRASE:
                    continue
                names.setdefault(plain, []).append((entity_id, label, whole, spelling))
                if singular(plain) != plain:
                    names.setdefault(singular(plain), []).append((entity_id, label, one, spelling))
        return cls(names)

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
        for spelling, share in ((plain, 1.0), (singular(plain), SINGULAR_LABEL)):
            for entity_id, label, score, matched in self._names.get(spelling, ()):
                value = EXACT_LABEL if share == 1.0 and matched == text and matched == label else score * share
                known = best.get(entity_id)
                if known is None or known.score < value:
                    best[entity_id] = LinkCandidate(entity_id, label, value, matched)
        return sorted(best.values(), key=_order)[:k]
