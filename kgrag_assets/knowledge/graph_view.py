"""The arrays of an opened graph as one tuple, in the shape that compiled code takes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

# Bits of ``GraphView.flags``.
CHANGED = 1
TOUCHED = 2


class GraphView(NamedTuple):
    """All arrays of a base and of the overlay on it; those of a missing overlay have no entries.

    The overlay's edges are those of ``touched`` nodes, sorted: edges that leave a changed head, which take the place
    of the base's, and edges that reach a node from a changed head. ``dropped`` counts the base's edges that reached
    such a node from a changed head. ``places`` says, for each new node, before which node of the base its id would
    stand, so that an order by id can be told from numbers.
    """

    out_starts: np.ndarray
    out_nodes: np.ndarray
    out_relations: np.ndarray
    out_masks: np.ndarray
    in_starts: np.ndarray
    in_nodes: np.ndarray
    in_relations: np.ndarray
    in_masks: np.ndarray
    flags: np.ndarray
    touched: np.ndarray
    dropped: np.ndarray
    places: np.ndarray
    new_out_starts: np.ndarray
    new_out_nodes: np.ndarray
    new_out_relations: np.ndarray
    new_out_masks: np.ndarray
    new_in_starts: np.ndarray
    new_in_nodes: np.ndarray
    new_in_relations: np.ndarray
    new_in_masks: np.ndarray


def _empty(dtype: type[np.generic]) -> np.ndarray:
    return np.empty(0, dtype=dtype)


NO_OVERLAY: dict[str, np.ndarray] = {
    "flags": _empty(np.uint8),
    "touched": _empty(np.int32),
    "dropped": _empty(np.int32),
    "places": _empty(np.int32),
    **{
        f"new_{side}_{part}": np.zeros(1, dtype=np.int64) if part == "starts" else _empty(dtype)
        for side in ("out", "in")
        for part, dtype in (("starts", np.int64), ("nodes", np.int32), ("relations", np.int32), ("masks", np.uint64))
    },
}


def view_of(arrays: Mapping[str, np.ndarray]) -> GraphView:
    """Make the tuple; each array becomes a plain one that cannot be written, so that one compilation serves all."""
    plain: dict[str, Any] = {}
    for name in GraphView._fields:
        array = np.asarray(arrays[name]).view()
        array.flags.writeable = False
        plain[name] = array
    return GraphView(**plain)


def order_keys(nodes: np.ndarray, base: int, places: np.ndarray) -> np.ndarray:
    """Return int64 keys that order numbers as their ids are ordered.

    Args:
        nodes: numbers of nodes (or relations), any shape.
        base: how many the base has; its numbers are in the order of their ids.
        places: for each new one, before which of the base's it stands; new ones are in the order of their ids.
    """
    keys = nodes.astype(np.int64)
    if not len(places):
        return keys
    width = len(places) + 1
    fresh = keys >= base
    new = np.where(fresh, keys - base, 0)
    return np.where(fresh, places[new].astype(np.int64) * width + new, keys * width + len(places))
