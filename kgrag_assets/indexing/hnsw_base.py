"""The FAISS HNSW graph under an index: building, searching, writing and reading it. Only this file knows FAISS."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias

import numpy as np

from kgrag_assets.indexing.manifest import HnswParameters, IndexFileError

# What FAISS ships as types does not know its own Python layer.
IndexHNSW: TypeAlias = Any


def _faiss() -> ModuleType:
    # Loading FAISS takes a while: only where there is a base.
    return importlib.import_module("faiss")


def build_base(vectors: np.ndarray, parameters: HnswParameters) -> IndexHNSW:
    """Build the HNSW graph over unit vectors, shape (n, d), n > 0.

    Malkov and Yashunin, "Efficient and robust approximate nearest neighbor search using Hierarchical Navigable
    Small World graphs", 2016. One thread: with more, the order of insertion and so the graph differ from run
    to run.
    """
    faiss = _faiss()
    base = faiss.IndexHNSWFlat(vectors.shape[1], parameters.m, faiss.METRIC_INNER_PRODUCT)
    base.hnsw.efConstruction = parameters.ef_construction
    threads = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        base.add(np.ascontiguousarray(vectors, dtype=np.float32))
    finally:
        faiss.omp_set_num_threads(threads)
    return base


def base_vectors(base: IndexHNSW) -> np.ndarray:
    """Return the base's vectors, shape (n, d), without copying; they live as long as the base."""
    faiss = _faiss()
    storage = faiss.downcast_index(base.storage)
    flat = faiss.rev_swig_ptr(storage.get_xb(), int(base.ntotal) * int(base.d))
    return np.asarray(flat).reshape(int(base.ntotal), int(base.d))


def search_base(
    base: IndexHNSW, queries: np.ndarray, k: int, alive: np.ndarray, effort: int
) -> tuple[np.ndarray, np.ndarray]:
    """Walk the graph for the k nearest rows that are alive.

    Returns:
        Similarities and places, both of shape (m, k); a place of -1 where fewer were found.
    """
    faiss = _faiss()
    selector = None if alive.all() else faiss.IDSelectorBitmap(np.packbits(alive, bitorder="little"))
    search = faiss.SearchParametersHNSW(sel=selector, efSearch=max(effort, k))
    similarity, places = base.search(queries, k, params=search)
    return np.asarray(similarity), np.asarray(places)


def write_base(base: IndexHNSW, path: Path) -> None:
    """Write the graph to a file.

    Raises:
        OSError: the disk is full or cannot be written.
    """
    faiss = _faiss()
    # Through bytes of our own: FAISS turns "disk full" into an error without an errno.
    content = faiss.serialize_index(base)
    with path.open("wb") as handle:
        handle.write(memoryview(content))


def read_base(path: Path) -> IndexHNSW:
    """Read a graph that ``write_base`` wrote.

    Raises:
        IndexFileError: the file cannot be read or is another kind of index.
    """
    faiss = _faiss()
    try:
        base = faiss.read_index(str(path))
    except RuntimeError as error:
        raise IndexFileError(path, "is not an index that FAISS can read") from error
    if not isinstance(base, faiss.IndexHNSWFlat):
        raise IndexFileError(path, f"is a {type(base).__name__}, not an HNSW index")
    return base
