"""The three questions of a knowledge base through a real engine, and the further ones over them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kgrag_assets.knowledge.base import EntityInfo, KnowledgeBase, Triple
from kgrag_assets.knowledge.questions import find_entity_or_value, find_relationship
from kgrag_assets.knowledge.sparql.base import SparqlKnowledgeBase, spellings_of
from kgrag_assets.knowledge.sparql.errors import SparqlTimeoutError
from kgrag_assets.knowledge.sparql.vocabulary import Vocabulary
from kgrag_assets_tests.knowledge.sparql.clients import client_of
from kgrag_assets_tests.servers.scripted import Reply
from kgrag_assets_tests.servers.sparql_server import ALIAS, DESCRIPTION, SparqlServer


@pytest.fixture(scope="module")
def server() -> Iterator[SparqlServer]:
    with SparqlServer() as running:
        yield running


@pytest.fixture(autouse=True)
def graph(server: SparqlServer) -> None:
    server.clear()
    server.state([("Q12206", "P31", "Q12136"), ("Q12206", "P2176", "Q50265665"), ("Q3025883", "P1889", "Q12206")])
    server.name("Q12206", "diabetes")
    server.name("Q12206", "Diabetes mellitus", "de")
    server.name("Q12206", "DM", "en", ALIAS)
    server.name("Q12206", "Zuckerkrankheit", "de", ALIAS)
    server.name("Q12206", "group of metabolic disorders", "en", DESCRIPTION)
    server.name("Q3025883", "Diabetes")
    server.name("Q12136", "disease")
    server.name("Q50265665", "metformin", "mul")
    server.name("P31", "instance of")
    server.name("P2176", "drug used for treatment")
    server.name("P569", "date of birth")
    server.name("Q2389905", "date of birth")
    server.value("Q12206", "P494", "E14")


@pytest.fixture
def base(server: SparqlServer) -> Iterator[SparqlKnowledgeBase]:
    with client_of(server.url) as client:
        yield SparqlKnowledgeBase(client, name="wikidata")


def test_it_is_a_knowledge_base(base: KnowledgeBase) -> None:
    assert base.name == "wikidata"


def test_a_name_is_linked_by_label_and_alias_best_first(base: SparqlKnowledgeBase) -> None:
    found = base.entity_linking("diabetes")
    assert [(one.entity_id, one.label, one.score, one.matched) for one in found] == [
        ("wd:Q12206", "diabetes", 1.0, "diabetes"),
        ("wd:Q3025883", "Diabetes", 0.98, "Diabetes"),
    ]
    # Fewer than three letters: too many things are called DM.
    assert base.entity_linking("dm", aliases=["DM"]) == []


def test_other_spellings_and_other_names_are_found(server: SparqlServer, base: SparqlKnowledgeBase) -> None:
    server.name("Q7", "HBA", "en", ALIAS)
    assert [one.entity_id for one in base.entity_linking("Drug Used For Treatment")] == ["wd:P2176"]
    (found,) = base.entity_linking("unheard of", aliases=["hba"])
    assert (found.entity_id, found.label, found.matched) == ("wd:Q7", "HBA", "HBA")
    assert found.score == pytest.approx(0.9 * 0.9)


def test_among_equals_relations_come_first_and_k_bounds(base: SparqlKnowledgeBase) -> None:
    assert [one.entity_id for one in base.entity_linking("date of birth")] == ["wd:P569", "wd:Q2389905"]
    assert [one.entity_id for one in base.entity_linking("date of birth", k=1)] == ["wd:P569"]
    assert base.entity_linking("date of birth", k=0) == []


def test_names_in_other_languages_are_found_where_the_vocabulary_has_them(server: SparqlServer) -> None:
    with client_of(server.url) as client:
        assert SparqlKnowledgeBase(client).entity_linking("Zuckerkrankheit") == []
        (found,) = SparqlKnowledgeBase(client, Vocabulary(languages=("de", "en"))).entity_linking("zuckerkrankheit")
    assert (found.entity_id, found.label) == ("wd:Q12206", "Diabetes mellitus")


@pytest.mark.parametrize("text", ["", "x", "??", "\ud800abc", '" } UNION { ?e ?name ?what', "\\u0022 abc", "abc\n#"])
def test_any_text_can_be_asked_for(base: SparqlKnowledgeBase, text: str) -> None:
    assert base.entity_linking(text, aliases=[text]) == []


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=3, max_size=20))
def test_a_label_is_found_by_itself_whatever_it_is(server: SparqlServer, base: SparqlKnowledgeBase, text: str) -> None:
    server.store.clear()
    server.name("Q1", text.strip())
    found = base.entity_linking(text)
    assert all((one.entity_id, one.label, one.score) == ("wd:Q1", text.strip(), 1.0) for one in found)
    assert len(found) <= 1
    from kgrag_assets.knowledge.linking import MIN_PHRASE, folded

    assert bool(found) == (len(folded(text.strip())) >= MIN_PHRASE)


def test_spellings_are_few_and_begin_with_what_was_given() -> None:
    assert spellings_of("crohn's Disease") == [
        "crohn's Disease",
        "crohn's disease",
        "Crohn's disease",
        "Crohn's Disease",
        "CROHN'S DISEASE",
    ]
    assert spellings_of("42") == ["42"]


def test_an_entity_is_described_in_the_best_language(base: SparqlKnowledgeBase) -> None:
    assert base.entity_info("wd:Q12206") == EntityInfo(
        "wd:Q12206", "entity", "diabetes", ("DM",), "group of metabolic disorders"
    )
    assert base.entity_info("wd:Q50265665") == EntityInfo("wd:Q50265665", "entity", "metformin", (), "")
    assert base.entity_info("wd:P31") == EntityInfo("wd:P31", "relation", "instance of", (), "")


def test_without_a_name_an_entity_is_called_by_its_id(server: SparqlServer, base: SparqlKnowledgeBase) -> None:
    server.state([("Q1", "P7", "Q2")])
    for entity in ("wd:Q1", "wd:Q2"):
        info = base.entity_info(entity)
        assert info is not None
        assert info.label == entity[3:]
    assert base.entity_info("wd:Q404") is None
    assert base.entity_info("umls:C1") is None
    assert base.entity_info("wd:Q1> ?p") is None


def test_statements_come_in_their_true_direction_with_labels(base: SparqlKnowledgeBase) -> None:
    assert base.entity_triples("wd:Q12206") == [
        Triple("wd:Q12206", "wd:P2176", "wd:Q50265665", None, "diabetes", "drug used for treatment", "metformin"),
        Triple("wd:Q12206", "wd:P31", "wd:Q12136", None, "diabetes", "instance of", "disease"),
        Triple("wd:Q12206", "wd:P494", None, "E14", "diabetes", "P494", "E14"),
        Triple("wd:Q3025883", "wd:P1889", "wd:Q12206", None, "Diabetes", "P1889", "diabetes"),
    ]
    assert len(base.entity_triples("wd:Q12206", limit=2)) == 2
    assert base.entity_triples("wd:Q12206", limit=0) == []
    assert base.entity_triples("wd:Q404") == []
    assert base.entity_triples("umls:C1") == []


def test_values_that_nobody_knows_are_left_out(server: SparqlServer, base: SparqlKnowledgeBase) -> None:
    server.store.update(
        """
        PREFIX wd: <http://www.wikidata.org/entity/> PREFIX wdt: <http://www.wikidata.org/prop/direct/>
        INSERT DATA {
          wd:Q1 wdt:P1 _:b . wd:Q1 wdt:P1 <http://www.wikidata.org/.well-known/genid/0f> . wd:Q1 wdt:P1 wd:Q1 .
          wd:Q1 wdt:P2 <https://example.org/page> . wd:Q1 wdt:P1 wd:L1 . wd:L1 wdt:P1 wd:Q1 .
        }
        """
    )
    found = [(one.head, one.relation, one.tail, one.value) for one in base.entity_triples("wd:Q1")]
    assert ("wd:Q1", "wd:P1", "wd:Q1", None) in found
    assert ("wd:Q1", "wd:P2", None, "https://example.org/page") in found
    assert {one[0] for one in found} == {"wd:Q1"}
    assert not any("genid" in (one[3] or "") for one in found)


def test_a_graph_in_plain_rdf_answers_too(server: SparqlServer) -> None:
    server.store.update(
        """
        PREFIX ex: <http://ex.org/> PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#>
        INSERT DATA { ex:asa ex:treats ex:pain . ex:asa rdfs:label "Aspirin" . ex:treats rdfs:label "treats"@en .
                      ex:pain rdfs:label "Pain"@en . }
        """
    )
    with client_of(server.url) as client:
        base = SparqlKnowledgeBase(client, Vocabulary.of_rdf("ex", "http://ex.org/"))
        assert [one.entity_id for one in base.entity_linking("aspirin")] == ["ex:asa"]
        assert base.entity_triples("ex:pain") == [
            Triple("ex:asa", "ex:treats", "ex:pain", None, "Aspirin", "treats", "Pain")
        ]
        info = base.entity_info("ex:asa")
        assert info is not None
        assert info.label == "Aspirin"


def test_the_further_questions_are_answered_through_it(base: SparqlKnowledgeBase) -> None:
    def similarity(_text: str, others: Sequence[str]) -> list[float]:
        return [0.8 if "drug" in other else 0.1 for other in others]

    answer = find_entity_or_value(base, "diabetes", "medication", similarity)
    assert answer.source == "statements"
    assert [value.label for value in answer.values] == ["metformin"]
    (found,) = find_relationship(base, "metformin", "wd:Q12206").relationships
    assert (found.triple.relation_label, found.forward) == ("drug used for treatment", False)


def test_a_timeout_is_an_error_and_not_an_empty_answer(server: SparqlServer, base: SparqlKnowledgeBase) -> None:
    for ask in (base.entity_linking, base.entity_info, base.entity_triples):
        server.then(Reply(504, b""))
        with pytest.raises(SparqlTimeoutError):
            ask("wd:Q1")
