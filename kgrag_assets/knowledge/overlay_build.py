"""Writing an overlay: what a refresh changed in a graph, at the cost of the change alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from kgrag_assets.knowledge.adjacency import Adjacency
from kgrag_assets.knowledge.adjacency_files import MAX_GRAPHS, Manifest, save, write_manifest
from kgrag_assets.knowledge.errors import KnowledgeError
from kgrag_assets.knowledge.graph_view import order_keys
from kgrag_assets.knowledge.text_array import write_texts


@dataclass(frozen=True)
class OverlayReport:
    """What was written: heads replaced, their edges now, base edges dropped, new nodes and relations."""

    changed: int
    edges: int
    dropped: int
    new_nodes: int
    new_relations: int


class _Numbers:
    """Numbers of ids: the base's, and after them those of new ids, in the order of their bytes."""

    def __init__(self, base: Adjacency, kind: str, ids: Sequence[str], gone: Sequence[str] = ()) -> None:
        """Give numbers to ``ids``, and to those in ``gone`` that the base knows."""
        find = base.node if kind == "node" else base.relation
        insertion = base.insertion if kind == "node" else base.relation_insertion
        self.base = base.base_nodes if kind == "node" else base.base_relations
        known = {id_: find(id_) for id_ in dict.fromkeys([*ids, *gone])}
        self.fresh = sorted((id_ for id_ in set(ids) if known[id_] is None), key=lambda id_: id_.encode())
        self.numbers = {id_: number for id_, number in known.items() if number is not None}
        self.numbers.update({id_: self.base + place for place, id_ in enumerate(self.fresh)})
        self.places = np.array([insertion(id_) for id_ in self.fresh], dtype=np.int32)

    def of(self, ids: pl.Series) -> np.ndarray:
        return np.fromiter((self.numbers[id_] for id_ in ids), dtype=np.int32, count=len(ids))

    def keys(self, numbers: np.ndarray) -> np.ndarray:
        return order_keys(numbers, self.base, self.places)


def build_overlay(
    base: Adjacency,
    changed_heads: Sequence[str],
    triples: pl.DataFrame,
    entities: pl.DataFrame,
    folder: Path,
    data_version: str,
) -> OverlayReport:
    """Write the overlay that makes ``base`` the graph as it is now, into an empty folder.

    ``Adjacency.open(base_folder, overlay_folder)`` then answers as a graph built anew from all rows would. Two
    things stay behind until that is done: a node that has lost its row and all edges is still known, and the label
    of an id without a row of its own is the first among those that changed statements give it, else the base's.

    Args:
        base: the graph, opened without an overlay.
        changed_heads: ids whose statements or names differ from those that the base was built from: all since then,
            not only those since the last overlay (see ``Adjacency.changed_heads``). Gone and new ones, too.
        triples: every row of ``kg_triples``, of all graphs, whose head is one of these; none for one that is gone.
        entities: the rows of ``kg_entities`` of these ids.
        folder: where the files go.
        data_version: hash of all rows of the graph as it is now.

    Raises:
        ValueError: ``base`` has an overlay, or a triple's head is not among ``changed_heads``.
        KnowledgeError: there are more than 64 graphs.
    """
    if base.has_overlay:
        raise ValueError("an overlay lies on a base, not on another overlay: open the base alone")
    heads = dict.fromkeys(changed_heads)
    strange = next((head for head in triples["head"] if head not in heads), None)
    if strange is not None:
        raise ValueError(f"the triples hold the head {strange!r}, which is not among the changed heads")
    rows = triples.filter(pl.col("tail").is_not_null())
    found = {*triples["graph"].unique(), *entities["graph"].unique()}
    graphs = (*base.graphs, *sorted(found - set(base.graphs)))
    if len(graphs) > MAX_GRAPHS:
        raise KnowledgeError(f"the lake has {len(graphs)} knowledge graphs, at most {MAX_GRAPHS} fit into one")
    named = pl.concat([entities["entity_id"], rows["head"], rows["tail"]]).unique().to_list()
    # A changed head that is gone has a number only where the base knows it.
    nodes = _Numbers(base, "node", named, gone=list(heads))
    relations = _Numbers(base, "relation", rows["relation"].unique().to_list())
    edges = _edges(rows, nodes, relations, graphs)
    changed = np.unique(np.array([nodes.numbers[head] for head in heads if head in nodes.numbers], dtype=np.int32))
    lost = [base.out(int(head))[0] for head in changed[changed < base.base_nodes]]
    dropped_tails, dropped_counts = np.unique(np.concatenate([np.empty(0, np.int32), *lost]), return_counts=True)
    touched = np.unique(np.concatenate([changed, edges["tail"], dropped_tails]).astype(np.int32))
    dropped = np.zeros(len(touched), dtype=np.int32)
    dropped[np.searchsorted(touched, dropped_tails)] = dropped_counts
    save(folder, "touched", touched)
    save(folder, "changes", np.isin(touched, changed).astype(np.uint8))
    save(folder, "dropped", dropped)
    for side, end, other in (("out", "head", "tail"), ("in", "tail", "head")):
        order = np.lexsort((relations.keys(edges["relation"]), nodes.keys(edges[other]), edges[end]))
        counts = np.bincount(np.searchsorted(touched, edges[end]), minlength=len(touched))
        save(folder, f"{side}_starts", np.concatenate([[0], np.cumsum(counts)]).astype(np.int64))
        save(folder, f"{side}_nodes", edges[other][order])
        save(folder, f"{side}_relations", edges["relation"][order])
        if len(graphs) > 1:
            save(folder, f"{side}_masks", edges["mask"][order])
    for kind, numbers in (("node", nodes), ("relation", relations)):
        write_texts(folder, f"{kind}_ids", pl.Series("id", numbers.fresh, dtype=pl.String))
        save(folder, f"{kind}_places", numbers.places)
    _write_labels(base, rows, entities, nodes, relations, folder)
    report = OverlayReport(
        len(changed), len(edges["head"]), int(dropped.sum(dtype=np.int64)), len(nodes.fresh), len(relations.fresh)
    )
    write_manifest(
        folder,
        Manifest(report.new_nodes, report.edges, report.new_relations, graphs, data_version, base.data_version),
    )
    return report


