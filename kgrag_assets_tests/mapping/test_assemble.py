"""The rows of a mapping: each source attribute has a proposal or one no_match row, and every judged pair its place."""

from __future__ import annotations

from typing import Any

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from kgrag_assets.mapping.assemble import map_task, table_fits
from kgrag_assets.rows.attribute_mappings import ATTRIBUTE_MAPPINGS, DECISIONS
from kgrag_assets.settings import MappingSettings
from kgrag_assets_tests.matching import candidates, contexts, groups, ids, judgment, judgments, pair_id, schema

SOURCES = ("pat.dob", "pat.sex", "visit.start")
TARGETS = ("person.birth", "person.gender", "encounter.begin")
Name = tuple[str, str]

cases = st.dictionaries(
    st.tuples(st.sampled_from(SOURCES), st.sampled_from(TARGETS)),
    st.tuples(st.none() | st.floats(0, 1), st.sampled_from(["offline", "openai"]), st.booleans(), st.floats(0, 1)),
    max_size=9,
)
cardinalities = st.sampled_from(["1:1", "n:1", "n:m"])


def mapped(
    rows: list[dict[str, Any]],
    blocking: dict[Name, float],
    facts: dict[Name, list[tuple[str, str]]] | None = None,
    **options: Any,
) -> pl.DataFrame:
    frame = map_task(
        schema(SOURCES, TARGETS),
        groups(schema(SOURCES, TARGETS)),
        candidates(blocking),
        judgments(rows),
        contexts(facts or {}),
        MappingSettings.model_validate(options),
    )
    return ATTRIBUTE_MAPPINGS.conform(frame)


def rows_of(frame: pl.DataFrame, source: str) -> list[dict[str, Any]]:
    column = source.split(".")[1]
    return frame.filter(pl.col("source_column") == column).sort("rank", nulls_last=True).to_dicts()


@settings(deadline=None, max_examples=40)
@given(cases, cardinalities)
def test_each_source_has_a_proposal_or_one_no_match_row(
    found: dict[Name, tuple[float | None, str, bool, float]], cardinality: str
) -> None:
    frame = mapped(
        [judgment(*pair, score, answer, judge=judge) for pair, (score, judge, answer, _) in found.items()],
        {pair: blocking for pair, (_, _, _, blocking) in found.items()},
        cardinality=cardinality,
    )
    assert set(frame["decision"]) <= set(DECISIONS)
    for source in SOURCES:
        rows = rows_of(frame, source)
        decisions = [row["decision"] for row in rows]
        assert decisions.count("no_match") == (0 if "proposed" in decisions else 1)
        judged = [row for row in rows if row["decision"] != "no_match"]
        assert {row["pair_id"] for row in judged} == {pair_id(*pair) for pair in found if pair[0] == source}
        assert [row["rank"] for row in judged] == list(range(1, len(judged) + 1))
        scores = [row["score"] for row in judged]
        assert scores == sorted(scores, reverse=True)
        # What has no answer stands at the end.
        answered = [row["judge_score"] is not None for row in judged]
        assert answered == sorted(answered, reverse=True)
        assert all(row["reason"] for row in rows)
        for row in judged:
            assert row["decision"] == "alternative" or row["judge_score"] is not None
        for row in rows:
            if row["decision"] == "no_match":
                assert {row[name] for name in ("target_table", "target_column", "pair_id", "score", "rank")} == {None}


@settings(deadline=None, max_examples=40)
@given(cases, st.randoms(use_true_random=False))
def test_the_order_of_the_rows_that_come_in_does_not_matter(
    found: dict[Name, tuple[float | None, str, bool, float]], random: Any
) -> None:
    rows = [judgment(*pair, score, answer, judge=judge) for pair, (score, judge, answer, _) in found.items()]
    blocking = {pair: value for pair, (_, _, _, value) in found.items()}
    before = set(mapped(rows, blocking)["row_key"])
    random.shuffle(rows)
    assert set(mapped(rows, blocking)["row_key"]) == before


def test_a_models_no_is_an_alternative_that_says_so() -> None:
    pair = ("pat.dob", "person.birth")
    frame = mapped([judgment(*pair, 0.95, answer=False, reason="other thing")], {pair: 1.0}, min_score=0.0)
    alternative, no_match = rows_of(frame, "pat.dob")
    assert (alternative["decision"], no_match["decision"]) == ("alternative", "no_match")
    assert "judge says no" in alternative["reason"]
    assert "other thing" in alternative["reason"]
    assert "judge says no" in no_match["reason"]


