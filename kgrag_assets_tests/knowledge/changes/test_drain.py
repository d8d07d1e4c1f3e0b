"""Draining finds what became of each entity, repeats work after a crash, and never loses a change."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kgrag_assets.knowledge.changes.cursor import Cursor
from kgrag_assets.knowledge.changes.drain import DrainResult, Gap, drain
from kgrag_assets.knowledge.changes.errors import RefusedError
from kgrag_assets.knowledge.changes.event_stream import EventStreamFeed
from kgrag_assets.knowledge.changes.feed import ChangeFeed
from kgrag_assets.knowledge.changes.mediawiki import MediaWikiClient
from kgrag_assets.knowledge.changes.polite_http import PoliteHttp
from kgrag_assets.knowledge.changes.recent_changes import RecentChangesFeed
from kgrag_assets.knowledge.changes.states import Held, end_of, held_states
from kgrag_assets.rows.graph_changes import KG_CHANGES, with_newer_states
from kgrag_assets_tests.knowledge.changes.conftest import AGENT, START
from kgrag_assets_tests.servers import NotedPause
from kgrag_assets_tests.servers.mediawiki_server import Fault, MediaWikiServer, Question
from kgrag_assets_tests.servers.wiki_world import Entity, World, item

DUMP = Path(__file__).parents[3].parent / "shared" / "data" / "wikidata_json" / "dump" / "entities"


class CrashError(Exception):
    """The process dies."""


class Lake:
    """Holds some entities of a graph, and what was staged of them."""

    def __init__(self, *ids: str) -> None:
        self.ids = set(ids)
        self.staged = KG_CHANGES.empty()
        self.calls = 0
        self.crash_at: int | None = None
        self.crash_after = False

    def known(self, ids: Sequence[str]) -> set[str]:
        return (self.ids | set(self.staged["local_id"])) & set(ids)

    def held(self, ids: Sequence[str]) -> Mapping[str, Held]:
        return held_states(self.staged, "wd", ids)

    def stage(self, rows: pl.DataFrame) -> None:
        self.calls += 1
        crash = self.crash_at == self.calls
        if crash and not self.crash_after:
            raise CrashError
        self.staged = with_newer_states(self.staged, rows)
        if crash:
            raise CrashError

    def states(self) -> dict[str, tuple[str, str | None, int]]:
        return {
            row["local_id"]: (row["action"], row["redirect_to"], row["revision"])
            for row in self.staged.iter_rows(named=True)
        }

    def document(self, local_id: str) -> dict[str, Any]:
        text = self.staged.filter(pl.col("local_id") == local_id)["document"].item()
        found: dict[str, Any] = json.loads(text)
        assert text == json.dumps(found, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
        return found


def _drain(
    world: World, client: MediaWikiClient, lake: Lake, cursor: Cursor, feed: ChangeFeed | None = None, **more: Any
) -> DrainResult:
    options: dict[str, Any] = {"stage": lake.stage, "staged": lake.held, "now": world.now, **more}
    admits = options.pop("admits", lambda _entity: False)
    found = drain("wd", feed or RecentChangesFeed(client), client, cursor, admits, lake.known, **options)
    assert isinstance(found, DrainResult)
    return found


def test_edits_deletions_merges_and_restorations(wiki: MediaWikiServer, client: MediaWikiClient) -> None:
    world, lake = wiki.world, Lake("Q1", "Q2", "Q3", "Q4", "P31")
    world.load(*(item(f"Q{number}", f"thing {number}") for number in range(1, 6)), item("P31", "instance of"))
    first = world.edit("Q1", item("Q1", "old"))
    last = world.edit("Q1", item("Q1", "new", aliases=("newer",)))
    world.delete("Q2")
    redirect = world.merge("Q3", "Q5")
    of_property = world.edit("P31", item("P31", "is a"))
    world.edit("Q9", item("Q9", "nobody knows me"))
    world.delete("Q4")
    world.restore("Q4")
    result = _drain(world, client, lake, Cursor.at(START))
    assert first < last
    assert lake.states() == {
        "Q1": ("edited", None, last),
        "Q2": ("deleted", None, 0),
        "Q3": ("redirected", "Q5", redirect),
        "Q4": ("edited", None, world.revision_of("Q4")),
        "Q5": ("edited", None, redirect - 2),
        "P31": ("edited", None, of_property),
    }
    assert lake.document("Q1")["labels"]["en"]["value"] == "new"
    assert lake.staged.filter(pl.col("local_id") == "Q2")["document"].item() == ""
    assert (result.edited, result.deleted, result.redirected) == (4, 1, 1)
    assert result.ended_by == "caught_up"
    assert (result.changes, result.entities, result.fetched) == (len(world.recent), 5, 5)
    assert result.cursor_after.timestamp == START
    assert result.behind_s == 0
    assert result.requests == 2
    assert result.bytes > 0
    world.delete("Q1")
    world.edit("Q3", item("Q3", "my own again"))
    world.restore("Q2")
    again = _drain(world, client, lake, result.cursor_after)
    assert lake.states()["Q1"] == ("deleted", None, 0)
    assert lake.states()["Q2"] == ("edited", None, world.revision_of("Q2"))
    assert lake.states()["Q3"] == ("edited", None, world.revision_of("Q3"))
    assert again.ended_by == "caught_up"


def test_a_document_is_what_the_reader_of_dumps_reads(wiki: MediaWikiServer, client: MediaWikiClient) -> None:
    if not DUMP.exists():
        pytest.skip("real entities are not here")
    entities: list[Entity] = [
        json.loads(line.rstrip(",")) for line in DUMP.read_text("utf-8").splitlines() if line.startswith("{")
    ]
    wiki.world.load(*entities)
    for entity in entities:
        wiki.world.edit(entity["id"], entity)
    lake = Lake(*(entity["id"] for entity in entities))
    result = _drain(wiki.world, client, lake, Cursor.at(START))
    assert result.edited == len({entity["id"] for entity in entities})
    for entity in entities:
        document = lake.document(entity["id"])
        assert document["claims"] == entity["claims"]
        assert document["labels"].get("en") == entity["labels"].get("en")
        assert "pageid" not in document


def test_nothing_changed_costs_one_request_and_stages_nothing(wiki: MediaWikiServer, client: MediaWikiClient) -> None:
    lake = Lake("Q1")
    wiki.world.edit("Q1", item("Q1", "one"))
    first = _drain(wiki.world, client, lake, Cursor.at(START))
    calls = lake.calls
    again = _drain(wiki.world, client, lake, first.cursor_after)
    assert lake.calls == calls
    assert (again.requests, again.unchanged, again.edited) == (1, 1, 0)
    assert again.cursor_after == first.cursor_after


def test_new_entities_are_shown_to_the_filter(wiki: MediaWikiServer, client: MediaWikiClient) -> None:
    wiki.world.edit("Q1", item("Q1", "wanted", P31="Q5"))
    wiki.world.edit("Q2", item("Q2", "unwanted", P31="Q6"))
    wiki.world.edit("Q3", item("Q3", "short-lived", P31="Q5"))
    wiki.world.delete("Q3")

    def admits(entity: dict[str, Any]) -> bool:
        claims = entity["claims"]["P31"]
        return any(claim["mainsnak"]["datavalue"]["value"]["id"] == "Q5" for claim in claims)

    lake = Lake()
    without = _drain(wiki.world, client, lake, Cursor.at(START), admits=admits)
    assert (without.fetched, lake.states()) == (0, {})
    result = _drain(wiki.world, client, lake, Cursor.at(START), admits=admits, new_entities=True)
    assert set(lake.states()) == {"Q1"}
    assert (result.fetched, result.not_admitted, result.edited, result.deleted) == (3, 1, 1, 0)


def test_a_deleted_one_that_the_graph_has_forgotten_still_returns(
    wiki: MediaWikiServer, client: MediaWikiClient
) -> None:
    lake = Lake("Q1")
    wiki.world.load(item("Q1", "one"))
    wiki.world.delete("Q1")
    first = _drain(wiki.world, client, lake, Cursor.at(START))
    lake.ids.clear()
    wiki.world.pass_time(86400)
    wiki.world.restore("Q1")
    _drain(wiki.world, client, lake, first.cursor_after)
    assert lake.states()["Q1"][0] == "edited"


def test_a_page_restored_in_part_may_go_back_in_its_revisions(wiki: MediaWikiServer, client: MediaWikiClient) -> None:
    lake = Lake("Q1")
    wiki.world.load(item("Q1", "good"))
    good = wiki.world.revision_of("Q1")
    wiki.world.edit("Q1", item("Q1", "vandalised"))
    first = _drain(wiki.world, client, lake, Cursor.at(START))
    wiki.world.pass_time(60)
    wiki.world.delete("Q1")
    wiki.world.restore("Q1", revisions=1)
    _drain(wiki.world, client, lake, first.cursor_after)
    assert lake.states()["Q1"] == ("edited", None, good)
    assert lake.document("Q1")["labels"]["en"]["value"] == "good"


def test_a_record_older_than_what_is_staged_is_not_taken(wiki: MediaWikiServer, client: MediaWikiClient) -> None:
    world, lake = wiki.world, Lake("Q1")
    world.load(item("Q1", "old"))
    world.edit("Q1", item("Q1", "new"))
    _drain(world, client, lake, Cursor.at(START))
    before = lake.states()
    # A feed that says nothing of revisions makes the entity be looked at again, in a database that lags.
    world.recent.clear()
    world.edit("Q1", item("Q1", "newest"))
    world.recent[:] = [row.__class__(**{**row.__dict__, "revid": 0}) for row in world.recent]
    world.show_old("Q1", 1)
    world.pages["Q1"].revisions.insert(-1, world.pages["Q1"].revisions[0])
    result = _drain(world, client, lake, Cursor.at(START))
    assert result.outdated == 1
    assert lake.states() == before


def test_a_lagging_database_is_waited_for(wiki: MediaWikiServer, client: MediaWikiClient, pause: NotedPause) -> None:
    world, lake = wiki.world, Lake("Q1", "Q2")
    world.load(item("Q1", "old"), item("Q2", "two"))
    newest = world.edit("Q1", item("Q1", "new"))
    world.edit("Q2", item("Q2", "two!"))
    world.show_old("Q1", 1)
    result = _drain(world, client, lake, Cursor.at(START))
    assert result.ended_by == "caught_up"
    assert lake.states()["Q1"] == ("edited", None, newest)
    assert pause.waits == [5.0]


def test_a_database_that_lags_on_holds_the_cursor_and_nothing_else(
    wiki: MediaWikiServer, client: MediaWikiClient
) -> None:
    world, lake = wiki.world, Lake("Q1", "Q2", "Q3")
    world.load(*(item(f"Q{number}", "x") for number in (1, 2, 3)))
    world.edit("Q2", item("Q2", "two"))
    world.pass_time(30)
    newest = world.edit("Q1", item("Q1", "one"))
    world.pass_time(30)
    world.edit("Q3", item("Q3", "three"))
    world.show_old("Q1", 2)
    result = _drain(world, client, lake, Cursor.at(START - timedelta(seconds=60)))
    assert result.ended_by == "lagging"
    assert "Q1" in (result.problem or "")
    assert set(lake.states()) == {"Q2", "Q3"}
    assert result.cursor_after.timestamp == START
    again = _drain(world, client, lake, result.cursor_after)
    assert again.ended_by == "caught_up"
    assert lake.states()["Q1"] == ("edited", None, newest)


def test_a_deleted_entity_that_a_database_still_shows_is_not_taken(
    wiki: MediaWikiServer, client: MediaWikiClient
) -> None:
    world, lake = wiki.world, Lake("Q1")
    world.load(item("Q1", "one"))
    world.delete("Q1")
    world.show_old("Q1", 2)
    first = _drain(world, client, lake, Cursor.at(START))
    assert (first.ended_by, lake.states()) == ("lagging", {})
    assert _drain(world, client, lake, first.cursor_after).ended_by == "caught_up"
    assert lake.states() == {"Q1": ("deleted", None, 0)}


def test_what_lags_is_carried_over_many_slices(wiki: MediaWikiServer, client: MediaWikiClient) -> None:
    world, lake = wiki.world, Lake("Q1", "Q2", "Q3", "Q4")
    newest = world.edit("Q1", item("Q1", "one"))
    newest = world.edit("Q1", item("Q1", "one!"))
    for number in (2, 3, 4):
        world.pass_time(5)
        world.edit(f"Q{number}", item(f"Q{number}", "x"))
    world.show_old("Q1", 4)
    wiki.page_limit = 2
    result = _drain(world, client, lake, Cursor.at(START - timedelta(seconds=1)), slice_entities=1)
    assert result.slices == 3
    assert result.ended_by == "lagging" or lake.states()["Q1"] == ("edited", None, newest)
    again = _drain(world, client, lake, result.cursor_after)
    assert again.ended_by == "caught_up"
    assert lake.states()["Q1"] == ("edited", None, newest)


def test_what_was_staged_in_an_earlier_slice_is_not_fetched_again(
    wiki: MediaWikiServer, client: MediaWikiClient
) -> None:
    world, lake = wiki.world, Lake("Q1")
    for text in ("a", "b", "c"):
        world.edit("Q1", item("Q1", text))
    wiki.page_limit = 1
    result = _drain(world, client, lake, Cursor.at(START), slice_entities=1, staged=None)
    assert (result.slices, result.fetched, result.edited, result.unchanged) == (3, 1, 1, 2)


def test_the_target_of_a_redirect_that_could_not_be_fetched_is_fetched_later(
    wiki: MediaWikiServer, client: MediaWikiClient
) -> None:
    world, lake = wiki.world, Lake("Q1")
    world.load(*(item(f"Q{number}", "x") for number in (1, 2, 3)))
    world.merge("Q1", "Q2")
    world.delete("Q1")
    world.merge("Q2", "Q3")
    world.restore("Q1")

    def fail_target(question: Question) -> None:
        if question.params.get("titles") == "Q1":
            wiki.refuse(5, 503, retry_after=None)

    wiki.on_asked = fail_target
    first = _drain(world, client, lake, Cursor.at(START - timedelta(seconds=60)))
    assert (first.ended_by, lake.states()) == ("unavailable", {})
    wiki.on_asked = None
    assert _drain(world, client, lake, first.cursor_after).ended_by == "caught_up"
    assert set(lake.states()) == {"Q1", "Q2", "Q3"}


def test_what_is_settled_is_believed(wiki: MediaWikiServer, client: MediaWikiClient) -> None:
    world, lake = wiki.world, Lake("Q1")
    world.load(item("Q1", "one"))
    world.edit("Q1", item("Q1", "gone soon"))
    world.pages["Q1"].deleted = True  # and no word of it in the recent changes
    assert _drain(world, client, lake, Cursor.at(START)).ended_by == "lagging"
    assert lake.states() == {}
    world.pass_time(601)
    assert _drain(world, client, lake, Cursor.at(START)).ended_by == "caught_up"
    assert lake.states() == {"Q1": ("deleted", None, 0)}


def test_a_deletion_on_a_later_page_explains_a_missing_entity(wiki: MediaWikiServer, client: MediaWikiClient) -> None:
    world, lake = wiki.world, Lake("Q1", "Q2", "Q3")
    world.load(*(item(f"Q{number}", "x") for number in (1, 2, 3)))
    for number in (1, 2, 3):
        world.edit(f"Q{number}", item(f"Q{number}", "y"))
    world.delete("Q1")
    wiki.page_limit = 1
    result = _drain(world, client, lake, Cursor.at(START), slice_entities=1)
    assert result.ended_by == "caught_up"
    assert result.slices == 4
    assert lake.states()["Q1"] == ("deleted", None, 0)


def test_a_redirect_to_a_deleted_entity_leads_to_it_again_when_it_is_restored(
    wiki: MediaWikiServer, client: MediaWikiClient
) -> None:
    world, lake = wiki.world, Lake("Q1")
    world.load(item("Q1", "one"), item("Q2", "two"))
    world.merge("Q1", "Q2")
    world.delete("Q2")
    first = _drain(world, client, lake, Cursor.at(START))
    assert first.ended_by == "caught_up"
    assert {name: state[0] for name, state in lake.states().items()} == {"Q1": "redirected", "Q2": "deleted"}
    assert end_of("Q1", lake.held(["Q1", "Q2"])) is None
    world.pass_time(60)
    world.restore("Q2")
    _drain(world, client, lake, first.cursor_after)
    assert end_of("Q1", lake.held(["Q1", "Q2"])) == "Q2"


def test_a_redirect_to_a_redirect_is_followed(wiki: MediaWikiServer, client: MediaWikiClient) -> None:
    world, lake = wiki.world, Lake("Q1")
    world.load(*(item(f"Q{number}", "x") for number in (1, 2, 3)))
    world.merge("Q1", "Q2")
    world.delete("Q1")
    world.merge("Q2", "Q3")
    world.restore("Q1")
    assert _drain(world, client, lake, Cursor.at(START)).ended_by == "caught_up"
    assert {name: state[:2] for name, state in lake.states().items()} == {
        "Q1": ("redirected", "Q2"),
        "Q2": ("redirected", "Q3"),
        "Q3": ("edited", None),
    }


def test_the_target_of_a_redirect_is_taken_with_its_last_change(wiki: MediaWikiServer, client: MediaWikiClient) -> None:
    world, lake = wiki.world, Lake("Q1")
    world.load(item("Q1", "one"), item("Q2", "two"))
    world.merge("Q1", "Q2")
    newest = world.edit("Q2", item("Q2", "two and one"))
    world.show_old("Q2", 1)
    assert _drain(world, client, lake, Cursor.at(START)).ended_by == "caught_up"
    assert lake.states()["Q2"] == ("edited", None, newest)


def test_redirects_in_a_circle_come_to_an_end(wiki: MediaWikiServer, client: MediaWikiClient) -> None:
    world, lake = wiki.world, Lake("Q1")
    world.load(item("Q1", "x"), item("Q2", "y"))
    world.merge("Q1", "Q2")
    world.pages["Q2"].revisions.append((world.revision_of("Q1") + 1, "Q1", START))
    world.pass_time(700)
    assert _drain(world, client, lake, Cursor.at(START)).ended_by == "caught_up"
    held = lake.held(["Q1", "Q2"])
    assert [held[name].redirect_to for name in ("Q1", "Q2")] == ["Q2", "Q1"]
    assert end_of("Q1", held) is None


def test_a_cursor_older_than_the_feed_remembers_is_a_gap(wiki: MediaWikiServer, client: MediaWikiClient) -> None:
    since = START - timedelta(days=29)
    lake = Lake("Q1")

    def ask(cursor: Cursor, **more: Any) -> DrainResult | Gap:
        feed = RecentChangesFeed(client)
        return drain(
            "wd", feed, client, cursor, lambda _: True, lake.known, stage=lake.stage, now=wiki.world.now, **more
        )

    found = ask(Cursor.at(since))
    assert isinstance(found, Gap)
    assert found.since == since
    assert "next dump" in found.message
    assert "2026-04-02T12:00:00Z" in found.message
    assert wiki.asked == []
    assert isinstance(ask(Cursor.at(START - timedelta(days=3)), gap_limit=timedelta(days=2)), Gap)
    assert isinstance(ask(Cursor.at(START - timedelta(days=27))), DrainResult)


def test_the_time_ends_a_drain_between_batches_and_the_next_goes_on(wiki: MediaWikiServer, pause: NotedPause) -> None:
    world = wiki.world
    ids = [f"Q{number}" for number in range(1, 171)]
    for local_id in ids:
        world.edit(local_id, item(local_id, "x"))
        world.pass_time(60)
    lake, cursor, drains = Lake(*ids), Cursor.at(START), 0
    ticks = [0.0]
    wiki.on_asked = lambda _question: ticks.__setitem__(0, ticks[0] + 4.0)
    with MediaWikiClient(wiki.url, AGENT, pause=pause, min_interval_s=0, clock=lambda: ticks[0]) as slow:
        while drains < 10:
            result = _drain(world, slow, lake, cursor, time_budget_s=10, clock=lambda: ticks[0], staged=None)
            drains += 1
            assert result.cursor_after.timestamp > cursor.timestamp
            cursor = Cursor.parse(result.cursor_after.to_text())
            if result.ended_by == "caught_up":
                break
            assert result.ended_by == "time"
    assert result.ended_by == "caught_up"
    assert 1 < drains < 10
    assert set(lake.states()) == set(ids)


def test_slices_may_be_counted(wiki: MediaWikiServer, client: MediaWikiClient) -> None:
    world, lake = wiki.world, Lake("Q1", "Q2", "Q3")
    for number in (1, 2, 3):
        world.edit(f"Q{number}", item(f"Q{number}", "x"))
        world.pass_time(60)
    wiki.page_limit = 1
    result = _drain(world, client, lake, Cursor.at(START), slice_entities=1, max_slices=2)
    assert (result.ended_by, result.slices) == ("slice_limit", 2)
    assert set(lake.states()) == {"Q1", "Q2"}
    assert result.behind_s == 120
    assert _drain(world, client, lake, result.cursor_after).ended_by == "caught_up"
    assert set(lake.states()) == {"Q1", "Q2", "Q3"}


@pytest.mark.parametrize("feed_kind", ["recentchanges", "stream"])
def test_a_site_that_fails_keeps_what_was_done(
    wiki: MediaWikiServer, client: MediaWikiClient, pause: NotedPause, feed_kind: str
) -> None:
    world = wiki.world
    ids = [f"Q{number}" for number in range(1, 61)]
    for local_id in ids:
        world.edit(local_id, item(local_id, "x"))
        world.pass_time(20)
    lake = Lake(*ids)
    seen = [0]

    def fail_second(question: Any) -> None:
        if question.params.get("action") == "wbgetentities":
            seen[0] += 1
            if seen[0] == 1:
                wiki.refuse(5, 503, retry_after=None)

    wiki.on_asked = fail_second
    with PoliteHttp(wiki.stream_url, AGENT, pause=pause, min_interval_s=0) as http:
        stream = EventStreamFeed(http, now=world.now, quiet_s=0.3)
        feed: ChangeFeed = stream if feed_kind == "stream" else RecentChangesFeed(client)
        result = _drain(world, client, lake, Cursor.at(START), feed)
        assert result.ended_by == "unavailable"
        assert "HTTP 503" in (result.problem or "")
        assert len(lake.states()) == 50
        assert result.cursor_after.timestamp == START + timedelta(seconds=49 * 20)
        again = _drain(world, client, lake, Cursor.parse(result.cursor_after.to_text()), feed)
    assert again.ended_by == "caught_up"
    assert again.fetched == 10
    assert set(lake.states()) == set(ids)


def test_a_refusal_is_an_error(wiki: MediaWikiServer, client: MediaWikiClient) -> None:
    wiki.refuse(1, 403)
    with pytest.raises(RefusedError, match=r"refresh\.contact"):
        _drain(wiki.world, client, Lake(), Cursor.at(START))


def test_one_entity_that_cannot_be_used_does_not_stop_the_others(
    wiki: MediaWikiServer, client: MediaWikiClient
) -> None:
    world, lake = wiki.world, Lake("Q1", "Q2", "Q3")
    for number in (1, 2, 3):
        world.edit(f"Q{number}", item(f"Q{number}", "x"))
    _drain(world, client, Lake(), Cursor.at(START))
    world.pages["Q2"].revisions[-1] = (-5, item("Q2", "x"), START)
    world.pages["Q3"].revisions[-1] = (world.revision_of("Q3"), {**item("Q3", "\ud800 half"), "labels": {}}, START)
    world.pass_time(700)
    result = _drain(world, client, lake, Cursor.at(START))
    assert result.ended_by == "caught_up"
    assert set(lake.states()) == {"Q1", "Q3"}
    assert [(reject.content, "lastrevid" in reject.reason) for reject in result.rejected] == [("Q2", True)]


def test_both_feeds_find_the_same(wiki: MediaWikiServer, client: MediaWikiClient) -> None:
    world = wiki.world
    world.load(*(item(f"Q{number}", "x") for number in range(1, 7)))
    world.edit("Q1", item("Q1", "y"))
    world.delete("Q2")
    world.merge("Q3", "Q4")
    world.delete("Q5")
    world.restore("Q5")
    ids = [f"Q{number}" for number in range(1, 7)]
    by_api, by_stream = Lake(*ids), Lake(*ids)
    _drain(world, client, by_api, Cursor.at(START))
    with PoliteHttp(wiki.stream_url, AGENT, min_interval_s=0) as http:
        feed = EventStreamFeed(http, now=world.now, quiet_s=0.3)
        result = _drain(world, client, by_stream, Cursor.at(START), feed)
    assert result.ended_by == "caught_up"
    assert by_api.staged.equals(by_stream.staged)
    assert result.requests == 2


def test_lag_answers_in_the_middle_do_no_harm(wiki: MediaWikiServer, client: MediaWikiClient) -> None:
    wiki.world.edit("Q1", item("Q1", "x"))
    lake = Lake("Q1")
    wiki.lag(3)
    wiki.fail(Fault(cut=30))
    assert _drain(wiki.world, client, lake, Cursor.at(START)).ended_by == "caught_up"
    assert set(lake.states()) == {"Q1"}


_KNOWN = ["Q1", "Q2", "Q3", "Q4"]
_IDS = [*_KNOWN, "Q5", "Q6"]
_ACT = st.one_of(
    st.tuples(st.sampled_from(["edit", "late", "delete", "restore", "protect"]), st.sampled_from(_IDS)),
    st.tuples(st.just("merge"), st.sampled_from(_IDS), st.sampled_from(_IDS)),
    st.tuples(st.just("wait"), st.sampled_from([1, 5, 70, 1000])),
    st.tuples(st.just("drain"), st.integers(1, 3), st.integers(1, 3), st.sampled_from([None, 1, 2])),
    st.tuples(st.just("crash"), st.integers(1, 2), st.booleans()),
    st.tuples(st.just("behind"), st.sampled_from(_IDS), st.integers(1, 3)),
)


@pytest.fixture(name="shared_wiki", scope="module")
def one_server_for_many_worlds() -> Iterator[MediaWikiServer]:
    """Run a server whose world is replaced by each example."""
    with MediaWikiServer(World(START)) as server:
        yield server


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(_ACT, max_size=25), st.booleans())
def test_whatever_happens_the_lake_ends_with_what_the_site_says(
    shared_wiki: MediaWikiServer, acts: list[tuple[Any, ...]], told: bool
) -> None:
    """Random lives of entities, drains cut small, crashes before and after staging, databases that lag."""
    world = shared_wiki.world = World(START)
    world.load(*(item(local_id, "at first") for local_id in _KNOWN))
    lake, place = Lake(*_KNOWN), [Cursor.at(START)]
    staged = lake.held if told else None
    with MediaWikiClient(shared_wiki.url, AGENT, pause=NotedPause(), min_interval_s=0) as client:
        for act in acts:
            _act(world, shared_wiki, client, lake, place, act, staged)
        world.behind.clear()
        world.pass_time(700)
        shared_wiki.page_limit = 500
        result = _drain(world, client, lake, place[0], staged=staged)
        assert result.ended_by == "caught_up"
        touched = {row.title for row in world.recent if row.kind != "log" or row.log != ("protect", "protect")}
        held = lake.held(list(world.pages))
        for local_id in touched & set(_KNOWN):
            assert local_id in held
            assert end_of(local_id, held) == world.end_of(local_id)
            if held[local_id].action == "edited":
                assert held[local_id].revision == world.revision_of(local_id)
        for state in held.values():
            assert state.action != "redirected" or state.redirect_to in held


def _act(
    world: World,
    wiki: MediaWikiServer,
    client: MediaWikiClient,
    lake: Lake,
    place: list[Cursor],
    act: tuple[Any, ...],
    staged: Any,
) -> None:
    kind, *rest = act
    if kind == "wait":
        world.pass_time(rest[0])
    elif kind == "drain":
        wiki.page_limit = rest[0]
        result = _drain(world, client, lake, place[0], slice_entities=rest[1], max_slices=rest[2], staged=staged)
        assert result.cursor_after.timestamp >= place[0].timestamp
        place[0] = Cursor.parse(result.cursor_after.to_text())
    elif kind == "crash":
        lake.crash_at, lake.crash_after = lake.calls + rest[0], rest[1]
        wiki.page_limit = 1
        # Where it dies, the cursor is lost with the process.
        with suppress(CrashError):
            place[0] = _drain(world, client, lake, place[0], slice_entities=1, staged=staged).cursor_after
        lake.crash_at = None
    else:
        _live(world, kind, *rest)


def _live(world: World, kind: str, local_id: str, *rest: Any) -> None:
    page = world.pages.get(local_id)
    there = page is not None and not page.deleted
    if kind in ("edit", "late") and (there or page is None):
        late = timedelta(seconds=6 if kind == "late" else 0)
        world.edit(local_id, item(local_id, f"{kind} {len(world.recent)}"), at=world.now() - late)
    elif kind == "delete" and there:
        world.delete(local_id)
    elif kind == "restore" and page is not None and page.deleted:
        world.restore(local_id)
    elif kind == "protect" and there:
        world.protect(local_id)
    elif kind == "behind" and page is not None:
        world.show_old(local_id, rest[0])
    elif kind == "merge" and local_id != rest[0] and world.entity(local_id) and world.entity(rest[0]):
        world.merge(local_id, rest[0])
