"""The FAISS HNSW graph under an index: building, searching, writing and reading it. Only this file knows FAISS."""

from __future__ import annotations

import hashlib
import importlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias

import numpy as np

from kgrag_assets.indexing.manifest import FileEntry, HnswParameters, IndexFileError, Storage, ends_of

# What FAISS ships as types does not know its own Python layer.
IndexHNSW: TypeAlias = Any
_Options: TypeAlias = Any
# Row numbers (int64) to their unit vectors, float32 of shape (rows, dimension).
VectorsOf: TypeAlias = Callable[[np.ndarray], np.ndarray]

# Rows read and added at once: bounds the memory of a build besides the graph itself. So many that a source of vectors
# which looks a few up and reads all for many (``stored_vectors``) takes them for many. The graph depends on it.
SLICE = 32_768
# Queries from which on copying the selected vectors for a matrix product pays.
_MANY = 8
# Queries in one product: bounds its memory to this many times SLICE scores.
_BLOCK = 256


def _faiss() -> ModuleType:
    # Loading FAISS takes a while: only where there is a base.
    return importlib.import_module("faiss")


def build_base(
    vectors_of: VectorsOf,
    rows: np.ndarray,
    bounds: np.ndarray,
    parameters: HnswParameters,
    *,
    threads: int = 1,
    progress: Callable[[int], None] | None = None,
) -> IndexHNSW:
    """Build the HNSW graph over unit vectors.

    Malkov and Yashunin, "Efficient and robust approximate nearest neighbor search using Hierarchical Navigable
    Small World graphs", 2016.

    Args:
        vectors_of: gives the vectors of row numbers; asked in slices.
        rows: the rows in the order they go in, int64, at least one.
        bounds: the least and the greatest value of each dimension over these rows, shape (2, d): the range that
            one byte has to cover where the storage is ``sq8``.
        parameters: the graph's parameters and storage.
        threads: with more than one, the order of insertion and so the graph differ from run to run.
        progress: told the number of rows added since it was told last.
    """
    faiss = _faiss()
    base = _empty_base(bounds.shape[1], parameters.m, parameters.storage)
    base.hnsw.efConstruction = parameters.ef_construction
    # The range of the two extreme vectors is the range of all: nothing else is learned from them.
    base.train(np.ascontiguousarray(bounds, dtype=np.float32))
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(threads)
    try:
        for start in range(0, len(rows), SLICE):
            part = rows[start : start + SLICE]
            base.add(np.ascontiguousarray(vectors_of(part), dtype=np.float32))
            if progress is not None:
                progress(len(part))
    finally:
        faiss.omp_set_num_threads(before)
    return base


def _empty_base(dimension: int, m: int, storage: Storage) -> IndexHNSW:
    faiss = _faiss()
    if storage == "full":
        return faiss.IndexHNSWFlat(dimension, m, faiss.METRIC_INNER_PRODUCT)
    quantizer = {"fp16": faiss.ScalarQuantizer.QT_fp16, "sq8": faiss.ScalarQuantizer.QT_8bit}[storage]
    return faiss.IndexHNSWSQ(dimension, quantizer, m, faiss.METRIC_INNER_PRODUCT)


def storage_of(base: IndexHNSW) -> Storage | None:
    """Say how a base keeps its vectors; None where it is no base of this product."""
    faiss = _faiss()
    if isinstance(base, faiss.IndexHNSWFlat):
        return "full"
    if not isinstance(base, faiss.IndexHNSWSQ):
        return None
    kinds: dict[int, Storage] = {faiss.ScalarQuantizer.QT_fp16: "fp16", faiss.ScalarQuantizer.QT_8bit: "sq8"}
    return kinds.get(faiss.downcast_index(base.storage).sq.qtype)


def base_vectors(base: IndexHNSW, nodes: np.ndarray) -> np.ndarray:
    """Return the vectors of some nodes, float32 of shape (n, d), as the base keeps them."""
    found = np.empty((len(nodes), int(base.d)), dtype=np.float32)
    if len(nodes):
        base.storage.reconstruct_batch(np.ascontiguousarray(nodes, dtype=np.int64), found)
    return found


@dataclass(frozen=True)
class Selection:
    """The nodes of a base that a search may return. ``bits`` is a bitmap of them, None for all."""

    nodes: int
    chosen: int
    bits: np.ndarray | None

    @classmethod
    def of(cls, alive: np.ndarray) -> Selection:
        """Make a selection from one boolean per node."""
        chosen = int(np.count_nonzero(alive))
        bits = None if chosen == len(alive) else np.packbits(alive, bitorder="little")
        return cls(nodes=len(alive), chosen=chosen, bits=bits)

    @cached_property
    def _selector(self) -> _Options:
        """What FAISS asks whether a node may be returned; it reads ``bits``."""
        return None if self.bits is None else _faiss().IDSelectorBitmap(self.bits)

    @cached_property
    def _walks(self) -> dict[int, _Options]:
        return {}

    def walk(self, breadth: int) -> _Options:
        """Return FAISS's options of a walk of this breadth: made once, as making them takes a tenth of a search."""
        if breadth not in self._walks:
            self._walks[breadth] = _faiss().SearchParametersHNSW(sel=self._selector, efSearch=breadth)
        return self._walks[breadth]

    def scan(self) -> _Options:
        """Return FAISS's options of a scan."""
        return None if self.bits is None else _faiss().SearchParameters(sel=self._selector)


