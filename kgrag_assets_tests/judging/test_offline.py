"""The offline judge: scores in 0..1, more evidence never lowers one, and keys hold what decides."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgrag_assets.judging.offline import PARTS, OfflineJudge, judge_pair, weigh
from kgrag_assets.judging.protocol import Evidence, JudgePair, Judgment
from kgrag_assets.judging.value_comparison import shape
from kgrag_assets.judging.value_evidence import value_evidence
from kgrag_assets_tests.matching import SIGNALS, attribute
from kgrag_assets_tests.matching import judge_pair as make_pair

unit = st.floats(0.0, 1.0)
cosine = st.floats(-1.0, 1.0)
signals = st.fixed_dictionaries(
    {
        "cosine_full": cosine,
        "cosine_name": cosine,
        "name_similarity": unit,
        "type_affinity": unit,
        "table_similarity": unit,
    }
)
kinds = st.sampled_from(["shared_entity", "path", "triple", "never heard of"])
facts = st.lists(st.tuples(kinds, st.floats(-1.0, 2.0)), max_size=4).map(
    lambda found: tuple(
        Evidence(f"f{place}", "text", kind, "method", score) for place, (kind, score) in enumerate(found)
    )
)
samples = st.lists(st.text(max_size=5), max_size=5).map(tuple)


def score_of(judgment: Judgment) -> float:
    assert judgment.score is not None
    return judgment.score


@given(signals, facts, samples, samples)
def test_any_pair_has_a_score_in_0_to_1_and_an_answer_that_fits(
    values: dict[str, float], found: tuple[Evidence, ...], left: tuple[str, ...], right: tuple[str, ...]
) -> None:
    source, target = attribute(sample_values=left), attribute("target", "person", "dob", sample_values=right)
    judgment = judge_pair(make_pair(source, target, found, **values))
    assert 0.0 <= score_of(judgment) <= 1.0
    assert judgment.answer == (score_of(judgment) >= 0.5)
    assert judgment.parse_status == "parsed"
    assert judgment.reason
    assert set(judgment.cited_facts) <= {fact.fact_id for fact in found}
    assert len(judgment.cited_facts) <= 1
    assert judgment.cost_usd == 0.0


@given(signals, facts, st.sampled_from(sorted(SIGNALS)), unit)
def test_more_of_a_signal_never_lowers_the_score(
    values: dict[str, float], found: tuple[Evidence, ...], name: str, more: float
) -> None:
    higher = {**values, name: max(values[name], more)}
    assert score_of(judge_pair(make_pair(facts=found, **higher))) >= score_of(
        judge_pair(make_pair(facts=found, **values))
    )


@given(signals, facts, facts)
def test_more_facts_never_lower_the_score_and_none_is_neutral(
    values: dict[str, float], found: tuple[Evidence, ...], more: tuple[Evidence, ...]
) -> None:
    none, some, all_of_them = (score_of(judge_pair(make_pair(facts=f, **values))) for f in ((), found, found + more))
    assert none <= some <= all_of_them
    worthless = (Evidence("f", "text", "path", "method", 0.0), Evidence("g", "text", "unheard of", "method", 1.0))
    unmoved = judge_pair(make_pair(facts=worthless, **values))
    plain = judge_pair(make_pair(**values))
    assert replace(unmoved, gate="no_facts", own_answer=None, own_score=None, conflict=None) == plain
    assert (unmoved.own_score, unmoved.conflict) == (plain.score, False)
    assert unmoved.gate == "off"


@given(signals, samples)
def test_shared_values_never_lower_the_score(values: dict[str, float], found: tuple[str, ...]) -> None:
    source, target = attribute(sample_values=found), attribute("target", "person", "dob")
    alone = score_of(judge_pair(make_pair(source, target, **values)))
    shared = score_of(judge_pair(make_pair(source, replace(target, sample_values=found), **values)))
    assert shared >= alone


@given(signals, facts)
def test_what_it_would_say_without_the_facts_is_told(values: dict[str, float], found: tuple[Evidence, ...]) -> None:
    judgment, without = judge_pair(make_pair(facts=found, **values)), judge_pair(make_pair(**values))
    assert (judgment.own_score, judgment.own_answer) == ((without.score, without.answer) if found else (None, None))
    assert judgment.conflict == (judgment.answer != without.answer if found else None)


def test_an_entity_that_both_name_counts_most_and_the_strongest_fact_is_cited() -> None:
    scores = {
        kind: score_of(judge_pair(make_pair(facts=(Evidence("f", "text", kind, "method", 1.0),))))
        for kind in ("shared_entity", "path", "triple")
    }
    assert max(scores, key=lambda kind: scores[kind]) == "shared_entity"
    assert min(scores.values()) > score_of(judge_pair(make_pair()))
    weak, strong = Evidence("w", "", "triple", "m", 0.9), Evidence("s", "", "shared_entity", "m", 0.8)
    assert judge_pair(make_pair(facts=(weak, strong))).cited_facts == ("s",)
    assert judge_pair(make_pair(facts=(strong, weak))).cited_facts == ("s",)


def test_the_extremes() -> None:
    best, worst = (
        judge_pair(make_pair(**dict.fromkeys(SIGNALS, 1.0))),
        judge_pair(make_pair(target=attribute("target", "bill", "payer"), **dict.fromkeys(SIGNALS, 0.0))),
    )
    assert score_of(best) > 0.95
    assert score_of(worst) < 0.05
    assert (best.answer, worst.answer) == (True, False)


def test_types_that_exclude_each_other_speak_against_a_pair() -> None:
    target = attribute("target", "person", "birth_date", type_family="boolean", data_type="boolean")
    assert score_of(judge_pair(make_pair(target=target))) < score_of(judge_pair(make_pair()))


def key_of(pair: JudgePair) -> str:
    return OfflineJudge().keys([pair])[0]


CHANGES: list[dict[str, Any]] = [
    {"column_description": "when the person was born, at birth"},
    {"column_description": "another"},
    {"table_description": "another"},
    {"type_family": "text"},
    {"sample_values": ("1",)},
    {"sample_values": ("2001-02-03",)},
    {"distinct_count": 7, "null_share": 0.1},
    {"is_primary_key": True},
]


@pytest.mark.parametrize("side", ["source", "target"])
@pytest.mark.parametrize("change", CHANGES, ids=str)
def test_the_key_changes_if_and_only_if_the_evidence_does(side: str, change: dict[str, Any]) -> None:
    values = ("2001-02-03", "1999-12-31")
    sides = {
        "source": attribute(sample_values=values, is_primary_key=False),
        "target": attribute("target", "person", "born", sample_values=values[:1], is_primary_key=False),
    }
    before = make_pair(sides["source"], sides["target"])
    assert key_of(before) == key_of(make_pair(replace(sides["source"]), replace(sides["target"])))
    changed = {**sides, side: replace(sides[side], **change)}
    after = make_pair(changed["source"], changed["target"])
    assert (key_of(after) == key_of(before)) == (weigh(after) == weigh(before))
    assert (judge_pair(after) == judge_pair(before)) or key_of(after) != key_of(before)


def test_what_changes_the_evidence_is_known() -> None:
    source, target = attribute(), attribute("target", "person", "born")
    plain = key_of(make_pair(source, target))
    assert key_of(make_pair(source, replace(target, type_family="text"))) != plain
    assert key_of(make_pair(source, replace(target, column_description="date of birth"))) != plain
    # Rows that are added to the data leave it as it is.
    assert key_of(make_pair(replace(source, distinct_count=8, null_share=0.2), target)) == plain


USED = ("cosine_full", "cosine_name", "table_similarity")


def test_the_key_changes_with_context_signals_facts_and_parts() -> None:
    fact = Evidence("f", "date of birth (P569)", "shared_entity", "entity_paths", 0.6)
    keys = [key_of(make_pair()), key_of(make_pair(context_key="other"))]
    keys += [key_of(make_pair(**{name: 0.25})) for name in USED]
    keys += [key_of(make_pair(facts=(fact,))), key_of(make_pair(facts=(replace(fact, fact_id="g"),)))]
    keys += [OfflineJudge(set(PARTS) - {part}).keys([make_pair()])[0] for part in PARTS]
    assert len(set(keys)) == len(keys)
    assert OfflineJudge(PARTS[::-1]).keys([make_pair()]) == [keys[0]]


def test_values_of_one_class_speak_for_a_pair() -> None:
    told = Evidence("values:class:g:sex", "the values of both sides are of one class", "values", "instance", 0.8)
    other = Evidence("values:overlap", "80% of the values", "values", "instance", 0.8)
    plain = make_pair()
    # What else the values say is weighed from the values themselves, and must not count twice.
    assert score_of(judge_pair(replace(plain, values=(other,)))) == score_of(judge_pair(plain))
    assert score_of(judge_pair(replace(plain, values=(told,)))) > score_of(judge_pair(plain))
    assert key_of(replace(plain, values=(told,))) != key_of(plain) == key_of(replace(plain, values=(other,)))


def test_a_part_that_is_left_out_is_not_looked_at() -> None:
    fact = Evidence("f", "date of birth (P569)", "shared_entity", "entity_paths", 0.6)
    pair = make_pair(facts=(fact,))
    assert judge_pair(pair, set(PARTS) - {"graph"}).cited_facts == ()
    assert judge_pair(pair).cited_facts == ("f",)
    assert weigh(pair, ()) == (None, [])
    assert {part for part in PARTS if weigh(pair, {part})[1]} == {
        "meaning",
        "words",
        "kinds",
        "tables",
        "types",
        "graph",
    }
    with pytest.raises(ValueError, match="unknown parts magic: use some of meaning"):
        OfflineJudge({"magic"})


@given(st.lists(signals, max_size=5))
def test_pairs_are_judged_in_order_and_told_one_by_one(several: list[dict[str, float]]) -> None:
    pairs = [
        make_pair(attribute(column=f"c{place}"), **values)  # a pair's own signals
        for place, values in enumerate(several)
    ]
    told: list[Judgment] = []
    judgments = OfflineJudge().judge(pairs, on_done=told.append)
    assert judgments == told == OfflineJudge().judge(pairs)
    assert [judgment.pair_id for judgment in judgments] == [pair.pair_id for pair in pairs]


def test_shapes_by_hand() -> None:
    assert shape("E11.9") == "a9.9"
    assert shape("2024-05-13") == "9-9-9"
    assert shape("Anna María") == "a a"
    assert shape(" ") == ""


@given(samples, samples)
def test_values_say_the_same_from_both_sides_and_nothing_where_one_has_none(
    left: tuple[str, ...], right: tuple[str, ...]
) -> None:
    source, target = attribute(sample_values=left), attribute("target", "person", "dob", sample_values=right)
    assert value_evidence(source, target) == value_evidence(target, source)
    assert value_evidence(source, replace(target, sample_values=())) == []


def test_values_are_compared_without_case_and_blanks() -> None:
    source, target = (
        attribute(sample_values=("M", "f ")),
        attribute("target", "person", "sex", sample_values=("m", "F")),
    )
    others = replace(target, sample_values=("1", "2"))
    assert value_evidence(source, target)[0].weight > 0 > value_evidence(source, others)[0].weight
