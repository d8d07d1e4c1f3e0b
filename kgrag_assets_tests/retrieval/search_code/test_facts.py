"""From findings to facts: nearness to the attributes, paths against an oracle, and the scale of the scores."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kgrag_assets.knowledge.base import EntityInfo, Triple
from kgrag_assets.retrieval.entity_paths import HOP_DECAY
from kgrag_assets.retrieval.fusion import content_of
from kgrag_assets.retrieval.pair_links import LinkedEntity
from kgrag_assets.retrieval.search_code import facts
from kgrag_assets.retrieval.search_code.facts import facts_of, names_in
from kgrag_assets.retrieval.search_code.nearness import ASKED, OTHER_NAME, Nearness, Side
from kgrag_assets.retrieval.search_code.questions import Findings, FoundEntity
from kgrag_assets.retrieval.search_code.similarity import EmbedderSimilarity, WordSimilarity
from kgrag_assets.retrieval.seeds import RELATION_BONUS
from kgrag_assets.retrieval.support import UNSUPPORTED_LOSS, AttributeWords
from kgrag_assets.retrieval.vector_triples import BOTH_SIDED, ONE_SIDED
from kgrag_assets.settings import RankingSettings
from kgrag_assets_tests.retrieval.search_code.small_graph import attribute

NEAR = Nearness(WordSimilarity(), AttributeWords.of, min_cosine=0.45)


def entity(one: str, label: str, link: float = 1.0, aliases: tuple[str, ...] = (), kind: str = "entity") -> FoundEntity:
    return FoundEntity(EntityInfo(one, kind, label, aliases, ""), link)


def triple(head: str, tail: str | None, relation: str = "g:r", value: str | None = None) -> Triple:
    return Triple(head, relation, tail, value, head, relation, tail or value or "")


def side(links: Mapping[str, float], statements: Iterable[Triple] = (), near: float = 0.5) -> Side:
    linked = tuple(LinkedEntity(one, score, score, 0.0) for one, score in links.items())
    return Side(linked, dict.fromkeys(statements, near))


def told(source: Side, target: Side, max_hops: int = 3) -> dict[tuple[str, ...], tuple[str, Any]]:
    statements = [*source.statements, *target.statements]
    infos = [EntityInfo(link.entity_id, "entity", link.entity_id, (), "") for link in (*source.links, *target.links)]
    found = facts_of(source, target, names_in(infos, statements), max_hops).facts
    return {fact.nodes: (fact.kind, fact.score) for fact in found}


BIRTH = attribute("target", "person", "birth_date")


def test_an_entity_is_as_near_as_its_names_and_at_least_as_it_was_asked_for() -> None:
    found = Findings(
        (
            entity("g:1", "birth date", 0.0),
            entity("g:2", "gender"),
            entity("g:3", "gender", 0.0),
            entity("g:4", "date of birth record", 0.0),
            entity("g:5", "nativity", 0.0, ("x", "birth date")),
            entity("g:6", "birth date", 0.0, kind="relation"),
            entity("g:7", "identifier"),
            entity("g:8", "gender", 0.6),
        )
    )
    scores = {link.entity_id: link.score for link in NEAR.of_attribute(BIRTH, found).links}
    assert scores == {
        "g:1": 1.0,
        "g:2": pytest.approx(ASKED * (1 - UNSUPPORTED_LOSS)),
        "g:4": pytest.approx((2 / 6**0.5) * (1 - UNSUPPORTED_LOSS / 3), abs=1e-6),
        "g:5": pytest.approx(OTHER_NAME * (1 - UNSUPPORTED_LOSS * 0.3), abs=1e-6),
        "g:6": 1.0,
    }
    assert list(scores) == ["g:1", "g:6", "g:5", "g:4", "g:2"]


def test_what_two_programs_ask_for_whatever_the_attribute_is_not_shown() -> None:
    found = Findings((entity("g:1", "human"), entity("g:2", "sex")))
    both = told(NEAR.of_attribute(BIRTH, found), NEAR.of_attribute(attribute("source", "pat", "sex"), found))
    assert both[("g:1",)][1] < RankingSettings().min_score < both[("g:2",)][1]


def test_a_relation_is_worth_more_than_an_entity_of_the_name() -> None:
    found = Findings((entity("g:1", "sex"), entity("g:2", "sex", kind="relation")))
    scores = {link.entity_id: link.score for link in NEAR.of_attribute(BIRTH, found).links}
    worth = ASKED * (1 - UNSUPPORTED_LOSS)
    assert scores == {"g:1": pytest.approx(worth), "g:2": pytest.approx(worth * RELATION_BONUS)}


def test_a_statement_is_as_near_as_its_text_or_as_the_asked_entity() -> None:
    near_text = Triple("g:a", "g:r", "g:b", None, "birth", "has", "date")
    far = Triple("g:c", "g:r", None, "5", "mass", "is", "5")
    asked = Triple("g:z", "g:r", "g:2", None, "z", "is", "y")
    found = Findings((entity("g:2", "gender", 0.9),), (near_text, far, asked))
    near = NEAR.of_attribute(BIRTH, found).statements
    assert near == {near_text: 1.0, far: 0.0, asked: pytest.approx(HOP_DECAY * ASKED * 0.9 * (1 - UNSUPPORTED_LOSS))}


def test_of_a_pair_what_has_words_of_one_belongs_to_it_and_all_else_to_both() -> None:
    source = attribute("source", "pat", "sex")
    found = Findings(
        (entity("g:1", "sex"), entity("g:2", "birth date"), entity("g:3", "gender"), entity("g:4", "sex", 0.0)),
        (triple("g:1", "g:9"), Triple("g:1", "g:r", "g:8", None, "sex", "of", "person")),
    )
    first, second = NEAR.of_pair(source, BIRTH, found)
    assert [(link.entity_id, link.score) for link in first.links] == [
        ("g:1", 1.0),
        ("g:4", 1.0),
        ("g:3", pytest.approx(ASKED * (1 - UNSUPPORTED_LOSS))),
    ]
    assert [link.entity_id for link in second.links] == ["g:2", "g:3"]
    assert [triple.tail for triple in first.statements] == ["g:9", "g:8"]
    assert [triple.tail for triple in second.statements] == ["g:9"]


def test_a_shared_entity_speaks_for_both() -> None:
    assert told(side({"g:a": 0.9}), side({"g:a": 0.5})) == {("g:a",): ("shared_entity", 0.7)}


def test_a_statement_of_one_side_is_worth_less_than_half() -> None:
    one = triple("g:a", "g:b")
    assert told(side({}, [one], near=1.0), side({})) == {("g:a", "g:b"): ("triple", ONE_SIDED)}
    assert told(side({}), side({}, [one])) == {("g:a", "g:b"): ("triple", ONE_SIDED * 0.5)}
    both = told(side({}, [one], near=0.5), side({}, [one], near=0.7))
    assert both == {("g:a", "g:b"): ("triple", pytest.approx(BOTH_SIDED * 0.6))}


def test_a_path_that_is_one_statement_stands_once_with_its_better_score() -> None:
    one = triple("g:a", "g:b")
    assert told(side({"g:a": 0.9}, [one], near=0.1), side({"g:b": 0.7})) == {
        ("g:a", "g:b"): ("path", pytest.approx(0.8 * HOP_DECAY))
    }
    near = told(side({"g:a": 0.4}, [one], near=1.0), side({"g:b": 0.4}, [one], near=1.0))
    assert near == {("g:a", "g:b"): ("triple", BOTH_SIDED)}


def test_paths_run_over_the_statements_of_both_programs_against_their_direction_too() -> None:
    found = told(
        side({"g:a": 0.6}, [triple("g:a", "g:m")], near=0.0), side({"g:b": 0.8}, [triple("g:b", "g:m")], near=0.0)
    )
    assert found[("g:a", "g:m", "g:b")] == ("path", pytest.approx(0.7 * HOP_DECAY**2))


def test_a_literal_is_the_tail_of_a_triple_and_no_part_of_a_path() -> None:
    one = triple("g:a", None, value="g:b")
    assert told(side({"g:a": 0.6}, [one]), side({"g:b": 0.6})) == {("g:a", "g:b"): ("triple", ONE_SIDED * 0.5)}


def test_the_search_for_paths_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(facts, "MAX_LOOKS", 200)
    everything = [triple(f"g:{one}", f"g:{other}") for one, other in permutations(range(12), 2)]
    found = facts_of(side({"g:0": 0.9}, everything), side({"g:1": 0.9}), names_in([], everything), 3)
    assert found.exhausted
    # Short ones are found first.
    assert ("g:0", "g:1") in {fact.nodes for fact in found.facts if fact.kind == "path"}
    assert not facts_of(side({"g:0": 0.9}, everything), side({}), names_in([], everything), 1).exhausted


NODES = st.integers(0, 5).map(lambda number: f"g:{number}")
TRIPLES = st.lists(st.builds(triple, NODES, NODES, st.sampled_from(["g:r", "g:s"])), max_size=8, unique=True)
LINKS = st.dictionaries(NODES, st.sampled_from([0.3, 0.5, 0.9, 1.0]), max_size=3)


def every_walk(statements: Sequence[Triple], start: str, end: str, max_hops: int) -> list[list[Triple]]:
    """Try every sequence of statements: the oracle."""
    found = []
    for length in range(1, max_hops + 1):
        for chosen in permutations(statements, length):
            nodes = [start]
            for one in chosen:
                here = nodes[-1]
                if here not in (one.head, one.tail):
                    break
                other = one.tail if one.head == here else one.head
                if other is None or other in nodes:
                    break
                nodes.append(other)
            else:
                if nodes[-1] == end:
                    found.append(list(chosen))
    return found


@settings(max_examples=80, deadline=None)
@given(LINKS, LINKS, TRIPLES, TRIPLES, st.integers(1, 3))
def test_facts_are_those_of_the_oracle(
    ones: dict[str, float], others: dict[str, float], mine: list[Triple], theirs: list[Triple], hops: int
) -> None:
    source, target = side(ones, mine, near=0.8), side(others, theirs, near=0.4)
    statements = list(dict.fromkeys([*mine, *theirs]))
    best: dict[frozenset[tuple[str, ...]], float] = {}

    def found(content: Iterable[tuple[str, ...]], score: float) -> None:
        key = frozenset(content)
        best[key] = max(best.get(key, 0.0), score)

    for one, score in ones.items():
        for other, far in others.items():
            mean = (score + far) / 2
            if one == other:
                found([(one,)], mean)
            for walk in every_walk(statements, one, other, hops):
                found([(step.head, step.relation, str(step.tail)) for step in walk], mean * HOP_DECAY ** len(walk))
    for step in statements:
        both = step in mine and step in theirs
        score = BOTH_SIDED * 0.6 if both else ONE_SIDED * (0.8 if step in mine else 0.4)
        found([(step.head, step.relation, str(step.tail))], score)
    infos = [EntityInfo(one, "entity", one, (), "") for one in (*ones, *others)]
    result = facts_of(source, target, names_in(infos, statements), hops)
    assert {content_of(fact): fact.score for fact in result.facts} == pytest.approx(best)
    assert [fact.score for fact in result.facts] == sorted((fact.score for fact in result.facts), reverse=True)
    assert len({fact.fact_id for fact in result.facts}) == len(result.facts)
    stated = {(step.head, step.relation, step.tail) for step in statements}
    assert all((edge.head, edge.relation, edge.tail) in stated for fact in result.facts for edge in fact.edges)


def test_facts_read_as_those_of_the_other_methods() -> None:
    one = Triple("wd:Q1", "wd:P1", "wd:Q2", None, "birthday", "facet of", "date of birth")
    infos = [EntityInfo("wd:Q2", "entity", "date of birth", (), "when one was born")]
    found = facts_of(side({"wd:Q2": 1.0}, [one]), side({"wd:Q2": 1.0, "wd:Q1": 0.5}), names_in(infos, [one]), 2).facts
    assert [fact.text for fact in found] == [
        "date of birth (Q2): when one was born",
        "date of birth ←facet of— birthday",
    ]


class Letters:
    """An embedder of three letters that notes its texts."""

    model_id = "letters@1"
    dimension = 3

    def __init__(self) -> None:
        self.texts: list[str] = []

    def embed(self, texts: Sequence[str], progress: object = None) -> object:
        import numpy as np

        assert progress is None
        self.texts += texts
        made = np.array([[text.count(letter) for letter in "abc"] for text in texts], dtype=np.float32)
        return made / np.linalg.norm(made, axis=1, keepdims=True)


def test_an_embedder_compares_texts_and_embeds_each_once() -> None:
    letters = Letters()
    similarity = EmbedderSimilarity(letters)  # type: ignore[arg-type]  # returns an array
    assert letters.texts == []
    assert similarity("ab", ["a", "b", "c", "", "ab"]) == pytest.approx([0.5**0.5, 0.5**0.5, 0.0, 0.0, 1.0])
    assert similarity(" ", ["a"]) == [0.0]
    assert similarity("a", []) == []
    assert sorted(letters.texts) == ["a", "ab", "b", "c"]
    assert similarity.version == "embedder/letters@1"


def test_an_attribute_without_words_has_what_was_asked_for_by_name() -> None:
    wordless = attribute("source", "a", "_")
    found = Findings((entity("g:1", "birth"), entity("g:2", "birth", 0.0)), (triple("g:3", "g:4"),))
    near = NEAR.of_attribute(wordless, found)
    assert AttributeWords.of(wordless).phrases == ()
    assert [(link.entity_id, link.cosine) for link in near.links] == [("g:1", 0.0)]
    assert near.statements == {triple("g:3", "g:4"): 0.0}


def test_an_attribute_is_compared_with_all_that_was_found_at_once() -> None:
    calls: list[tuple[str, list[str]]] = []

    class Noting(WordSimilarity):
        def __call__(self, text: str, others: Sequence[str], /) -> list[float]:
            calls.append((text, list(others)))
            return super().__call__(text, others)

    near = Nearness(Noting(), AttributeWords.of, min_cosine=0.45)
    one = Triple("g:1", "g:r", "g:b", None, "birth", "has", "d" * 500)
    found = Findings((entity("g:1", "birth", aliases=("nativity",)), entity("g:2", "birth")), (one,))
    assert near.of_attribute(BIRTH, found) == NEAR.of_attribute(BIRTH, found)
    assert [text for text, _others in calls] == list(AttributeWords.of(BIRTH).phrases)
    assert all(others == ["birth", ("birth has " + "d" * 500)[:200]] for _text, others in calls)
    calls.clear()
    assert near.of_attribute(BIRTH, Findings()) == Side((), {})
    assert calls == []


@given(st.text(max_size=30), st.lists(st.text(max_size=30), max_size=4))
def test_words_in_common_are_a_cosine(text: str, others: list[str]) -> None:
    cosines = WordSimilarity()(text, others)
    assert len(cosines) == len(others)
    assert all(0.0 <= cosine <= 1.0 + 1e-9 for cosine in cosines)
    assert [WordSimilarity()(other, [text])[0] for other in others] == pytest.approx(cosines)


def test_words_of_one_stem_are_one() -> None:
    assert WordSimilarity()("dates of births", ["birth date", "birth", "time"]) == pytest.approx([1.0, 0.5**0.5, 0.0])
