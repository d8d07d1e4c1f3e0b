"""The feed that listens to Wikimedia's stream of events, https://stream.wikimedia.org/v2/stream/recentchange."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx

from kgrag_assets.knowledge.changes.cursor import Cursor, is_event_id, iso, moment_of
from kgrag_assets.knowledge.changes.errors import RefusedError, TimeIsUpError, TooLargeError, UnavailableError
from kgrag_assets.knowledge.changes.feed import Change, Page, kind_of, number_of
from kgrag_assets.knowledge.changes.mediawiki import entity_of_title
from kgrag_assets.knowledge.changes.polite_http import PoliteHttp
from kgrag_assets.knowledge.changes.sse import Event, SseReader
from kgrag_assets.knowledge.json_object import json_object_of
from kgrag_assets.models.errors import TransientFailure

_OVERLAP_S = 10.0
_PAGE_EVENTS = 1000
_PAGE_S = 1.0
_MAX_RECONNECTS = 4


def utc_now() -> datetime:
    """Return the moment it is, in UTC."""
    return datetime.now(UTC)


class EventStreamFeed:
    """Listens to ``recentchange`` events of one wiki; the connection stays open while pages are taken."""

    def __init__(
        self,
        http: PoliteHttp,
        *,
        wiki: str = "wikidatawiki",
        quiet_s: float = 5.0,
        now: Callable[[], datetime] = utc_now,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Prepare; nothing is sent.

        Args:
            http: made for the address of the stream.
            wiki: the wiki whose events are taken; the stream carries those of all.
            quiet_s: a stream that says nothing for so long is taken to have nothing to say.
            now: the time of day: a stream that has come to it is caught up.
            clock: seconds that only go forward.
        """
        self.http = http
        self._wiki = wiki
        self._quiet_s = quiet_s
        self._now = now
        self._clock = clock

    @property
    def remembers(self) -> timedelta:
        """Seven days, less one to be safe."""
        return timedelta(days=6)

    def pages(self, cursor: Cursor) -> Generator[Page]:
        """Yield pages until the stream is past the moment of this call, or quiet; see ``ChangeFeed``."""
        failures = 0
        begun = self._now()
        while True:
            ended = f"{self.http.address} closed the stream"
            try:
                for page in self._listen(cursor, begun):
                    failures = failures if page.cursor == cursor else 0
                    cursor = page.cursor
                    yield page
                    if page.caught_up:
                        return
            except TransientFailure as failure:
                ended = failure.message
                wait = failure.retry_after_s
            except RefusedError as error:
                if error.status != 400 or cursor.last_event_id is None:
                    raise
                # The id is too old for the stream, or of another one: the moment still says where to go on.
                cursor, wait = replace(cursor, last_event_id=None), None
            else:
                wait = None
            # A stream that closes is usual (Wikimedia's does so after 15 minutes), one that brings nothing is not.
            failures += 1
            if failures > _MAX_RECONNECTS:
                raise UnavailableError(
                    f"{self.http.address} broke off {failures} times and brought nothing new ({ended}). "
                    f"Nothing is lost; the next refresh goes on from here"
                )
            seconds = min(30.0, 0.5 * 2**failures) if wait is None else wait
            if seconds >= self.http.deadline.left() or not self.http.wait(seconds):
                raise TimeIsUpError("no time is left to come back to the stream")

    def _listen(self, cursor: Cursor, begun: datetime) -> Iterator[Page]:
        """Yield pages of one connection, until it closes."""
        headers = {"Accept": "text/event-stream", "Cache-Control": "no-store", "Accept-Encoding": "identity"}
        params: dict[str, str] = {}
        if cursor.last_event_id is not None:
            headers["Last-Event-ID"] = cursor.last_event_id
        else:
            params["since"] = iso(cursor.timestamp - timedelta(seconds=_OVERLAP_S))
        page = _Collected(cursor, self._clock())
        opened = False
        try:
            with self.http.open(self.http.address, params, headers=headers, read_timeout_s=self._quiet_s) as response:
                opened = True
                for event in self._events(response):
                    caught_up = self._take(event, page, begun)
                    if caught_up or page.is_full(self._clock()):
                        yield page.close(self._now(), caught_up=caught_up)
                        page = _Collected(page.cursor, self._clock())
        except TransientFailure as failure:
            if failure.status == "timeout" and opened:
                yield page.close(self._now(), caught_up=True)
                return
            if page.seen:
                yield page.close(self._now(), caught_up=False)
            raise
        if page.seen:
            yield page.close(self._now(), caught_up=False)

    def _events(self, response: httpx.Response) -> Iterator[Event]:
        reader = SseReader()
        for part in response.iter_raw():
            self.http.deadline.check()
            try:
                yield from reader.feed(part)
            except TooLargeError as error:
                raise TransientFailure("error", str(error)) from error

    def _take(self, event: Event, page: _Collected, begun: datetime) -> bool:
        """Take an event; return whether the stream has come past ``begun`` with it."""
        page.seen += 1
        fields = json_object_of(event.data) or {}
        given = fields.get("meta")
        meta = given if isinstance(given, dict) else {}
        timestamp = _moment(fields, meta)
        if timestamp is None:
            return False
        at = max(page.cursor.timestamp, timestamp)
        known_id = event.event_id if is_event_id(event.event_id) else page.cursor.last_event_id
        page.cursor = Cursor(at, None, known_id)
        # Canaries are events that only show that the stream lives.
        if meta.get("domain") != "canary" and fields.get("wiki") == self._wiki:
            change = _change_of(fields, replace(page.cursor, timestamp=timestamp))
            if change is not None:
                page.changes.append(change)
        return timestamp > begun


class _Collected:
    """Changes on the way to a page."""

    def __init__(self, cursor: Cursor, begun: float) -> None:
        self.cursor = cursor
        self.changes: list[Change] = []
        self.seen = 0
        self._begun = begun

    def is_full(self, now: float) -> bool:
        return self.seen >= _PAGE_EVENTS or now - self._begun >= _PAGE_S

    def close(self, server_time: datetime, *, caught_up: bool) -> Page:
        return Page(tuple(self.changes), self.cursor, caught_up, self.seen, server_time)


def _moment(fields: dict[str, Any], meta: dict[str, Any]) -> datetime | None:
    seconds = fields.get("timestamp")
    if type(seconds) is int and 0 < seconds < 1 << 33:
        return datetime.fromtimestamp(seconds, UTC)
    moment = moment_of(meta.get("dt"))
    return None if moment is None else moment.replace(microsecond=0)


def _change_of(fields: dict[str, Any], position: Cursor) -> Change | None:
    local_id = entity_of_title(fields.get("title"))
    kind = kind_of(fields.get("type"), fields.get("log_type"), fields.get("log_action"))
    if local_id is None or kind is None:
        return None
    revision = fields.get("revision")
    new = number_of(revision.get("new")) if isinstance(revision, dict) else 0
    return Change(local_id, kind, new, position.timestamp, position)
