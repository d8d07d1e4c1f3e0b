"""The whole question about a pair as one vector: what it says, what it finds, and for which side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgrag_assets.models.embedders import EmbedProgress
from kgrag_assets.retrieval import queries as question_queries
from kgrag_assets.retrieval.assemble import RetrievedRows, queries_of, retrieve_task
from kgrag_assets.retrieval.entity_paths import HOP_DECAY, EntityPaths
from kgrag_assets.retrieval.pair_links import LinkedEntity, PairLinks
from kgrag_assets.retrieval.protocol import RetrievalError, RetrievalQuery, Retriever
from kgrag_assets.retrieval.queries import MAX_TEXT, QuestionVectors, question_text
from kgrag_assets.retrieval.question_links import QuestionLinking
from kgrag_assets.retrieval.seeds import RELATION_BONUS
from kgrag_assets.retrieval.support import UNSUPPORTED_LOSS, AttributeWords, content_words, sides_of
from kgrag_assets.retrieval.vector_triples import BOTH_SIDED, ONE_SIDED, VectorTriples
from kgrag_assets.rows.retrieved_subgraphs import RETRIEVED_SUBGRAPHS
from kgrag_assets.schemas.attribute import Attribute
from kgrag_assets.settings import RetrievalSettings
from kgrag_assets_tests.retrieval.small_world import (
    DIMENSION,
    MODEL,
    ListedSearch,
    Statement,
    TriplesOfRows,
    attributes,
    candidates,
    entities,
    index_of,
    names_of,
    triples,
    vector,
)

NAMES = {
    "wd:P569": ("date of birth", "date on which the subject was born"),
    "wd:Q2": ("sex", ""),
    "wd:Q3": ("civil parish", ""),
    "wd:Q4": ("calendar date", ""),
    "wd:Q5": ("unique identifier", ""),
    "wd:P31": ("instance of", ""),
}
STATEMENTS: list[Statement] = [
    ("wd:P569", "wd:P31", "wd:Q4"),
    ("wd:Q2", "wd:P31", "wd:Q3"),
    ("wd:Q3", "wd:P31", "wd:Q4"),
]
ENTITY_VECTORS = {
    "wd:P569": vector(a=1.0),
    "wd:Q2": vector(b=1.0),
    "wd:Q3": vector(c=1.0),
    "wd:Q5": vector(d=1.0),
}
SCHEMA = attributes({("source", "pat.birth_date"): "date of birth", ("target", "person.dob"): "birth date; sex"})
OPTIONS = RetrievalSettings(query_form="question", min_cosine=0.3, entities_per_attribute=2)


class Asked:
    """An embedder that gives every text the same vector, and remembers what it was asked."""

    model_id = MODEL
    dimension = DIMENSION

    def __init__(self, answer: np.ndarray) -> None:
        self.answer = answer
        self.texts: list[list[str]] = []

    def embed(self, texts: Sequence[str], progress: EmbedProgress | None = None) -> np.ndarray:  # noqa: ARG002 (the port's)
        self.texts.append(list(texts))
        return np.tile(self.answer, (len(texts), 1))


@dataclass
class World:
    """What the two methods search with one question."""

    embedder: Asked
    schema: pl.DataFrame = field(default_factory=lambda: SCHEMA)
    options: RetrievalSettings = OPTIONS

    def retrieve(self, existing: pl.DataFrame | None = None) -> RetrievedRows:
        questions = QuestionVectors(self.embedder)
        names = names_of(entities(NAMES), triples(STATEMENTS, NAMES))
        rows = triples(STATEMENTS, NAMES)
        near = dict(zip(rows["triple_id"], [vector(a=1.0), vector(b=1.0), vector(c=1.0)], strict=True))
        methods: list[Retriever] = [
            VectorTriples(
                vectors=questions, triple_index=index_of(near), triples=TriplesOfRows(rows), settings=self.options
            ),
            EntityPaths(
                linking=QuestionLinking(
                    questions=questions, entity_index=index_of(ENTITY_VECTORS), names=names, settings=self.options
                ),
                search=ListedSearch(STATEMENTS, self.options.max_hops),
                names=names,
                settings=self.options,
                graph_version="1",
            ),
        ]
        return retrieve_task(
            self.schema,
            candidates(self.schema),
            methods,
            RETRIEVED_SUBGRAPHS.empty() if existing is None else existing,
        )


def attribute(side: str, column: str, description: str = "", table_description: str = "") -> Attribute:
    return Attribute(side, side, "tab", column, "", "unknown", table_description, description)


def row(rows: RetrievedRows, method: str) -> dict[str, object]:
    return rows.frame.filter(pl.col("method") == method).row(0, named=True)


def test_the_question_names_both_attributes_with_tables_and_descriptions() -> None:
    asked = RetrievalQuery(
        "p",
        attribute("source", "pat_DOB", "Date of  birth.", "one row\na patient"),
        attribute("target", "x"),
    )
    assert question_text(asked) == (
        "Attribute 1 pat_DOB of table tab (one row a patient): Date of birth. Attribute 2 x of table tab. "
        "Are attribute 1 and attribute 2 the same?"
    )


@given(st.text(max_size=3000), st.text(max_size=3000))
def test_a_long_description_leaves_room_for_the_second_attribute(description: str, table: str) -> None:
    asked = RetrievalQuery("p", attribute("source", "a", description, table), attribute("target", "the_other"))
    text = question_text(asked)
    assert "Attribute 2 the_other of table tab" in text
    assert len(text) <= 2 * MAX_TEXT + 150


def test_both_methods_search_with_one_vector_of_each_question() -> None:
    world = World(Asked(vector(a=0.8, b=0.5)))
    first = world.retrieve()
    assert [len(texts) for texts in world.embedder.texts] == [1]
    assert world.embedder.texts[0] == [question_text(queries_of(SCHEMA, candidates(SCHEMA))[0])]
    again = world.retrieve(first.frame)
    assert (again.kept, again.computed) == (2, 0)
    assert len(world.embedder.texts) == 1
    edited = World(world.embedder, attributes({("source", "pat.birth_date"): "day", ("target", "person.dob"): ""}))
    assert edited.retrieve(first.frame).computed == 2


def test_seeds_belong_to_the_pair_and_to_the_side_whose_words_they_have() -> None:
    found = row(World(Asked(vector(a=0.7, b=0.5, c=0.4, d=0.3))).retrieve(), "entity_paths")
    seeds = found["seeds"]
    assert isinstance(seeds, list)
    # "civil parish" has words of neither: near to the question as a whole; an identifier says nothing.
    assert [(seed["label"], seed["side"], seed["rank"]) for seed in seeds] == [
        ("date of birth", "both", 1),
        ("sex", "target", 2),
        ("civil parish", "both", 3),
    ]
    assert seeds[0]["score"] == pytest.approx(0.7 * RELATION_BONUS, abs=1e-5)
    assert seeds[1]["score"] == pytest.approx(0.5, abs=1e-5)
    assert seeds[2]["score"] == pytest.approx(0.4 * (1 - UNSUPPORTED_LOSS), abs=1e-5)


def test_facts_lie_between_the_seeds_and_each_path_stands_once() -> None:
    found = row(World(Asked(vector(a=0.7, b=0.5, c=0.4))).retrieve(), "entity_paths")
    facts = found["facts"]
    assert isinstance(facts, list)
    assert [fact["text"] for fact in facts] == [
        "date of birth (P569): date on which the subject was born",
        "date of birth —instance of→ calendar date ←instance of— civil parish",
        "date of birth —instance of→ calendar date ←instance of— civil parish ←instance of— sex",
        "civil parish ←instance of— sex",
        "civil parish (Q3)",
    ]
    scores = {fact["text"]: fact["score"] for fact in facts}
    ends = (0.7 * RELATION_BONUS, 0.4 * (1 - UNSUPPORTED_LOSS))
    between = scores["date of birth —instance of→ calendar date ←instance of— civil parish"]
    assert between == pytest.approx(sum(ends) / 2 * HOP_DECAY**2, abs=1e-5)


def test_a_triple_whose_words_one_side_has_speaks_for_that_side() -> None:
    facts = row(World(Asked(vector(a=0.7, b=0.6, c=0.35))).retrieve(), "vector_triples")["facts"]
    assert isinstance(facts, list)
    scores = {fact["text"]: fact["score"] for fact in facts}
    # Two of three words are the source's, all of them the target's but "calendar".
    both = scores["date of birth —instance of→ calendar date"]
    assert both == pytest.approx(BOTH_SIDED * 0.7 * (1 - UNSUPPORTED_LOSS / 3), abs=1e-5)
    one = scores["sex —instance of→ civil parish"]
    assert one == pytest.approx(ONE_SIDED * 0.6 * (1 - UNSUPPORTED_LOSS * 2 / 3), abs=1e-5)


def test_what_has_words_of_neither_speaks_for_both_without_support() -> None:
    source, target = (AttributeWords((), content_words(text)) for text in ("birth date", "birth day"))
    assert sides_of("civil parish", source, target) == (0.0, 0.0)
    assert sides_of("date", source, target) == (1.0, None)
    assert sides_of("day", source, target) == (None, 1.0)
    assert sides_of("birth date", source, target) == (1.0, 0.5)


def test_a_question_has_twice_the_seeds_of_an_attribute() -> None:
    entries = [LinkedEntity(f"wd:Q{number}", 1.0 - number / 10, 0.5, 0.0) for number in range(6)]
    links = PairLinks(tuple(entries[::2]), tuple(entries[1:]), joint=True)
    best = links.best(2)
    assert [entry.entity_id for entry in best.ranked()] == ["wd:Q0", "wd:Q1", "wd:Q2", "wd:Q3"]
    assert [entry.entity_id for entry in best.source] == ["wd:Q0", "wd:Q2"]
    assert [entry.entity_id for entry in best.target] == ["wd:Q1", "wd:Q2", "wd:Q3"]


def test_questions_of_another_model_are_refused() -> None:
    other = Asked(vector(a=1.0))
    other.model_id = "other@2"
    with pytest.raises(RetrievalError, match=r"other@2, and entity_index holds vectors of fake@1"):
        QuestionVectors(other).refuse_other_model(index_of(ENTITY_VECTORS), "entity_index")
    QuestionVectors(other).refuse_other_model(index_of({}), "entity_index")


def test_vectors_kept_are_bounded_and_each_text_is_embedded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(question_queries, "KEPT", 3)
    embedder = Asked(vector(a=1.0))
    vectors = QuestionVectors(embedder)
    asked = [RetrievalQuery("p", attribute("source", f"c{number}"), attribute("target", "x")) for number in range(5)]
    assert vectors.of([*asked[:2], asked[0]]).shape == (3, DIMENSION)
    vectors.of(asked[:2])
    assert [len(texts) for texts in embedder.texts] == [2]
    vectors.of(asked[1:5])
    assert [len(texts) for texts in embedder.texts] == [2, 3]
    vectors.of(asked[:1])
    assert [len(texts) for texts in embedder.texts] == [2, 3, 1]
    assert vectors.of([]).shape == (0, DIMENSION)


def test_an_empty_graph_has_no_seed_and_embeds_nothing() -> None:
    embedder = Asked(vector(a=1.0))
    questions = QuestionVectors(embedder)
    names = names_of(entities({}), triples([], {}))
    method = EntityPaths(
        linking=QuestionLinking(questions=questions, entity_index=index_of({}), names=names, settings=OPTIONS),
        search=ListedSearch([]),
        names=names,
        settings=OPTIONS,
        graph_version="1",
    )
    query = queries_of(SCHEMA, candidates(SCHEMA))[0]
    assert method.retrieve([query])[0].status == "no_seed"
    assert embedder.texts == []
    assert method.key(query) != method.key(replace(query, target=query.source))
