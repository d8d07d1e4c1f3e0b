"""The same programs over a graph behind an endpoint, through a real engine on loopback."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kgrag_assets.knowledge.sparql.base import SparqlKnowledgeBase
from kgrag_assets.knowledge.sparql.errors import SparqlTimeoutError
from kgrag_assets_tests.knowledge.sparql.clients import client_of
from kgrag_assets_tests.retrieval.search_code.small_graph import NAMES, STATEMENTS, SmallGraph, run
from kgrag_assets_tests.servers.scripted import Reply
from kgrag_assets_tests.servers.sparql_server import ALIAS, DESCRIPTION, SparqlServer


@pytest.fixture
def server() -> Iterator[SparqlServer]:
    with SparqlServer() as running:
        for one, (label, aliases, about) in NAMES.items():
            local = one.removeprefix("wd:")
            running.name(local, label)
            for alias in aliases:
                running.name(local, alias, predicate=ALIAS)
            if about:
                running.name(local, about, predicate=DESCRIPTION)
        for head, relation, tail, value in STATEMENTS:
            if tail is not None:
                running.state([(head, relation, tail)])
            elif value is not None:
                running.value(head.removeprefix("wd:"), relation.removeprefix("wd:"), value)
        yield running


@pytest.fixture
def base(server: SparqlServer) -> Iterator[SparqlKnowledgeBase]:
    with client_of(server.url) as client:
        yield SparqlKnowledgeBase(client, name="wikidata")


CODE = """```python
info = entity_info("gender")
for name in ["date of birth", "birthday", "phlogiston"]:
    found = find_entity_or_value(name, "instance")
    for value in found.values:
        entity_info(value)
find_entity_or_value("person", "mass")
find_relationship("birthday", "date of birth")
if info and "sex" in info.aliases:
    find_relationship(info, "human")
print("done")
```"""


def test_a_program_finds_the_same_as_over_a_graph_in_memory(base: SparqlKnowledgeBase) -> None:
    outcome, found = run(base, CODE)
    other_outcome, other = run(SmallGraph(), CODE)
    assert outcome == other_outcome
    assert outcome.error.startswith("line 10: print is no function here; there are entity_info, find_entity_or_value, ")
    assert found.calls == other.calls == 9
    assert found.statements == other.statements
    assert len(found.statements) == 4
    assert found.unknown == other.unknown == ("phlogiston",)
    assert [(one.info.entity_id, one.info.label, one.info.description, one.link) for one in found.entities] == [
        (one.info.entity_id, one.info.label, one.info.description, one.link) for one in other.entities
    ]
    assert [set(one.info.aliases) for one in found.entities] == [set(one.info.aliases) for one in other.entities]


@pytest.mark.parametrize("name", ['" } DROP ALL #', "wd:Q1> ?x ?y } #", "\\u0000", 'x\\" y', "wd:\u0661"])
def test_names_that_would_be_queries_are_names(name: str, base: SparqlKnowledgeBase, server: SparqlServer) -> None:
    outcome, found = run(base, f"entity_info({name!r})\nfind_relationship({name!r}, 'gender')\nentity_info('gender')")
    assert outcome.error == ""
    assert [one.info.label for one in found.entities] == ["gender"]
    assert len(server.store) > 20


def test_an_endpoint_that_takes_too_long_ends_the_program(base: SparqlKnowledgeBase, server: SparqlServer) -> None:
    def fail_later(number: int) -> None:
        if number > 6:
            server.then(Reply(500, b"java.util.concurrent.TimeoutException", content_type="text/plain"))

    server.on_asked = fail_later
    try:
        outcome, found = run(base, CODE)
    except SparqlTimeoutError as error:  # pragma: no cover
        pytest.fail(str(error))
    assert "the graph took too long" in outcome.error
    assert outcome.over_budget
    assert found.entities[0].info.label == "gender"
