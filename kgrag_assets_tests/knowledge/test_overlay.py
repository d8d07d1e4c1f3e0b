"""An overlay on a base answers as the graph built anew from all rows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kgrag_assets.knowledge.adjacency import Adjacency
from kgrag_assets.knowledge.errors import KnowledgeError
from kgrag_assets.knowledge.overlay_build import OverlayReport, build_overlay
from kgrag_assets.knowledge.search import SearchResult, neighbourhood, paths_among, paths_between
from kgrag_assets_tests.knowledge.test_adjacency import entities_of, triples_of, write

# (head, relation, tail, graph); a tail without an entity is a literal.
Row = tuple[str, str, str | None, str]

NODES = [f"wd:Q{number}" for number in range(1, 8)]
ROWS = st.lists(
    st.tuples(
        st.sampled_from(NODES),
        st.sampled_from(["wd:P1", "wd:P2", "wd:P3"]),
        st.sampled_from([*NODES, None]),
        st.sampled_from(["a", "b"]),
    ),
    unique=True,
    max_size=25,
)


def rows_of(rows: Sequence[Row]) -> pl.DataFrame:
    frames = [triples_of(*[row[:3] for row in rows if row[3] == graph], graph=graph) for graph in ("a", "b", "c")]
    return pl.concat(frames)


def opened(place: Path, rows: Sequence[Row], entities: pl.DataFrame) -> Adjacency:
    place.mkdir()
    write(entities, rows_of(rows), place, "base")
    return Adjacency.open(place)


def overlaid(base: Adjacency, folder: Path, heads: Sequence[str], rows: Sequence[Row], entities: pl.DataFrame) -> Path:
    place = folder / "overlay"
    place.mkdir()
    build_overlay(base, heads, rows_of([row for row in rows if row[0] in heads]), entities, place, "now")
    return place


def around(graph: Adjacency, id_: str, graphs: Sequence[str] | None) -> list[tuple[str, str, bool]]:
    node = graph.node(id_)
    if node is None:
        return []
    edges = list(graph.around(node, graph.mask_of(graphs)))
    assert len(edges) == graph.degree(node, graph.mask_of(graphs))
    return [(graph.entity_id(other), graph.relation_id(relation), forward) for other, relation, forward in edges]


def told(result: SearchResult) -> tuple[Any, ...]:
    return result.paths, result.cut, result.exhausted


@settings(max_examples=80, deadline=None)
@given(
    before=ROWS,
    after=ROWS,
    heads=st.sets(st.sampled_from(NODES)),
    listed=st.sets(st.sampled_from(NODES)),
    hub_cap=st.integers(1, 9),
    limits=st.tuples(st.sampled_from([0, 5, 20, 10**6]), st.sampled_from([None, 3, 12])),
)
def test_answers_are_those_of_a_graph_built_anew(
    tmp_path_factory: pytest.TempPathFactory,
    before: list[Row],
    after: list[Row],
    heads: set[str],
    listed: set[str],
    hub_cap: int,
    limits: tuple[int, int | None],
) -> None:
    """New nodes between old ones, heads that are gone, relations and graphs the base has not: all in one order."""
    folder = tmp_path_factory.mktemp("graph")
    # Every node is known to both, so that both count the same seeds; the base knows some by their row alone.
    everyone = entities_of(*NODES, graph="a")
    known = everyone.filter(pl.col("entity_id").is_in([*listed, *(set(NODES) - heads)]))
    now = [row for row in before if row[0] not in heads] + [row for row in after if row[0] in heads]
    base = opened(folder / "base", before, known)
    place = overlaid(base, folder, sorted(heads), now, everyone.filter(pl.col("entity_id").is_in(sorted(heads))))
    graph, anew = Adjacency.open(folder / "base", place), opened(folder / "anew", now, everyone)
    assert graph.data_version == "now"
    assert (graph.edge_count, graph.node_count) == (anew.edge_count, anew.node_count)
    budget, max_paths = limits
    for graphs in (None, ["a"], ["b"]):
        if not set(graphs or []) <= set(graph.graphs) & set(anew.graphs):
            continue
        for id_ in NODES:
            assert around(graph, id_, graphs) == around(anew, id_, graphs)
            for depth in (1, 2):
                one, other = (neighbourhood(g, id_, 6, hub_cap, depth, graphs=graphs) for g in (graph, anew))
                assert told(one) == told(other)
        one, other = (paths_between(g, NODES[1], NODES[4], 3, hub_cap, graphs=graphs) for g in (graph, anew))
        assert told(one) == told(other)
        one, other = (paths_among(g, NODES[:4], 3, hub_cap, budget, max_paths, graphs) for g in (graph, anew))
        assert told(one) == told(other)
        assert one.labels.keys() == other.labels.keys()
    changed = {graph.entity_id(node): graph.label(node) for node in map(graph.node, heads) if node is not None}
    assert changed == {id_: f"name of {id_}" for id_ in heads}
    assert set(graph.changed_heads()) == heads


def test_new_names_are_told_and_old_ones_kept(tmp_path: Path) -> None:
    base = opened(tmp_path / "base", [("wd:Q1", "wd:P1", "wd:Q2", "a")], entities_of("wd:Q1", "wd:P1", graph="a"))
    rows: list[Row] = [("wd:Q1", "wd:P1", "wd:Q2", "a"), ("wd:Q1", "wd:P0", "wd:Q0", "a")]
    names = entities_of("wd:Q1", "wd:P1", graph="a", label="now ")
    graph = Adjacency.open(tmp_path / "base", overlaid(base, tmp_path, ["wd:Q1", "wd:P1"], rows, names))
    assert {graph.entity_id(node): graph.label(node) for node in range(graph.node_count)} == {
        "wd:P1": "now wd:P1",
        "wd:Q0": "wd:Q0",
        "wd:Q1": "now wd:Q1",
        "wd:Q2": "wd:Q2",
    }
    assert {graph.relation_id(place): graph.relation_label(place) for place in (0, 1)} == {
        "wd:P0": "wd:P0",
        "wd:P1": "now wd:P1",
    }
    result = paths_between(graph, "wd:Q2", "wd:Q0", 2)
    assert [path.text(result.labels) for path in result.paths] == ["wd:Q2 ←now wd:P1— now wd:Q1 —wd:P0→ wd:Q0"]


def test_two_hubs_share_old_and_new_neighbours(tmp_path: Path) -> None:
    people = [f"wd:Q{place:04}" for place in range(1000, 1300)]
    before: list[Row] = [(person, "wd:P1", hub, "a") for person in people[::2] for hub in ("wd:Q5", "wd:Q6")]
    gone = people[0:20:2]
    after = [row for row in before if row[0] not in gone]
    after += [(person, "wd:P1", hub, "a") for person in people[1:20:2] for hub in ("wd:Q5", "wd:Q6")]
    base = opened(tmp_path / "base", before, entities_of())
    heads = people[:20]
    graph = Adjacency.open(tmp_path / "base", overlaid(base, tmp_path, heads, after, entities_of()))
    anew = opened(tmp_path / "anew", after, entities_of())
    for max_paths in (None, 7):
        one, other = (paths_between(g, "wd:Q5", "wd:Q6", hub_cap=50, max_paths=max_paths) for g in (graph, anew))
        assert len(one.paths) == (max_paths or 150)
        assert told(one) == told(other)


def test_the_share_counts_what_was_dropped_and_added(tmp_path: Path) -> None:
    rows: list[Row] = [(head, "wd:P1", "wd:Q9", "a") for head in NODES[:4]]
    base = opened(tmp_path / "base", rows, entities_of())
    assert base.overlay_share == 0
    place = tmp_path / "overlay"
    place.mkdir()
    triples = rows_of([(NODES[0], "wd:P1", "wd:Q8", "c"), (NODES[0], "wd:P2", "wd:Q9", "a")])
    report = build_overlay(base, [NODES[0], "wd:Q404"], triples, entities_of(), place, "now")
    assert report == OverlayReport(changed=1, edges=2, dropped=1, new_nodes=1, new_relations=1)
    graph = Adjacency.open(tmp_path / "base", place)
    assert (graph.overlay_share, graph.edge_count, graph.graphs) == (0.75, 5, ("a", "c"))
    empty = opened(tmp_path / "empty", [], entities_of())
    (tmp_path / "first").mkdir()
    build_overlay(empty, [NODES[0]], triples, entities_of(), tmp_path / "first", "now")
    assert Adjacency.open(tmp_path / "empty", tmp_path / "first").overlay_share == 1


def test_an_overlay_of_another_base_is_refused(tmp_path: Path) -> None:
    base = opened(tmp_path / "base", [("wd:Q1", "wd:P1", "wd:Q2", "a")], entities_of())
    place = overlaid(base, tmp_path, ["wd:Q1"], [], entities_of())
    (tmp_path / "other").mkdir()
    write(entities_of(), rows_of([("wd:Q1", "wd:P1", "wd:Q2", "a")]), tmp_path / "other", "another version")
    with pytest.raises(KnowledgeError, match="lies on another version of the graph"):
        Adjacency.open(tmp_path / "other", place)
    with pytest.raises(KnowledgeError, match="holds no graph yet"):
        Adjacency.open(tmp_path / "base", tmp_path / "nothing")
    np.save(place / "touched.npy", np.load(place / "touched.npy").astype(np.int64))
    with pytest.raises(KnowledgeError, match=r"touched\.npy"):
        Adjacency.open(tmp_path / "base", place)


def test_what_does_not_fit_an_overlay_is_refused(tmp_path: Path) -> None:
    base = opened(tmp_path / "base", [("wd:Q1", "wd:P1", "wd:Q2", "a")], entities_of())
    with pytest.raises(ValueError, match="hold the head 'wd:Q3', which is not among the changed heads"):
        build_overlay(base, ["wd:Q1"], rows_of([("wd:Q3", "wd:P1", "wd:Q2", "a")]), entities_of(), tmp_path, "now")
    graph = Adjacency.open(tmp_path / "base", overlaid(base, tmp_path, ["wd:Q1"], [], entities_of()))
    with pytest.raises(ValueError, match="not on another overlay: open the base alone"):
        build_overlay(graph, [], rows_of([]), entities_of(), tmp_path, "now")
