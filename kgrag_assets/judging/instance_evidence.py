"""What the sample values of a pair say when they are compared here: shares and patterns, never a value."""

from __future__ import annotations

from kgrag_assets.judging.protocol import Evidence
from kgrag_assets.judging.value_evidence import shape
from kgrag_assets.schemas.attribute import Attribute

KIND, METHOD = "values", "instance"


def instance_evidence(source: Attribute, target: Attribute, policy: str) -> tuple[Evidence, ...]:
    """Compare the values of two attributes, where both have some.

    Args:
        source: source attribute.
        target: target attribute.
        policy: as of ``value_lines``; under ``local`` nothing that is derived from a value is told.

    Returns:
        Evidence of kind ``values`` with ids that depend on what is compared alone: the share of sample values that
        both have, whether values are written alike, and whether both or one are nearly all different or empty.
    """
    if policy == "local":
        return ()
    found: list[Evidence] = []

    def add(what: str, text: str, score: float) -> None:
        found.append(Evidence(f"values:{what}", text, KIND, METHOD, round(score, 3)))

    mine, other = _folded(source), _folded(target)
    if mine and other:
        share = len(mine & other) / min(len(mine), len(other))
        if share:
            add("overlap", f"{share:.0%} of the smaller side's sample values stand on the other side, too", share)
        else:
            add("overlap", "no sample value stands on both sides", 0.0)
        shapes = [{shape(value) for value in values} for values in (mine, other)]
        alike = len(shapes[0] & shapes[1]) / min(len(shapes[0]), len(shapes[1]))
        if alike and not share:
            add("shape", f"{alike:.0%} of the patterns of the sample values are written alike", alike)
        elif not alike:
            add("shape", "the sample values are written in different ways", 0.0)
    counts = source.distinct_count, target.distinct_count
    if counts[0] is not None and counts[1] is not None:
        small = [count <= 12 for count in counts if count is not None]
        if small[0] != small[1]:
            which = "source" if small[0] else "target"
            add("distinct", f"the {which} has a handful of different values, the other side many", 0.0)
    return tuple(found)


def _folded(attribute: Attribute) -> set[str]:
    return {value.strip().casefold() for value in attribute.sample_values if value.strip()}
