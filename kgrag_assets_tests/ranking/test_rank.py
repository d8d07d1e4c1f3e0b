"""What is shown first, what counts once, and that a context stands while its facts stand."""

from __future__ import annotations

from collections.abc import Sequence

import hypothesis.strategies as st
import polars as pl
from hypothesis import given, settings

from kgrag_assets.ranking.facts import RankableFact
from kgrag_assets.ranking.rank import RankedRows, Ranking, rank_contexts, rank_facts
from kgrag_assets.ranking.scorers import FactScorer, FrequencyScorer, PairFacts
from kgrag_assets.rows.ranked_contexts import RANKED_CONTEXTS
from kgrag_assets.rows.retrieved_subgraphs import RETRIEVED_SUBGRAPHS
from kgrag_assets.schemas.attribute import attributes_of
from kgrag_assets.settings import RankingSettings
from kgrag_assets_tests.retrieval.small_world import TASK, attributes, candidates


def fact(kind: str, text: str, score: float, *relations: str, fact_id: str | None = None) -> dict[str, object]:
    edges = [
        {
            "head": f"h{place}",
            "relation": relation,
            "tail": f"t{place}",
            "head_label": f"{text} {place}",
            "relation_label": relation,
            "tail_label": "tail",
        }
        for place, relation in enumerate(relations)
    ]
    return {
        "fact_id": text if fact_id is None else fact_id,
        "kind": kind,
        "text": text,
        "score": score,
        "nodes": ["n"],
        "edges": edges,
    }


def rankable(kind: str, text: str, score: float, *relations: str) -> RankableFact:
    return RankableFact("m", kind, text, score, relations, fact(kind, text, score, *relations))


SCHEMA = attributes({("source", "a.x"): "", ("target", "b.y"): "", ("target", "b.z"): ""})
PAIRS = candidates(SCHEMA)
BY_ID = list(attributes_of(SCHEMA).values())
SHOWN_FROM = RankingSettings().min_score


def by_frequency(facts: list[RankableFact], top_n: int = 10) -> Ranking:
    scored = FrequencyScorer().scored([PairFacts(BY_ID[0], BY_ID[1], tuple(facts))])[0]
    return rank_facts(scored, RankingSettings(top_n=top_n))


def texts(facts: list[RankableFact], top_n: int = 10) -> list[str]:
    return [entry.text for entry in by_frequency(facts, top_n).best]


def test_by_score_across_methods_and_a_shared_entity_first_among_equals() -> None:
    facts = [
        rankable("triple", "t", 0.7, "r"),
        rankable("path", "p", 0.7, "r"),
        rankable("shared_entity", "s", 0.7),
        rankable("triple", "best", 0.8, "r"),
    ]
    assert texts(facts) == ["best", "s", "t", "p"]
    assert texts(facts, 2) == ["best", "s"]


def test_paths_of_the_pairs_frequent_relations_stand_first_and_length_does_not_win() -> None:
    facts = [
        rankable("path", "a", 0.8, "rare"),
        rankable("path", "b", 0.8, "usual"),
        rankable("path", "c", 0.8, "usual"),
        rankable("path", "long", 0.8, "usual", "usual", "rare2"),
    ]
    assert texts(facts) == ["b", "c", "long", "a"]
    ranked = by_frequency(facts, 10).best
    # usual stands in 3 of 4 paths, each rare one in 1: 0.8 * (0.5 + 0.5 * frequency), the long one's (3 + 3 + 1) / 12.
    assert [entry.score for entry in ranked] == [0.7, 0.7, 0.633, 0.5]


