"""Judgments are kept while what decides them stands; what has no answer is asked again."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import polars as pl
import pytest

from kgrag_assets.judging.offline import OfflineJudge
from kgrag_assets.judging.protocol import JudgePair, Judgment
from kgrag_assets.judging.stage import Judged, judge_pairs_of, judge_task
from kgrag_assets.rows.llm_judgments import LLM_JUDGMENTS
from kgrag_assets_tests.matching import candidates, contexts, groups, pair_id, schema

PAIRS = [("pat.dob", "person.birth"), ("pat.sex", "person.gender"), ("pat.dob", "person.gender")]
SCHEMA = schema(["pat.dob", "pat.sex"], ["person.birth", "person.gender"])
CANDIDATES = candidates({pair: 0.9 - 0.1 * place for place, pair in enumerate(PAIRS)})
NO_FACTS: dict[tuple[str, str], list[tuple[str, str]]] = {pair: [] for pair in PAIRS}


class Counting(OfflineJudge):
    """The offline judge that notes whom it was asked about, and stays silent on some."""

    def __init__(self, silent: Sequence[str] = ()) -> None:
        self.asked: list[str] = []
        self.silent = silent

    def judge(
        self,
        pairs: Sequence[JudgePair],
        wanted: Collection[str] | None = None,
        on_done: Callable[[Judgment], None] | None = None,
    ) -> list[Judgment]:
        self.asked += [pair.pair_id for pair in pairs if wanted is None or pair.pair_id in wanted]
        return [
            Judgment(found.pair_id, "timeout", None, None, "") if found.pair_id in self.silent else found
            for found in super().judge(pairs, wanted, on_done)
        ]


def judged(
    judge: Counting,
    existing: pl.DataFrame | None = None,
    attributes: pl.DataFrame = SCHEMA,
    found: dict[tuple[str, str], list[tuple[str, str]]] | None = None,
    kept: pl.DataFrame = CANDIDATES,
) -> tuple[Judged, list[int]]:
    progress: list[int] = []

    def start(total: int) -> Callable[[int], None]:
        progress.append(total)
        return progress.append

    result = judge_task(
        attributes=attributes,
        groups=groups(attributes),
        candidates=kept,
        contexts=contexts(NO_FACTS if found is None else found),
        existing=LLM_JUDGMENTS.empty() if existing is None else existing,
        judge=judge,
        values="shapes",
        start_progress=start,
    )
    LLM_JUDGMENTS.conform(result.frame)
    return result, progress


def test_every_pair_is_judged_once_in_the_order_of_blocking() -> None:
    judge = Counting()
    result, progress = judged(judge)
    assert judge.asked == [pair_id(*pair) for pair in PAIRS]
    assert progress == [3, 1, 1, 1]
    assert (result.kept, result.computed, result.removed) == (0, 3, 0)
    assert set(result.frame["pair_id"]) == {pair_id(*pair) for pair in PAIRS}


def test_nothing_is_asked_again_and_the_rows_stay() -> None:
    first, _ = judged(Counting())
    again = Counting()
    second, progress = judged(again, first.frame)
    assert again.asked == []
    assert progress == [0]
    assert (second.kept, second.computed, second.removed) == (3, 0, 0)
    assert second.frame.sort("pair_id").equals(first.frame.sort("pair_id"))


def test_a_changed_description_asks_about_its_own_pairs_only() -> None:
    first, _ = judged(Counting())
    edited = SCHEMA.with_columns(
        pl.when(pl.col("column_name") == "sex")
        .then(pl.lit("the gender"))
        .otherwise("column_description")
        .alias("column_description")
    )
    again = Counting()
    second, _ = judged(again, first.frame, attributes=edited)
    assert again.asked == [pair_id("pat.sex", "person.gender")]
    assert (second.kept, second.computed, second.removed) == (2, 1, 1)


def test_a_changed_context_asks_about_its_pair_only() -> None:
    first, _ = judged(Counting())
    again = Counting()
    second, _ = judged(again, first.frame, found={**NO_FACTS, PAIRS[0]: [("f1", "a fact")]})
    assert again.asked == [pair_id(*PAIRS[0])]
    row = second.frame.row(by_predicate=pl.col("pair_id") == pair_id(*PAIRS[0]), named=True)
    assert row["cited_facts"] == ["f1"]


def test_a_pair_without_an_answer_is_written_and_asked_again() -> None:
    lost = pair_id(*PAIRS[1])
    first, _ = judged(Counting([lost]))
    row = first.frame.row(by_predicate=pl.col("pair_id") == lost, named=True)
    assert (row["parse_status"], row["answer"], row["score"]) == ("timeout", None, None)
    again = Counting()
    second, _ = judged(again, first.frame)
    assert again.asked == [lost]
    assert second.frame.height == 3
    assert set(second.frame["parse_status"]) == {"parsed"}


def test_a_pair_without_a_context_waits_and_one_no_longer_wanted_goes() -> None:
    first, _ = judged(Counting())
    fewer = {pair: facts for pair, facts in NO_FACTS.items() if pair != PAIRS[0]}
    second, _ = judged(Counting(), first.frame, found=fewer)
    assert pair_id(*PAIRS[0]) not in set(second.frame["pair_id"])
    assert (second.kept, second.removed) == (2, 1)
    nothing, progress = judged(Counting(), first.frame, kept=CANDIDATES.clear())
    assert nothing.frame.is_empty()
    assert nothing.removed == 3
    assert progress == [0]


def test_a_pair_carries_its_attributes_facts_and_local_signals_only() -> None:
    found = {**NO_FACTS, PAIRS[0]: [("f1", "one"), ("f2", "two")]}
    pair = judge_pairs_of(SCHEMA, groups(SCHEMA), CANDIDATES, contexts(found))[0]
    assert (pair.source.column_name, pair.target.column_name) == ("dob", "birth")
    assert [(fact.fact_id, fact.text) for fact in pair.facts] == [("f1", "one"), ("f2", "two")]
    assert set(pair.signals) == {"cosine_full", "cosine_name", "name_similarity", "type_affinity", "table_similarity"}


def test_what_the_rest_of_the_schema_decides_is_in_no_key() -> None:
    judge = OfflineJudge()
    other = candidates({pair: 0.1 + 0.1 * place for place, pair in enumerate(PAIRS)}, bm25=7.0)
    wider = schema(["pat.dob", "pat.sex", "pat.zip"], ["person.birth", "person.gender"])
    before = judge.keys(judge_pairs_of(SCHEMA, groups(SCHEMA), CANDIDATES, contexts(NO_FACTS)))
    after = judge.keys(judge_pairs_of(wider, groups(wider), other, contexts(NO_FACTS)))
    assert sorted(before) == sorted(after)


def test_a_pair_tells_in_which_tables_its_columns_stand_too() -> None:
    wide = schema(["pat.dob", "visit.dob", "bill.dob"], ["person.birth"])
    grouped = groups(wide, {"visit.dob": "pat.dob", "bill.dob": "pat.dob"})
    kept = candidates({("pat.dob", "person.birth"): 0.9})
    (pair,) = judge_pairs_of(wide, grouped, kept, contexts({("pat.dob", "person.birth"): []}))
    assert (pair.source_tables, pair.target_tables) == (("bill", "visit"), ())


def test_a_judge_that_loses_an_answer_is_noticed() -> None:
    class Losing(Counting):
        def judge(
            self,
            pairs: Sequence[JudgePair],
            wanted: Collection[str] | None = None,
            on_done: Callable[[Judgment], None] | None = None,
        ) -> list[Judgment]:
            return super().judge(pairs, wanted, on_done)[1:]

    with pytest.raises(ValueError, match="asked about 3 pairs and answered 2"):
        judged(Losing())
