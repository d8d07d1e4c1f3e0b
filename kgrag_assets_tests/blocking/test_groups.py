"""Which attributes mean the same, who stands for them, and how a judged pair is expanded."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import numpy as np
from hypothesis import given, settings

from kgrag_assets.blocking.block import block_pairs
from kgrag_assets.blocking.groups import Grouping, covered_pairs, group_attributes
from kgrag_assets.rows.keys import pair_id_of
from kgrag_assets.schemas.attribute import Attribute
from kgrag_assets.settings import BlockingSettings
from kgrag_assets_tests.matching import attribute, attributes, candidates, embeddings, groups, schema


def found(items: list[Attribute], vectors: np.ndarray | None = None, *, group: bool = True) -> Grouping:
    if vectors is None:
        vectors = np.eye(len(items))
    return group_attributes(items, vectors, group=group)


def column(table: str, name: str, description: str = "", **changes: Any) -> Attribute:
    return attribute("target", table, name, column_description=description, type_family="integer", **changes)


def test_a_key_that_points_to_one_table_is_one_whatever_the_descriptions_say() -> None:
    items = [
        column("visit", "person_id", "who came"),
        column("person", "person_id", "one individual"),
        column("death", "Person_ID", "who died"),
        column("visit", "visit_id", "one contact"),
    ]
    grouping = found(items)
    assert grouping.number.tolist() == [0, 0, 0, 1]
    # The table that the name speaks of stands for all.
    assert grouping.representative.tolist() == [1, 3]
    assert grouping.sizes.tolist() == [3, 1]
    assert grouping.reason[0] == "the same name, which points to one table"
    assert grouping.reason[3] == ""


def test_one_name_and_one_description_is_one_and_one_name_alone_is_not() -> None:
    items = [
        column("actor", "last_update", "when the row was changed"),
        column("film", "last_update", "when the  row was changed"),
        column("category", "name", "the category"),
        column("language", "name", "the language"),
        column("a", "note"),
        column("b", "note"),
    ]
    grouping = found(items)
    assert grouping.number.tolist() == [0, 0, 1, 2, 3, 3]
    assert found(items, group=False).number.tolist() == [0, 1, 2, 3, 4, 5]


def test_descriptions_of_one_meaning_are_near_and_types_must_agree() -> None:
    items = [column("a", "code", "the code"), column("b", "code", "a code"), column("c", "code", "the weather")]
    near = np.array([[1.0, 0.0], [0.9, np.sqrt(1 - 0.81)], [0.0, 1.0]])
    assert found(items, near).number.tolist() == [0, 0, 1]
    other = [items[0], attribute("target", "b", "code", column_description="the code", type_family="date")]
    assert found(other, near[:2]).number.tolist() == [0, 1]


names = st.lists(
    st.tuples(
        st.sampled_from("abcd"), st.sampled_from(["x_id", "a_id", "b_id", "name"]), st.sampled_from(["", "d", "e"])
    ),
    unique_by=lambda entry: entry[:2],
    max_size=10,
)


@settings(max_examples=100, deadline=None)
@given(names)
def test_groups_are_a_partition_and_do_not_change_with_other_attributes(drawn: list[tuple[str, str, str]]) -> None:
    items = [column(*entry) for entry in drawn]
    grouping = found(items)
    for number, representative in enumerate(grouping.representative):
        assert grouping.number[representative] == number
    for left, one in enumerate(items):
        for right, other in enumerate(items):
            if grouping.number[left] == grouping.number[right]:
                assert one.column_name == other.column_name
    more = found([*items, column("z", "unheard_of", "nothing")], np.eye(len(items) + 1))
    assert more.number[:-1].tolist() == grouping.number.tolist()
    assert more.representative[:-1].tolist() == grouping.representative.tolist()


def test_a_judged_pair_stands_for_all_pairs_of_its_groups() -> None:
    frame = schema(["pat.no", "visit.no", "pat.sex"], ["person.id", "death.id"])
    grouped = groups(frame, {"visit.no": "pat.no", "death.id": "person.id"})
    kept = candidates({("pat.no", "person.id"): 0.9, ("pat.sex", "person.id"): 0.1})
    covered = covered_pairs(kept, grouped)
    named = {
        (f"{row['source_table']}.{row['source_column']}", f"{row['target_table']}.{row['target_column']}")
        for row in covered.iter_rows(named=True)
    }
    assert named == {(s, t) for s in ("pat.no", "visit.no", "pat.sex") for t in ("person.id", "death.id")}
    ids = covered.select("pair_id", "source_attribute_id", "target_attribute_id").iter_rows()
    assert all(pair_id == pair_id_of(source, target) for pair_id, source, target in ids)
    assert covered["judged_pair_id"].n_unique() == 2


def test_a_group_is_blocked_once_and_covers_all_its_pairs() -> None:
    items = [
        attribute("source", "pat", "no", column_description="number"),
        attribute("source", "visit", "no", column_description="number"),
        attribute("target", "person", "person_id", type_family="integer"),
        attribute("target", "death", "person_id", type_family="integer"),
        attribute("target", "death", "cause"),
    ]
    frame = attributes(items)
    blocking = block_pairs(frame, embeddings(frame), BlockingSettings())
    assert (blocking.report.total_pairs, blocking.report.group_pairs, blocking.pairs.height) == (6, 2, 2)
    assert sorted(blocking.pairs["pairs_covered"]) == [2, 4]
    assert blocking.report.pairs_covered == covered_pairs(blocking.pairs, blocking.groups).height == 6
    alone = block_pairs(frame, embeddings(frame), BlockingSettings(group=False))
    assert alone.pairs.height == 6
