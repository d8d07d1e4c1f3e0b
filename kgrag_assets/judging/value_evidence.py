"""What sample values, types and key roles say about a pair of attributes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from kgrag_assets.blocking.signals import type_affinity
from kgrag_assets.schemas.attribute import Attribute
from kgrag_assets.schemas.types import type_family

# Families that a column may be declared as while its values are of another.
_LOOSE_FAMILIES = ("text", "unknown")

SHARED_VALUES, SAME_SHAPE, OTHER_SHAPE = 1.5, 0.3, -0.5
TYPES, KEYS, FOREIGN_KEYS = 2.0, 0.5, 0.3

_LETTERS, _DIGITS = re.compile(r"[^\W\d_]+"), re.compile(r"\d+")


@dataclass(frozen=True)
class Point:
    """One piece of evidence: its weight in log odds, above 0 for the pair, below against it, and its wording."""

    weight: float
    wording: str


def shape(value: str) -> str:
    """Reduce a value to its shape: runs of letters to ``a``, runs of digits to ``9``, the rest as it is."""
    return _DIGITS.sub("9", _LETTERS.sub("a", value.strip()))


def families(attribute: Attribute) -> set[str]:
    """Return the type families that an attribute may be of: as declared, and as its values look if that is loose."""
    found = {attribute.type_family}
    if attribute.type_family in _LOOSE_FAMILIES:
        found.add(type_family("", attribute.sample_values))
    return found - {"unknown"} or {"unknown"}


def type_evidence(source: Attribute, target: Attribute) -> list[Point]:
    """Compare the types; nothing where one is unknown."""
    left, right = families(source), families(target)
    affinity = max(type_affinity(mine, other) for mine in left for other in right)
    weight = TYPES * (affinity - 0.5)
    if not weight:
        return []
    mine, other = "/".join(sorted(left)), "/".join(sorted(right))
    wording = f"both are of type {mine}" if mine == other else f"types {mine} and {other}"
    return [Point(weight, wording)]


def value_evidence(source: Attribute, target: Attribute) -> list[Point]:
    """Compare the sample values, where both sides have some: equal values, else the shapes of the values."""
    mine, other = _folded(source.sample_values), _folded(target.sample_values)
    if not mine or not other:
        return []
    shared = mine & other
    if shared:
        share = len(shared) / min(len(mine), len(other))
        # Never less than values that only look alike would weigh.
        return [Point(max(SHARED_VALUES * share, SAME_SHAPE), f"{len(shared)} sample values are the same")]
    if {shape(value) for value in mine} & {shape(value) for value in other}:
        return [Point(SAME_SHAPE, "sample values are of one shape")]
    return [Point(OTHER_SHAPE, "sample values are of other shapes")]


def _folded(values: Sequence[str]) -> set[str]:
    return {value.strip().casefold() for value in values if value.strip()}


def key_evidence(source: Attribute, target: Attribute) -> list[Point]:
    """Compare the roles of the columns in their tables, where both are known."""
    points = []
    if source.is_primary_key is not None and target.is_primary_key is not None:
        if source.is_primary_key and target.is_primary_key:
            points.append(Point(KEYS, "both are primary keys"))
        elif source.is_primary_key != target.is_primary_key:
            points.append(Point(-KEYS, "only one is a primary key"))
    if source.references_table and target.references_table:
        points.append(Point(FOREIGN_KEYS, "both point to another table"))
    return points
