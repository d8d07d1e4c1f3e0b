"""Searching deeper only where it may help: never worse than searching to the end at once, and said in the notes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kgrag_assets.retrieval.adaptive import STRONG, Depth, depths_of, is_enough
from kgrag_assets.retrieval.entity_paths import EntityPaths
from kgrag_assets.retrieval.pair_links import LinkedEntity, PairLinks
from kgrag_assets.retrieval.protocol import RetrievalQuery, Subgraph
from kgrag_assets.retrieval.support import AttributeWords, content_words
from kgrag_assets.retrieval.vector_triples import VectorTriples
from kgrag_assets.retrieval.vectors import AttributeVectors
from kgrag_assets.retrieval.walks import CachedSearch
from kgrag_assets.schemas.attribute import Attribute
from kgrag_assets.settings import RetrievalSettings
from kgrag_assets_tests.retrieval.small_world import (
    Linked,
    ListedSearch,
    Statement,
    TriplesOfRows,
    attributes,
    candidates,
    embeddings,
    entities,
    index_of,
    names_of,
    triples,
    vector,
)

IDS = [f"wd:Q{number}" for number in range(7)]
LABELS = {**{one: (f"thing {one}", "") for one in IDS}, "wd:P1": ("is", ""), "wd:P2": ("has", "")}


def query() -> RetrievalQuery:
    source = Attribute("s", "source", "t", "a", "", "unknown", "", "")
    return RetrievalQuery("p", source, Attribute("t", "target", "u", "b", "", "unknown", "", ""))


def paths(links: PairLinks, statements: list[Statement], options: RetrievalSettings) -> tuple[Subgraph, ListedSearch]:
    search = ListedSearch(statements, options.max_hops)
    method = EntityPaths(
        linking=Linked(links),
        search=search,
        names=names_of(entities(LABELS), triples(statements, LABELS)),
        settings=options,
        graph_version="1",
    )
    return method.retrieve([query()])[0], search


def test_depths_grow_to_twice_the_seeds_and_no_path_is_longer_than_allowed() -> None:
    assert depths_of(3, RetrievalSettings()) == (Depth(3, 3),)
    wide = RetrievalSettings(adaptive=True)
    assert depths_of(3, wide) == (Depth(2, 1), Depth(3, 2), Depth(6, 3))
    assert depths_of(1, RetrievalSettings(adaptive=True, max_hops=1)) == (Depth(1, 1), Depth(2, 1))
    assert not is_enough([])
    assert not is_enough([STRONG - 0.01])
    assert is_enough([0.1, STRONG])


def link_lists(values: list[tuple[str, float]]) -> tuple[LinkedEntity, ...]:
    found = [LinkedEntity(entity, score, score, 0.0) for entity, score in dict(values).items()]
    return tuple(sorted(found, key=lambda entry: (-entry.score, entry.entity_id)))


SCORES = st.sampled_from([0.3, 0.45, 0.5, 0.55, 0.7, 0.9])
LINKS = st.lists(st.tuples(st.sampled_from(IDS), SCORES), max_size=6).map(link_lists)
STATEMENTS = st.lists(
    st.tuples(st.sampled_from(IDS), st.sampled_from(["wd:P1", "wd:P2"]), st.sampled_from(IDS)).filter(
        lambda one: one[0] != one[2]
    ),
    max_size=10,
    unique=True,
)


@given(LINKS, LINKS, STATEMENTS, st.integers(1, 3), st.integers(1, 3), st.booleans())
@settings(max_examples=300)
def test_the_best_fact_is_as_good_as_that_of_a_full_search_or_strong(
    source: tuple[LinkedEntity, ...],
    target: tuple[LinkedEntity, ...],
    statements: list[Statement],
    k: int,
    max_hops: int,
    joint: bool,
) -> None:
    if joint:
        # By one question an entity has one score, whichever sides it belongs to.
        scores = {entry.entity_id: entry.score for entry in (*source, *target)}
        source, target = (
            link_lists([(entry.entity_id, scores[entry.entity_id]) for entry in side]) for side in (source, target)
        )
    links = PairLinks(source, target, joint=joint)
    adaptive = RetrievalSettings(adaptive=True, entities_per_attribute=k, max_hops=max_hops, max_facts=1000)
    full = RetrievalSettings(entities_per_attribute=2 * k, max_hops=max_hops, max_facts=1000)
    found, _ = paths(links, statements, adaptive)
    whole, _ = paths(links, statements, full)
    if not source or not target:
        # One side alone has no path to search for: its surroundings are those of a full search.
        assert found.facts == whole.facts
        return
    best, possible = (max((fact.score for fact in one.facts), default=0.0) for one in (found, whole))
    # It can be better: where few seeds come down to one entity, its surroundings are facts, too.
    assert best >= min(possible, STRONG)


def test_a_strong_pair_is_searched_with_few_seeds_and_one_hop_only() -> None:
    strong = link_lists([("wd:Q1", 0.9), ("wd:Q2", 0.5), ("wd:Q3", 0.5)])
    found, search = paths(PairLinks(strong, strong), [("wd:Q1", "wd:P1", "wd:Q4")], RetrievalSettings(adaptive=True))
    assert found.notes == "searched 2 seeds for each attribute, 1 hop"
    assert search.asked == [("wd:Q1", "wd:Q2")]
    assert [seed.rank for seed in found.seeds] == [1, 2, 1, 2]


def test_a_weak_pair_is_searched_to_the_end_of_the_budget() -> None:
    source, target = link_lists([("wd:Q1", 0.5)]), link_lists([("wd:Q2", 0.5)])
    statements = [("wd:Q1", "wd:P1", "wd:Q3"), ("wd:Q3", "wd:P1", "wd:Q4"), ("wd:Q4", "wd:P1", "wd:Q2")]
    found, _ = paths(PairLinks(source, target), statements, RetrievalSettings(adaptive=True))
    assert found.notes == "searched 6 seeds for each attribute, 3 hops"
    assert [len(fact.edges) for fact in found.facts] == [3]
    plain, _ = paths(PairLinks(source, target), statements, RetrievalSettings())
    assert plain.notes == ""
    assert plain.facts == found.facts


def test_two_entities_that_both_sides_have_are_searched_once_for_the_better_pair() -> None:
    source = link_lists([("wd:Q1", 0.9), ("wd:Q2", 0.5)])
    target = link_lists([("wd:Q2", 0.8), ("wd:Q1", 0.6)])
    found, search = paths(PairLinks(source, target), [("wd:Q1", "wd:P1", "wd:Q2")], RetrievalSettings())
    assert search.asked == [("wd:Q1", "wd:Q2")]
    walked = [fact for fact in found.facts if fact.kind == "path"]
    assert [fact.score for fact in walked] == [pytest.approx((0.9 + 0.8) / 2 * 0.8)]


def test_of_two_hubs_only_the_walks_that_can_be_shown_are_held() -> None:
    statements = [("wd:Q0", "wd:P1", f"wd:M{number}") for number in range(9)]
    statements += [(f"wd:M{number}", "wd:P1", "wd:Q9") for number in range(9)]
    held = CachedSearch(ListedSearch(statements), keep=4)
    there, back = held.between("wd:Q0", "wd:Q9", 2), held.between("wd:Q9", "wd:Q0", 2)
    assert [walk.nodes[1] for walk in there.walks] == [f"wd:M{number}" for number in range(4)]
    assert [walk.reversed() for walk in back.walks] == list(there.walks)
    assert (there.cut, back.cut) == (5, 5)
    assert len(CachedSearch(ListedSearch(statements)).between("wd:Q0", "wd:Q9", 2).walks) == 9


SCHEMA = attributes({("source", "t.a"): "", ("target", "u.b"): ""})
PAIR = candidates(SCHEMA)


def near_triples(source: np.ndarray, near: list[np.ndarray], options: RetrievalSettings) -> Subgraph:
    statements = [("wd:Q1", "wd:P1", f"wd:Q{10 + number}") for number in range(len(near))]
    labels = {**LABELS, **{statement[2]: ("x", "") for statement in statements}}
    rows = triples(statements, labels)
    vectors = embeddings(SCHEMA, {"a": source, "b": source})
    method = VectorTriples(
        vectors=AttributeVectors(vectors),
        triple_index=index_of(dict(zip(rows["triple_id"], near, strict=True))),
        triples=TriplesOfRows(rows),
        settings=options,
        words=lambda _attribute: AttributeWords((), content_words("thing wd:Q1 x")),
    )
    ids = dict(SCHEMA.select("side", "attribute_id").iter_rows())
    sides = [Attribute(ids[side], side, "t", "a", "", "unknown", "", "") for side in ("source", "target")]
    return method.retrieve([RetrievalQuery(PAIR["pair_id"][0], *sides)])[0]


def test_triples_are_looked_at_further_only_where_the_best_may_be_beyond() -> None:
    options = RetrievalSettings(adaptive=True, triples_per_attribute=2, min_cosine=0.1)
    near = [vector(a=0.6 - place / 100) for place in range(10)]
    found = near_triples(vector(a=1.0), near, options)
    # The first is the best for both sides: nothing beyond can be better.
    assert len(found.facts) == 1
    assert found.notes == "looked at the best 1 triples of each attribute"
    assert len(near_triples(vector(a=1.0), near, RetrievalSettings(triples_per_attribute=2, min_cosine=0.1)).facts) == 2


@given(st.lists(st.tuples(SCORES, SCORES), min_size=1, max_size=8), st.integers(1, 3))
@settings(max_examples=60)
def test_the_best_triple_is_that_of_a_full_search_or_strong(cosines: list[tuple[float, float]], k: int) -> None:
    statements = [("wd:Q1", "wd:P1", f"wd:Q{10 + number}") for number in range(len(cosines))]
    labels = {**LABELS, **{statement[2]: ("x", "") for statement in statements}}
    rows = triples(statements, labels)
    near = [vector(a=one * 0.7, b=two * 0.7) for one, two in cosines]
    best = []
    for options in (
        RetrievalSettings(adaptive=True, triples_per_attribute=k, min_cosine=0.25),
        RetrievalSettings(triples_per_attribute=2 * k, min_cosine=0.25),
    ):
        method = VectorTriples(
            vectors=AttributeVectors(embeddings(SCHEMA, {"a": vector(a=1.0), "b": vector(b=1.0)})),
            triple_index=index_of(dict(zip(rows["triple_id"], near, strict=True))),
            triples=TriplesOfRows(rows),
            settings=options,
            words=lambda _attribute: AttributeWords((), content_words("thing wd:Q1 x")),
        )
        ids = dict(SCHEMA.select("side", "attribute_id").iter_rows())
        sides = [Attribute(ids[side], side, "t", "a", "", "unknown", "", "") for side in ("source", "target")]
        (found,) = method.retrieve([RetrievalQuery("p", *sides)])
        best.append(max((fact.score for fact in found.facts), default=0.0))
    assert best[0] == best[1] or best[0] >= STRONG


def test_the_setting_is_part_of_the_key() -> None:
    links = PairLinks((), ())
    keys = set()
    for options in (RetrievalSettings(), RetrievalSettings(adaptive=True)):
        method = EntityPaths(
            linking=Linked(links),
            search=ListedSearch([]),
            names=names_of(entities(LABELS), triples([], LABELS)),
            settings=options,
            graph_version="1",
        )
        keys.add(method.key(query()))
    assert len(keys) == 2
