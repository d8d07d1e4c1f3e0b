"""The remote search: the same answers as trying every walk on the same statements, hubs and budgets included."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path as FilePath

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kgrag_assets.knowledge.search import Edge, SearchResult, neighbourhood, paths_between
from kgrag_assets.knowledge.sparql import edges
from kgrag_assets.knowledge.sparql.errors import SparqlError
from kgrag_assets.knowledge.sparql.search import RemoteSearch
from kgrag_assets.knowledge.sparql.vocabulary import Vocabulary
from kgrag_assets_tests.knowledge.sparql.clients import FakeTime, client_of, local_graph
from kgrag_assets_tests.servers.scripted import Reply
from kgrag_assets_tests.servers.sparql_server import RESULTS, SparqlServer

Statement = tuple[str, str, str]
Walk = tuple[tuple[str, ...], tuple[Statement, ...]]

NODES = [f"wd:Q{number}" for number in range(1, 7)]
RELATIONS = ["wd:P1", "wd:P2"]
STATEMENTS = st.lists(
    st.tuples(st.sampled_from(NODES), st.sampled_from(RELATIONS), st.sampled_from(NODES)), max_size=14
)


@pytest.fixture(scope="module")
def server() -> Iterator[SparqlServer]:
    with SparqlServer() as running:
        yield running


@pytest.fixture(autouse=True)
def empty(server: SparqlServer) -> None:
    server.clear()
    server.on_asked = None


def degree(statements: Sequence[Statement], node: str) -> int:
    return sum((head == node) + (tail == node) for head, _relation, tail in set(statements))


def neighbours(statements: Sequence[Statement], node: str) -> set[str]:
    return {tail if head == node else head for head, _relation, tail in statements if node in (head, tail)} - {node}


def all_walks(statements: Sequence[Statement], source: str, target: str, max_hops: int, cap: int) -> list[Walk]:
    """Try every statement in both directions at every step, and leave out what hubs forbid."""
    found: list[Walk] = []

    def walk(nodes: tuple[str, ...], steps: tuple[Statement, ...]) -> None:
        if nodes[-1] == target:
            found.append((nodes, steps))
        elif len(steps) < max_hops:
            for step in set(statements):
                for here, there in {(step[0], step[2]), (step[2], step[0])}:
                    if here == nodes[-1] and there not in nodes:
                        walk((*nodes, there), (*steps, step))

    def allowed(nodes: tuple[str, ...]) -> bool:
        if len(nodes) < 4:
            return True
        _start, near_start, near_end, _end = nodes
        if max(degree(statements, near_start), degree(statements, near_end)) > cap:
            return False
        if degree(statements, source) > cap and near_start not in neighbours(statements, target):
            return False
        return degree(statements, target) <= cap or near_end in neighbours(statements, source)

    if source != target:
        walk((source,), ())
    return [walked for walked in found if allowed(walked[0])]


def as_walks(result: SearchResult) -> list[Walk]:
    return [(path.nodes, tuple((edge.head, edge.relation, edge.tail) for edge in path.edges)) for path in result.paths]


def order(walk: Walk) -> tuple[int, list[tuple[str, str, str, bool]]]:
    nodes, steps = walk
    return len(steps), [
        (here, step[1], there, step[0] == here) for here, there, step in zip(nodes, nodes[1:], steps, strict=False)
    ]


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    STATEMENTS, st.sampled_from(NODES), st.sampled_from(NODES), st.integers(1, 3), st.sampled_from([1, 2, 3, 5, 200])
)
def test_paths_are_those_of_trying_everything(
    server: SparqlServer, statements: list[Statement], source: str, target: str, max_hops: int, cap: int
) -> None:
    server.clear()
    server.state(statements)
    with client_of(server.url) as client:
        result = RemoteSearch(client, page_size=3).paths_between(source, target, max_hops, hub_cap=cap)
    expected = sorted(all_walks(statements, source, target, max_hops, cap), key=order)
    assert as_walks(result) == expected
    assert not result.exhausted
    lost = len(all_walks(statements, source, target, max_hops, 1000)) - len(expected)
    assert result.cut > 0 or lost == 0


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(STATEMENTS, st.sampled_from(NODES), st.integers(0, 8), st.sampled_from([2, 4, 200]))
def test_a_neighbourhood_is_what_leaves_and_then_what_reaches_the_seed(
    server: SparqlServer, statements: list[Statement], seed: str, max_edges: int, cap: int
) -> None:
    server.clear()
    server.state(statements)
    with client_of(server.url) as client:
        result = RemoteSearch(client).neighbourhood(seed, max_edges, hub_cap=cap)
    leaving = sorted(((tail, relation) for head, relation, tail in set(statements) if head == seed != tail))
    reaching = sorted(((head, relation) for head, relation, tail in set(statements) if tail == seed != head))
    expected = [Edge(seed, relation, tail) for tail, relation in leaving]
    expected += [Edge(head, relation, seed) for head, relation in reaching]
    found = [path.edges[0] for path in result.paths]
    limit = min(max_edges, cap)
    assert len(found) == min(limit, len(expected))
    assert set(found) <= set(expected)
    if max(degree(statements, seed), 1) <= cap:
        assert found == expected[:limit]
        assert result.cut == len(expected) - len(found)
    assert (result.cut > 0) == (len(found) < len(expected))
    # The second request asks for names.
    assert len(server.asked) == (2 if found else 1)


def outward(statements: Sequence[Statement], seed: str, depth: int, cap: int) -> list[Walk]:
    """Walk outward by trying every statement, breadth first, and not through hubs."""
    layer: list[Walk] = [((seed,), ())]
    found: list[Walk] = []
    for hops in range(depth):
        further: list[Walk] = []
        for nodes, steps in layer:
            here = nodes[-1]
            if hops and degree(statements, here) > cap:
                continue
            leaving = [(step[2], step) for step in set(statements) if step[0] == here]
            reaching = [(step[0], step) for step in set(statements) if step[2] == here]
            for around in (leaving, reaching):
                for other, step in sorted(around, key=lambda one: (one[0], one[1][1])):
                    if other not in nodes:
                        further.append(((*nodes, other), (*steps, step)))
        found += further
        layer = further
    return found


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(STATEMENTS, st.sampled_from(NODES), st.integers(1, 3), st.integers(0, 30), st.sampled_from([14, 200]))
def test_a_deeper_neighbourhood_is_walked_breadth_first(
    server: SparqlServer, statements: list[Statement], seed: str, depth: int, max_edges: int, cap: int
) -> None:
    server.clear()
    server.state(statements)
    with client_of(server.url) as client:
        result = RemoteSearch(client).neighbourhood(seed, max_edges, hub_cap=cap, depth=depth)
    whole = outward(statements, seed, depth, cap)
    assert as_walks(result) == whole[:max_edges]
    assert result.exhausted or result.cut or len(whole) <= max_edges


def test_a_hub_is_not_walked_through_on_the_way_outward(server: SparqlServer) -> None:
    crowd = [(f"wd:Q{number}", "wd:P1", "wd:Q5") for number in range(10, 20)]
    server.state([("wd:Q1", "wd:P1", "wd:Q5"), ("wd:Q1", "wd:P2", "wd:Q2"), ("wd:Q2", "wd:P2", "wd:Q3"), *crowd])
    with client_of(server.url) as client:
        result = RemoteSearch(client).neighbourhood("wd:Q1", max_edges=100, hub_cap=4, depth=2)
    assert [path.nodes for path in result.paths] == [
        ("wd:Q1", "wd:Q2"),
        ("wd:Q1", "wd:Q5"),
        ("wd:Q1", "wd:Q2", "wd:Q3"),
    ]
    assert result.cut >= 5
    with client_of(server.url) as client, pytest.raises(ValueError, match="depth"):
        RemoteSearch(client).neighbourhood("wd:Q1", depth=0)


def test_paths_come_with_labels_and_the_shortest_first(server: SparqlServer) -> None:
    server.state(CHAIN)
    server.name("Q1", "aspirin")
    server.name("P1", "treats")
    with client_of(server.url) as client:
        result = RemoteSearch(client).paths_between("wd:Q1", "wd:Q2", max_paths=1)
    (path,) = result.paths
    assert path.text(result.labels) == "aspirin —treats→ Q3 —treats→ Q2"
    assert result.exhausted


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(STATEMENTS, st.integers(1, 3), st.sampled_from([1, 3, 200]))
def test_remote_and_local_search_agree(
    server: SparqlServer, statements: list[Statement], max_hops: int, cap: int
) -> None:
    server.clear()
    server.state(statements)
    with tempfile.TemporaryDirectory() as folder, client_of(server.url) as client:
        graph = local_graph(statements, FilePath(folder))
        remote = RemoteSearch(client)
        for source, target in ((NODES[0], NODES[1]), (NODES[2], NODES[0])):
            here = paths_between(graph, source, target, max_hops, hub_cap=cap)
            there = remote.paths_between(source, target, max_hops, hub_cap=cap)
            assert there.paths == here.paths
            assert there.cut <= here.cut
        assert remote.neighbourhood(NODES[0], hub_cap=200) == neighbourhood(graph, NODES[0], hub_cap=200)


def test_many_neighbours_are_asked_for_in_parts(server: SparqlServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(edges, "LINKED_NODES", 2)
    monkeypatch.setattr(edges, "COUNTED_NODES", 2)
    left, right = [f"wd:Q1{n}" for n in range(5)], [f"wd:Q2{n}" for n in range(5)]
    statements = [("wd:Q1", "wd:P1", node) for node in left] + [(node, "wd:P1", "wd:Q2") for node in right]
    statements += [(one, "wd:P2", two) for one, two in zip(left, reversed(right), strict=True)]
    server.state(statements)
    with client_of(server.url) as client:
        result = RemoteSearch(client).paths_between("wd:Q1", "wd:Q2")
    assert as_walks(result) == sorted(all_walks(statements, "wd:Q1", "wd:Q2", 3, 200), key=order)
    assert len(result.paths) == 5


def test_other_statements_of_the_graph_are_not_walked(server: SparqlServer) -> None:
    server.state([("Q1", "P1", "Q3"), ("Q3", "P1", "Q2")])
    server.store.update(
        """
        INSERT DATA {
          <http://www.wikidata.org/entity/Q1> <http://www.wikidata.org/prop/P1> <http://www.wikidata.org/entity/Q2> .
          <http://www.wikidata.org/entity/Q1> <http://www.wikidata.org/prop/direct/P9> <http://example.org/Q2> .
          <http://www.wikidata.org/entity/Q1> <http://www.wikidata.org/prop/direct/P9> "Q2" .
          <http://www.wikidata.org/entity/Q1> <http://www.wikidata.org/prop/direct/P9> _:unknown .
          <http://www.wikidata.org/entity/L7> <http://www.wikidata.org/prop/direct/P9>
            <http://www.wikidata.org/entity/Q1> .
        }
        """
    )
    with client_of(server.url) as client:
        search = RemoteSearch(client)
        assert [path.nodes for path in search.paths_between("wd:Q1", "wd:Q2").paths] == [("wd:Q1", "wd:Q3", "wd:Q2")]
        assert [path.nodes for path in search.neighbourhood("wd:Q1").paths] == [("wd:Q1", "wd:Q3")]


def test_another_graph_in_plain_rdf_is_searched_with_its_own_ids(server: SparqlServer) -> None:
    server.store.update("INSERT DATA { <http://ex.org/Aspirin> <http://ex.org/treats> <http://ex.org/Pain_(acute)> }")
    with client_of(server.url) as client:
        search = RemoteSearch(client, Vocabulary.of_rdf("ex", "http://ex.org/"))
        (path,) = search.paths_between("ex:Pain_(acute)", "ex:Aspirin").paths
    assert path.nodes == ("ex:Pain_(acute)", "ex:Aspirin")
    assert path.edges == (Edge("ex:Aspirin", "ex:treats", "ex:Pain_(acute)"),)


@pytest.mark.parametrize("foreign", ["umls:C1", "wd:Q1> ?p ?o } #", "Q1", "", "wd:Q1\n", "wd:" + "9" * 300])
def test_an_id_that_is_none_of_the_graph_is_not_even_asked_for(server: SparqlServer, foreign: str) -> None:
    with client_of(server.url) as client:
        search = RemoteSearch(client)
        assert search.paths_between(foreign, "wd:Q1") == SearchResult((), 0, exhausted=False)
        assert search.paths_between("wd:Q1", foreign) == SearchResult((), 0, exhausted=False)
        assert search.neighbourhood(foreign) == SearchResult((), 0, exhausted=False)
    assert server.asked == []


@pytest.mark.parametrize("max_hops", [0, 4])
def test_more_than_three_hops_are_refused(server: SparqlServer, max_hops: int) -> None:
    with client_of(server.url) as client, pytest.raises(ValueError, match="max_hops"):
        RemoteSearch(client).paths_between("wd:Q1", "wd:Q2", max_hops)


CHAIN = [
    ("wd:Q1", "wd:P1", "wd:Q3"),
    ("wd:Q3", "wd:P1", "wd:Q2"),
    ("wd:Q1", "wd:P2", "wd:Q4"),
    ("wd:Q4", "wd:P2", "wd:Q3"),
]


def test_when_time_is_up_the_search_ends_with_what_it_found_and_says_so(server: SparqlServer) -> None:
    server.state(CHAIN)
    time = FakeTime()
    # The first answer comes in time; the next one is too late.
    server.on_asked = lambda number: time.pass_by(20.0 if number == 1 else 0.0)
    with client_of(server.url, time, min_interval_s=15.0, timeout_s=100.0) as client:
        cut_off = RemoteSearch(client, time_budget_s=30.0).paths_between("wd:Q1", "wd:Q2")
    whole = all_walks(CHAIN, "wd:Q1", "wd:Q2", 3, 200)
    assert cut_off.exhausted
    assert as_walks(cut_off) == [walk for walk in whole if len(walk[1]) == 2]
    assert len(whole) == 2


def test_no_path_is_led_through_a_node_that_could_not_be_counted(server: SparqlServer) -> None:
    server.state(CHAIN)
    # The second request is sent after 20 s; the one that counts would be sent after 40.
    with client_of(server.url, min_interval_s=20.0, timeout_s=100.0) as client:
        result = RemoteSearch(client, time_budget_s=30.0).paths_between("wd:Q1", "wd:Q2")
    assert result.exhausted
    assert {len(path.edges) for path in result.paths} == {2}
    assert result.cut == 1


def test_the_endpoints_own_limit_of_time_ends_the_search_too(server: SparqlServer) -> None:
    server.then(Reply(500, b"java.util.concurrent.TimeoutException\n\tat ...", content_type="text/plain"))
    with client_of(server.url) as client:
        assert RemoteSearch(client).paths_between("wd:Q1", "wd:Q2") == SearchResult((), 0, exhausted=True)
        server.then(Reply(504, b"", content_type="text/html"))
        assert RemoteSearch(client).neighbourhood("wd:Q1") == SearchResult((), 0, exhausted=True)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(STATEMENTS, st.integers(0, 12), st.sampled_from([2, 200]))
def test_a_budget_of_edges_ends_the_search_with_some_of_the_paths(
    server: SparqlServer, statements: list[Statement], budget: int, cap: int
) -> None:
    server.clear()
    server.state(statements)
    with client_of(server.url) as client:
        result = RemoteSearch(client).paths_between("wd:Q1", "wd:Q2", hub_cap=cap, budget=budget)
    whole = all_walks(statements, "wd:Q1", "wd:Q2", 3, cap)
    assert set(as_walks(result)) <= set(whole)
    assert result.exhausted or len(result.paths) == len(whole)


def test_a_row_without_what_was_asked_for_is_an_error(server: SparqlServer) -> None:
    server.then(Reply(200, {"head": {"vars": []}, "results": {"bindings": [{}]}}, content_type=RESULTS))
    with client_of(server.url) as client, pytest.raises(SparqlError, match=r"without \?seed"):
        RemoteSearch(client).neighbourhood("wd:Q1")


def test_a_count_that_is_no_number_is_an_error(server: SparqlServer) -> None:
    server.state(CHAIN)

    def spoil(number: int) -> None:
        if number == 2:
            row = {
                "node": {"type": "uri", "value": "http://www.wikidata.org/entity/Q4"},
                "n": {"type": "literal", "value": "²"},
            }
            server.then(Reply(200, {"head": {"vars": []}, "results": {"bindings": [row]}}, content_type=RESULTS))

    server.on_asked = spoil
    with client_of(server.url) as client, pytest.raises(SparqlError, match="no number"):
        RemoteSearch(client).paths_between("wd:Q1", "wd:Q2")
