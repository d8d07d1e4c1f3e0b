"""The graph in memory: a compressed adjacency, both directions, as memory-mapped arrays."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import cached_property
from pathlib import Path

import numpy as np

from kgrag_assets.knowledge.adjacency_files import read_edges, read_manifest, read_texts
from kgrag_assets.knowledge.errors import KnowledgeError
from kgrag_assets.knowledge.graph_view import CHANGED, NO_OVERLAY, GraphView, order_keys, view_of
from kgrag_assets.knowledge.overlay_files import Overlay, read_overlay
from kgrag_assets.knowledge.text_array import TextArray


class Adjacency:
    """An opened graph. Nodes and relations are numbers; ``entity_id`` and ``relation_id`` name them.

    With an overlay, the edges that leave a changed head are the overlay's, and new nodes and relations have the
    numbers after the base's.
    """

    def __init__(
        self,
        texts: dict[str, TextArray],
        arrays: dict[str, np.ndarray],
        graphs: tuple[str, ...],
        data_version: str,
        overlay: Overlay | None = None,
    ) -> None:
        """Take the opened files; use ``open``."""
        self._node_ids, self._relation_ids = texts["node_ids"], texts["relation_ids"]
        self._node_labels, self._relation_labels = texts["node_labels"], texts["relation_labels"]
        self._arrays = arrays
        self._overlay = overlay
        self.graphs = graphs if overlay is None else overlay.graphs
        self.data_version = data_version if overlay is None else overlay.data_version
        self.base_version = data_version
        self.base_nodes = len(self._node_ids)
        self.base_relations = len(self._relation_ids)

    @classmethod
    def open(cls, folder: Path, overlay: Path | None = None) -> Adjacency:
        """Open the arrays in ``folder`` by memory map, and those of an overlay on them.

        Raises:
            KnowledgeError: a file is missing or does not agree with its manifest, or the overlay lies on another base.
        """
        manifest = read_manifest(folder)
        sizes = {"node": manifest.nodes, "relation": manifest.relations}
        texts = {
            f"{kind}_{text}": read_texts(folder, f"{kind}_{text}", size)
            for kind, size in sizes.items()
            for text in ("ids", "labels")
        }
        arrays: dict[str, np.ndarray] = {}
        for side in ("out", "in"):
            arrays[f"{side}_masks"] = np.empty(0, dtype=np.uint8)
            read = read_edges(folder, side, manifest.nodes, manifest.edges, len(manifest.graphs) > 1)
            arrays.update({f"{side}_{part}": array for part, array in read.items()})
        found = None if overlay is None else read_overlay(overlay, manifest)
        return cls(texts, arrays, manifest.graphs, manifest.data_version, found)

    @property
    def node_count(self) -> int:
        """Number of nodes; with an overlay also those that have lost all their edges."""
        return self.base_nodes + (0 if self._overlay is None else len(self._overlay.node_ids))

    @property
    def edge_count(self) -> int:
        """Number of edges."""
        edges = len(self._arrays["out_nodes"])
        return edges if self._overlay is None else edges - self._overlay.dropped_edges + self._overlay.edge_count

    @property
    def has_overlay(self) -> bool:
        """Whether this graph was opened with an overlay."""
        return self._overlay is not None

    @cached_property
    def view(self) -> GraphView:
        """All arrays, as compiled code takes them."""
        overlay = NO_OVERLAY if self._overlay is None else self._overlay.view_arrays(self.node_count)
        return view_of({**self._arrays, **overlay})

    def node(self, entity_id: str) -> int | None:
        """Return the number of an entity, or None where the graph does not have it."""
        found = self._node_ids.find(entity_id)
        if found is None and self._overlay is not None:
            new = self._overlay.node_ids.find(entity_id)
            found = None if new is None else self.base_nodes + new
        return found

    def relation(self, relation_id: str) -> int | None:
        """Return the number of a relation, or None where no statement has it."""
        found = self._relation_ids.find(relation_id)
        if found is None and self._overlay is not None:
            new = self._overlay.relation_ids.find(relation_id)
            found = None if new is None else self.base_relations + new
        return found

    def entity_id(self, node: int) -> str:
        """Return the id of a node."""
        if node >= self.base_nodes and self._overlay is not None:
            return self._overlay.node_ids[node - self.base_nodes]
        return self._node_ids[node]

    def relation_id(self, relation: int) -> str:
        """Return the id of a relation."""
        if relation >= self.base_relations and self._overlay is not None:
            return self._overlay.relation_ids[relation - self.base_relations]
        return self._relation_ids[relation]

    def label(self, node: int) -> str:
        """Return the label of a node: its entity's, or the one that statements give it."""
        fresh = None if self._overlay is None else self._overlay.node_label(node)
        return self._node_labels[node] if fresh is None else fresh

    def relation_label(self, relation: int) -> str:
        """Return the label of a relation."""
        fresh = None if self._overlay is None else self._overlay.relation_label(relation)
        return self._relation_labels[relation] if fresh is None else fresh

    def mask_of(self, graphs: Collection[str] | None) -> int | None:
        """Return the bits of these graphs, or None where they are all that there are.

        Raises:
            KnowledgeError: one is not in this graph.
        """
        if graphs is None:
            return None
        unknown = sorted(set(graphs) - set(self.graphs))
        if unknown:
            raise KnowledgeError(
                f"the adjacency does not have the knowledge graph {unknown[0]!r}; it has "
                f"{', '.join(self.graphs) or 'none'}: materialize kg_graph, or choose another"
            )
        if set(graphs) == set(self.graphs):
            return None
        return sum(1 << place for place, graph in enumerate(self.graphs) if graph in graphs)

    def out(self, node: int, wanted: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Return tails (int32) and relations of the edges that leave a node, sorted by the tail's id, then relation's.

        Args:
            node: number of the node.
            wanted: bits of the graphs of which one must state the edge; None for all.
        """
        nodes, relations, masks = self._of_base("out", node)
        if self._overlay is not None and (node >= self.base_nodes or self.view.flags[node] & CHANGED):
            nodes, relations, masks = self._overlay.edges("out", node)
        return self._chosen(nodes, relations, masks, wanted)

    def into(self, node: int, wanted: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Return heads (int32) and relations of the edges that reach a node, sorted as those of ``out``."""
        heads, relations, masks = self._of_base("in", node)
        if self._overlay is None or not self.view.flags[node]:
            return self._chosen(heads, relations, masks, wanted)
        heads, relations = self._chosen(*self._unchanged(heads, relations, masks), wanted)
        more, their_relations = self._chosen(*self._overlay.edges("in", node), wanted)
        # Both are sorted by the head's id; no head is in both.
        fresh = more >= self.base_nodes
        before = more.copy()
        before[fresh] = self._overlay.node_places[more[fresh] - self.base_nodes]
        places = np.searchsorted(heads, before)
        return np.insert(heads, places, more), np.insert(relations.astype(np.int32), places, their_relations)

    def degree(self, node: int, wanted: int | None = None) -> int:
        """Return the number of edges of a node, both directions."""
        if wanted is not None:
            return len(self.out(node, wanted)[0]) + len(self.into(node, wanted)[0])
        degree = len(self.out(node)[0]) + len(self._of_base("in", node)[0])
        if self._overlay is not None and self.view.flags[node]:
            degree += len(self._overlay.edges("in", node)[0]) - self._overlay.dropped_of(node)
        return degree

    def edges_with(
        self, side: str, node: int, others: np.ndarray, wanted: int | None = None
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield the edges of one side of a node whose other end is among ``others``, as nodes and relations.

        The node's edges are looked up by halving, so that a hub costs what ``others`` costs.

        Args:
            side: ``out`` or ``in``.
            node: number of the node.
            others: int32, sorted, distinct.
            wanted: bits of graphs, None for all.
        """
        replaced = self._overlay is not None and bool(self.view.flags[node] & CHANGED)
        if not (side == "out" and replaced):
            nodes, relations, masks = self._of_base(side, node)
            starts, ends = np.searchsorted(nodes, others), np.searchsorted(nodes, others, side="right")
            places = _runs(starts, ends)
            found = nodes[places], relations[places], masks[places] if len(masks) else masks
            if side == "in" and self._overlay is not None:
                found = self._unchanged(*found)
            yield self._chosen(*found, wanted)
        if self._overlay is not None and self.view.flags[node]:
            nodes, relations, masks = self._overlay.edges(side, node)
            kept = np.isin(nodes, others)
            yield self._chosen(nodes[kept], relations[kept], masks[kept] if len(masks) else masks, wanted)

    def base_neighbours(self, side: str, node: int) -> np.ndarray:
        """Return the other ends of a node's edges in the base alone, sorted, also of those that an overlay drops."""
        return self._of_base(side, node)[0]

    def overlay_neighbours(self, node: int) -> np.ndarray:
        """Return the other ends of a node's edges in the overlay."""
        if self._overlay is None:
            return np.empty(0, dtype=np.int32)
        return np.concatenate([self._overlay.edges(side, node)[0] for side in ("out", "in")])

    def around(self, node: int, wanted: int | None = None) -> Iterator[tuple[int, int, bool]]:
        """Yield each edge of a node as (other node, relation, whether it leaves the node)."""
        for forward, (others, relations) in ((True, self.out(node, wanted)), (False, self.into(node, wanted))):
            for other, relation in zip(others.tolist(), relations.tolist(), strict=True):
                yield other, relation, forward

    def node_keys(self, nodes: np.ndarray) -> np.ndarray:
        """Return keys that order nodes as their ids are ordered."""
        return order_keys(nodes, self.base_nodes, self.view.places)

    def relation_keys(self, relations: np.ndarray) -> np.ndarray:
        """Return keys that order relations as their ids are ordered."""
        places = np.empty(0, dtype=np.int32) if self._overlay is None else self._overlay.relation_places
        return order_keys(relations, self.base_relations, places)

    def insertion(self, entity_id: str) -> int:
        """Return before which of the base's nodes an id would stand."""
        return self._node_ids.insertion(entity_id)[0]

    def relation_insertion(self, relation_id: str) -> int:
        """Return before which of the base's relations an id would stand."""
        return self._relation_ids.insertion(relation_id)[0]

    @property
    def overlay_share(self) -> float:
        """Share of the base's edges that the overlay drops and adds; 0 without an overlay, 1 on an empty base."""
        if self._overlay is None:
            return 0.0
        edges = len(self._arrays["out_nodes"])
        return (self._overlay.dropped_edges + self._overlay.edge_count) / edges if edges else 1.0

    def changed_heads(self) -> list[str]:
        """Return the ids whose edges the overlay replaces: a later overlay on the same base begins with these."""
        return [] if self._overlay is None else [self.entity_id(node) for node in self._overlay.changed.tolist()]

    def _of_base(self, side: str, node: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        arrays = self._arrays
        if node >= self.base_nodes:
            start = end = 0
        else:
            start, end = arrays[f"{side}_starts"][node : node + 2].tolist()
        masks = arrays[f"{side}_masks"]
        return (
            arrays[f"{side}_nodes"][start:end],
            arrays[f"{side}_relations"][start:end],
            masks[start:end] if len(masks) else masks,
        )

    def _unchanged(
        self, heads: np.ndarray, relations: np.ndarray, masks: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Leave out edges whose head has other edges now."""
        kept = (self.view.flags[heads] & CHANGED) == 0
        return heads[kept], relations[kept], masks[kept] if len(masks) else masks

    @staticmethod
    def _chosen(
        nodes: np.ndarray, relations: np.ndarray, masks: np.ndarray, wanted: int | None
    ) -> tuple[np.ndarray, np.ndarray]:
        if wanted is None:
            return nodes, relations
        if not len(masks):
            # One graph states every edge: its bit is the first.
            return (nodes, relations) if wanted & 1 else (nodes[:0], relations[:0])
        kept = (masks.astype(np.uint64) & np.uint64(wanted)) != 0
        return nodes[kept], relations[kept]


def _runs(starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Return all places from each start up to its end."""
    lengths = ends - starts
    return np.repeat(starts - (np.cumsum(lengths) - lengths), lengths) + np.arange(lengths.sum())
