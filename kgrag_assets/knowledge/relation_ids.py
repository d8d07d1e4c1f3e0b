"""Telling relations from entities by their ids."""

from __future__ import annotations

import re

_PROPERTY = re.compile(r"P[0-9]+\Z")


def is_relation_id(local_id: str) -> bool:
    """Whether an id names a relation: Wikidata's properties do, ``P`` and digits."""
    return _PROPERTY.match(local_id) is not None
