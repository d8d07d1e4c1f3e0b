"""Counting and cutting by tokens."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import example, given, settings

from kgrag_assets.models.prompt_text import CUT
from kgrag_assets.models.tokens import count_tokens, cut_to_tokens


def test_short_texts_stay_and_long_ones_show_their_cut() -> None:
    assert cut_to_tokens("date of birth", 3) == "date of birth"
    text = " ".join(["word"] * 500)
    cut = cut_to_tokens(text, 50)
    assert cut.endswith(CUT)
    assert count_tokens(cut) <= 50
    assert cut.startswith("word word")
    with pytest.raises(ValueError, match="no room"):
        cut_to_tokens(text, 1)


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=300), st.integers(10, 40))
@example("\ud800" * 50, 12)
@example("İ" * 60, 12)
def test_a_cut_text_is_a_beginning_within_the_limit(text: str, limit: int) -> None:
    cut = cut_to_tokens(text, limit)
    if cut != text:
        assert cut.endswith(CUT)
        assert count_tokens(cut) <= limit
        assert text.encode("utf-8", "replace").decode().startswith(cut.removesuffix(CUT))
    else:
        assert count_tokens(text) <= limit
