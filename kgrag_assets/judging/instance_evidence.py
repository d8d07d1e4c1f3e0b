"""What the values of a pair say when they are compared here, as evidence: shares and kinds, never a value."""

from __future__ import annotations

from kgrag_assets.judging.protocol import Evidence
from kgrag_assets.judging.value_comparison import compare_values
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
        both have, whether values are written alike, whether their numbers or years lie in one range, whether both or
        one are nearly all different or few, and whether one side's are texts and the other's codes.
    """
    if policy == "local":
        return ()
    return tuple(
        Evidence(f"values:{one.what}", one.text, KIND, METHOD, round(one.score, 3))
        for one in compare_values(source, target)
    )
