"""Texts and ids in queries: whatever they hold, they stay texts and ids."""

from __future__ import annotations

import pyoxigraph as ox
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kgrag_assets.knowledge.sparql.terms import iri, is_local, literal
from kgrag_assets.knowledge.sparql.vocabulary import Vocabulary

STORE = ox.Store()


def bound(term: str) -> ox.NamedNode | ox.Literal:
    """What an engine takes a term for."""
    results = STORE.query(f"SELECT ?x WHERE {{ VALUES ?x {{ {term} }} }}")
    assert isinstance(results, ox.QuerySolutions)
    (row,) = results
    found = row["x"]
    assert isinstance(found, ox.NamedNode | ox.Literal)
    return found


TEXTS = st.text(st.characters(exclude_categories=["Cs"]))


@given(TEXTS, st.sampled_from(["", "en", "de-CH"]))
@example('" } ; DROP ALL # \\', "")
@example("\\u0022 } \\U00000022", "en")
@example("a\r\n\t\b\f'''\"\"\"", "")
def test_a_text_comes_back_from_an_engine_as_it_was(text: str, language: str) -> None:
    found = bound(literal(text, language))
    assert isinstance(found, ox.Literal)
    assert found.value == text
    assert (found.language or "") == language.lower()


@given(st.text())
def test_a_text_is_one_literal_or_an_error(text: str) -> None:
    try:
        written = literal(text)
    except ValueError:
        assert any("\ud800" <= char <= "\udfff" for char in text)
        return
    assert isinstance(bound(written), ox.Literal)


def test_a_language_tag_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="language tag"):
        literal("x", 'en" . ?s ?p ?o')


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1) | st.text("aQ1%2F./#<>\\{}é\ufffd ", min_size=1))
@example("Q42> ?p ?o . <http://x")
@example("%3E")
@example("a/../b")
def test_an_id_that_is_let_through_means_itself(local: str) -> None:
    if not is_local(local):
        with pytest.raises(ValueError, match="not usable"):
            Vocabulary.of_rdf("ex", "http://example.org/").entity(local)
        return
    found = bound(Vocabulary.of_rdf("ex", "http://example.org/").entity(local))
    assert found == ox.NamedNode(f"http://example.org/{local}")


@pytest.mark.parametrize("local", ["Q42", "Berlin_(film)", "Dürre", "a%20b", "x/y", "日本", "hasPart-1.2"])
def test_ids_of_other_graphs_are_let_through(local: str) -> None:
    words = Vocabulary.of_rdf("ex", "http://example.org/")
    assert words.local_of(f"ex:{local}") == local
    assert words.entity_id(f"http://example.org/{local}") == f"ex:{local}"


@pytest.mark.parametrize(
    "entity", ["Q42", "umls:Q42", "wd:", "wd:L1-F1", "wd:Q42> <x", "wd:statement/Q42-1", "wd:Q4\n"]
)
def test_what_is_no_id_of_the_graph_is_none(entity: str) -> None:
    assert Vocabulary().local_of(entity) is None


@pytest.mark.parametrize(
    "text", ["http://x/>", "x", "http://x/ y", "http://x/{", "http://x/\\u003E", "http://x/\n", "//x"]
)
def test_an_iri_that_could_end_early_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="IRI"):
        iri(text)


def test_relations_are_known_by_the_iri_that_states_and_by_the_one_that_names() -> None:
    words = Vocabulary()
    assert words.relation_id("http://www.wikidata.org/prop/direct/P31") == "wd:P31"
    assert words.relation_id("http://www.wikidata.org/entity/P31") == "wd:P31"
    assert words.relation_id("http://www.wikidata.org/prop/P31") is None
    assert words.kind_of("http://www.wikidata.org/entity/P31") == "relation"


@pytest.mark.parametrize(
    "wrong",
    [
        {"entity_prefix": "Q"},
        {"label": "http://x/> ?p"},
        {"namespace": "w d"},
        {"languages": ()},
        {"languages": ("e n",)},
        {"id_pattern": "("},
    ],
)
def test_a_vocabulary_that_cannot_be_written_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong)).replace("languages", "language")):
        Vocabulary(**wrong)  # type: ignore[arg-type]
