"""What sample values say about a pair: shared values and shared shapes."""

from __future__ import annotations

import re
from collections.abc import Sequence

_SHAPES = (
    (re.compile(r"\d"), "9"),
    (re.compile(r"[A-Z]"), "A"),
    (re.compile(r"[a-z]"), "a"),
)


def shape_of(value: str) -> str:
    """Write a value's shape: runs of digits, capitals and small letters as one mark each (``E11.9`` is ``A9.9``)."""
    for pattern, mark in _SHAPES:
        value = pattern.sub(mark, value)
    return re.sub(r"(.)\1+", r"\1", value)


def value_overlap(left: Sequence[str], right: Sequence[str]) -> float:
    """Share of the smaller side's distinct values, case ignored, that the other side has too, 0..1."""
    one, other = ({value.strip().casefold() for value in side if value.strip()} for side in (left, right))
    if not one or not other:
        return 0.0
    return len(one & other) / min(len(one), len(other))


def shape_overlap(left: Sequence[str], right: Sequence[str]) -> float:
    """Return the same for the shapes of the values."""
    return value_overlap([shape_of(value) for value in left], [shape_of(value) for value in right])
