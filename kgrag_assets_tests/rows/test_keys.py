"""Keys: equal values give equal keys, different values never meet."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgrag_assets.rows.keys import attribute_id_of, data_version_of, key_of

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def canonical(value: object) -> object:
    """A value with its types, so that 1, True and 1.0 differ, and so do 0.0 and -0.0."""
    if isinstance(value, list):
        return ("list", tuple(canonical(item) for item in value))
    if isinstance(value, dict):
        return ("map", tuple(sorted((name, repr(canonical(item))) for name, item in value.items())))
    return (type(value).__name__, repr(value))


@given(st.lists(values, max_size=4), st.lists(values, max_size=4))
def test_keys_are_equal_exactly_where_the_parts_are(left: list, right: list) -> None:
    same = canonical(left) == canonical(right)
    assert (key_of(*left) == key_of(*right)) == same


def test_moving_a_delimiter_changes_the_id() -> None:
    assert attribute_id_of("source", "a.b", "c") != attribute_id_of("source", "a", "b.c")
    assert key_of("ab", "c") != key_of("a", "bc")


@given(st.lists(st.text(), unique=True))
def test_a_data_version_does_not_depend_on_the_order(keys: list[str]) -> None:
    assert data_version_of(keys) == data_version_of(reversed(keys))


def test_a_key_stays_what_it_is() -> None:
    # Stored in every lake: if this changes, everything in every lake is computed again.
    assert key_of("attribute", 1, None, ["x"]) == "6599567e3bd557be6450b53ea59d0543"


def test_what_cannot_be_part_of_a_key_is_refused() -> None:
    with pytest.raises(TypeError, match="cannot be part of a key: object"):
        key_of(object())  # type: ignore[arg-type]
