"""Fusion by reciprocal rank against sums of fractions, and the fused rows beside those of the methods."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgrag_assets.retrieval.assemble import RetrievedRows, retrieve_task
from kgrag_assets.retrieval.fusion import RRF_K, content_of, fuse, graphs_of
from kgrag_assets.retrieval.protocol import MAX_COUNT, Fact, FactEdge, RetrievalQuery, Seed, Subgraph
from kgrag_assets.retrieval.subgraph_rows import subgraph_of, subgraph_row
from kgrag_assets.rows.keys import key_of
from kgrag_assets.rows.retrieved_subgraphs import RETRIEVED_SUBGRAPHS
from kgrag_assets.settings import RetrievalSettings
from kgrag_assets_tests.retrieval.small_world import attributes, candidates

RRF = RetrievalSettings(fusion="rrf")


def triple(head: str, tail: str, score: float, kind: str = "triple") -> Fact:
    edge = FactEdge(head, "wd:P31", tail, head, "instance of", tail)
    return Fact(f"{kind}:{head}:{tail}", kind, f"{head} —instance of→ {tail}", score, (head, tail), (edge,))


def shared(entity: str, score: float) -> Fact:
    return Fact(f"shared:{entity}", "shared_entity", entity, score, (entity,), ())


def found(method: str, *facts: Fact, **rest: object) -> Subgraph:
    made = Subgraph(method, "found" if facts else "no_seed", (), facts, 0)
    return replace(made, **rest)  # type: ignore[arg-type]  # fields of Subgraph


FACTS = st.builds(
    lambda graph, head, tail, score, kind: (
        shared(f"{graph}:Q{head}", score)
        if kind == "shared_entity"
        else triple(f"{graph}:Q{head}", f"{graph}:Q{tail}", score, kind)
    ),
    graph=st.sampled_from(["wd", "umls"]),
    head=st.integers(1, 4),
    tail=st.integers(5, 7),
    score=st.sampled_from([0.0, 0.2, 0.5, 0.5, 0.9, 1.0]),
    kind=st.sampled_from(["triple", "path", "shared_entity"]),
)
SUBGRAPHS = st.lists(st.lists(FACTS, max_size=8), max_size=4).map(
    lambda lists: [
        found(method, *sorted(facts, key=lambda fact: -fact.score))
        for method, facts in zip(["vector_triples", "entity_paths", "search_code", "another"], lists, strict=False)
    ]
)


@given(SUBGRAPHS, st.randoms())
def test_order_and_scores_are_those_of_the_definition(subgraphs: list[Subgraph], random: st.randoms) -> None:  # type: ignore[valid-type]
    reciprocal: dict[frozenset[tuple[str, ...]], Fraction] = defaultdict(Fraction)
    best: dict[frozenset[tuple[str, ...]], float] = defaultdict(float)
    for subgraph in subgraphs:
        for graph in ("wd", "umls"):
            distinct: list[frozenset[tuple[str, ...]]] = []
            for fact in subgraph.facts:
                if fact.nodes[0].startswith(f"{graph}:") and content_of(fact) not in distinct:
                    distinct.append(content_of(fact))
            for rank, content in enumerate(distinct, start=1):
                reciprocal[content] += Fraction(1, 60 + rank)
        for fact in subgraph.facts:
            best[content_of(fact)] = max(best[content_of(fact)], fact.score)
    fused = fuse(subgraphs, 100)
    order = [content_of(fact) for fact in fused.facts]
    assert set(order) == set(reciprocal)
    assert len(order) == len(set(order))
    assert {content_of(fact): fact.score for fact in fused.facts} == dict(best)
    # Floats may tell sums apart that are equal, never turn round such as differ.
    values = [float(reciprocal[content]) for content in order]
    assert values == sorted(values, reverse=True)
    shuffled = list(subgraphs)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert fuse(shuffled, 100) == fused


@given(SUBGRAPHS, st.integers(1, 5))
def test_what_the_limit_leaves_out_is_counted(subgraphs: list[Subgraph], most: int) -> None:
    whole, few = fuse(subgraphs, 100), fuse(subgraphs, most)
    assert few.facts == whole.facts[:most]
    assert len(few.facts) + few.facts_cut == len(whole.facts) + whole.facts_cut


def test_a_fact_that_two_methods_found_passes_better_ones_that_one_found() -> None:
    agreed = triple("wd:Q1", "wd:Q2", 0.5)
    fused = fuse(
        [
            found("vector_triples", triple("wd:Q7", "wd:Q8", 0.9), agreed),
            found("entity_paths", shared("wd:Q9", 0.8), replace(agreed, kind="path", fact_id="path", score=0.6)),
        ],
        3,
    )
    # The better of the two scores, and the fact as that method told it.
    assert (fused.facts[0].fact_id, fused.facts[0].score) == ("path", 0.6)
    assert [fact.score for fact in fused.facts] == [0.6, 0.9, 0.8]
    assert fused.method == "fusion"
    assert fused.status == "found"


def test_each_graph_has_a_list_of_its_own() -> None:
    literal = Fact(
        "t", "triple", "…", 0.4, ("loinc:1", "1.5: mg"), (FactEdge("loinc:1", "loinc:u", "1.5: mg", "", "", ""),)
    )
    assert graphs_of(literal) == ("loinc",)
    several = [triple(f"wd:Q{number}", "wd:Q99", 0.9) for number in range(5)]
    fused = fuse([found("vector_triples", *several, literal)], 3)
    # First of its graph, it stands beside the first of the other.
    assert [fact.score for fact in fused.facts] == [0.9, 0.4, 0.9]


def test_all_else_is_of_all_methods() -> None:
    one = found(
        "search_code",
        facts_cut=MAX_COUNT,
        unverified=("a", "b"),
        notes="cut short",
        request_hashes=("h1", "h2"),
        status="no_answer",
    )
    two = found(
        "entity_paths",
        facts_cut=3,
        seeds=(Seed("wd:Q1", "one", "source", 1, 0.5), Seed("wd:Q2", "two", "source", 2, 0.4)),
        unverified=("b",),
        status="no_path",
        request_hashes=("h2",),
    )
    three = found("another", seeds=(Seed("wd:Q2", "two", "source", 1, 0.9),), status="cut")
    fused = fuse([one, two, three], 5)
    assert [(seed.entity_id, seed.rank, seed.score) for seed in fused.seeds] == [("wd:Q2", 1, 0.9), ("wd:Q1", 2, 0.5)]
    assert fused.unverified == ("b", "a")
    assert fused.request_hashes == ("h2", "h1")
    assert fused.notes == "search_code: cut short"
    assert fused.facts_cut == MAX_COUNT
    assert fused.status == "no_path"
    assert fuse([one], 5).status == "no_answer"
    assert fuse([], 5).status == "no_seed"
    assert RRF_K == 60


class Told:
    """A method that finds what it is told, and counts how often it is asked."""

    def __init__(self, name: str, *facts: Fact, version: str = "1", status: str | None = None) -> None:
        self.name = name
        self.facts = facts
        self.version = version
        self.status = status
        self.asked = 0

    def key(self, query: RetrievalQuery) -> str:
        return key_of(self.name, self.version, query.pair_id)

    def retrieve(self, queries: Sequence[RetrievalQuery]) -> list[Subgraph]:
        self.asked += len(queries)
        rest = {} if self.status is None else {"status": self.status}
        return [found(self.name, *self.facts, **rest) for _ in queries]


SCHEMA = attributes({("source", "pat.dob"): "", ("target", "p.birth"): "", ("target", "p.death"): ""})


def retrieved(
    methods: Sequence[Told], existing: pl.DataFrame | None = None, settings: RetrievalSettings = RRF
) -> RetrievedRows:
    told: list[int] = []
    totals: list[int] = []

    def start(total: int) -> object:
        totals.append(total)
        return told.append

    rows = retrieve_task(
        SCHEMA,
        candidates(SCHEMA),
        methods,
        RETRIEVED_SUBGRAPHS.empty() if existing is None else existing,
        start,  # type: ignore[arg-type]  # append takes the number
        settings,
    )
    assert sum(told) == totals[0]
    RETRIEVED_SUBGRAPHS.conform(rows.frame)
    return rows


def methods(version: str = "1") -> list[Told]:
    agreed = triple("wd:Q1", "wd:Q2", 0.5)
    return [Told("vector_triples", agreed), Told("entity_paths", shared("wd:Q3", 0.7), agreed, version=version)]


def test_fused_rows_stand_beside_those_of_the_methods() -> None:
    rows = retrieved(methods())
    assert sorted(rows.frame["method"]) == ["entity_paths"] * 2 + ["fusion"] * 2 + ["vector_triples"] * 2
    fused = rows.frame.filter(pl.col("method") == "fusion")
    assert [[fact["score"] for fact in facts] for facts in fused["facts"]] == [[0.5, 0.7], [0.5, 0.7]]
    alone = retrieved(methods(), settings=RetrievalSettings())
    assert "fusion" not in alone.frame["method"].to_list()


def test_an_unchanged_rerun_fuses_nothing_and_a_changed_method_fuses_again() -> None:
    first = retrieved(methods())
    again = retrieved(methods(), first.frame)
    assert (again.kept, again.computed, again.removed) == (6, 0, 0)
    changed = methods("2")
    second = retrieved(changed, first.frame)
    assert (second.kept, second.computed, second.removed) == (2, 4, 4)
    assert [method.asked for method in changed] == [0, 2]
    fewer = retrieved(methods(), first.frame, RetrievalSettings(fusion="rrf", max_facts=1))
    assert (fewer.kept, fewer.computed) == (4, 2)
    without = retrieved(methods(), first.frame, RetrievalSettings())
    assert (without.kept, without.computed, without.removed) == (4, 0, 2)


def test_a_row_without_an_answer_is_asked_for_again_and_its_fused_row_follows() -> None:
    silent = Told("search_code", status="no_answer")
    first = retrieved([*methods(), silent])
    again = retrieved([*methods(), silent], first.frame)
    # Asked again, with the same outcome: the rows, and with them the data version, are the same.
    assert silent.asked == 4
    assert set(again.frame["row_key"]) == set(first.frame["row_key"])
    assert (again.kept, again.computed) == (6, 2)
    better = Told("search_code", triple("wd:Q5", "wd:Q6", 0.9))
    second = retrieved([*methods(), better], again.frame)
    assert (second.kept, second.computed, second.removed) == (4, 4, 4)
    third = retrieved([*methods(), better], second.frame)
    assert (third.kept, third.computed) == (8, 0)


def test_a_row_is_read_back_as_it_was_written() -> None:
    subgraph = found(
        "entity_paths",
        shared("wd:Q3", 0.7),
        triple("wd:Q1", "wd:Q2", 0.5),
        seeds=(Seed("wd:Q1", "one", "both", 1, 0.5),),
        facts_cut=2,
        unverified=("x",),
        notes="n",
        request_hashes=("h",),
    )
    pair = candidates(SCHEMA).select(
        "task", "pair_id", "source_table", "source_column", "target_table", "target_column"
    )
    frame = RETRIEVED_SUBGRAPHS.frame([subgraph_row(pair.row(0, named=True), subgraph, "k")])
    assert subgraph_of(frame.row(0, named=True)) == subgraph


@pytest.mark.parametrize("settings", [None, RetrievalSettings()])
def test_without_methods_or_fusion_there_is_no_fused_row(settings: RetrievalSettings | None) -> None:
    rows = retrieve_task(SCHEMA, candidates(SCHEMA), [], RETRIEVED_SUBGRAPHS.empty(), settings=settings)
    assert rows.frame.is_empty()
    assert retrieved([]).frame.is_empty()