def _edges(rows: pl.DataFrame, nodes: _Numbers, relations: _Numbers, graphs: tuple[str, ...]) -> dict[str, np.ndarray]:
    """Return the edges once each, int32 of equal length, and their masks (uint64)."""
    bits = {graph: 1 << place for place, graph in enumerate(graphs)}
    merged: dict[tuple[int, int, int], int] = {}
    numbered = zip(
        nodes.of(rows["head"]).tolist(),
        relations.of(rows["relation"]).tolist(),
        nodes.of(rows["tail"]).tolist(),
        rows["graph"],
        strict=True,
    )
    for head, relation, tail, graph in numbered:
        edge = (head, relation, tail)
        merged[edge] = merged.get(edge, 0) | bits[graph]
    columns = np.array(list(merged), dtype=np.int32).reshape(-1, 3)
    return {
        "head": np.ascontiguousarray(columns[:, 0]),
        "relation": np.ascontiguousarray(columns[:, 1]),
        "tail": np.ascontiguousarray(columns[:, 2]),
        "mask": np.array(list(merged.values()), dtype=np.uint64),
    }


def _write_labels(
    base: Adjacency, rows: pl.DataFrame, entities: pl.DataFrame, nodes: _Numbers, relations: _Numbers, folder: Path
) -> None:
    """Write the labels of new ids and of those that have another label now."""
    # Descending, so that the first graph is written last and stays.
    own = dict(entities.sort("graph", descending=True).select("entity_id", "label").iter_rows())
    stated_nodes: dict[str, str] = {}
    stated_relations: dict[str, str] = {}
    for target, kind in ((stated_nodes, "head"), (stated_nodes, "tail"), (stated_relations, "relation")):
        for id_, label in rows.select(kind, f"{kind}_label").unique().iter_rows():
            target[id_] = min(label, target.get(id_, label))
    for kind, numbers, stated, known in (
        ("node", nodes, stated_nodes, base.base_nodes),
        ("relation", relations, stated_relations, base.base_relations),
    ):
        labels: dict[int, str] = {}
        for id_, number in numbers.numbers.items():
            label = own.get(id_)
            if label is None and number >= known:
                label = stated.get(id_, id_)
            if label is not None:
                labels[number] = label
        if kind == "relation":
            for id_, label in own.items():
                number_of = base.relation(id_)
                if number_of is not None:
                    labels[number_of] = label
        ordered = sorted(labels)
        save(folder, f"labelled_{kind}s", np.array(ordered, dtype=np.int32))
        write_texts(folder, f"{kind}_labels", pl.Series("label", [labels[place] for place in ordered], dtype=pl.String))
