"""The graph in memory: a compressed adjacency, both directions, as memory-mapped arrays."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from kgrag_assets.knowledge.errors import KnowledgeError

FORMAT = 1
MANIFEST = "manifest.json"
_TEXTS = ("node_ids", "relation_ids")
_ARRAYS = ("out_starts", "out_nodes", "out_relations", "in_starts", "in_nodes", "in_relations")


@dataclass(frozen=True)
class AdjacencyReport:
    """What was written."""

    nodes: int
    edges: int
    relations: int


class TextArray:
    """Strings in one array of bytes, found by offset: opening it costs nothing, whatever its length."""

    def __init__(self, offsets: np.ndarray, content: np.ndarray) -> None:
        """Take int64 offsets of shape (n + 1) and uint8 content."""
        self._offsets = offsets
        self._content = content

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def __getitem__(self, place: int) -> str:
        start, end = int(self._offsets[place]), int(self._offsets[place + 1])
        return self._content[start:end].tobytes().decode("utf-8")

    def find(self, text: str) -> int | None:
        """Return the place of a text in an array sorted by bytes, or None."""
        wanted = text.encode("utf-8")
        low, high = 0, len(self)
        while low < high:
            middle = (low + high) // 2
            start, end = int(self._offsets[middle]), int(self._offsets[middle + 1])
            here = self._content[start:end].tobytes()
            if here == wanted:
                return middle
            if here < wanted:
                low = middle + 1
            else:
                high = middle
        return None


class Adjacency:
    """An opened graph. Nodes and relations are numbers; ``entity_id`` and ``relation_id`` name them."""

    def __init__(
        self, node_ids: TextArray, relation_ids: TextArray, arrays: dict[str, np.ndarray], data_version: str
    ) -> None:
        """Take the opened files; use ``open``."""
        self._node_ids = node_ids
        self._relation_ids = relation_ids
        self._arrays = arrays
        self.data_version = data_version

    @classmethod
    def open(cls, folder: Path) -> Adjacency:
        """Open the arrays in ``folder`` by memory map.

        Raises:
            KnowledgeError: a file is missing or does not agree with the manifest.
        """
        manifest = _read_manifest(folder)
        sizes = manifest["sizes"]
        for name, size in sizes.items():
            path = folder / name
            if not path.is_file() or path.stat().st_size != size:
                raise _refused(path, "is missing or has another length than the manifest says")
        nodes, edges, relations = (int(manifest[name]) for name in ("nodes", "edges", "relations"))
        expected = {
            "node_ids.offsets": nodes + 1,
            "relation_ids.offsets": relations + 1,
            "out_starts": nodes + 1,
            "in_starts": nodes + 1,
            **{name: edges for name in _ARRAYS if not name.endswith("starts")},
        }
        arrays: dict[str, np.ndarray] = {}
        for name in (*_ARRAYS, *(f"{text}.{part}" for text in _TEXTS for part in ("offsets", "content"))):
            path = folder / f"{name}.npy"
            try:
                arrays[name] = np.load(path, mmap_mode="r", allow_pickle=False)
            except (OSError, ValueError) as error:
                raise _refused(path, f"cannot be read ({error})") from error
            if name in expected and len(arrays[name]) != expected[name]:
                raise _refused(path, f"has {len(arrays[name])} entries where the manifest says {expected[name]}")
        for side, length in (("out_starts", edges), ("in_starts", edges)):
            if int(arrays[side][-1]) != length:
                raise _refused(folder / f"{side}.npy", f"ends at {arrays[side][-1]} where the manifest says {length}")
        for text in _TEXTS:
            end = int(arrays[f"{text}.offsets"][-1])
            if end != len(arrays[f"{text}.content"]):
                raise _refused(folder / f"{text}.content.npy", f"is not the {end} bytes that its offsets end at")
        texts = {text: TextArray(arrays[f"{text}.offsets"], arrays[f"{text}.content"]) for text in _TEXTS}
        return cls(texts["node_ids"], texts["relation_ids"], arrays, str(manifest["data_version"]))

    @property
    def node_count(self) -> int:
        """Number of nodes."""
        return len(self._node_ids)

    @property
    def edge_count(self) -> int:
        """Number of edges."""
        return len(self._arrays["out_nodes"])

    def node(self, entity_id: str) -> int | None:
        """Return the number of an entity, or None where the graph has no edge with it."""
        return self._node_ids.find(entity_id)

    def entity_id(self, node: int) -> str:
        """Return the id of a node."""
        return self._node_ids[node]

    def relation_id(self, relation: int) -> str:
        """Return the id of a relation."""
        return self._relation_ids[relation]

    def out(self, node: int) -> tuple[np.ndarray, np.ndarray]:
        """Return tails and relations of the edges that leave a node, int32 of equal length, sorted by tail."""
        return self._edges("out", node)

    def into(self, node: int) -> tuple[np.ndarray, np.ndarray]:
        """Return heads and relations of the edges that reach a node, int32 of equal length, sorted by head."""
        return self._edges("in", node)

    def degree(self, node: int) -> int:
        """Return the number of edges of a node, both directions."""
        return len(self.out(node)[0]) + len(self.into(node)[0])

    def around(self, node: int) -> Iterator[tuple[int, int, bool]]:
        """Yield each edge of a node as (other node, relation, whether it leaves the node)."""
        for forward, (others, relations) in ((True, self.out(node)), (False, self.into(node))):
            for other, relation in zip(others.tolist(), relations.tolist(), strict=True):
                yield other, relation, forward

    def _edges(self, side: str, node: int) -> tuple[np.ndarray, np.ndarray]:
        starts = self._arrays[f"{side}_starts"]
        start, end = int(starts[node]), int(starts[node + 1])
        return self._arrays[f"{side}_nodes"][start:end], self._arrays[f"{side}_relations"][start:end]


def build_adjacency(entities: pl.DataFrame, triples: pl.DataFrame, folder: Path, data_version: str) -> AdjacencyReport:
    """Write the arrays of a graph into an empty folder; wrap with ``lake.files.replace_folder``.

    Args:
        entities: rows of ``kg_entities``; each is a node, also without an edge.
        triples: rows of ``kg_triples``; those with a literal as tail are no edges.
        folder: where the files go.
        data_version: hash of the rows, kept in the manifest.
    """
    edges = triples.filter(pl.col("tail").is_not_null()).select("head", "relation", "tail").unique()
    ids = pl.concat([entities["entity_id"], edges["head"], edges["tail"]]).unique()
    node_ids = sorted(ids.to_list(), key=lambda text: text.encode("utf-8"))
    relation_ids = sorted(edges["relation"].unique().to_list(), key=lambda text: text.encode("utf-8"))
    heads, tails = _numbers(edges["head"], node_ids), _numbers(edges["tail"], node_ids)
    relations = _numbers(edges["relation"], relation_ids)
    for side, ends, others in (("out", heads, tails), ("in", tails, heads)):
        order = np.lexsort((relations, others, ends))
        counts = np.bincount(ends, minlength=len(node_ids)) if len(ends) else np.zeros(len(node_ids), dtype=np.int64)
        _save(folder, f"{side}_starts", np.concatenate([[0], np.cumsum(counts)]).astype(np.int64))
        _save(folder, f"{side}_nodes", others[order].astype(np.int32))
        _save(folder, f"{side}_relations", relations[order].astype(np.int32))
    _save_texts(folder, "node_ids", node_ids)
    _save_texts(folder, "relation_ids", relation_ids)
    report = AdjacencyReport(len(node_ids), edges.height, len(relation_ids))
    manifest = {
        "format": FORMAT,
        "nodes": report.nodes,
        "edges": report.edges,
        "relations": report.relations,
        "data_version": data_version,
        "sizes": {path.name: path.stat().st_size for path in sorted(folder.glob("*.npy"))},
    }
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=1), encoding="utf-8")
    return report


def _numbers(values: pl.Series, names: Sequence[str]) -> np.ndarray:
    places = pl.DataFrame(
        {"name": names, "place": np.arange(len(names), dtype=np.int64)}, schema_overrides={"name": pl.String}
    )
    joined = values.alias("name").to_frame().join(places, on="name", how="left", maintain_order="left")
    return joined["place"].to_numpy()


def _save(folder: Path, name: str, array: np.ndarray) -> None:
    np.save(folder / f"{name}.npy", array, allow_pickle=False)


def _save_texts(folder: Path, name: str, texts: Sequence[str]) -> None:
    encoded = [text.encode("utf-8") for text in texts]
    offsets = np.concatenate([[0], np.cumsum([len(text) for text in encoded])]).astype(np.int64)
    _save(folder, f"{name}.offsets", offsets)
    _save(folder, f"{name}.content", np.frombuffer(b"".join(encoded), dtype=np.uint8))


def _read_manifest(folder: Path) -> dict[str, Any]:
    path = folder / MANIFEST
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise KnowledgeError(f"{folder} holds no graph yet: materialize kg_graph") from error
    except (ValueError, RecursionError, OSError) as error:
        raise _refused(path, f"cannot be read ({error})") from error
    wanted = {"format", "nodes", "edges", "relations", "data_version", "sizes"}
    if not isinstance(manifest, dict) or set(manifest) != wanted or manifest["format"] != FORMAT:
        raise _refused(path, "is of another version")
    counts = (manifest[name] for name in ("nodes", "edges", "relations"))
    if not isinstance(manifest["sizes"], dict) or not all(isinstance(count, int) for count in counts):
        raise _refused(path, "does not hold counts and sizes")
    return manifest


def _refused(path: Path, problem: str) -> KnowledgeError:
    return KnowledgeError(f"{path} {problem}: delete the folder {path.parent} and run again")