def test_near_duplicates_count_once_and_the_best_stays() -> None:
    same = [
        rankable("shared_entity", "Date of birth (P569): born", 0.6),
        rankable("shared_entity", "date of  birth (P569) - born!", 0.7),
    ]
    ranking = by_frequency(same, 10)
    assert ranking.considered == 1
    assert ranking.best[0].score == 0.7
    # A triple and the path of that one statement, read from its other end.
    one = RankableFact("a", "triple", "A —r→ B", 0.6, ("r",), fact("triple", "x", 0.6, "r"))
    other = RankableFact("b", "path", "B ←r— A", 0.5, ("r",), fact("path", "x", 0.5, "r"))
    assert texts([other, one]) == ["A —r→ B"]


scored = st.lists(
    st.tuples(
        st.sampled_from(["shared_entity", "triple", "path"]),
        st.sampled_from("abcdef"),
        st.floats(0, 1),
        st.lists(st.sampled_from(["r1", "r2", "r3"]), min_size=1, max_size=3),
    ),
    max_size=12,
)


@settings(max_examples=100, deadline=None)
@given(scored, st.integers(0, 5), st.randoms())
def test_ranking_does_not_depend_on_the_order_of_its_input(
    drawn: list[tuple[str, str, float, list[str]]], top_n: int, random: object
) -> None:
    facts = [
        rankable(kind, text, score, *([] if kind == "shared_entity" else relations))
        for kind, text, score, relations in drawn
    ]
    ranking = by_frequency(facts, top_n)
    scores = [entry.score for entry in ranking.best]
    assert scores == sorted(scores, reverse=True)
    assert all(score >= SHOWN_FROM for score in scores)
    assert len(ranking.best) <= min(top_n, ranking.considered)
    assert ranking.considered <= len(facts)
    assert all(score <= max(fact.score for fact in facts) + 1e-3 for score in scores)
    shuffled = list(facts)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    again = by_frequency(shuffled, top_n)
    assert [(entry.text, entry.score) for entry in again.best] == [(entry.text, entry.score) for entry in ranking.best]


def test_facts_that_hardly_speak_for_the_pair_are_counted_and_not_shown() -> None:
    weak = by_frequency([rankable("triple", "t", SHOWN_FROM - 0.01, "r")], 5)
    assert (weak.best, weak.spoke, weak.considered) == ((), False, 1)
    hidden = by_frequency([rankable("triple", "t", SHOWN_FROM, "r")], 0)
    assert (hidden.best, hidden.spoke, hidden.considered) == ((), True, 1)


def subgraphs(facts_of_y: list[dict[str, object]], key: str = "k") -> pl.DataFrame:
    rows = []
    for pair in PAIRS.select("pair_id", "source_table", "source_column", "target_table", "target_column").iter_rows(
        named=True
    ):
        found = facts_of_y if pair["target_column"] == "y" else []
        rows.append(
            {
                "task": TASK,
                **pair,
                "method": "vector_triples",
                "status": "found" if found else "no_seed",
                "seeds": [],
                "facts": found,
                "facts_cut": 0,
                "unverified": [],
                "notes": "",
                "request_hashes": [],
                "row_key": key + str(pair["pair_id"]),
            }
        )
    return RETRIEVED_SUBGRAPHS.frame(rows)


class CountingScorer(FrequencyScorer):
    """Counts the pairs that it scores."""

    def __init__(self) -> None:
        self.pairs = 0

    def scored(self, pairs: Sequence[PairFacts]) -> list[list[RankableFact]]:
        self.pairs += len(pairs)
        return super().scored(pairs)


def ranked_rows(
    rows: pl.DataFrame,
    existing: pl.DataFrame | None = None,
    options: RankingSettings | None = None,
    pairs: pl.DataFrame = PAIRS,
    scorer: FactScorer | None = None,
) -> RankedRows:
    known = RANKED_CONTEXTS.empty() if existing is None else existing
    return rank_contexts(SCHEMA, rows, pairs, options or RankingSettings(), scorer or FrequencyScorer(), known)


FACTS = [fact("triple", "t", 0.7, "r"), fact("triple", "u", 0.6, "r"), fact("triple", "v", 0.5, "r")]


