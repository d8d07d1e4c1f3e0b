"""The arrays of a graph: what is written is what is read, and damage is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kgrag_assets.knowledge.adjacency import Adjacency
from kgrag_assets.knowledge.adjacency_build import AdjacencyReport, build_adjacency, frames_as_buckets
from kgrag_assets.knowledge.adjacency_files import MANIFEST
from kgrag_assets.knowledge.errors import KnowledgeError
from kgrag_assets.rows.keys import key_of
from kgrag_assets.rows.knowledge_graph import KG_ENTITIES, KG_TRIPLES, triple_id_of


def entities_of(*ids: str, graph: str = "test", label: str = "name of ") -> pl.DataFrame:
    columns: dict[str, Any] = {"graph": graph, "bucket": 0, "kind": "entity", "aliases": [], "description": ""}
    return KG_ENTITIES.frame(
        [{"entity_id": id_, "label": label + id_, "row_key": key_of(graph, id_), **columns} for id_ in ids]
    )


def triples_of(*statements: tuple[str, str, str | None], graph: str = "test") -> pl.DataFrame:
    rows: list[dict[str, object]] = []
    for head, relation, tail in statements:
        value = "text" if tail is None else None
        labels = {"head_label": head, "relation_label": relation, "tail_label": tail or "text"}
        key = triple_id_of(graph, head, relation, tail, value)
        parts = {"head": head, "relation": relation, "tail": tail, "tail_value": value}
        rows.append({"triple_id": key, "graph": graph, "bucket": 0, **parts, **labels, "row_key": key})
    return KG_TRIPLES.frame(rows)


def write(entities: pl.DataFrame, triples: pl.DataFrame, folder: Path, version: str) -> AdjacencyReport:
    return build_adjacency(frames_as_buckets(entities, triples), folder, version)


def everything_in(graph: Adjacency) -> tuple[set[tuple[str, str, str]], set[tuple[str, str, str]]]:
    leaving, arriving = set(), set()
    for node in range(graph.node_count):
        for other, relation, forward in graph.around(node):
            here, there, name = graph.entity_id(node), graph.entity_id(other), graph.relation_id(relation)
            if forward:
                leaving.add((here, name, there))
            else:
                arriving.add((there, name, here))
    return leaving, arriving


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(
        entities_of("wd:Q9"),
        triples_of(("wd:Q1", "wd:P1", "wd:Q2"), ("wd:Q2", "wd:P2", "wd:Q3"), ("wd:Q1", "wd:P3", None)),
        tmp_path,
        "version of the rows",
    )
    return tmp_path


IDS = st.text(alphabet="wdQP:1é日", min_size=1, max_size=4)


@settings(max_examples=80, deadline=None)
@given(
    names=st.lists(IDS, unique=True, max_size=5),
    statements=st.lists(st.tuples(IDS, IDS, st.none() | IDS), unique=True, max_size=12),
)
def test_what_is_written_is_read(
    tmp_path_factory: pytest.TempPathFactory, names: list[str], statements: list[tuple[str, str, str | None]]
) -> None:
    place = tmp_path_factory.mktemp("graph")
    report = write(entities_of(*names), triples_of(*statements), place, "7")
    graph = Adjacency.open(place)
    edges = {(head, relation, tail) for head, relation, tail in statements if tail is not None}
    nodes = {*names, *(edge[0] for edge in edges), *(edge[2] for edge in edges)}
    assert report == AdjacencyReport(len(nodes), len(edges), len({edge[1] for edge in edges}))
    assert (graph.node_count, graph.edge_count, graph.data_version) == (len(nodes), len(edges), "7")
    assert everything_in(graph) == (edges, edges)
    assert {graph.entity_id(node) for node in range(graph.node_count)} == nodes
    for name in nodes:
        node = graph.node(name)
        assert node is not None
        assert graph.entity_id(node) == name
        assert graph.degree(node) == sum((edge[0] == name) + (edge[2] == name) for edge in edges)
        for others, _relations in (graph.out(node), graph.into(node)):
            assert others.dtype == np.int32
            assert others.tolist() == sorted(others.tolist())
    assert graph.node("wd:Q404") is None


def test_a_statement_that_two_graphs_have_is_one_edge(tmp_path: Path) -> None:
    triples = triples_of(("wd:Q1", "wd:P1", "wd:Q2"))
    again = triples.with_columns(pl.lit("other").alias("graph"), pl.lit("other").alias("triple_id"))
    assert write(entities_of(), pl.concat([triples, again]), tmp_path, "1").edges == 1


def test_an_empty_graph_is_a_graph(tmp_path: Path) -> None:
    assert write(KG_ENTITIES.empty(), KG_TRIPLES.empty(), tmp_path, "0") == AdjacencyReport(0, 0, 0)
    graph = Adjacency.open(tmp_path)
    assert (graph.node_count, graph.edge_count, graph.node("wd:Q1")) == (0, 0, None)


def test_a_node_without_edges_has_none(folder: Path) -> None:
    graph = Adjacency.open(folder)
    node = graph.node("wd:Q9")
    assert node is not None
    assert (graph.degree(node), list(graph.around(node))) == (0, [])


def test_arrays_are_memory_mapped_and_cannot_be_written(folder: Path) -> None:
    graph = Adjacency.open(folder)
    node = graph.node("wd:Q1")
    assert node is not None
    others, _relations = graph.out(node)
    assert isinstance(others, np.memmap)
    with pytest.raises(ValueError, match="read-only"):
        others[0] = 0


def test_a_folder_without_a_graph_says_what_to_materialize(tmp_path: Path) -> None:
    with pytest.raises(KnowledgeError, match=r"holds no graph yet: .*materialize kg_graph"):
        Adjacency.open(tmp_path)


def test_labels_are_the_entities_else_those_of_statements(tmp_path: Path) -> None:
    """Of several graphs the first counts, and of several statements the first by letters."""
    entities = pl.concat(
        [entities_of("wd:Q1", graph="b", label="second "), entities_of("wd:Q1", "wd:P1", graph="a", label="first ")]
    )
    first = triples_of(("wd:Q1", "wd:P1", "wd:Q2"), ("wd:Q3", "wd:P2", "wd:Q2"), graph="a")
    other = first.with_columns(pl.lit("A name").alias("tail_label"), pl.lit("c").alias("graph"))
    write(entities, pl.concat([first, other]), tmp_path, "1")
    graph = Adjacency.open(tmp_path)
    labels = {graph.entity_id(node): graph.label(node) for node in range(graph.node_count)}
    assert labels == {"wd:Q1": "first wd:Q1", "wd:P1": "first wd:P1", "wd:Q2": "A name", "wd:Q3": "wd:Q3"}
    relations = [graph.relation(id_) for id_ in ("wd:P1", "wd:P2", "wd:P3")]
    assert relations == [0, 1, None]
    assert [graph.relation_label(relation) for relation in (0, 1)] == ["first wd:P1", "wd:P2"]


STATEMENTS = st.lists(st.tuples(IDS, IDS, IDS), unique=True, max_size=12)


@settings(max_examples=60, deadline=None)
@given(
    parts=st.lists(st.tuples(st.lists(IDS, unique=True, max_size=3), STATEMENTS), max_size=4),
    rows=st.sampled_from([1, 5, 1000]),
    bits=st.sampled_from([0, 63]),
)
def test_buckets_make_the_graph_that_whole_frames_make(
    tmp_path_factory: pytest.TempPathFactory,
    parts: list[tuple[list[str], list[tuple[str, str, str]]]],
    rows: int,
    bits: int,
) -> None:
    """However many buckets are read at once, and whether or not an edge fits into one number, on disk or off it."""
    place = tmp_path_factory.mktemp("graph")
    buckets, frames = [], []
    for number, (names, statements) in enumerate(parts):
        # The same id in two buckets would be another graph's row in the lake, too.
        frame = entities_of(*names, graph=f"g{number}"), triples_of(*statements, graph=f"g{number}")
        frames.append(frame)
        frame[1].write_parquet(place / f"{number}.parquet")
        buckets.append((frame[0].lazy(), pl.scan_parquet(place / f"{number}.parquet")))
    (place / "some").mkdir()
    (place / "whole").mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("kgrag_assets.knowledge.adjacency_build._GROUP_ROWS", rows)
        patch.setattr("kgrag_assets.knowledge.edge_order._PACKED_BITS", bits)
        report = build_adjacency(buckets, place / "some", "1")
    entities, triples = (
        pl.concat([table.empty(), *(frame[side] for frame in frames)])
        for side, table in enumerate((KG_ENTITIES, KG_TRIPLES))
    )
    assert write(entities, triples, place / "whole", "1") == report
    some, whole = Adjacency.open(place / "some"), Adjacency.open(place / "whole")
    assert sorted(some.graphs) == sorted(whole.graphs)
    assert (place / "some" / "out_masks.npy").is_file() == (len(some.graphs) > 1)
    assert [some.entity_id(node) for node in range(some.node_count)] == sorted(
        (whole.entity_id(node) for node in range(whole.node_count)), key=lambda id_: id_.encode()
    )
    for node in range(some.node_count):
        assert some.label(node) == whole.label(node)
        assert list(some.around(node)) == list(whole.around(node))
        for graph in some.graphs:
            here, there = some.mask_of([graph]), whole.mask_of([graph])
            assert list(some.around(node, here)) == list(whole.around(node, there))


def test_an_edge_has_a_bit_for_each_graph_that_states_it(tmp_path: Path) -> None:
    many = [triples_of(("wd:Q1", "wd:P1", f"wd:Q{2 + number % 2}"), graph=f"g{number:02}") for number in range(64)]
    write(entities_of(), pl.concat(many), tmp_path, "1")
    assert np.load(tmp_path / "out_masks.npy").dtype == np.uint64
    graph = Adjacency.open(tmp_path)
    for number in (0, 63):
        assert [graph.entity_id(other) for other, _, _ in graph.around(0, graph.mask_of([f"g{number:02}"]))] == [
            f"wd:Q{2 + number % 2}"
        ]
    assert (graph.mask_of(None), graph.mask_of(graph.graphs), graph.mask_of([])) == (None, None, 0)
    with pytest.raises(KnowledgeError, match="65 knowledge graphs, at most 64"):
        write(entities_of("wd:Q1", graph="one more"), pl.concat(many), tmp_path, "1")


def test_a_file_of_another_type_is_refused(folder: Path) -> None:
    array = np.load(folder / "out_relations.npy")
    np.save(folder / "out_relations.npy", array.astype(np.int16))
    with pytest.raises(KnowledgeError, match=r"out_relations\.npy holds int16 of shape .*run again"):
        Adjacency.open(folder)


ARRAYS = ["out_starts", "out_nodes", "in_relations", "node_ids.offsets", "node_ids.content", "relation_ids.content"]


@pytest.mark.parametrize("name", ARRAYS)
def test_a_missing_or_cut_file_is_refused(folder: Path, name: str) -> None:
    path = folder / f"{name}.npy"
    content = path.read_bytes()
    path.write_bytes(content[:-1])
    with pytest.raises(KnowledgeError, match=f"{name}.npy is missing or has another length"):
        Adjacency.open(folder)
    path.unlink()
    with pytest.raises(KnowledgeError, match=f"{name}.npy is missing or has another length"):
        Adjacency.open(folder)


def test_a_file_of_the_right_length_that_is_no_array_is_refused(folder: Path) -> None:
    path = folder / "out_nodes.npy"
    path.write_bytes(b"x" * path.stat().st_size)
    with pytest.raises(KnowledgeError, match=r"out_nodes\.npy cannot be read"):
        Adjacency.open(folder)


def edited(folder: Path, **changes: object) -> None:
    manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    (folder / MANIFEST).write_text(json.dumps({**manifest, **changes}), encoding="utf-8")


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"format": 99}, "is of another version"),
        ({"more": 1}, "is of another version"),
        ({"nodes": 3}, "entries where the manifest says 4"),
        ({"edges": 5}, "entries where the manifest says 5"),
        ({"relations": 9}, "entries where the manifest says 10"),
        ({"nodes": "many"}, "does not hold counts and sizes"),
        ({"sizes": []}, "does not hold counts and sizes"),
        ({"graphs": "test"}, "does not hold counts and sizes"),
    ],
)
def test_a_manifest_that_does_not_fit_is_refused(folder: Path, changes: dict[str, object], problem: str) -> None:
    edited(folder, **changes)
    with pytest.raises(KnowledgeError, match=f"{problem}.*run again"):
        Adjacency.open(folder)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff", b"[" * 100_000])
def test_a_damaged_manifest_is_refused(folder: Path, content: bytes) -> None:
    (folder / MANIFEST).write_bytes(content)
    with pytest.raises(KnowledgeError, match=r"manifest\.json.*delete the folder"):
        Adjacency.open(folder)


@pytest.mark.parametrize("name", ["out_starts", "in_starts", "node_ids.offsets"])
def test_offsets_that_point_elsewhere_are_refused(folder: Path, name: str) -> None:
    path = folder / f"{name}.npy"
    offsets = np.load(path)
    offsets[-1] += 1
    np.save(path, offsets)
    with pytest.raises(KnowledgeError, match="run again"):
        Adjacency.open(folder)
