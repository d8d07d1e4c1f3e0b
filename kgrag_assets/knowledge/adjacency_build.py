"""Writing a graph's adjacency from the rows of its buckets, a few buckets at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from kgrag_assets.knowledge.adjacency_files import MAX_GRAPHS, Manifest, save, write_manifest
from kgrag_assets.knowledge.edge_order import EdgeOrder
from kgrag_assets.knowledge.errors import KnowledgeError
from kgrag_assets.knowledge.numbering import Edges, Numbering
from kgrag_assets.knowledge.text_array import write_texts

# One bucket's rows of ``kg_entities`` and of ``kg_triples``.
Bucket = tuple[pl.LazyFrame, pl.LazyFrame]

# Triples whose ids are looked up at once: each time a table of all ids is made.
_GROUP_ROWS = 3_000_000


@dataclass(frozen=True)
class AdjacencyReport:
    """What was written."""

    nodes: int
    edges: int
    relations: int


def frames_as_buckets(entities: pl.DataFrame, triples: pl.DataFrame) -> list[Bucket]:
    """Return two whole frames as the one bucket of a small graph."""
    return [(entities.lazy(), triples.lazy())]


def build_adjacency(buckets: Sequence[Bucket], folder: Path, data_version: str) -> AdjacencyReport:
    """Write the arrays of a graph into an empty folder; wrap with ``lake.files.replace_folder``.

    Names are read first, then the triples, a few buckets at a time, which become numbers at once: of the whole
    graph the ids, the labels and some 30 bytes an edge are in memory, never a column of all triples' texts.

    Args:
        buckets: for each bucket its rows of ``kg_entities``, each of which is a node, also without an edge, and of
            ``kg_triples``; those with a literal as tail are no edges. An edge that several graphs state is one edge
            with a mask of these graphs.
        folder: where the files go.
        data_version: hash of the rows, kept in the manifest.

    Raises:
        KnowledgeError: there are more than 64 graphs.
    """
    numbering = Numbering(entities for entities, _triples in buckets)
    parts = [numbering.encode(group) for group in _groups(buckets)]
    nodes, relations, graphs = numbering.nodes(), numbering.relations(), numbering.graphs
    if len(graphs) > MAX_GRAPHS:
        raise KnowledgeError(f"the lake has {len(graphs)} knowledge graphs, at most {MAX_GRAPHS} fit into one graph")
    for name, numbered in (("node", nodes), ("relation", relations)):
        write_texts(folder, f"{name}_ids", numbered.ids)
        write_texts(folder, f"{name}_labels", numbered.labels)
    order = EdgeOrder(len(nodes.ids), len(relations.ids), len(graphs))
    joined = Edges(
        nodes.final[_joined([part.heads for part in parts])],
        relations.final[_joined([part.relations for part in parts])],
        nodes.final[_joined([part.tails for part in parts])],
        _joined([part.graphs for part in parts]),
    )
    parts.clear()
    edges = order.distinct(joined)
    del joined
    for side in ("out", "in"):
        _write_side(folder, side, order, edges, len(nodes.ids), len(relations.ids))
    written = AdjacencyReport(len(nodes.ids), len(edges.heads), len(relations.ids))
    write_manifest(folder, Manifest(written.nodes, written.edges, written.relations, graphs, data_version))
    return written


def relation_type(relations: int) -> type[np.uint16 | np.int32]:
    """Return the type in which so many relations are numbered."""
    return np.uint16 if relations <= np.iinfo(np.uint16).max else np.int32


def _groups(buckets: Sequence[Bucket]) -> Iterator[list[pl.LazyFrame]]:
    """Return the buckets' triples, so many at a time that looking up their ids pays."""
    group: list[pl.LazyFrame] = []
    rows = 0
    for _entities, triples in buckets:
        group.append(triples)
        rows += int(triples.select(pl.len()).collect().item())
        if rows >= _GROUP_ROWS:
            yield group
            group, rows = [], 0
    if group:
        yield group


def _joined(parts: list[np.ndarray]) -> np.ndarray:
    return np.concatenate([np.empty(0, dtype=np.int32), *parts])


def _write_side(folder: Path, side: str, order: EdgeOrder, edges: Edges, nodes: int, relations: int) -> None:
    ends, others, kinds, masks = edges.heads, edges.tails, edges.relations, edges.graphs
    if side == "in":
        ends, (others, kinds, masks) = edges.tails, order.sorted(edges.tails, edges.heads, edges)
    counts = np.bincount(ends, minlength=nodes)
    starts = np.concatenate([[0], np.cumsum(counts)])
    # Half the size, where they fit: a search keeps most of these pages in memory.
    save(folder, f"{side}_starts", starts.astype(np.int32 if len(ends) <= np.iinfo(np.int32).max else np.int64))
    save(folder, f"{side}_nodes", others)
    save(folder, f"{side}_relations", kinds.astype(relation_type(relations)))
    if order.several:
        save(folder, f"{side}_masks", masks)
