"""The two vector methods against their definition, worked out by trying everything."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise, permutations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kgrag_assets.retrieval.entity_paths import HOP_DECAY, EntityPaths
from kgrag_assets.retrieval.pair_links import LinkedEntity, PairLinks
from kgrag_assets.retrieval.protocol import RetrievalQuery
from kgrag_assets.retrieval.support import UNSUPPORTED_LOSS, AttributeWords, content_words
from kgrag_assets.retrieval.vector_triples import BOTH_SIDED, ONE_SIDED, VectorTriples
from kgrag_assets.retrieval.vectors import AttributeVectors
from kgrag_assets.schemas.attribute import Attribute
from kgrag_assets.settings import RetrievalSettings
from kgrag_assets_tests.retrieval.small_world import (
    Linked,
    ListedSearch,
    Statement,
    TriplesOfRows,
    attributes,
    embeddings,
    entities,
    index_of,
    names_of,
    triples,
    vector,
)

IDS = [f"wd:Q{number}" for number in range(6)]
LABELS = {**{one: (f"thing {one}", "") for one in IDS}, "wd:P1": ("is", ""), "wd:P2": ("has", "")}
SCHEMA = attributes({("source", "t.a"): "", ("target", "u.b"): ""})
SIDES = [
    Attribute(attribute_id, side, "t", "a", "", "unknown", "", "")
    for side, attribute_id in SCHEMA.select("side", "attribute_id").iter_rows()
]
QUERY = RetrievalQuery("p", *SIDES)


def ranked(scores: dict[str, float]) -> tuple[LinkedEntity, ...]:
    entries = [LinkedEntity(entity, score, score, 0.0) for entity, score in scores.items()]
    return tuple(sorted(entries, key=lambda entry: (-entry.score, entry.entity_id)))


LINKS = st.dictionaries(st.sampled_from(IDS), st.sampled_from([0.3, 0.5, 0.6, 0.9]), min_size=1, max_size=5).map(ranked)
STATEMENTS = st.lists(
    st.tuples(st.sampled_from(IDS), st.sampled_from(["wd:P1", "wd:P2"]), st.sampled_from(IDS)).filter(
        lambda one: one[0] != one[2]
    ),
    max_size=9,
    unique=True,
)


def paths_by_definition(
    source: Sequence[LinkedEntity], target: Sequence[LinkedEntity], statements: list[Statement], max_hops: int
) -> dict[frozenset[Statement], float]:
    """Return the best score of each path between a seed of one side and one of the other, by its statements."""
    best: dict[frozenset[Statement], float] = {}
    for one, two in product(source, target):
        inner = [entity for entity in IDS if entity not in (one.entity_id, two.entity_id)]
        for hops in range(1, max_hops + 1):
            for between in permutations(inner, hops - 1):
                nodes = (one.entity_id, *between, two.entity_id)
                if one.entity_id == two.entity_id:
                    continue
                steps = [[s for s in statements if {s[0], s[2]} == {here, there}] for here, there in pairwise(nodes)]
                for walk in product(*steps):
                    score = round((one.score + two.score) / 2 * HOP_DECAY**hops, 6)
                    best[frozenset(walk)] = max(best.get(frozenset(walk), 0.0), score)
    return best


@given(LINKS, LINKS, STATEMENTS, st.integers(1, 3), st.integers(1, 3), st.booleans())
@settings(max_examples=150)
def test_paths_and_shared_entities(
    source: tuple[LinkedEntity, ...],
    target: tuple[LinkedEntity, ...],
    statements: list[Statement],
    k: int,
    max_hops: int,
    joint: bool,
) -> None:
    links = PairLinks(source, target, joint=joint)
    options = RetrievalSettings(entities_per_attribute=k, max_hops=max_hops, max_facts=1000)
    method = EntityPaths(
        linking=Linked(links),
        search=ListedSearch(statements, max_hops),
        names=names_of(entities(LABELS), triples(statements, LABELS)),
        settings=options,
        graph_version="1",
    )
    (found,) = method.retrieve([QUERY])
    if joint:
        order = sorted(
            {(-max(e.score for e in (*source, *target) if e.entity_id == i), i) for i in IDS if i in str(links)}
        )
        chosen = {entity for _, entity in order[: 2 * k]}
        seeds = [[entry for entry in side if entry.entity_id in chosen] for side in (source, target)]
    else:
        seeds = [list(source[:k]), list(target[:k])]
    expected = paths_by_definition(seeds[0], seeds[1], statements, max_hops)
    single = len({entry.entity_id for side in seeds for entry in side}) == 1
    walked = {
        frozenset((edge.head, edge.relation, edge.tail) for edge in fact.edges): fact.score
        for fact in found.facts
        if fact.kind == "path"
    }
    if not single and all(seeds):
        assert walked == pytest.approx(expected)
        assert len(walked) == sum(fact.kind == "path" for fact in found.facts)
    sides = seeds if joint else [list(source), list(target)]
    scores = [{entry.entity_id: entry.score for entry in side} for side in sides]
    shared = {entity: (scores[0][entity] + scores[1][entity]) / 2 for entity in scores[0].keys() & scores[1].keys()}
    assert {fact.nodes[0]: fact.score for fact in found.facts if fact.kind == "shared_entity"} == pytest.approx(shared)
    order_found = [fact.score for fact in found.facts]
    assert order_found == sorted(order_found, reverse=True)
    assert all(0.0 <= fact.score <= 1.0 for fact in found.facts)


# All different, so that no order hangs on the last bit of a cosine.
COSINES = st.permutations([0.2 + 0.03 * place for place in range(16)]).flatmap(
    lambda values: st.integers(0, 8).map(lambda count: list(zip(values[:count], values[8:], strict=False)))
)


@given(COSINES, st.integers(1, 4), st.sampled_from(["", "thing", "x thing"]))
@settings(max_examples=100)
def test_triples(cosines: list[tuple[float, float]], k: int, own: str) -> None:
    statements = [("wd:Q1", "wd:P1", f"wd:Q{10 + number}") for number in range(len(cosines))]
    labels = {"wd:Q1": ("thing", ""), "wd:P1": ("is", ""), **{statement[2]: ("x", "") for statement in statements}}
    rows = triples(statements, labels)
    ids = rows["triple_id"].to_list()
    near: dict[str, np.ndarray] = {one: vector(a=a, b=b) for one, (a, b) in zip(ids, cosines, strict=True)}
    method = VectorTriples(
        vectors=AttributeVectors(embeddings(SCHEMA, {"a": vector(a=1.0), "b": vector(b=1.0)})),
        triple_index=index_of(near),
        triples=TriplesOfRows(rows),
        settings=RetrievalSettings(triples_per_attribute=k, min_cosine=0.4),
        words=lambda _attribute: AttributeWords((), content_words(own)),
    )
    (found,) = method.retrieve([QUERY])
    kept = 1.0 - UNSUPPORTED_LOSS * (1.0 - len(own.split()) / 2)
    sides = [
        {one: pair[side] * kept for one, pair in zip(ids, cosines, strict=True) if pair[side] >= 0.4} for side in (0, 1)
    ]
    best = {one for side in sides for one in sorted(side, key=lambda one: -side[one])[:k]}
    expected: dict[str, float] = {}
    for one in best:
        of_sides = [side[one] for side in sides if one in side]
        expected[one] = BOTH_SIDED * sum(of_sides) / 2 if len(of_sides) == 2 else ONE_SIDED * of_sides[0]
    assert {fact.fact_id: fact.score for fact in found.facts} == pytest.approx(expected, abs=1e-3)
    scores = [fact.score for fact in found.facts]
    assert scores == sorted(scores, reverse=True)
