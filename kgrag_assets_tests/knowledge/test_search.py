"""Paths between two entities: against an enumeration of all walks, with and without hubs."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kgrag_assets.knowledge.adjacency import Adjacency, build_adjacency
from kgrag_assets.knowledge.search import Edge, SearchResult, neighbourhood, paths_between
from kgrag_assets.rows.keys import key_of
from kgrag_assets.rows.knowledge_graph import KG_ENTITIES, KG_TRIPLES, triple_id_of

Statement = tuple[str, str, str]
# Nodes of a path, and its edges as the graph has them.
Walk = tuple[tuple[str, ...], tuple[Statement, ...]]


def triples_of(statements: Sequence[Statement]) -> pl.DataFrame:
    return KG_TRIPLES.frame(
        [
            {
                "triple_id": triple_id_of("test", head, relation, tail, None),
                "graph": "test",
                "bucket": 0,
                "head": head,
                "relation": relation,
                "tail": tail,
                "tail_value": None,
                "head_label": head,
                "relation_label": relation,
                "tail_label": tail,
                "row_key": key_of(head, relation, tail),
            }
            for head, relation, tail in dict.fromkeys(statements)
        ]
    )


def graph_of(statements: Sequence[Statement]) -> Adjacency:
    with tempfile.TemporaryDirectory() as folder:
        build_adjacency(KG_ENTITIES.empty(), triples_of(statements), Path(folder), "1")
        return Adjacency.open(Path(folder))


def all_walks(statements: Sequence[Statement], source: str, target: str, max_hops: int) -> list[Walk]:
    """Enumerate simple paths by trying every edge in both directions at every step."""
    found: list[Walk] = []

    def walk(nodes: tuple[str, ...], edges: tuple[Statement, ...]) -> None:
        if nodes[-1] == target:
            found.append((nodes, edges))
            return
        if len(edges) == max_hops:
            return
        for edge in set(statements):
            for here, there in {(edge[0], edge[2]), (edge[2], edge[0])}:
                if here == nodes[-1] and there not in nodes:
                    walk((*nodes, there), (*edges, edge))

    if source != target:
        walk((source,), ())
    return found


def as_walks(result: SearchResult) -> list[Walk]:
    return [(path.nodes, tuple((edge.head, edge.relation, edge.tail) for edge in path.edges)) for path in result.paths]


def turned(walk: Walk) -> Walk:
    return walk[0][::-1], walk[1][::-1]


NODES = [f"wd:Q{number}" for number in range(6)]
STATEMENTS = st.lists(
    st.tuples(st.sampled_from(NODES), st.sampled_from(["wd:P1", "wd:P2"]), st.sampled_from(NODES)),
    min_size=1,
    max_size=22,
)


@settings(max_examples=150, deadline=None)
@given(statements=STATEMENTS, max_hops=st.integers(1, 3))
def test_all_simple_paths_are_found_once(statements: list[Statement], max_hops: int) -> None:
    graph = graph_of(statements)
    result = paths_between(graph, NODES[0], NODES[1], max_hops, hub_cap=1000)
    assert Counter(as_walks(result)) == Counter(all_walks(statements, NODES[0], NODES[1], max_hops))
    assert (result.cut, result.exhausted) == (0, False)
    lengths = [len(path.edges) for path in result.paths]
    assert lengths == sorted(lengths)
    back = paths_between(graph, NODES[1], NODES[0], max_hops, hub_cap=1000)
    assert {turned(walk) for walk in as_walks(back)} == set(as_walks(result))


@settings(max_examples=200, deadline=None)
@given(statements=STATEMENTS, max_hops=st.integers(1, 3), hub_cap=st.integers(1, 6))
def test_hubs_are_left_out_and_counted(statements: list[Statement], max_hops: int, hub_cap: int) -> None:
    graph = graph_of(statements)
    degrees = Counter(node for head, _relation, tail in set(statements) for node in (head, tail))
    joined = {(here, there) for head, _relation, tail in statements for here, there in ((head, tail), (tail, head))}

    def stays(nodes: tuple[str, ...]) -> bool:
        if len(nodes) <= 3:
            return True
        start, middle, other, end = nodes
        return (
            max(degrees[middle], degrees[other]) <= hub_cap
            and (degrees[start] <= hub_cap or (middle, end) in joined)
            and (degrees[end] <= hub_cap or (other, start) in joined)
        )

    everything = all_walks(statements, NODES[0], NODES[1], max_hops)
    expected = {walk for walk in everything if stays(walk[0])}
    result = paths_between(graph, NODES[0], NODES[1], max_hops, hub_cap)
    assert Counter(as_walks(result)) == Counter(expected)
    if len(expected) < len(everything):
        assert result.cut > 0
    if max_hops < 3 or max(degrees.values()) <= hub_cap:
        assert result.cut == 0
    back = paths_between(graph, NODES[1], NODES[0], max_hops, hub_cap)
    assert {turned(walk) for walk in as_walks(back)} == set(as_walks(result))


@settings(max_examples=100, deadline=None)
@given(statements=STATEMENTS, max_hops=st.integers(1, 3), budget=st.integers(0, 40))
def test_a_spent_budget_is_said(statements: list[Statement], max_hops: int, budget: int) -> None:
    graph = graph_of(statements)
    everything = set(all_walks(statements, NODES[0], NODES[1], max_hops))
    result = paths_between(graph, NODES[0], NODES[1], max_hops, hub_cap=1000, budget=budget)
    found = set(as_walks(result))
    assert found <= everything
    assert found == everything or result.exhausted
    assert {walk for walk in everything if len(walk[1]) < 3} <= found


def test_a_budget_that_suffices_exactly_is_not_exhausted() -> None:
    graph = graph_of([("wd:Q1", "wd:P1", "wd:Q2")])
    assert not paths_between(graph, "wd:Q1", "wd:Q2", 3, budget=2).exhausted
    chain = graph_of([("wd:Q1", "wd:P1", "wd:Q2"), ("wd:Q2", "wd:P1", "wd:Q3"), ("wd:Q3", "wd:P1", "wd:Q4")])
    assert paths_between(chain, "wd:Q1", "wd:Q4", 3, budget=1).exhausted
    # One edge at either end, two at the node between.
    assert len(paths_between(chain, "wd:Q1", "wd:Q4", 3, budget=4).paths) == 1
    assert not paths_between(chain, "wd:Q1", "wd:Q4", 3, budget=4).exhausted


def test_direction_and_relation_are_the_graphs() -> None:
    graph = graph_of([("wd:Q2", "wd:P7", "wd:Q1"), ("wd:Q2", "wd:P8", "wd:Q3")])
    (path,) = paths_between(graph, "wd:Q1", "wd:Q3", 2).paths
    assert path.nodes == ("wd:Q1", "wd:Q2", "wd:Q3")
    assert path.edges == (Edge("wd:Q2", "wd:P7", "wd:Q1"), Edge("wd:Q2", "wd:P8", "wd:Q3"))


def test_nothing_lies_between_an_entity_and_itself_or_an_unknown_one() -> None:
    graph = graph_of([("wd:Q1", "wd:P1", "wd:Q2"), ("wd:Q1", "wd:P1", "wd:Q1")])
    for source, target in (("wd:Q1", "wd:Q1"), ("wd:Q1", "wd:Q9"), ("wd:Q9", "wd:Q1"), ("", "wd:Q1")):
        assert paths_between(graph, source, target) == SearchResult((), 0, exhausted=False)


@pytest.mark.parametrize("max_hops", [0, 4, -1])
def test_other_lengths_are_refused(max_hops: int) -> None:
    with pytest.raises(ValueError, match="max_hops must be 1, 2 or 3"):
        paths_between(graph_of([("wd:Q1", "wd:P1", "wd:Q2")]), "wd:Q1", "wd:Q2", max_hops)


@settings(max_examples=100, deadline=None)
@given(statements=STATEMENTS, max_edges=st.integers(0, 12), hub_cap=st.integers(0, 12))
def test_the_neighbourhood_is_the_seeds_own_edges(statements: list[Statement], max_edges: int, hub_cap: int) -> None:
    seed = NODES[0]
    leaving = [edge for edge in set(statements) if edge[0] == seed != edge[2]]
    arriving = [edge for edge in set(statements) if edge[2] == seed != edge[0]]
    result = neighbourhood(graph_of(statements), seed, max_edges, hub_cap)
    edges = [edge for _nodes, (edge,) in as_walks(result)]
    limit = min(max_edges, hub_cap)
    assert len(edges) == len(set(edges)) == min(limit, len(leaving) + len(arriving))
    assert set(edges) <= {*leaving, *arriving}
    assert sum(edge in leaving for edge in edges) == min(limit, len(leaving))
    assert result.cut == len(leaving) + len(arriving) - len(edges)
    assert all(path.nodes[0] == seed for path in result.paths)


def test_an_unknown_seed_has_no_neighbourhood() -> None:
    assert neighbourhood(graph_of([("wd:Q1", "wd:P1", "wd:Q2")]), "wd:Q9") == SearchResult((), 0, exhausted=False)
