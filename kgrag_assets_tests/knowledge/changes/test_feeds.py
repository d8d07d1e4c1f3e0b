"""Both feeds give every change of an entity, from a place on, and nothing else."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgrag_assets.knowledge.changes.cursor import Cursor
from kgrag_assets.knowledge.changes.deadline import Deadline
from kgrag_assets.knowledge.changes.errors import TimeIsUpError, TooLargeError, UnavailableError
from kgrag_assets.knowledge.changes.event_stream import EventStreamFeed
from kgrag_assets.knowledge.changes.feed import Change, ChangeFeed, kind_of
from kgrag_assets.knowledge.changes.mediawiki import MediaWikiClient, entity_of_title
from kgrag_assets.knowledge.changes.polite_http import PoliteHttp
from kgrag_assets.knowledge.changes.recent_changes import RecentChangesFeed
from kgrag_assets.knowledge.changes.sse import Event, SseReader
from kgrag_assets_tests.knowledge.changes.conftest import AGENT, START
from kgrag_assets_tests.servers import NotedPause
from kgrag_assets_tests.servers.mediawiki_server import Fault, MediaWikiServer
from kgrag_assets_tests.servers.wiki_world import World, item

SCHEMA = Path(__file__).parents[3].parent / "shared" / "data" / "eventstreams" / "recentchange-1.0.0.schema.json"


@pytest.fixture(name="feed", params=["recentchanges", "stream"])
def both_feeds(
    request: pytest.FixtureRequest, wiki: MediaWikiServer, client: MediaWikiClient, pause: NotedPause
) -> Iterator[ChangeFeed]:
    """Each of the two feeds of the same world."""
    if request.param == "recentchanges":
        yield RecentChangesFeed(client)
        return
    with PoliteHttp(wiki.stream_url, AGENT, pause=pause, min_interval_s=0) as http:
        yield EventStreamFeed(http, now=wiki.world.now, quiet_s=0.3)


def _all(feed: ChangeFeed, cursor: Cursor) -> tuple[list[Change], Cursor]:
    changes: list[Change] = []
    for page in feed.pages(cursor):
        changes += page.changes
        cursor = page.cursor
        if page.caught_up:
            return changes, cursor
    raise AssertionError("a feed ends with a page that says caught_up")


def _lively(world: World) -> list[tuple[str, str, int]]:
    """Let things happen, and return what a feed must say of them."""
    world.load(item("Q1", "one"), item("Q2", "two"), item("P31", "instance of"))
    said: list[tuple[str, str, int]] = []
    said.append(("Q1", "touched", world.edit("Q1", item("Q1", "One"))))
    world.pass_time(20)
    said.append(("Q7", "touched", world.edit("Q7", item("Q7", "seven"))))
    said.append(("P31", "touched", world.edit("P31", item("P31", "is a"))))
    world.protect("Q1")
    world.pass_time(20)
    world.delete("Q1")
    said.append(("Q1", "gone", 0))
    world.pass_time(20)
    world.restore("Q1")
    said.append(("Q1", "back", 0))
    redirect = world.merge("Q2", "Q7")
    said += [("Q7", "touched", redirect - 2), ("Q2", "touched", redirect - 1), ("Q2", "touched", redirect)]
    return said


def test_every_change_of_an_entity_is_given_in_order(wiki: MediaWikiServer, feed: ChangeFeed) -> None:
    expected = _lively(wiki.world)
    changes, cursor = _all(feed, Cursor.at(START - timedelta(hours=1)))
    assert [(change.local_id, change.kind, change.revision) for change in changes] == expected
    assert cursor.timestamp == wiki.world.now()
    assert [change.timestamp for change in changes] == sorted(change.timestamp for change in changes)


def test_pages_and_broken_connections_lose_nothing(wiki: MediaWikiServer, feed: ChangeFeed) -> None:
    expected = _lively(wiki.world)
    wiki.page_limit = 2
    wiki.stream_cut_after = 3
    changes, _ = _all(feed, Cursor.at(START - timedelta(hours=1)))
    assert [(change.local_id, change.kind, change.revision) for change in changes] == expected


def test_a_feed_goes_on_from_every_place_it_gave(wiki: MediaWikiServer, feed: ChangeFeed) -> None:
    _lively(wiki.world)
    changes, _ = _all(feed, Cursor.at(START - timedelta(hours=1)))
    for number, change in enumerate(changes):
        rest, _ = _all(feed, Cursor.parse(change.position.to_text()))
        missing = {(left.local_id, left.kind, left.revision) for left in changes[number + 1 :]}
        assert missing <= {(left.local_id, left.kind, left.revision) for left in rest}


def test_a_feed_without_changes_is_caught_up(feed: ChangeFeed) -> None:
    begun = Cursor.at(START - timedelta(seconds=30))
    changes, cursor = _all(feed, begun)
    assert changes == []
    assert cursor == begun


def test_a_quiet_wiki_does_not_leave_the_cursor_behind(wiki: MediaWikiServer, client: MediaWikiClient) -> None:
    wiki.world.pass_time(40 * 86400)
    _, cursor = _all(RecentChangesFeed(client), Cursor.at(START))
    assert cursor.timestamp == wiki.world.now() - timedelta(seconds=60)


def test_a_change_that_appears_late_is_given(wiki: MediaWikiServer, client: MediaWikiClient) -> None:
    feed = RecentChangesFeed(client)
    wiki.world.edit("Q1", item("Q1", "one"))
    _, cursor = _all(feed, Cursor.at(START))
    wiki.world.edit("Q2", item("Q2", "two"), at=START - timedelta(seconds=4))
    changes, after = _all(feed, cursor)
    assert [change.local_id for change in changes] == ["Q2", "Q1"]
    assert after == cursor


def test_each_feed_goes_on_where_the_other_ended(wiki: MediaWikiServer, client: MediaWikiClient) -> None:
    wiki.world.edit("Q1", item("Q1", "one"))
    with PoliteHttp(wiki.stream_url, AGENT, min_interval_s=0) as http:
        stream, recent = EventStreamFeed(http, now=wiki.world.now, quiet_s=0.3), RecentChangesFeed(client)
        _, cursor = _all(recent, Cursor.at(START))
        wiki.world.pass_time(60)
        wiki.world.edit("Q2", item("Q2", "two"))
        changes, cursor = _all(stream, cursor)
        assert [change.local_id for change in changes] == ["Q1", "Q2"]
        assert cursor.last_event_id is not None
        wiki.world.pass_time(60)
        wiki.world.edit("Q3", item("Q3", "three"))
        changes, cursor = _all(recent, cursor)
        assert [change.local_id for change in changes] == ["Q2", "Q3"]
        assert cursor.last_event_id is None


def test_the_stream_is_asked_by_its_own_ids(wiki: MediaWikiServer, pause: NotedPause) -> None:
    wiki.world.edit("Q1", item("Q1", "one"))
    with PoliteHttp(wiki.stream_url, AGENT, pause=pause, min_interval_s=0) as http:
        feed = EventStreamFeed(http, now=wiki.world.now, quiet_s=0.3)
        _, cursor = _all(feed, Cursor.at(START))
        assert wiki.asked[-1].params["since"] == "2026-05-01T11:59:50Z"
        changes, _ = _all(feed, cursor)
        assert changes == []
        assert wiki.asked[-1].headers["last-event-id"] == cursor.last_event_id
        assert wiki.asked[-1].params == {}


def test_a_stream_that_brings_nothing_is_given_up(wiki: MediaWikiServer, pause: NotedPause) -> None:
    wiki.stream_cut_after = 0
    wiki.world.edit("Q1", item("Q1", "one"))
    with (
        PoliteHttp(wiki.stream_url, AGENT, pause=pause, min_interval_s=0) as http,
        pytest.raises(UnavailableError, match="brought nothing new"),
    ):
        _all(EventStreamFeed(http, now=wiki.world.now, quiet_s=2), Cursor.at(START))
    assert len(pause.waits) == 4


def test_a_stream_that_refuses_is_obeyed(wiki: MediaWikiServer, pause: NotedPause) -> None:
    wiki.world.edit("Q1", item("Q1", "one"))
    wiki.refuse(1, 429, "9", path="/v2/stream")
    with PoliteHttp(wiki.stream_url, AGENT, pause=pause, min_interval_s=0) as http:
        changes, _ = _all(EventStreamFeed(http, now=wiki.world.now, quiet_s=0.3), Cursor.at(START))
    assert [change.local_id for change in changes] == ["Q1"]
    assert pause.waits == [9.0]


def test_a_stream_that_does_not_answer_is_not_taken_for_a_quiet_one(wiki: MediaWikiServer, pause: NotedPause) -> None:
    wiki.world.edit("Q1", item("Q1", "one"))
    wiki.fail(Fault(hang=True), path="/v2/stream")
    with PoliteHttp(wiki.stream_url, AGENT, pause=pause, min_interval_s=0) as http:
        changes, _ = _all(EventStreamFeed(http, now=wiki.world.now, quiet_s=0.2), Cursor.at(START))
    assert [change.local_id for change in changes] == ["Q1"]


def test_a_stream_ends_with_the_time(wiki: MediaWikiServer) -> None:
    wiki.world.edit("Q1", item("Q1", "one"))
    far = START + timedelta(days=1)
    with PoliteHttp(wiki.stream_url, AGENT, min_interval_s=0) as http:
        feed = EventStreamFeed(http, now=lambda: far, quiet_s=30)
        with http.within(Deadline(0.3)), pytest.raises(TimeIsUpError):
            _all(feed, Cursor.at(START))


@pytest.mark.parametrize(
    "data",
    [
        "",
        "nothing",
        "[]",
        "{}",
        '{"title": "Q1"}',
        '{"meta": 3, "timestamp": 9e99}',
        '{"meta": {"dt": "soon"}}',
        "[" * 9999,
    ],
)
def test_events_of_another_form_are_passed_over(data: str, wiki: MediaWikiServer, pause: NotedPause) -> None:
    good = {"meta": {"domain": "www.wikidata.org"}, "timestamp": int(START.timestamp()), "wiki": "wikidatawiki"}
    good |= {"type": "edit", "title": "Q4", "revision": {"new": 9}}
    place = json.dumps([{"topic": "eqiad.mediawiki.recentchange", "partition": 0, "offset": 9999}])
    body = f"id: {place}\ndata: {data}\n\nid: {place}\ndata: {json.dumps(good)}\n\n".encode()
    wiki.fail(Fault(body=body), path="/v2/stream")
    with PoliteHttp(wiki.stream_url, AGENT, pause=pause, min_interval_s=0) as http:
        changes, _ = _all(EventStreamFeed(http, now=wiki.world.now, quiet_s=0.3), Cursor.at(START))
    assert [(change.local_id, change.revision) for change in changes] == [("Q4", 9)]


def test_the_events_of_the_tests_are_as_the_schema_has_them(wiki: MediaWikiServer) -> None:
    if not SCHEMA.exists():
        pytest.skip("the schema of the event stream is not here")
    schema = json.loads(SCHEMA.read_text("utf-8"))
    _lively(wiki.world)
    kinds = {"integer": int, "string": str, "object": dict, "array": list, "boolean": bool, "null": type(None)}
    with (
        PoliteHttp(wiki.stream_url, AGENT, min_interval_s=0) as http,
        http.open(wiki.stream_url, {"since": "2026-05-01T00:00:00Z"}, read_timeout_s=5) as response,
    ):
        reader, events = SseReader(), list[Event]()
        for part in response.iter_raw():
            events += reader.feed(part)
            if len(events) >= 3 * len(wiki.world.recent):
                break
    for event in events:
        fields = json.loads(event.data)
        assert set(schema["required"]) <= set(fields)
        assert set(schema["properties"]["meta"]["required"]) <= set(fields["meta"])
        for name, value in fields.items():
            allowed = schema["properties"][name]["type"]
            assert isinstance(
                value, tuple(kinds[kind] for kind in ([allowed] if isinstance(allowed, str) else allowed))
            )


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("Q42", "Q42"),
        ("Property:P31", "P31"),
        ("Talk:Q42", None),
        ("Lexeme:L7", None),
        ("Q042", None),
        ("Q42 ", None),
        ("Q42\n", None),
        ("Q4294967296", None),
        (None, None),
        (42, None),
    ],
)
def test_titles_of_entities(title: object, expected: str | None) -> None:
    assert entity_of_title(title) == expected


def test_what_a_log_entry_does_to_a_page() -> None:
    assert kind_of("log", "delete", "delete") == "gone"
    assert kind_of("log", "delete", "restore") == "back"
    assert kind_of("log", "delete", "revision") is None
    assert kind_of("log", "protect", "protect") is None
    assert kind_of("categorize", None, None) is None


_LINES = st.lists(
    st.one_of(
        st.just(""),
        st.builds("data: {}".format, st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=8)),
        st.builds("id: {}".format, st.text("abc01", max_size=4)),
        st.sampled_from(["data", "data:x", ":comment", "retry: 1500", "retry: soon", "event: message", "other: 1"]),
    ),
    max_size=12,
)


@given(_LINES, st.sampled_from(["\n", "\r\n", "\r"]), st.lists(st.integers(0, 200), max_size=6), st.booleans())
def test_events_do_not_depend_on_how_the_bytes_are_cut(lines: list[str], end: str, cuts: list[int], bom: bool) -> None:
    raw = (b"\xef\xbb\xbf" if bom else b"") + "".join(line + end for line in [*lines, "data: last", "", ":"]).encode()
    places = [0, *sorted(min(cut, len(raw)) for cut in cuts), len(raw)]
    reader = SseReader()
    events = [event for begin, stop in itertools.pairwise(places) for event in reader.feed(raw[begin:stop])]
    assert events == _plainly(lines)


def _plainly(lines: list[str]) -> list[Event]:
    """Read events the simple way: whole lines, one after the other."""
    events, data, last_id = list[Event](), list[str](), None
    for line in [*lines, "data: last", ""]:
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if line == "":
            if data:
                events.append(Event("\n".join(data), last_id))
            data = []
        elif name == "data":
            data.append(value)
        elif name == "id":
            last_id = value
    return events


def test_an_event_without_end_is_refused() -> None:
    reader = SseReader(max_event_bytes=100)
    with pytest.raises(TooLargeError):
        list(reader.feed(b"data: " + b"x" * 200))
    reader = SseReader(max_event_bytes=100)
    with pytest.raises(TooLargeError):
        list(itertools.chain.from_iterable(reader.feed(b"data: xxxxxx\n") for _ in range(20)))


def test_positions_only_go_forward(wiki: MediaWikiServer, client: MediaWikiClient) -> None:
    wiki.world.edit("Q1", item("Q1", "one"), at=START - timedelta(seconds=3))
    begun = replace(Cursor.at(START), rcid=1)
    for page in RecentChangesFeed(client).pages(begun):
        assert page.cursor.timestamp >= begun.timestamp
    assert datetime.now(UTC) > START
