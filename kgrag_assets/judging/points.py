"""One piece of evidence of a judge that adds up evidence."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Point:
    """One piece of evidence: its weight in log odds, above 0 for the pair, below against it, and its wording."""

    weight: float
    wording: str
