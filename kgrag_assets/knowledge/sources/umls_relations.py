"""The direction of UMLS's relations: which of two inverse names is kept, and what a relation is called.

A row of MRREL says how its second concept is related to its first, "CUI2 RELA CUI1": in the example of the UMLS
Reference Manual, ``C0002372|…|RO|C2241537|…|has_ingredient``, the product C2241537 has the ingredient aluminum
hydroxide, C0002372 (https://www.ncbi.nlm.nih.gov/books/NBK9685/, table of MRREL.RRF). Every relation stands in the
file twice, once in each direction. A block of the file does not see the other row, so which one is kept is decided
by the name alone, and the row of the other name is turned round: both give the same edge, which is kept once.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

# Names that are not inverse to each other by their form. Of each pair the rule below keeps one.
_INVERSES = (
    ("due_to", "cause_of"),
    ("constitutes", "consists_of"),
    ("reformulated_to", "reformulation_of"),
    ("contains", "contained_in"),
    ("includes", "included_in"),
    ("classifies", "classified_as"),
    ("interprets", "is_interpreted_by"),
    ("replaces", "replaced_by"),
    ("measures", "measured_by"),
    ("analyzes", "analyzed_by"),
    ("treats", "treated_by"),
    ("regulates", "regulated_by"),
    ("positively_regulates", "positively_regulated_by"),
    ("negatively_regulates", "negatively_regulated_by"),
    ("may_treat", "may_be_treated_by"),
    ("may_prevent", "may_be_prevented_by"),
    ("may_diagnose", "may_be_diagnosed_by"),
    ("has_contraindicated_drug", "contraindicated_with_disease"),
    ("concept_in_subset", "subset_includes_concept"),
    ("occurs_before", "occurs_after"),
    ("temporally_follows", "temporally_followed_by"),
)
_BY_NAME = {name: inverse for pair in _INVERSES for name, inverse in (pair, pair[::-1])}
# Relations that are their own inverse.
_BOTH_WAYS = frozenset(
    (
        *("same_as", "possibly_equivalent_to", "associated_with", "clinically_associated_with", "co-occurs_with"),
        *("related_to", "sib_in_isa", "sib_in_part_of", "clinically_similar"),
    )
)

# finding_site_of and has_finding_site; mth_plain_text_form_of and mth_has_plain_text_form. Names such as
# is_location_of_… are built otherwise, and what stands before "of" in consists_of is no noun.
_OF = re.compile(r"(mth_|)(?!is_|has_|mth_|consists|composed|made)(.+)_of\Z")
_HAS = re.compile(r"(mth_|)has_(.+)\Z")

# Where a row has no RELA its REL says, of the second concept to the first: parent or child, broader or narrower,
# may be qualified by or qualifies. One of each is kept; the name reads from head to tail.
_KEPT = {"PAR": "PAR", "CHD": "PAR", "RB": "RB", "RN": "RB", "AQ": "AQ", "QB": "AQ"}
_TAIL_FIRST = frozenset(("CHD", "RN", "QB"))
# Neither "deleted" nor "not related" is a relation.
_NONE = frozenset(("DEL", "XR"))
_REL_NAMES = {
    "PAR": "has parent",
    "RB": "has broader concept",
    "AQ": "has allowed qualifier",
    "SIB": "has sibling",
    "SY": "is a source's synonym of",
    "RO": "has other relationship to",
    "RQ": "is related to, possibly a synonym of",
    "RL": "is similar to",
    "RU": "is related to, unspecified",
}


@dataclass(frozen=True)
class Directed:
    """What a name of MRREL becomes: ``relation`` from the second concept to the first, or from first to second.

    ``both_ways``: the relation has no direction; the lesser of the two ids is written as head.
    """

    relation: str
    second_first: bool
    both_ways: bool = False


def directed(rel: str, rela: str, inverses: Mapping[str, str]) -> Directed | None:
    """Decide which name is kept and in which direction.

    Args:
        rel: the column REL.
        rela: the column RELA, which may be empty.
        inverses: each RELA with its inverse, as MRDOC lists them; may be empty.

    Returns:
        the kept relation; None where the row says that there is none.
    """
    if rel in _NONE:
        return None
    if not rela:
        kept = _KEPT.get(rel)
        if kept is None:
            return Directed(rel, second_first=True, both_ways=True)
        # "CUI2 is a parent of CUI1": the edge "has parent" leads from CUI1 to CUI2.
        return Directed(kept, second_first=rel in _TAIL_FIRST)
    second_first = True
    while True:
        inverse = inverses.get(rela) or _inverse(rela)
        if inverse == rela:
            return Directed(rela, second_first=True, both_ways=True)
        if inverse is None or _rank(inverse) >= _rank(rela):
            return Directed(rela, second_first)
        rela, second_first = inverse, not second_first


def _inverse(rela: str) -> str | None:  # noqa: PLR0911  (one way out for each form)
    """Return the inverse of a name by its form; None where the form does not tell."""
    if rela in _BOTH_WAYS:
        return rela
    if rela in _BY_NAME:
        return _BY_NAME[rela]
    if rela.startswith("inverse_"):
        return rela.removeprefix("inverse_")
    if rela in ("isa", "was_a"):
        return f"inverse_{rela}"
    if rela.endswith("mapped_from"):
        return f"{rela.removesuffix('from')}to"
    match = _OF.match(rela)
    if match is not None:
        return f"{match[1]}has_{match[2]}"
    match = _HAS.match(rela)
    return f"{match[1]}{match[2]}_of" if match is not None else None


def _rank(rela: str) -> tuple[bool, bool, bool, bool, str]:
    """Order names: the lesser of two inverse ones is kept, the one that reads as a statement about its head."""
    name = rela.lower()
    return (
        name.startswith("inverse_") or name.endswith("_from"),
        name.endswith("_by") or "_by_" in name,
        not name.startswith(("has_", "mth_has_")) and (name.endswith("_of") or "_of_" in name),
        not name.startswith(("has_", "mth_has_")),
        name,
    )


def words_of(relation: str, names: Mapping[str, str]) -> str:
    """Name a relation in words, by MRDOC's ``names`` where they have it."""
    if relation in _REL_NAMES:
        return _REL_NAMES[relation]
    if relation == "isa":
        return "is a"
    return names.get(relation) or relation.replace("_", " ")
