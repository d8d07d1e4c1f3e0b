"""An overlay on an adjacency, opened: the current edges of changed heads, new ids and new labels."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from kgrag_assets.knowledge.adjacency_files import (
    Manifest,
    read_array,
    read_edges,
    read_manifest,
    read_texts,
    refused,
)
from kgrag_assets.knowledge.graph_view import CHANGED, TOUCHED
from kgrag_assets.knowledge.text_array import TextArray


@dataclass(frozen=True)
class Overlay:
    """The opened files. ``touched`` holds the nodes whose edges differ from the base's, sorted by number."""

    graphs: tuple[str, ...]
    data_version: str
    node_ids: TextArray
    relation_ids: TextArray
    node_places: np.ndarray
    relation_places: np.ndarray
    touched: np.ndarray
    changes: np.ndarray
    dropped: np.ndarray
    sides: dict[str, dict[str, np.ndarray]]
    node_labels: TextArray
    labelled_nodes: np.ndarray
    relation_labels: TextArray
    labelled_relations: np.ndarray

    @property
    def edge_count(self) -> int:
        """Number of edges that leave changed heads now."""
        return len(self.sides["out"]["nodes"])

    @property
    def dropped_edges(self) -> int:
        """Number of the base's edges that left changed heads."""
        return int(self.dropped.sum(dtype=np.int64))

    @property
    def changed(self) -> np.ndarray:
        """Numbers of the changed heads."""
        heads: np.ndarray = self.touched[self.changes != 0]
        return heads

    def edges(self, side: str, node: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the overlay's edges of a node: other nodes, relations and masks."""
        arrays = self.sides[side]
        slot = self._slot(node)
        start, end = (0, 0) if slot is None else arrays["starts"][slot : slot + 2].tolist()
        masks = arrays["masks"]
        return arrays["nodes"][start:end], arrays["relations"][start:end], masks[start:end] if len(masks) else masks

    def dropped_of(self, node: int) -> int:
        """Return the number of the base's edges that reached a node from changed heads."""
        slot = self._slot(node)
        return 0 if slot is None else int(self.dropped[slot])

    def node_label(self, node: int) -> str | None:
        """Return the label that a node has now, or None where it has the base's."""
        place = self._node_label_places.get(node)
        return None if place is None else self.node_labels[place]

    def relation_label(self, relation: int) -> str | None:
        """Return the label that a relation has now, or None where it has the base's."""
        place = self._relation_label_places.get(relation)
        return None if place is None else self.relation_labels[place]

    def view_arrays(self, nodes: int) -> dict[str, np.ndarray]:
        """Return the overlay's part of a ``GraphView`` over so many nodes."""
        # Pages of zeros cost nothing until they are written.
        flags = np.zeros(nodes, dtype=np.uint8)
        flags[self.touched] = TOUCHED
        flags[self.changed] = TOUCHED | CHANGED
        edges = {f"new_{side}_{part}": array for side, arrays in self.sides.items() for part, array in arrays.items()}
        return {
            "flags": flags,
            "touched": self.touched,
            "dropped": self.dropped,
            "places": self.node_places,
            **edges,
        }

    def _slot(self, node: int) -> int | None:
        slot = int(np.searchsorted(self.touched, node))
        return slot if slot < len(self.touched) and self.touched[slot] == node else None

    @cached_property
    def _node_label_places(self) -> dict[int, int]:
        return {node: place for place, node in enumerate(self.labelled_nodes.tolist())}

    @cached_property
    def _relation_label_places(self) -> dict[int, int]:
        return {relation: place for place, relation in enumerate(self.labelled_relations.tolist())}


def read_overlay(folder: Path, base: Manifest) -> Overlay:
    """Open an overlay's files by memory map.

    Args:
        folder: where they lie.
        base: the manifest of the adjacency below.

    Raises:
        KnowledgeError: a file is missing or does not agree with the manifest, or the base is another.
    """
    manifest = read_manifest(folder)
    if manifest.base != base.data_version or manifest.graphs[: len(base.graphs)] != base.graphs:
        raise refused(folder / "manifest.json", "lies on another version of the graph")
    touched = read_array(folder, "touched", (np.int32,), None)
    rows = len(touched)
    sides: dict[str, dict[str, np.ndarray]] = {}
    for side in ("out", "in"):
        sides[side] = {"masks": np.empty(0, dtype=np.uint64)}
        sides[side].update(read_edges(folder, side, rows, manifest.edges, len(manifest.graphs) > 1))
    labelled = {kind: read_array(folder, f"labelled_{kind}s", (np.int32,), None) for kind in ("node", "relation")}
    return Overlay(
        graphs=manifest.graphs,
        data_version=manifest.data_version,
        node_ids=read_texts(folder, "node_ids", manifest.nodes),
        relation_ids=read_texts(folder, "relation_ids", manifest.relations),
        node_places=read_array(folder, "node_places", (np.int32,), manifest.nodes),
        relation_places=read_array(folder, "relation_places", (np.int32,), manifest.relations),
        touched=touched,
        changes=read_array(folder, "changes", (np.uint8,), rows),
        dropped=read_array(folder, "dropped", (np.int32,), rows),
        sides=sides,
        node_labels=read_texts(folder, "node_labels", len(labelled["node"])),
        labelled_nodes=labelled["node"],
        relation_labels=read_texts(folder, "relation_labels", len(labelled["relation"])),
        labelled_relations=labelled["relation"],
    )
