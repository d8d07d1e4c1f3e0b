"""The cursor survives being kept as text, and a damaged one says what to do."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgrag_assets.knowledge.changes.cursor import Cursor
from kgrag_assets.knowledge.changes.errors import CursorError

_MOMENTS = st.datetimes(datetime(2012, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001 - bounds
_EVENT_IDS = st.text(st.characters(min_codepoint=32, max_codepoint=126), min_size=1, max_size=300)


@given(_MOMENTS, st.none() | st.integers(0, 2**53), st.none() | _EVENT_IDS)
def test_a_cursor_comes_back_as_it_was_kept(moment: datetime, rcid: int | None, event_id: str | None) -> None:
    cursor = Cursor(moment.replace(microsecond=0), rcid, event_id)
    text = cursor.to_text()
    assert Cursor.parse(text) == cursor
    assert "\n" not in text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2026-05-01T12:00:00Z",
        "[]",
        "{}",
        '{"version":2,"timestamp":"2026-05-01T12:00:00Z"}',
        '{"version":1,"timestamp":"2026-05-01T12:00:00"}',
        '{"version":1,"timestamp":17}',
        '{"version":1,"timestamp":"2026-05-01T12:00:00Z","rcid":"7"}',
        '{"version":1,"timestamp":"2026-05-01T12:00:00Z","rcid":true}',
        '{"version":1,"timestamp":"2026-05-01T12:00:00Z","last_event_id":"a\\r\\nX-Header: b"}',
        '{"version":1,"timestamp":"2026-05-01T12:00:00Z","last_event_id":' + json.dumps("x" * 5000) + "}",
        "[" * 5000,
    ],
)
def test_a_damaged_cursor_is_an_error_that_says_what_to_do(text: str) -> None:
    with pytest.raises(CursorError, match="Delete it") as caught:
        Cursor.parse(text)
    assert len(str(caught.value)) < 600


@given(st.text(max_size=60))
def test_no_text_whatever_is_worse_than_an_error(text: str) -> None:
    with pytest.raises(CursorError):
        Cursor.parse(text)


def test_a_moment_is_kept_in_utc_and_must_say_its_zone() -> None:
    there = datetime(2026, 5, 1, 14, 0, 0, 999, tzinfo=timezone(timedelta(hours=2)))
    assert Cursor.at(there).timestamp == datetime(2026, 5, 1, 12, tzinfo=UTC)
    with pytest.raises(CursorError, match="time zone"):
        Cursor.at(datetime(2026, 5, 1))  # noqa: DTZ001 - the point of the test
