"""What values say when they are compared: overlap, patterns, ranges, counts, classes; and that no value is told."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgrag_assets.judging.instance_evidence import instance_evidence
from kgrag_assets.judging.linked_values import classes_from, linked_values, value_classes
from kgrag_assets.judging.value_comparison import AT_LEAST, AT_MOST, compare_values, is_common, normalised
from kgrag_assets.knowledge.base import DEFAULT_TRIPLES, EntityInfo, Triple
from kgrag_assets.knowledge.linking import LexicalLinker, LinkCandidate
from kgrag_assets.rows.knowledge_graph import KG_ENTITIES
from kgrag_assets.schemas.attribute import Attribute
from kgrag_assets.schemas.value_profile import Pattern, ValueProfile, describe_values
from kgrag_assets_tests.judging.pairs import attribute

LEFT, RIGHT = attribute("source", "a", "x"), attribute("target", "b", "y")


def with_values(side: Attribute, values: list[str], distinct: int | None = None) -> Attribute:
    """Give an attribute values, profiled as a reader does."""
    profile = describe_values([(value, 1.0) for value in values], uniqueness=1.0)
    count = len(set(values)) if distinct is None else distinct
    return replace(side, sample_values=tuple(values[:10]), distinct_count=count, profile=profile)


def found(source: Attribute, target: Attribute) -> dict[str, str]:
    return {one.fact_id.removeprefix("values:"): one.text for one in instance_evidence(source, target, "shapes")}


def weights(source: Attribute, target: Attribute) -> dict[str, float]:
    return {one.what: one.weight for one in compare_values(source, target)}


@pytest.mark.parametrize(
    ("one", "other"), [("Mg ", "mg"), ("1.0", "1"), ("1e3", "1000"), ("ﬁne", "fine"), ("New  York", "new york")]
)
def test_equal_values_meet_however_they_are_written(one: str, other: str) -> None:
    assert normalised(one) == normalised(other)


def test_codes_with_leading_zeros_are_no_numbers() -> None:
    assert normalised("007") != normalised("7")


@pytest.mark.parametrize(("value", "common"), [("1", True), ("y", True), ("no", True), ("2024", False), ("e11", False)])
def test_values_that_any_column_may_hold(value: str, *, common: bool) -> None:
    assert is_common(value) is common


def test_telling_values_say_more_than_common_ones() -> None:
    telling = weights(replace(LEFT, sample_values=("e11.9", "i10")), replace(RIGHT, sample_values=("E11.9", "I10")))
    common = weights(replace(LEFT, sample_values=("0", "1")), replace(RIGHT, sample_values=("1", "0")))
    assert telling["overlap"] > 3 * common["overlap"] > 0


def test_ranges_of_years() -> None:
    born = with_values(LEFT, [f"{year}-05-01" for year in range(1930, 2010)])
    also = with_values(RIGHT, [f"01/05/{year}" for year in range(1940, 2012)])
    visited = with_values(RIGHT, [f"{year}-05-01" for year in range(2015, 2020)])
    assert found(born, also)["range"] == "the years of both sides lie in ranges that overlap by 90%"
    assert found(born, visited)["range"] == "the years of the two sides lie in ranges apart"
    assert weights(born, also)["range"] > 0 > weights(born, visited)["range"]


def test_ranges_of_numbers_but_not_of_running_numbers() -> None:
    def profiled(side: Attribute, low: float, high: float, uniqueness: float) -> Attribute:
        middle = (low + high) / 2
        profile = ValueProfile(uniqueness=uniqueness, minimum=low, quartile_1=low, median=middle, quartile_3=high)
        return replace(side, profile=replace(profile, maximum=high))

    assert "overlap by 50%" in found(profiled(LEFT, 0, 100, 0.3), profiled(RIGHT, 0, 50, 0.3))["range"]
    assert found(profiled(LEFT, 0, 9, 0.3), profiled(RIGHT, 50, 90, 0.3)) == {
        "range": "the numbers of the two sides lie in ranges apart"
    }
    assert found(profiled(LEFT, 0, 9, 1.0), profiled(RIGHT, 50, 90, 1.0)) == {}
    # Measurements may all be different, too.
    measured = replace(profiled(LEFT, 0, 9, 1.0), type_family="decimal")
    assert "apart" in found(measured, profiled(RIGHT, 50, 90, 1.0))["range"]


def test_a_key_is_no_flag() -> None:
    flag = replace(LEFT, distinct_count=2)
    key = replace(RIGHT, distinct_count=40_000)
    assert found(flag, key) == {"distinct": "the source has a handful of different values, the other side many"}
    assert found(replace(LEFT, distinct_count=9), replace(RIGHT, distinct_count=2)) == {
        "distinct": "both sides have a handful of different values"
    }
    unique = ValueProfile(uniqueness=1.0)
    both = found(replace(LEFT, distinct_count=500, profile=unique), replace(key, profile=unique))
    assert both == {"distinct": "nearly all values are different, on both sides"}
    assert found(replace(LEFT, distinct_count=50), key) == {}


def test_codes_are_no_texts() -> None:
    code, text = (
        with_values(LEFT, ["a1", "b2"]),
        with_values(RIGHT, ["a long story about it", "another long story told"]),
    )
    assert found(code, text)["length"] == "the values of one side are several times as long as the other's"


def test_patterns_of_a_profile_count_by_their_shares() -> None:
    def written(side: Attribute, *patterns: tuple[str, float]) -> Attribute:
        told = tuple(Pattern(pattern, share) for pattern, share in patterns)
        return replace(side, sample_values=(f"{side.side}",), profile=ValueProfile(patterns=told))

    codes = written(LEFT, ("A99.9", 0.8), ("A99", 0.2))
    assert found(codes, written(RIGHT, ("AA99.9", 0.5), ("Aa+", 0.5)))["shape"].startswith("50%")
    assert "different ways" in found(codes, written(RIGHT, ("9999-99-99", 1.0)))["shape"]


values = st.lists(st.text(max_size=12) | st.integers(-99, 9999).map(str) | st.dates().map(str), max_size=12)


@given(values, values)
def test_both_sides_say_the_same_and_all_of_it_is_bounded(mine: list[str], other: list[str]) -> None:
    left, right = with_values(LEFT, mine), with_values(RIGHT, other)
    forward, backward = compare_values(left, right), compare_values(right, left)
    assert [(one.what, one.score, one.weight) for one in forward] == [
        (one.what, one.score, one.weight) for one in backward
    ]
    assert AT_LEAST - 1e-9 <= sum(one.weight for one in forward) <= AT_MOST + 1e-9
    assert all(0.0 <= one.score <= 1.0 + 1e-9 for one in forward)
    assert len({one.what for one in forward}) == len(forward)


@given(st.lists(st.from_regex(r"[b-z]{4}[0-9]{3}", fullmatch=True), min_size=1, max_size=8, unique=True))
def test_no_value_is_told(mine: list[str]) -> None:
    left, right = with_values(LEFT, mine), with_values(RIGHT, [*mine, "zzzz123"])
    for one in instance_evidence(left, right, "masked"):
        assert not any(value in one.text for value in mine)
        assert re.fullmatch(r"values:[a-z]+", one.fact_id)
    assert instance_evidence(left, right, "local") == ()


CLASSES = {"male": "sex", "female": "sex", "milligram": "unit of mass", "kilogram": "unit of mass", "film": "film"}


class SexesAndUnits:
    """A small graph: two sexes, two units, and a film called male."""

    name = "small"

    def entity_linking(self, query: str, aliases: Sequence[str] = (), k: int = 10) -> list[LinkCandidate]:
        return linker().link(" ".join([query, *aliases]), k)

    def entity_info(self, entity: str) -> EntityInfo | None:
        raise NotImplementedError(entity)

    def entity_triples(self, entity: str, limit: int = DEFAULT_TRIPLES) -> list[Triple]:
        label = entity.removeprefix("g:")
        kind = CLASSES[label]
        return [
            Triple(entity, "g:P31", f"g:{kind}", None, label, "instance of", kind),
            Triple(entity, "g:P1", f"g:{kind} other", None, label, "described by", f"{kind} other"),
            Triple("g:thing", "g:P31", entity, None, "thing", "instance of", label),
            Triple(entity, "g:P31", "g:page", None, label, "instance of", "Wikimedia page"),
        ][:limit]


def linker() -> LexicalLinker:
    names = {"male": ("male", ["man"]), "female": ("female", ["woman"]), "milligram": ("milligram", ["mg."])}
    names |= {"kilogram": ("kilogram", []), "film": ("male", [])}
    rows = [
        {
            **dict.fromkeys(KG_ENTITIES.names),
            "entity_id": f"g:{local}",
            "kind": "entity",
            "label": label,
            "aliases": aliases,
            "description": "",
        }
        for local, (label, aliases) in names.items()
    ]
    return LexicalLinker.from_entities(pl.DataFrame(rows, schema=KG_ENTITIES.schema))


def evidence(source: Attribute, target: Attribute, policy: str = "shapes") -> list[tuple[str, str, float]]:
    told = linked_values(source, target, linker().link, classes_from(SexesAndUnits()), policy)
    return [(one.fact_id, one.text, one.score) for one in told]


def test_values_of_one_class_are_told_by_the_class() -> None:
    left = replace(LEFT, sample_values=("Male", "Female"))
    right = replace(RIGHT, sample_values=("man", "WOMAN", "unknown"))
    assert evidence(left, right) == [
        ("values:class:g:sex", "the values of both sides are of one class in the graph: sex", 0.667)
    ]
    assert evidence(left, right, "local") == []
    assert evidence(left, replace(RIGHT, sample_values=("milligram", "kilogram"))) == []


def test_values_of_one_side_meet_the_words_of_the_other() -> None:
    left = replace(LEFT, sample_values=("male", "female"))
    right = replace(RIGHT, column_name="sex_at_birth")
    assert evidence(left, right) == [
        (
            "values:class:g:sex",
            "the values of the source are of a class in the graph that the target speaks of: sex",
            0.8,
        )
    ]
    mirrored = evidence(replace(right, side="source"), replace(left, side="target"))
    assert [text for _, text, _ in mirrored] == [
        "the values of the target are of a class in the graph that the source speaks of: sex"
    ]


def test_what_is_no_list_of_kinds_is_not_linked() -> None:
    classes_of, link = classes_from(SexesAndUnits()), linker().link
    kinds = replace(LEFT, sample_values=("male", "female"))
    assert [one.label for one in value_classes(kinds, link, classes_of)] == ["sex"]
    for other in (
        replace(kinds, distinct_count=51),
        replace(kinds, column_name="patient_name"),
        replace(kinds, sample_values=("male",)),
        replace(kinds, sample_values=("male", "a", "b", "c")),
    ):
        assert value_classes(other, link, classes_of) == []
