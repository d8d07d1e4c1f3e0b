"""Questions over a knowledge base: answers from statements, from the description, and honest ones of nothing."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgrag_assets.knowledge.base import EntityInfo, KnowledgeBase, Triple
from kgrag_assets.knowledge.linking import LinkCandidate, folded
from kgrag_assets.knowledge.questions import FoundValue, find_entity_or_value, find_relationship

NAMES = {
    "wd:Q1": ("aspirin", "medication"),
    "wd:Q2": ("pain", ""),
    "wd:Q3": ("Bayer AG", "German company"),
    "wd:Q4": ("Aspirin", "album"),
    "wd:Q5": ("nothing known", "a word"),
    "wd:Q6": ("silent", ""),
    "wd:P1": ("medical condition treated", ""),
    "wd:P2": ("manufacturer", ""),
    "wd:P3": ("mass", ""),
    "wd:P4": ("performer", ""),
}
STATEMENTS: list[tuple[str, str, str | None, str | None]] = [
    ("wd:Q1", "wd:P1", "wd:Q2", None),
    ("wd:Q1", "wd:P2", "wd:Q3", None),
    ("wd:Q1", "wd:P3", None, "180.04 dalton"),
    ("wd:Q4", "wd:P4", "wd:Q3", None),
]


class Fake:
    """A graph in memory that counts what it is asked."""

    name = "fake"

    def __init__(self, statements: Sequence[tuple[str, str, str | None, str | None]] = STATEMENTS) -> None:
        self.statements = statements

    def entity_linking(self, query: str, aliases: Sequence[str] = (), k: int = 10) -> list[LinkCandidate]:
        wanted = {folded(text) for text in (query, *aliases)}
        found = [one for one, (label, _about) in NAMES.items() if folded(label) in wanted]
        return [LinkCandidate(one, NAMES[one][0], 1.0, query) for one in found][:k]

    def entity_info(self, entity: str) -> EntityInfo | None:
        if entity not in NAMES:
            return None
        return EntityInfo(entity, "entity", NAMES[entity][0], (), NAMES[entity][1])

    def entity_triples(self, entity: str, limit: int = 200) -> list[Triple]:
        return [
            Triple(head, by, tail, text, NAMES[head][0], NAMES[by][0], NAMES[tail][0] if tail else text or "")
            for head, by, tail, text in self.statements
            if entity in (head, tail)
        ][:limit]


def words_in_common(text: str, others: Sequence[str]) -> list[float]:
    """Stand in for an embedder: the share of words that two texts have in common."""
    words = set(text.lower().split())
    return [len(words & set(other.lower().split())) / len(words | set(other.lower().split())) for other in others]


def never(_text: str, _others: Sequence[str]) -> list[float]:
    raise AssertionError("nothing was to be compared")


BASE: KnowledgeBase = Fake()


def test_the_relation_is_found_by_similarity() -> None:
    answer = find_entity_or_value(BASE, "aspirin", "condition treated", words_in_common)
    assert answer.source == "statements"
    assert answer.entity is not None
    assert answer.entity.entity_id == "wd:Q1"
    assert (answer.relation, answer.relation_label) == ("wd:P1", "medical condition treated")
    assert answer.score == pytest.approx(2 / 3)
    assert answer.values == (FoundValue("wd:Q2", None, "pain"),)


def test_a_literal_is_an_answer_too() -> None:
    answer = find_entity_or_value(BASE, "wd:Q1", "mass", never)
    assert answer.values == (FoundValue(None, "180.04 dalton", "180.04 dalton"),)


@pytest.mark.parametrize("relation", ["wd:P2", "P2", "Manufacturer", " manufacturer "])
def test_a_relation_by_id_or_name_needs_no_similarity(relation: str) -> None:
    answer = find_entity_or_value(BASE, "wd:Q1", relation, never)
    assert (answer.relation, answer.score) == ("wd:P2", 1.0)


def test_the_first_entity_of_the_name_that_has_the_relation_answers() -> None:
    answer = find_entity_or_value(BASE, "Aspirin", "performer", words_in_common)
    assert answer.entity is not None
    assert (answer.entity.entity_id, answer.relation) == ("wd:Q4", "wd:P4")


def test_below_the_threshold_the_description_stands_in() -> None:
    answer = find_entity_or_value(BASE, "aspirin", "medical use in children", words_in_common)
    assert answer.source == "description"
    assert answer.description == "medication"
    assert answer.values == ()
    assert answer.relation is None
    assert 0 < answer.score < 0.5
    assert find_entity_or_value(BASE, "wd:Q5", "mass", never).source == "description"


@pytest.mark.parametrize("entity", ["unknown", "wd:Q99", "", ":", "wd:", "wd:Q6"])
def test_nothing_found_is_said(entity: str) -> None:
    answer = find_entity_or_value(BASE, entity, "mass", words_in_common)
    assert answer.source == "nothing"
    assert answer.values == ()
    assert answer.score == 0.0
    assert (answer.entity is None) == (entity != "wd:Q6")


def test_statements_that_reach_the_entity_are_none_of_its_relations() -> None:
    assert find_entity_or_value(BASE, "wd:Q2", "medical condition treated", words_in_common).source == "nothing"


def test_scores_that_are_no_numbers_are_like_nothing() -> None:
    answer = find_entity_or_value(BASE, "wd:Q1", "weight", lambda _text, others: [math.nan] * len(others))
    assert answer.source == "description"
    assert answer.score == 0.0
    with pytest.raises(ValueError, match="1 values for 3 texts"):
        find_entity_or_value(BASE, "wd:Q1", "weight", lambda _text, _others: [0.9])


@given(st.lists(st.floats(-1, 1), min_size=3, max_size=3), st.floats(-1, 1))
def test_the_best_relation_answers_exactly_where_it_reaches_the_threshold(scores: list[float], least: float) -> None:
    asked: list[Sequence[str]] = []

    def similarity(_text: str, others: Sequence[str]) -> list[float]:
        asked.append(others)
        return scores

    answer = find_entity_or_value(BASE, "wd:Q1", "weight", similarity, least)
    assert answer.score == max(scores)
    assert (answer.source == "statements") == (max(scores) >= least)
    if answer.source == "statements":
        assert scores[list(asked[0]).index(answer.relation_label)] == max(scores)


def test_a_relationship_is_found_from_both_sides_in_its_true_direction() -> None:
    one = find_relationship(BASE, "aspirin", "pain")
    two = find_relationship(BASE, "pain", "aspirin")
    (there,), (back,) = one.relationships, two.relationships
    assert there.triple == back.triple
    assert (there.triple.head, there.triple.tail) == ("wd:Q1", "wd:Q2")
    assert (there.forward, back.forward) == (True, False)
    assert there.score == back.score == 1.0
    assert one.first is not None
    assert one.second is not None
    assert (one.first.entity_id, one.second.entity_id) == ("wd:Q1", "wd:Q2")
    assert two.first == one.second
    assert two.second == one.first


def test_a_name_that_is_written_otherwise_is_recognised_where_words_overlap() -> None:
    answer = find_relationship(BASE, "wd:Q1", "Bayer A.G.")
    (found,) = answer.relationships
    assert found.triple.relation == "wd:P2"
    assert 0.75 <= found.score < 1.0
    assert answer.second is None
    assert find_relationship(BASE, "Bayer A.G.", "wd:Q1").relationships[0].forward is False
    # No word in common, though only one letter differs.
    assert find_relationship(BASE, "wd:Q1", "pains").relationships == ()
    assert find_relationship(BASE, "wd:Q1", "Bayer Leverkusen football club").relationships == ()


def test_a_literal_is_recognised() -> None:
    (found,) = find_relationship(BASE, "aspirin", "180.04 dalton").relationships
    assert found.triple.value == "180.04 dalton"
    assert found.forward


def test_a_hub_is_looked_up_from_the_other_side() -> None:
    crowd: list[tuple[str, str, str | None, str | None]] = [("wd:Q3", "wd:P3", None, str(n)) for n in range(50)]
    base = Fake([*crowd, ("wd:Q1", "wd:P2", "wd:Q3", None)])
    (found,) = find_relationship(base, "wd:Q3", "wd:Q1", max_triples=20).relationships
    assert (found.triple.head, found.forward) == ("wd:Q1", False)


def test_statements_both_ways_are_both_found() -> None:
    base = Fake(
        [("wd:Q1", "wd:P1", "wd:Q2", None), ("wd:Q2", "wd:P2", "wd:Q1", None), ("wd:Q1", "wd:P3", "wd:Q1", None)]
    )
    found = find_relationship(base, "wd:Q1", "wd:Q2").relationships
    assert [(one.triple.head, one.forward) for one in found] == [("wd:Q1", True), ("wd:Q2", False)]


@pytest.mark.parametrize(("one", "two"), [("unknown", "wd:Q1"), ("wd:Q1", "unknown"), ("wd:Q2", "wd:Q4"), ("", "")])
def test_no_relationship_is_an_empty_answer(one: str, two: str) -> None:
    assert find_relationship(BASE, one, two).relationships == ()
