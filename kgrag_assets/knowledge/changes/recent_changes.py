"""The feed that pages through the recent changes of a MediaWiki site."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from datetime import timedelta
from typing import Any

from kgrag_assets.knowledge.changes.cursor import Cursor, moment_of
from kgrag_assets.knowledge.changes.feed import Change, Page, kind_of, number_of
from kgrag_assets.knowledge.changes.mediawiki import MediaWikiClient, RecentPage, entity_of_title

# A change is stamped when its transaction begins and seen when it ends: ones of this age may still appear.
OVERLAP_S = 10.0
# Where nothing changed, everything up to this long ago is taken to have appeared.
_QUIET_S = 60.0


class RecentChangesFeed:
    """Pages of ``list=recentchanges``, which keeps 30 days."""

    def __init__(self, client: MediaWikiClient, *, overlap_s: float = OVERLAP_S) -> None:
        """Prepare; nothing is sent.

        Args:
            client: asks the site.
            overlap_s: begin this long before the cursor, for changes that appeared late.
        """
        self.http = client.http
        self._client = client
        self._overlap_s = overlap_s

    @property
    def remembers(self) -> timedelta:
        """Thirty days, less two to be safe."""
        return timedelta(days=28)

    def pages(self, cursor: Cursor) -> Generator[Page]:
        """Yield pages until the last; see ``ChangeFeed``."""
        start = cursor.back(self._overlap_s)
        more: dict[str, str] | None = None
        while True:
            answer = self._client.recent_changes(start, more)
            page = _page_of(answer, cursor)
            yield page
            if page.caught_up:
                return
            cursor, more = page.cursor, answer.more


def _page_of(answer: RecentPage, cursor: Cursor) -> Page:
    changes: list[Change] = []
    for entry in answer.entries:
        timestamp = moment_of(entry.get("timestamp"))
        if timestamp is None:
            continue
        position = Cursor(timestamp, number_of(entry.get("rcid")))
        # In the overlap lie changes from before the cursor, which never goes back.
        if _place(position) > _place(cursor):
            cursor = position
        change = _change_of(entry, position)
        if change is not None:
            changes.append(change)
    caught_up = answer.more is None
    if caught_up and answer.server_time is not None:
        complete = Cursor.at(answer.server_time - timedelta(seconds=_QUIET_S))
        if complete.timestamp > cursor.timestamp:
            cursor = complete
    cursor = replace(cursor, last_event_id=None)
    return Page(tuple(changes), cursor, caught_up, len(answer.entries), answer.server_time)


def _place(cursor: Cursor) -> tuple[float, int]:
    return cursor.timestamp.timestamp(), cursor.rcid or 0


def _change_of(entry: dict[str, Any], position: Cursor) -> Change | None:
    local_id = entity_of_title(entry.get("title"))
    kind = kind_of(entry.get("type"), entry.get("logtype"), entry.get("logaction"))
    if local_id is None or kind is None:
        return None
    return Change(local_id, kind, number_of(entry.get("revid")), position.timestamp, position)
