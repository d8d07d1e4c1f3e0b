"""A small Wikidata: entities with revisions, and everything that can become of them."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

Entity = dict[str, Any]

# No database lags longer and still answers.
MAX_LAG = timedelta(seconds=300)


def item(local_id: str, label: str, *, aliases: tuple[str, ...] = (), **claims: str | list[str]) -> Entity:
    """Make a small entity: ``item("Q1", "universe", P31="Q36906466")``; the values are items."""
    statements = {
        relation: [
            {
                "mainsnak": {
                    "snaktype": "value",
                    "property": relation,
                    "datatype": "wikibase-item",
                    "datavalue": {
                        "type": "wikibase-entityid",
                        "value": {"entity-type": "item", "numeric-id": int(tail[1:]), "id": tail},
                    },
                },
                "type": "statement",
                "rank": "normal",
                "id": f"{local_id}${relation}-{tail}",
            }
            for tail in ([tails] if isinstance(tails, str) else tails)
        ]
        for relation, tails in claims.items()
    }
    entity: Entity = {
        "type": "property" if local_id.startswith("P") else "item",
        "id": local_id,
        "labels": {"en": {"language": "en", "value": label}},
        "descriptions": {},
        "aliases": {"en": [{"language": "en", "value": alias} for alias in aliases]} if aliases else {},
        "claims": statements,
    }
    if local_id.startswith("P"):
        entity["datatype"] = "wikibase-item"
    return entity


@dataclass
class WikiPage:
    """The page of an entity: its revisions, oldest first, each an entity, a redirect (text) or nothing."""

    local_id: str
    page_id: int
    revisions: list[tuple[int, Entity | str, datetime]] = field(default_factory=list)
    deleted: bool = False
    changed: datetime | None = None


@dataclass(frozen=True)
class Recent:
    """A row of the recent changes."""

    rcid: int
    kind: str
    title: str
    namespace: int
    page_id: int
    revid: int
    old_revid: int
    timestamp: datetime
    log: tuple[str, str] | None = None


class World:
    """What a Wikibase site holds. Every method that changes something is noted in ``recent``.

    Time is the real one until ``set_time`` fixes it. Reads take ``lock``.
    """

    def __init__(self, start: datetime | None = None) -> None:
        self.lock = threading.Condition()
        self.pages: dict[str, WikiPage] = {}
        self.recent: list[Recent] = []
        self.behind: dict[str, int] = {}
        self._fixed = start
        self._revision = 1000
        self._rcid = 5000

    def now(self) -> datetime:
        """Return the world's time, whole seconds in UTC."""
        return (self._fixed or datetime.now(UTC)).astimezone(UTC).replace(microsecond=0)

    def set_time(self, moment: datetime) -> None:
        """Fix the world's time."""
        self._fixed = moment

    def pass_time(self, seconds: float) -> None:
        """Let a fixed time pass."""
        self._fixed = self.now() + timedelta(seconds=seconds)

    def load(self, *entities: Entity, at: datetime | None = None) -> None:
        """Have entities there from long ago, without a trace in the recent changes."""
        for entity in entities:
            self._revise(entity["id"], copy.deepcopy(entity), at or self.now() - timedelta(days=365))

    def edit(self, local_id: str, entity: Entity, *, at: datetime | None = None) -> int:
        """Save an entity, new or not, or one that was a redirect; ``at``: stamped earlier than now."""
        return self._change(local_id, copy.deepcopy(entity), at)

    def merge(self, source: str, target: str) -> int:
        """Merge an item into another: the target is saved again, the source emptied and made a redirect.

        Redirects to the source are led on to the target, as a robot at Wikidata does.
        """
        into = self.entity(target)
        if into is None:
            raise KeyError(f"{target} is no entity to merge into")
        self.edit(target, into)
        empty = {"type": "item", "id": source, "labels": {}, "descriptions": {}, "aliases": {}, "claims": {}}
        self.edit(source, empty)
        revision = self._change(source, target, None)
        for local_id, page in self.pages.items():
            if not page.deleted and page.revisions[-1][1] == source:
                self._change(local_id, target, None)
        return revision

    def delete(self, local_id: str) -> None:
        """Delete a page."""
        self.pages[local_id].deleted = True
        self._log(local_id, "delete", "delete")

    def restore(self, local_id: str, *, revisions: int | None = None) -> None:
        """Restore a page, or only its oldest revisions."""
        page = self.pages[local_id]
        page.deleted = False
        if revisions is not None:
            del page.revisions[revisions:]
        self._log(local_id, "delete", "restore")

    def protect(self, local_id: str) -> None:
        """Protect a page, which leaves its text alone."""
        self._log(local_id, "protect", "protect")

    def show_old(self, local_id: str, times: int) -> None:
        """Answer about an entity as before its last change, so many times: a database lags, for ``MAX_LAG`` at most."""
        self.behind[local_id] = times

    def entity(self, local_id: str) -> Entity | None:
        """Return an entity as it is now; None where it is deleted, unknown or a redirect."""
        page = self.pages.get(local_id)
        content = page.revisions[-1][1] if page is not None and page.revisions and not page.deleted else None
        return copy.deepcopy(content) if isinstance(content, dict) else None

    def revision_of(self, local_id: str) -> int:
        """Return the newest revision of a page."""
        return self.pages[local_id].revisions[-1][0]

    def answer(self, local_id: str) -> tuple[str, int, Entity, datetime, int] | None:
        """Return what a database says: id, revision, entity, time and page of what an id leads to, one redirect far."""
        found = self._read(local_id)
        if found is not None and isinstance(found[1], str):
            local_id = found[1]
            found = self._read(local_id)
        if found is None or isinstance(found[1], str):
            return None
        return local_id, found[0], found[1], found[2], self.pages[local_id].page_id

    def redirect_of(self, local_id: str) -> str | None:
        """Return what a page leads to directly; None where it is no redirect."""
        page = self.pages.get(local_id)
        content = page.revisions[-1][1] if page is not None and page.revisions and not page.deleted else None
        return content if isinstance(content, str) else None

    def end_of(self, local_id: str) -> str | None:
        """Return the entity that an id leads to in the end; None where there is none."""
        while (target := self.redirect_of(local_id)) is not None:
            local_id = target
        return local_id if self.entity(local_id) is not None else None

    def sorted_recent(self, keep: Callable[[Recent], bool] = lambda _row: True) -> list[Recent]:
        """Return the recent changes by time and number."""
        with self.lock:
            return sorted(filter(keep, self.recent), key=lambda row: (row.timestamp, row.rcid))

    def _read(self, local_id: str) -> tuple[int, Entity | str, datetime] | None:
        page = self.pages.get(local_id)
        if page is None:
            return None
        young = page.changed is not None and self.now() - page.changed < MAX_LAG
        if young and self.behind.get(local_id, 0) > 0:
            self.behind[local_id] -= 1
            before = page.revisions if page.deleted else page.revisions[:-1]
            return before[-1] if before else None
        return None if page.deleted or not page.revisions else page.revisions[-1]

    def _revise(self, local_id: str, content: Entity | str, at: datetime) -> tuple[WikiPage, int, int]:
        with self.lock:
            page = self.pages.setdefault(local_id, WikiPage(local_id, len(self.pages) + 100))
            old = page.revisions[-1][0] if page.revisions else 0
            self._revision += 1
            page.revisions.append((self._revision, content, at.replace(microsecond=0)))
            return page, self._revision, old

    def _change(self, local_id: str, content: Entity | str, at: datetime | None) -> int:
        when = (at or self.now()).replace(microsecond=0)
        page, revision, old = self._revise(local_id, content, when)
        self._note(local_id, page, "edit" if old else "new", revision, old, when, None)
        return revision

    def _log(self, local_id: str, log_type: str, action: str) -> None:
        self._note(local_id, self.pages[local_id], "log", 0, 0, self.now(), (log_type, action))

    def _note(
        self,
        local_id: str,
        page: WikiPage,
        kind: str,
        revision: int,
        old: int,
        when: datetime,
        log: tuple[str, str] | None,
    ) -> None:
        is_property = local_id.startswith("P")
        with self.lock:
            page.changed = self.now()
            self._rcid += 1
            title, namespace = (f"Property:{local_id}", 120) if is_property else (local_id, 0)
            self.recent.append(Recent(self._rcid, kind, title, namespace, page.page_id, revision, old, when, log))
            self.lock.notify_all()
