"""What sample values, types and key roles say about a pair of attributes."""

from __future__ import annotations

from kgrag_assets.blocking.signals import type_affinity
from kgrag_assets.judging.points import Point
from kgrag_assets.judging.value_comparison import compare_values
from kgrag_assets.schemas.attribute import Attribute
from kgrag_assets.schemas.types import type_family

# Families that a column may be declared as while its values are of another.
_LOOSE_FAMILIES = ("text", "unknown")

TYPES, KEYS, FOREIGN_KEYS = 2.0, 0.5, 0.3


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
    """Compare the values, where both sides have some: equal ones, how they are written, their ranges and numbers."""
    return [Point(one.weight, one.text) for one in compare_values(source, target) if one.weight]


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