def test_every_candidate_has_a_context_and_the_empty_one_says_so() -> None:
    ranked = ranked_rows(subgraphs(FACTS), options=RankingSettings(top_n=2))
    frame = RANKED_CONTEXTS.conform(ranked.frame).sort("target_column")
    assert frame["status"].to_list() == ["context", "no_subgraph"]
    assert frame["facts_considered"].to_list() == [3, 0]
    assert [entry["text"] for entry in frame["facts"][0]] == ["t", "u"]
    assert [entry["rank"] for entry in frame["facts"][0]] == [1, 2]
    assert frame["facts"][1].to_list() == []
    without = ranked_rows(RETRIEVED_SUBGRAPHS.empty())
    assert without.frame["status"].to_list() == ["no_subgraph", "no_subgraph"]


def test_a_context_stands_while_its_facts_stand_whatever_the_subgraphs_key() -> None:
    first = ranked_rows(subgraphs(FACTS))
    again = ranked_rows(subgraphs(FACTS, key="other"), first.frame)
    assert (again.kept, again.computed, again.removed) == (2, 0, 0)
    below = ranked_rows(subgraphs(FACTS[:2], key="fewer"), first.frame)
    assert (below.kept, below.computed) == (2, 0)


def test_another_fact_score_or_number_makes_a_new_context() -> None:
    first = ranked_rows(subgraphs(FACTS))
    for changed, options in (
        ([fact("triple", "t2", 0.7, "r"), *FACTS[1:]], RankingSettings()),
        ([fact("triple", "t", 0.72, "r"), *FACTS[1:]], RankingSettings()),
        ([fact("triple", "t", 0.7, "r", fact_id="t#2"), *FACTS[1:]], RankingSettings()),
    ):
        second = ranked_rows(subgraphs(changed, key="changed"), first.frame, options)
        assert (second.kept, second.computed, second.removed) == (1, 1, 1)
    more = ranked_rows(subgraphs(FACTS), first.frame, RankingSettings(top_n=3))
    assert (more.kept, more.computed, more.removed) == (0, 2, 2)


def test_a_dropped_pair_is_gone() -> None:
    first = ranked_rows(subgraphs(FACTS))
    fewer = PAIRS.filter(pl.col("target_column") == "y")
    second = ranked_rows(subgraphs(FACTS), first.frame, pairs=fewer)
    assert (second.kept, second.computed, second.removed) == (1, 0, 1)
    assert second.frame["target_column"].to_list() == ["y"]


def test_what_was_ranked_already_is_not_scored_again() -> None:
    scorer = CountingScorer()
    first = ranked_rows(subgraphs(FACTS), scorer=scorer)
    assert scorer.pairs == 2
    assert ranked_rows(subgraphs(FACTS), first.frame, scorer=scorer).frame.equals(first.frame)
    assert scorer.pairs == 2
    ranked_rows(subgraphs(FACTS, key="other"), first.frame, scorer=scorer)
    assert scorer.pairs == 4


def test_of_a_pair_with_fused_facts_only_those_are_ranked() -> None:
    fused = subgraphs([fact("triple", "fused", 0.6, "r")]).with_columns(
        method=pl.lit("fusion"), row_key=pl.lit("f") + pl.col("row_key")
    )
    both = pl.concat([subgraphs(FACTS), fused.filter(pl.col("target_column") == "y")])
    frame = ranked_rows(both).frame.sort("target_column")
    assert [entry["text"] for entry in frame["facts"][0]] == ["fused"]
    assert frame["facts"][0][0]["method"] == "fusion"


def test_near_duplicates_share_most_of_their_words() -> None:
    long = "a patient is a person who receives medical care from a doctor"
    facts = [rankable("shared_entity", long, 0.8), rankable("shared_entity", f"{long} today", 0.7)]
    assert texts(facts) == [long]
    assert by_frequency(facts).considered == 2
    facts[1] = rankable("shared_entity", "a patient is a human being", 0.7)
    assert len(texts(facts)) == 2
