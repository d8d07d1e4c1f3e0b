"""How deep a method searches for a pair: once as the settings say, or step by step while what it finds is weak."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kgrag_assets.settings import RetrievalSettings

VERSION = "adaptive-1"

# From this score on a fact is strong: an entity that both attributes are linked to by their own words has more, the
# path of one hop between two entities that are only near has less. Nothing is searched further for such a pair.
STRONG = 0.6


@dataclass(frozen=True)
class Depth:
    """So many of an attribute's best seeds or triples are looked at, and so long may a path be."""

    k: int
    hops: int


def depths_of(k: int, settings: RetrievalSettings) -> tuple[Depth, ...]:
    """Return the depths to try in turn, the budget last.

    Args:
        k: seeds or triples for each attribute, as the settings have it.
        settings: ``adaptive`` and ``max_hops``.

    Returns:
        Without ``adaptive`` the one depth that the settings name. Else half of ``k`` (rounded up) with paths of one
        hop, ``k`` with two, and twice ``k`` with ``max_hops``; no path is longer than that in any of them.
    """
    if not settings.adaptive:
        return (Depth(k, settings.max_hops),)
    steps = (Depth((k + 1) // 2, 1), Depth(k, min(2, settings.max_hops)), Depth(2 * k, settings.max_hops))
    return tuple(dict.fromkeys(steps))


def is_enough(scores: Iterable[float]) -> bool:
    """Whether one of a pair's facts is strong, so that nothing needs to be searched further."""
    return max(scores, default=0.0) >= STRONG
