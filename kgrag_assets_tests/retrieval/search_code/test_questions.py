"""The three questions: what a program sees of the answers, and what is kept of them."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from kgrag_assets.knowledge.base import EntityInfo, KnowledgeBase, Triple
from kgrag_assets.knowledge.lake_base import LakeKnowledgeBase
from kgrag_assets.knowledge.linking import LinkCandidate
from kgrag_assets.knowledge.sparql.errors import QueryRefusedError, SparqlError, SparqlTimeoutError
from kgrag_assets.retrieval.search_code.questions import MAX_ANSWERS, MAX_NAME
from kgrag_assets.retrieval.search_code.remembering import KEPT_NAMES, KEPT_STATEMENTS, RememberingBase
from kgrag_assets_tests.knowledge.named_entities import Named
from kgrag_assets_tests.knowledge.test_lake_base import lake_of
from kgrag_assets_tests.retrieval.search_code.small_graph import NAMES, STATEMENTS, SmallGraph, run

BIRTH_IS_TIME = Triple("wd:P569", "wd:P31", "wd:Q205", None, "date of birth", "instance of", "point in time")


def test_an_entity_by_name_is_linked_and_kept(graph: SmallGraph) -> None:
    _outcome, found = run(graph, 'entity_info("birthday")\nentity_info("Birth Date")')
    # By its label one, by an alias the other.
    assert [(one.info.entity_id, one.link) for one in found.entities] == [("wd:Q200", 1.0), ("wd:P569", 0.9)]
    assert found.statements == ()


def test_by_an_id_there_is_no_link_and_the_best_link_stands(graph: SmallGraph) -> None:
    _outcome, found = run(graph, 'entity_info("wd:P569")')
    assert [(one.info.entity_id, one.link) for one in found.entities] == [("wd:P569", 0.0)]
    _outcome, found = run(graph, 'entity_info("birth date")\nentity_info("date of birth")\nentity_info("wd:P569")')
    assert [(one.info.entity_id, one.link) for one in found.entities] == [("wd:P569", 1.0)]


def test_a_relation_leads_to_values_that_a_program_can_ask_about(graph: SmallGraph) -> None:
    outcome, found = run(
        graph,
        'birth = find_entity_or_value("date of birth", "instance")\n'
        "for value in birth.values:\n"
        '    if value.label == "point in time" and value.id == "wd:Q205" and birth.relation == "instance of":\n'
        "        entity_info(value)\n"
        'if birth.entity.label == "date of birth" and birth.description == "date on which the subject was born":\n'
        '    entity_info("gender")',
    )
    assert outcome.error == ""
    assert [one.info.label for one in found.entities] == ["date of birth", "point in time", "gender"]
    assert found.statements == (BIRTH_IS_TIME,)


def test_a_literal_is_a_value_without_an_id(graph: SmallGraph) -> None:
    outcome, found = run(
        graph,
        'a = find_entity_or_value("person", "mass")\nif a.values[0].id == "":\n    entity_info(a.values[0])',
    )
    assert outcome.error == ""
    assert found.statements == (Triple("wd:Q301", "wd:P2", None, "62 kilogram", "person", "mass", "62 kilogram"),)
    # The words are the graph's, not the model's.
    assert found.unknown == ()


def test_a_relationship_is_found_in_both_directions(graph: SmallGraph) -> None:
    outcome, found = run(
        graph,
        'between = find_relationship("point in time", "date of birth")\n'
        "for one in between.statements:\n"
        '    if one.head == "date of birth" and one.tail_id == "wd:Q205" and one.head_id == "wd:P569":\n'
        "        entity_info(one.tail_id)\n"
        'if between.first.id == "wd:Q205" and between.second.id == "wd:P569":\n'
        '    entity_info("gender")',
    )
    assert outcome.error == ""
    assert found.statements == (BIRTH_IS_TIME,)
    assert [one.info.label for one in found.entities] == ["point in time", "date of birth", "gender"]


def test_names_that_the_graph_does_not_know_are_noted_once(graph: SmallGraph) -> None:
    _outcome, found = run(
        graph,
        'entity_info("phlogiston")\nfind_entity_or_value("phlogiston", "mass")\n'
        'find_relationship("gender", "caloric")\nfind_relationship("aether", "gender")\nentity_info("wd:Q999")',
    )
    assert found.unknown == ("phlogiston", "caloric", "aether", "wd:Q999")
    assert found.calls == 5
    assert found.statements == ()
    assert [one.info.label for one in found.entities] == ["gender"]


def test_a_literal_found_as_an_end_is_known(graph: SmallGraph) -> None:
    _outcome, found = run(graph, 'find_relationship("person", "62 kilogram")')
    assert found.unknown == ()
    assert len(found.statements) == 1


def test_nothing_is_asked_about_nothing(graph: SmallGraph) -> None:
    outcome, found = run(
        graph,
        'none = entity_info("phlogiston")\nentity_info(none)\nfind_relationship(none, "gender")\n'
        'found = find_entity_or_value(none, "mass")\nfor value in found.values:\n    entity_info("gender")\n'
        'entity_info("")\nentity_info(None)\nentity_info("  ")\nfind_entity_or_value("gender", "")\n'
        'if found or none or find_relationship("", "").statements or none.aliases:\n    entity_info("person")\n'
        'entity_info(none.label)\nentity_info(found.entity)\nentity_info({"label": ""})',
    )
    assert outcome.error == ""
    assert (found.calls, found.entities, found.unknown) == (1, (), ("phlogiston",))


@pytest.mark.parametrize("argument", ['{"label": ["x"]}', '{"id": 7}', "[1]", "1.5"])
def test_what_is_no_name_is_an_error(argument: str, graph: SmallGraph) -> None:
    outcome, found = run(graph, f"entity_info({argument})")
    assert outcome.error == "line 1: entity_info takes names or ids"
    assert (found.calls, graph.asked) == (0, 0)


class Wide(SmallGraph):
    """One entity with many values and long texts."""

    def entity_info(self, entity: str) -> EntityInfo | None:
        known = super().entity_info(entity)
        return known and EntityInfo(entity, "entity", "x" * 5000, ("y" * 5000,) * 200, "z" * 5000)

    def entity_triples(self, entity: str, limit: int = 200) -> list[Triple]:
        return [
            Triple(entity, "wd:P2", None, f"{number} " + "w" * 3000, "gender", "mass", f"{number} " + "w" * 3000)
            for number in range(80)
        ][:limit]


def test_what_a_program_sees_is_bounded_and_the_rest_is_counted() -> None:
    code = (
        'found = find_entity_or_value("gender", "mass")\n'
        f"if len(found.values) == {MAX_ANSWERS} and len(found.entity.aliases) == 20:\n"
        "    if len(found.values[0].label) == 500 and len(found.entity.label) == 500:\n"
        '        if len(found.description) == 500:\n            find_relationship("gender", "0")\n'
        "entity_info(found.values[1])"
    )
    outcome, found = run(Wide(), code)
    assert outcome.error == ""
    assert found.left_out == 80 - MAX_ANSWERS
    assert found.calls == 3
    # What is kept is whole.
    assert len(found.statements[0].tail_label) > 3000
    assert found.unknown == ("0",)


def test_a_long_name_is_cut_before_it_is_looked_up() -> None:
    asked: list[str] = []

    class Noting(SmallGraph):
        def entity_linking(self, query: str, aliases: Sequence[str] = (), k: int = 10) -> list[LinkCandidate]:
            asked.append(query)
            return super().entity_linking(query, aliases, k)

    run(Noting(), f'entity_info("{"n" * 400}")')
    assert asked == ["n" * MAX_NAME]


class Failing(SmallGraph):
    """A remote graph that fails at its third entity."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error

    def entity_linking(self, query: str, aliases: Sequence[str] = (), k: int = 10) -> list[LinkCandidate]:
        if query == "person":
            raise self.error
        return super().entity_linking(query, aliases, k)


