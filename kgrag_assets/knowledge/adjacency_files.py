"""The files of an adjacency or its overlay: names, manifest, and the check that they belong together."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kgrag_assets.knowledge.errors import KnowledgeError
from kgrag_assets.knowledge.text_array import TextArray

FORMAT = 2
MANIFEST = "manifest.json"
# One bit of an edge's mask for each graph.
MAX_GRAPHS = 64
_COUNTS = ("nodes", "edges", "relations")


@dataclass(frozen=True)
class Manifest:
    """What a folder of arrays says of itself; ``base`` is the data version an overlay lies on, empty for a base."""

    nodes: int
    edges: int
    relations: int
    graphs: tuple[str, ...]
    data_version: str
    base: str = ""


def smallest_unsigned(bits: int) -> type[np.unsignedinteger[Any]]:
    """Return the smallest unsigned type with so many bits, at most 64."""
    for size, dtype in ((8, np.uint8), (16, np.uint16), (32, np.uint32)):
        if bits <= size:
            return dtype
    return np.uint64


def save(folder: Path, name: str, array: np.ndarray) -> None:
    """Write one array."""
    np.save(folder / f"{name}.npy", array, allow_pickle=False)


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write the manifest last, with the sizes of the arrays that are there."""
    content = {
        "format": FORMAT,
        "nodes": manifest.nodes,
        "edges": manifest.edges,
        "relations": manifest.relations,
        "graphs": list(manifest.graphs),
        "data_version": manifest.data_version,
        "base": manifest.base,
        "sizes": {path.name: path.stat().st_size for path in sorted(folder.glob("*.npy"))},
    }
    (folder / MANIFEST).write_text(json.dumps(content, indent=1), encoding="utf-8")


def read_manifest(folder: Path) -> Manifest:
    """Read the manifest and compare the sizes of all files with it.

    Raises:
        KnowledgeError: there is none, it is damaged or of another version, or a file has another size.
    """
    path = folder / MANIFEST
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise KnowledgeError(f"{folder} holds no graph yet: run `kgrag run TASK`, or materialize kg_graph") from error
    except (ValueError, RecursionError, OSError) as error:
        raise refused(path, f"cannot be read ({error})") from error
    wanted = {"format", *_COUNTS, "graphs", "data_version", "base", "sizes"}
    if not isinstance(content, dict) or set(content) != wanted or content["format"] != FORMAT:
        raise refused(path, "is of another version")
    graphs, sizes = content["graphs"], content["sizes"]
    counted = all(isinstance(content[name], int) and content[name] >= 0 for name in _COUNTS)
    if not counted or not isinstance(sizes, dict) or not isinstance(graphs, list):
        raise refused(path, "does not hold counts and sizes")
    for name, size in sizes.items():
        file = folder / name
        if not file.is_file() or file.stat().st_size != size:
            raise refused(file, "is missing or has another length than the manifest says")
    counts = {name: int(content[name]) for name in _COUNTS}
    names = tuple(str(graph) for graph in graphs)
    return Manifest(**counts, graphs=names, data_version=str(content["data_version"]), base=str(content["base"]))


def read_array(folder: Path, name: str, dtypes: tuple[type[np.generic], ...], length: int | None) -> np.ndarray:
    """Open one array by memory map.

    Args:
        folder: where it lies.
        name: file name without its ending.
        dtypes: types it may have.
        length: entries it must have, None where the manifest does not say.

    Raises:
        KnowledgeError: it is missing, no array, or not of this type and length.
    """
    path = folder / f"{name}.npy"
    try:
        # An array without entries cannot be mapped.
        array: np.ndarray = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError) as error:
        raise refused(path, f"cannot be read ({error})") from error
    if array.ndim != 1 or array.dtype.type not in dtypes:
        raise refused(path, f"holds {array.dtype} of shape {array.shape}, which is not what belongs there")
    if length is not None and len(array) != length:
        raise refused(path, f"has {len(array)} entries where the manifest says {length}")
    return array


def read_starts(folder: Path, name: str, rows: int, end: int) -> np.ndarray:
    """Open an array of offsets of shape (rows + 1) that must end at ``end``.

    Raises:
        KnowledgeError: it does not fit.
    """
    starts = read_array(folder, name, (np.int32, np.int64), rows + 1)
    if int(starts[0]) != 0 or int(starts[-1]) != end:
        raise refused(folder / f"{name}.npy", f"ends at {starts[-1]} where the manifest says {end}")
    return starts


def read_texts(folder: Path, name: str, length: int) -> TextArray:
    """Open an array of texts.

    Raises:
        KnowledgeError: it does not fit.
    """
    offsets = read_array(folder, f"{name}.offsets", (np.uint32, np.int64), length + 1)
    content = read_array(folder, f"{name}.content", (np.uint8,), None)
    end = int(offsets[-1])
    if end != len(content):
        raise refused(folder / f"{name}.content.npy", f"is not the {end} bytes that its offsets end at")
    return TextArray(offsets, content)


def read_edges(folder: Path, side: str, rows: int, edges: int, masked: bool) -> dict[str, np.ndarray]:
    """Open the arrays of one direction: starts, nodes, relations and, where several graphs state them, masks.

    Args:
        folder: where they lie.
        side: ``out`` or ``in``.
        rows: number of nodes that have starts.
        edges: number of edges.
        masked: whether there are masks.

    Raises:
        KnowledgeError: one does not fit.
    """
    arrays = {
        "nodes": read_array(folder, f"{side}_nodes", (np.int32,), edges),
        "relations": read_array(folder, f"{side}_relations", (np.uint16, np.int32), edges),
        "starts": read_starts(folder, f"{side}_starts", rows, edges),
    }
    if masked:
        arrays["masks"] = read_array(folder, f"{side}_masks", (np.uint8, np.uint16, np.uint32, np.uint64), edges)
    return arrays


def refused(path: Path, problem: str) -> KnowledgeError:
    """Say that a file cannot be used, and what to do."""
    return KnowledgeError(f"{path} {problem}: delete the folder {path.parent} and run again")
