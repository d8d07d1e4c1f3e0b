"""The likeness of all bags of words at once is that of each pair by itself."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgrag_assets.blocking.signals import overlap, overlaps

bags = st.lists(st.lists(st.sampled_from(["date", "birth", "code", ""]), max_size=5), max_size=5)


@given(bags, bags)
def test_all_pairs_at_once(left: list[list[str]], right: list[list[str]]) -> None:
    found = overlaps(left, right)
    assert found.shape == (len(left), len(right))
    for row, mine in enumerate(left):
        for column, other in enumerate(right):
            assert found[row, column] == pytest.approx(overlap(mine, other))


def test_a_repeated_word_counts_as_often_as_both_have_it() -> None:
    assert overlaps([["date", "date", "birth"]], [["date", "date"]])[0, 0] == pytest.approx(4 / 5)
