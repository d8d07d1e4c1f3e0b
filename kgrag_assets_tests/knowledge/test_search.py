"""Paths between two entities: against an enumeration of all walks, with and without hubs."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numba
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kgrag_assets.knowledge import search_kernels
from kgrag_assets.knowledge.adjacency import Adjacency
from kgrag_assets.knowledge.adjacency_build import build_adjacency, frames_as_buckets
from kgrag_assets.knowledge.errors import KnowledgeError
from kgrag_assets.knowledge.search import Edge, SearchResult, neighbourhood, paths_among, paths_between
from kgrag_assets.rows.keys import key_of
from kgrag_assets.rows.knowledge_graph import KG_ENTITIES, KG_TRIPLES, triple_id_of

Statement = tuple[str, str, str]
# Nodes of a path, and its edges as the graph has them.
Walk = tuple[tuple[str, ...], tuple[Statement, ...]]


def triples_of(statements: Sequence[Statement], graph: str = "test") -> pl.DataFrame:
    return KG_TRIPLES.frame(
        [
            {
                "triple_id": triple_id_of(graph, head, relation, tail, None),
                "graph": graph,
                "bucket": 0,
                "head": head,
                "relation": relation,
                "tail": tail,
                "tail_value": None,
                "head_label": f"label of {head}",
                "relation_label": f"label of {relation}",
                "tail_label": f"label of {tail}",
                "row_key": key_of(graph, head, relation, tail),
            }
            for head, relation, tail in dict.fromkeys(statements)
        ]
    )


def graph_of(statements: Sequence[Statement], *others: Sequence[Statement]) -> Adjacency:
    """A graph named ``test``, and further ones named ``1``, ``2``."""
    more = [triples_of(other, str(place)) for place, other in enumerate(others, start=1)]
    with tempfile.TemporaryDirectory() as folder:
        rows = pl.concat([triples_of(statements), *more])
        build_adjacency(frames_as_buckets(KG_ENTITIES.empty(), rows), Path(folder), "1")
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


def between_every_two(graph: Adjacency, seeds: Sequence[str], max_hops: int, hub_cap: int) -> Counter[Walk]:
    pairs = [(one, two) for place, one in enumerate(seeds) for two in seeds[place + 1 :]]
    return Counter(walk for pair in pairs for walk in as_walks(paths_between(graph, *pair, max_hops, hub_cap)))


@settings(max_examples=200, deadline=None)
@given(
    statements=STATEMENTS,
    seeds=st.lists(st.sampled_from(NODES), unique=True, max_size=5),
    max_hops=st.integers(1, 3),
    hub_cap=st.integers(1, 8),
)
def test_among_seeds_are_the_paths_of_each_pair(
    statements: list[Statement], seeds: list[str], max_hops: int, hub_cap: int
) -> None:
    graph = graph_of(statements)
    result = paths_among(graph, seeds, max_hops, hub_cap)
    assert Counter(as_walks(result)) == between_every_two(graph, seeds, max_hops, hub_cap)
    assert not result.exhausted
    lengths = [len(path.edges) for path in result.paths]
    assert lengths == sorted(lengths)
    unlimited = between_every_two(graph, seeds, max_hops, 1000)
    assert result.cut > 0 or Counter(as_walks(result)) == unlimited


@settings(max_examples=100, deadline=None)
@given(statements=STATEMENTS, budget=st.integers(0, 60) | st.just(1000), max_paths=st.none() | st.integers(0, 30))
def test_what_ends_the_search_among_seeds_is_said(
    statements: list[Statement], budget: int, max_paths: int | None
) -> None:
    graph = graph_of(statements)
    everything = paths_among(graph, NODES[:4], hub_cap=1000, max_paths=None)
    result = paths_among(graph, NODES[:4], hub_cap=1000, budget=budget, max_paths=max_paths)
    assert result.exhausted or result.paths == everything.paths
    assert set(result.paths) <= set(everything.paths)
    if max_paths is None:
        assert {path for path in everything.paths if len(path.edges) < 3} <= set(result.paths)
    else:
        assert len(result.paths) <= max_paths
        if budget == 1000:
            lengths = [len(path.edges) for path in everything.paths]
            assert [len(path.edges) for path in result.paths] == lengths[:max_paths]
            assert result.exhausted == (max_paths < len(lengths))


def test_unknown_and_repeated_seeds_are_passed_over() -> None:
    graph = graph_of([("wd:Q1", "wd:P1", "wd:Q2")])
    assert len(paths_among(graph, ["wd:Q1", "wd:Q9", "wd:Q1", "wd:Q2", "wd:Q2"]).paths) == 1
    assert paths_among(graph, ["wd:Q1"]) == paths_among(graph, []) == SearchResult((), 0, exhausted=False)


def test_too_many_seeds_are_refused() -> None:
    star = graph_of([("wd:Q0", "wd:P1", f"wd:Q{place}") for place in range(1, 70)])
    assert len(paths_among(star, [f"wd:Q{place}" for place in range(1, 64)], 2).paths) == 63 * 62 // 2
    with pytest.raises(ValueError, match="at most 63 seeds can be searched at once, not 69"):
        paths_among(star, [f"wd:Q{place}" for place in range(1, 70)])


def test_what_two_hubs_share_is_found_and_does_not_flood_the_answer() -> None:
    """More shared neighbours than are compared at a time, on either side of both hubs."""
    people = [f"wd:Q{place:06}" for place in range(3000)]
    statements = [(person, "wd:P31", "wd:Q5") for person in people[::2]]
    statements += [("wd:Q5", "wd:P2", person) for person in people[1::2]]
    statements += [(person, "wd:P21", "wd:Q6") for person in people[::3]]
    statements += [("wd:Q5", "wd:P9", "wd:Q6"), ("wd:Q5", "wd:P9", "wd:Q5")]
    graph = graph_of(statements)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("kgrag_assets.knowledge.search_entries._CHUNK", 64)
        everything = paths_between(graph, "wd:Q5", "wd:Q6")
        assert sorted(path.nodes[1] for path in everything.paths[1:]) == people[::3]
        # Of the first hub's 3001 edges to others, all but those that are followed.
        assert (everything.cut, everything.exhausted) == (3001 - 1001, False)
        first = paths_between(graph, "wd:Q5", "wd:Q6", max_paths=101)
        assert [len(path.edges) for path in first.paths] == [1] + 100 * [2]
        assert set(first.paths) < set(everything.paths)
        assert (first.cut > 0, first.exhausted) == (True, True)


@settings(max_examples=150, deadline=None)
@given(
    parts=st.tuples(STATEMENTS, STATEMENTS, STATEMENTS),  # of three graphs
    chosen=st.sets(st.sampled_from(["test", "1", "2"])),
    hub_cap=st.integers(1, 8),
)
def test_only_the_chosen_graphs_are_walked(parts: tuple[list[Statement], ...], chosen: set[str], hub_cap: int) -> None:
    graph = graph_of(*parts)
    statements = [edge for name, part in zip(("test", "1", "2"), parts, strict=True) if name in chosen for edge in part]
    alone = graph_of(statements)
    assert graph.graphs == ("1", "2", "test")
    # An entity that only other graphs name is a seed in one and unknown in the other.
    seeds = [node for node in NODES[:3] if alone.node(node) is not None]
    assert paths_among(graph, seeds, hub_cap=hub_cap, graphs=chosen) == paths_among(alone, seeds, hub_cap=hub_cap)
    one, other = (place.node(NODES[0]) for place in (graph, alone))
    assert (0 if one is None else graph.degree(one, graph.mask_of(chosen))) == (
        0 if other is None else alone.degree(other)
    )
    for depth in (1, 2):
        found = neighbourhood(graph, NODES[0], 9, hub_cap, depth, graphs=chosen)
        assert found == neighbourhood(alone, NODES[0], 9, hub_cap, depth)


def test_a_graph_that_is_not_there_is_refused() -> None:
    graph = graph_of([("wd:Q1", "wd:P1", "wd:Q2")])
    assert paths_between(graph, "wd:Q1", "wd:Q2", graphs=[]).paths == ()
    assert len(paths_between(graph, "wd:Q1", "wd:Q2", graphs=["test"]).paths) == 1
    with pytest.raises(KnowledgeError, match="does not have the knowledge graph 'umls'; it has test"):
        paths_between(graph, "wd:Q1", "wd:Q2", graphs=["test", "umls"])


def test_labels_come_with_the_paths() -> None:
    graph = graph_of([("wd:Q2", "wd:P7", "wd:Q1"), ("wd:Q2", "wd:P8", "wd:Q3")])
    result = paths_between(graph, "wd:Q1", "wd:Q3", 2)
    assert result.paths[0].text(result.labels) == (
        "label of wd:Q1 ←label of wd:P7— label of wd:Q2 —label of wd:P8→ label of wd:Q3"
    )
    assert neighbourhood(graph, "wd:Q1").labels == {id_: f"label of {id_}" for id_ in ("wd:Q1", "wd:P7", "wd:Q2")}


def walks_from(statements: Sequence[Statement], seed: str, depth: int) -> set[Walk]:
    found: set[Walk] = set()
    layer: set[Walk] = {((seed,), ())}
    for _ in range(depth):
        layer = {
            ((*nodes, there), (*edges, edge))
            for nodes, edges in layer
            for edge in set(statements)
            for here, there in ((edge[0], edge[2]), (edge[2], edge[0]))
            if here == nodes[-1] and there not in nodes
        }
        found |= layer
    return found


@settings(max_examples=100, deadline=None)
@given(statements=STATEMENTS, depth=st.integers(1, 3))
def test_the_neighbourhood_to_a_depth_is_all_walks_of_that_length(statements: list[Statement], depth: int) -> None:
    result = neighbourhood(graph_of(statements), NODES[0], 10**6, 10**6, depth, budget=10**6)
    assert Counter(as_walks(result)) == Counter(walks_from(statements, NODES[0], depth))
    assert (result.cut, result.exhausted) == (0, False)
    lengths = [len(path.edges) for path in result.paths]
    assert lengths == sorted(lengths)


@settings(max_examples=150, deadline=None)
@given(
    statements=STATEMENTS,
    max_edges=st.integers(0, 30),
    hub_cap=st.integers(1, 10),
    budget=st.integers(0, 40),
)
def test_what_the_neighbourhood_leaves_out_is_said(
    statements: list[Statement], max_edges: int, hub_cap: int, budget: int
) -> None:
    result = neighbourhood(graph_of(statements), NODES[0], max_edges, hub_cap, 3, budget)
    everything = walks_from(statements, NODES[0], 3)
    found = as_walks(result)
    assert len(found) <= max_edges
    assert len(found) == len(set(found))
    assert set(found) <= everything
    assert set(found) == everything or result.cut > 0 or result.exhausted
    degrees = Counter(node for head, _relation, tail in set(statements) for node in (head, tail))
    assert all(degrees[node] <= hub_cap for nodes, _edges in found for node in nodes[1:-1])


def test_a_depth_below_one_is_refused() -> None:
    with pytest.raises(ValueError, match="depth must be at least 1, not 0"):
        neighbourhood(graph_of([("wd:Q1", "wd:P1", "wd:Q2")]), "wd:Q1", depth=0)


def test_a_place_that_cannot_hold_compiled_code_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    """A package folder and a home that nobody may write: compiled anew by each process."""

    def doubled(number: int) -> int:
        return 2 * number

    monkeypatch.setattr("numba.core.caching.CacheImpl._locator_classes", [])
    with pytest.raises(RuntimeError, match="cannot cache function"):
        numba.njit(cache=True)(doubled)
    assert search_kernels._compiled(doubled)(21) == 42