CODE = 'entity_info("gender")\nfind_entity_or_value("date of birth", "instance of")\nentity_info("person")'


def test_a_graph_that_took_too_long_ends_the_program_with_what_was_found() -> None:
    outcome, found = run(Failing(SparqlTimeoutError("example took\n60 s")), CODE)
    assert outcome.error == "line 3: the graph took too long: example took 60 s"
    assert outcome.over_budget
    assert (len(found.entities), len(found.statements)) == (2, 1)


def test_a_question_that_is_refused_ends_the_program_with_what_was_found() -> None:
    outcome, found = run(Failing(QueryRefusedError("bad")), CODE)
    assert (outcome.error, outcome.over_budget) == ("line 3: the graph cannot be asked so: bad", False)
    assert len(found.entities) == 2


def test_a_graph_that_is_down_is_no_concern_of_the_program() -> None:
    with pytest.raises(SparqlError, match="down"):
        run(Failing(SparqlError("down")), CODE)


def test_what_was_answered_is_remembered(graph: SmallGraph) -> None:
    base = RememberingBase(graph)
    assert base.name == "small"
    first = run(base, CODE)
    asked = graph.asked
    assert run(base, CODE) == first
    assert graph.asked == asked
    for number in range(KEPT_NAMES + 5):
        assert base.entity_info(f"wd:Q{number}0000") is None
    assert len(base._infos) <= KEPT_NAMES
    for limit in range(1, 60_000):
        base.entity_triples("wd:Q205", limit)
    assert sum(map(len, base._statements.values())) <= KEPT_STATEMENTS
    assert run(base, CODE) == first


def test_the_same_program_finds_the_same_in_the_lake(tmp_path_factory: pytest.TempPathFactory) -> None:
    named = [
        Named(one, label, aliases, description=about, kind="relation" if ":P" in one else "entity")
        for one, (label, aliases, about) in NAMES.items()
    ]
    lake = lake_of(tmp_path_factory.mktemp("lake"), named, [("g", *statement) for statement in STATEMENTS])
    base: KnowledgeBase = LakeKnowledgeBase(lake)
    code = (
        'entity_info("birthday")\nbirth = find_entity_or_value("date of birth", "instance")\n'
        "for value in birth.values:\n    entity_info(value)\n"
        'find_entity_or_value("person", "mass")\nfind_relationship("gender", "human")\nentity_info("phlogiston")'
    )
    outcome, found = run(base, code)
    other_outcome, other = run(SmallGraph(), code)
    assert outcome == other_outcome
    assert (found.statements, found.unknown, found.calls) == (other.statements, other.unknown, other.calls)
    assert [one.info for one in found.entities] == [one.info for one in other.entities]