def test_reasons_of_no_match() -> None:
    dob, sex = ("pat.dob", "person.birth"), ("pat.sex", "person.gender")
    frame = mapped([judgment(*dob, 0.01, judge="offline"), judgment(*sex, None)], {dob: 0.5, sex: 0.5})
    assert "person.birth" in rows_of(frame, "pat.dob")[-1]["reason"]
    assert "timeout" in rows_of(frame, "pat.sex")[0]["reason"]
    assert "no readable answer" in rows_of(frame, "pat.sex")[-1]["reason"]
    assert "no candidate" in rows_of(frame, "visit.start")[0]["reason"]


def test_in_1_to_1_a_column_whose_target_is_taken_says_so() -> None:
    first, second = ("pat.dob", "person.birth"), ("pat.sex", "person.birth")
    rows = [judgment(*first, 0.95), judgment(*second, 0.9)]
    frame = mapped(rows, {first: 1.0, second: 0.9}, cardinality="1:1")
    assert rows_of(frame, "pat.dob")[0]["decision"] == "proposed"
    assert "went to pat.dob" in rows_of(frame, "pat.sex")[-1]["reason"]
    both = mapped(rows, {first: 1.0, second: 0.9}, cardinality="n:1")
    assert both.filter(pl.col("decision") == "proposed").height == 2


def test_the_fact_shown_is_the_one_cited_or_else_the_first() -> None:
    cited, first, invented, none = [("pat.dob", target) for target in TARGETS] + [("pat.sex", "person.gender")]
    facts = [("f1", "one"), ("f2", "two")]
    frame = mapped(
        [
            judgment(*cited, 0.9, cited_facts=["f2"]),
            judgment(*first, 0.8),
            judgment(*invented, 0.7, cited_facts=["f9"]),
            judgment(*none, 0.9),
        ],
        dict.fromkeys([cited, first, invented, none], 0.5),
        {cited: facts, first: facts, invented: facts, none: []},
    )
    shown = dict(frame.filter(pl.col("pair_id").is_not_null()).select("pair_id", "top_fact").iter_rows())
    assert [shown[pair_id(*pair)] for pair in (cited, first, invented, none)] == ["two", "one", "one", ""]


def test_a_judgment_of_a_pair_that_is_no_candidate_is_left_out() -> None:
    pair, other = ("pat.dob", "person.birth"), ("pat.sex", "person.gender")
    frame = mapped([judgment(*pair, 0.9), judgment(*other, 0.9)], {pair: 1.0})
    assert set(frame["target_attribute_id"].drop_nulls()) == {ids(*pair)[1]}
    assert rows_of(frame, "pat.sex")[0]["decision"] == "no_match"


def test_a_task_without_attributes_has_no_rows() -> None:
    frame = map_task(
        schema([], []),
        groups(schema([], [])),
        candidates({}),
        judgments([]),
        contexts({}),
        MappingSettings.model_validate({}),
    )
    assert ATTRIBUTE_MAPPINGS.conform(frame).is_empty()


def test_a_judged_pair_is_a_row_for_each_pair_of_its_groups_and_the_fitting_table_is_first() -> None:
    frame = schema(
        ["person.person_no", "person.born", "visit.start"],
        ["patient.id", "patient.birth", "stay.id", "stay.begin"],
    )
    grouped = groups(frame, {"stay.id": "patient.id"})
    pairs = {
        ("person.person_no", "patient.id"): 0.8,
        ("person.born", "patient.birth"): 0.9,
        ("visit.start", "stay.begin"): 0.9,
    }
    rows = [judgment(*pair, 0.8) for pair in pairs]
    mapped_rows = map_task(frame, grouped, candidates(pairs), judgments(rows), contexts({}), MappingSettings())
    mine = rows_of(ATTRIBUTE_MAPPINGS.conform(mapped_rows), "person.person_no")
    assert [(row["target_table"], row["target_column"], row["decision"]) for row in mine] == [
        ("patient", "id", "proposed"),
        ("stay", "id", "alternative"),
    ]
    assert {row["judged_pair_id"] for row in mine} == {pair_id("person.person_no", "patient.id")}
    assert mine[1]["pair_id"] == pair_id("person.person_no", "stay.id")
    assert mine[0]["score"] > mine[1]["score"]
    level = map_task(frame, grouped, candidates(pairs), judgments(rows), contexts({}), MappingSettings(coherence=0.0))
    scores = {row["score"] for row in rows_of(level, "person.person_no")}
    assert len(scores) == 1


def test_tables_that_fit_each_other_best_lose_nothing() -> None:
    fits = table_fits({("a", "x"): 0.6, ("a", "y"): 0.2, ("b", "x"): 0.1, ("b", "y"): 0.5}, 1.0)
    assert fits["a", "x"] == fits["b", "y"] == 0.0
    assert fits["b", "x"] < fits["a", "y"] < 0.0
    assert min(fits.values()) >= -2.0
    assert table_fits({("a", "x"): 0.0}, 1.0) == {("a", "x"): 0.0}