def search_base(
    base: IndexHNSW, queries: np.ndarray, k: int, selection: Selection, effort: int
) -> tuple[np.ndarray, np.ndarray]:
    """Find the k nearest selected nodes: by a walk through the graph, exactly where few are selected.

    Args:
        base: the graph.
        queries: float32 of shape (m, d), contiguous.
        k: at most the number of selected nodes.
        selection: the nodes that may be returned.
        effort: the walk's breadth (efSearch) where all nodes are selected.

    Returns:
        Similarities and nodes, both of shape (m, k), best first.
    """
    if 2 * selection.chosen < selection.nodes:
        # The walk through a graph of mostly dead nodes ends before it has met k live ones.
        return exact_base(base, queries, k, selection)
    # Of the nodes that a walk looks at, only the selected share counts.
    breadth = -(-max(effort, k) * selection.nodes // selection.chosen)
    similarity, nodes = _walked(base, queries, k, selection.walk(breadth))
    # FAISS fills up with -1 where it met too few: an island of the graph, or of dead nodes.
    if any(node < 0 for node in nodes[:, -1].tolist()):
        short = nodes[:, -1] < 0
        similarity[short], nodes[short] = exact_base(base, queries[short], k, selection)
    return np.asarray(similarity), np.asarray(nodes)


def _walked(base: IndexHNSW, queries: np.ndarray, k: int, options: _Options) -> tuple[np.ndarray, np.ndarray]:
    # The call beneath FAISS's own Python layer, whose checks are made already and take 2 % of a search.
    pointer = _faiss().swig_ptr
    similarity = np.empty((len(queries), k), dtype=np.float32)
    nodes = np.empty((len(queries), k), dtype=np.int64)
    base.search_c(len(queries), pointer(queries), k, pointer(similarity), pointer(nodes), options)
    return similarity, nodes


def exact_base(base: IndexHNSW, queries: np.ndarray, k: int, selection: Selection) -> tuple[np.ndarray, np.ndarray]:
    """Compare every selected node with the queries; arguments and result as of ``search_base``."""
    faiss = _faiss()
    if len(queries) >= _MANY and selection.bits is not None:
        chosen = np.flatnonzero(np.unpackbits(selection.bits, count=selection.nodes, bitorder="little"))
        return _exact_by_product(base, queries, k, chosen)
    similarity, nodes = faiss.downcast_index(base.storage).search(queries, k, params=selection.scan())
    return np.asarray(similarity), np.asarray(nodes)


def _exact_by_product(
    base: IndexHNSW, queries: np.ndarray, k: int, chosen: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Multiply matrices of queries and selected vectors: FAISS compares them one by one where some are not selected."""
    best = np.full((len(queries), k), -np.inf, dtype=np.float32)
    nodes = np.full((len(queries), k), -1, dtype=np.int64)
    for start in range(0, len(chosen), SLICE):
        part = chosen[start : start + SLICE]
        vectors = base_vectors(base, part)
        for first in range(0, len(queries), _BLOCK):
            block = slice(first, first + _BLOCK)
            scores = np.concatenate([best[block], queries[block] @ vectors.T], axis=1)
            of = np.concatenate([nodes[block], np.broadcast_to(part, (len(scores), len(part)))], axis=1)
            top = np.argpartition(scores, -k, axis=1)[:, -k:]
            best[block] = np.take_along_axis(scores, top, axis=1)
            nodes[block] = np.take_along_axis(of, top, axis=1)
    order = np.argsort(-best, axis=1, kind="stable")
    return np.take_along_axis(best, order, axis=1), np.take_along_axis(nodes, order, axis=1)


def write_base(base: IndexHNSW, path: Path) -> FileEntry:
    """Write the graph to a file, measuring it on the way.

    Raises:
        OSError: the disk is full or cannot be written.
    """
    faiss = _faiss()
    digest = hashlib.blake2b(digest_size=16)
    with path.open("wb") as handle:

        def take(chunk: bytes) -> None:
            digest.update(chunk)
            handle.write(chunk)

        # Through a handle of our own: FAISS turns "disk full" into an error without an errno.
        faiss.write_index(base, faiss.PyCallbackIOWriter(take, 1 << 20))
    return FileEntry(bytes=path.stat().st_size, blake2b=digest.hexdigest(), ends=ends_of(path))


def read_base(path: Path) -> IndexHNSW:
    """Open a graph that ``write_base`` wrote: mapped into memory, so that only what a search touches is read.

    Raises:
        IndexFileError: the file cannot be read or is another kind of index.
    """
    faiss = _faiss()
    try:
        base = faiss.read_index(str(path), faiss.IO_FLAG_MMAP_IFC)
    except RuntimeError as error:
        raise IndexFileError(path, "is not an index that FAISS can read") from error
    if storage_of(base) is None:
        raise IndexFileError(path, f"is a {type(base).__name__}, not an HNSW index")
    return base
