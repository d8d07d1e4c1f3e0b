"""Draining a feed: from a cursor on, what became of the entities a graph holds, staged slice by slice."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

import polars as pl

from kgrag_assets.knowledge.changes.cursor import Cursor, iso
from kgrag_assets.knowledge.changes.deadline import Deadline
from kgrag_assets.knowledge.changes.errors import TimeIsUpError, UnavailableError
from kgrag_assets.knowledge.changes.event_stream import utc_now
from kgrag_assets.knowledge.changes.feed import Change, ChangeFeed, Page
from kgrag_assets.knowledge.changes.mediawiki import MediaWikiClient
from kgrag_assets.knowledge.changes.states import Held
from kgrag_assets.knowledge.changes.taking import Taken, Taker, Wishes
from kgrag_assets.knowledge.collector import Rejected

EndedBy = Literal["caught_up", "time", "slice_limit", "unavailable", "lagging"]
Known = Callable[[Sequence[str]], Collection[str]]
Staged = Callable[[Sequence[str]], Mapping[str, Held]]
Admits = Callable[[dict[str, Any]], bool]
Stage = Callable[[pl.DataFrame], None]

# Pages whose changes are kept in memory at once; most name no entity that is wanted.
_MAX_SLICE_PAGES = 40


@dataclass(frozen=True)
class Gap:
    """The cursor is older than what the feed remembers: changes are lost to it, and the next dump has to be taken."""

    since: datetime
    limit: timedelta
    message: str


@dataclass(frozen=True)
class DrainResult:
    """What a drain did.

    ``changes``: entries of the feed that were seen. ``entities``: distinct ones among them that were wanted.
    ``fetched``: records that the site gave. ``edited``, ``deleted``, ``redirected``: rows staged.
    ``unchanged``: nothing new is known. ``outdated``: fetched, but older than what is staged, and not taken.
    ``not_admitted``: fetched, and not wanted by the filter. ``requests``, ``bytes`` (over the wire), ``seconds``: cost.
    ``cursor_after``: everything up to there is staged. ``behind_s``: its age. ``problem``: why it ended early.
    ``rejected``: entities that the site could not give in a form that can be used, with the reason.
    """

    cursor_before: Cursor
    cursor_after: Cursor
    ended_by: EndedBy
    problem: str | None
    changes: int
    entities: int
    fetched: int
    edited: int
    deleted: int
    redirected: int
    unchanged: int
    outdated: int
    not_admitted: int
    slices: int
    requests: int
    bytes: int
    seconds: float
    behind_s: float
    rejected: tuple[Rejected, ...]


def drain(
    graph: str,
    feed: ChangeFeed,
    client: MediaWikiClient,
    cursor: Cursor,
    admits: Admits,
    known: Known,
    *,
    stage: Stage,
    staged: Staged | None = None,
    new_entities: bool = False,
    time_budget_s: float = 45.0,
    slice_entities: int = 500,
    max_slices: int | None = None,
    gap_limit: timedelta = timedelta(days=28),
    settle_s: float = 600.0,
    lag_wait_s: float = 5.0,
    now: Callable[[], datetime] = utc_now,
    clock: Callable[[], float] = time.monotonic,
) -> DrainResult | Gap:
    """Take what changed since the cursor, until the feed has no more or the time is over.

    The cursor of the result may be kept as soon as the call returns: everything up to it went through ``stage``.
    Whoever dies before keeping it, repeats work and loses nothing: staging a state again changes nothing.

    Args:
        graph: name of the graph, for the rows.
        feed: where changes come from.
        client: asks for the entities.
        cursor: where the last drain ended, or ``Cursor.at`` the date of the dump.
        admits: says of a fetched entity that the graph does not hold whether it is to be taken.
        known: says which of some ids the graph holds.
        stage: keeps rows of ``KG_CHANGES`` durably; called once per slice that has any.
        staged: says what is staged of some ids already. Those count as known, deleted ones too, so that a
            restored one returns; what is staged already is neither fetched nor staged again.
        new_entities: whether entities that the graph does not hold are fetched and shown to ``admits``.
        time_budget_s: seconds for the whole call.
        slice_entities: wanted entities after which a slice is fetched and staged.
        max_slices: end after so many; None for no end.
        gap_limit: the cursor may be as old as this, or as the feed remembers, whichever is less.
        settle_s: a change is this old before a record that contradicts it is believed; until then a database
            of the site may lag.
        lag_wait_s: pause before a record that contradicts is fetched once more.
        now: the time of day.
        clock: seconds that only go forward.

    Raises:
        ChangesError: the site refuses, or leads elsewhere; slices staged before hold, and are repeated.
    """
    limit = min(gap_limit, feed.remembers)
    if now() - cursor.timestamp > limit:
        return _gap(graph, cursor, limit)
    begun = clock()
    deadline = Deadline(time_budget_s, clock)
    sites = list({id(http): http for http in (feed.http, client.http)}.values())
    spent_before = [(http.spent.requests, http.spent.bytes) for http in sites]
    taker = Taker(graph, client, Wishes(admits, known, staged, new_entities), stage, settle_s, lag_wait_s, now)
    here, changes, slices = cursor, 0, 0
    carried: list[Change] = []
    pinned: Cursor | None = None
    ended_by: EndedBy | None = None
    problem: str | None = None
    with ExitStack() as stack:
        for http in sites:
            stack.enter_context(http.within(deadline))
        pages = stack.enter_context(closing(feed.pages(cursor)))
        while ended_by is None:
            part = _collect(pages, here, deadline, lambda ids: len(taker.wanted(ids)), slice_entities)
            # What the site contradicts now may be explained by a change on a later page: it is carried along.
            waiting = [*carried, *part.changes]
            taken = taker.take(waiting, patient=part.ended_by == "caught_up")
            slices += 1
            changes += part.seen
            carried = [change for change in waiting if change.local_id in taken.unfinished]
            if not carried:
                pinned = None
            elif pinned is None:
                pinned = _before_unfinished(here, part.changes, taken.unfinished)
            here = part.cursor
            ended_by, problem = _end(part, taken, slices, max_slices)
        here = pinned or here
    tally = taker.tally
    return DrainResult(
        cursor_before=cursor,
        cursor_after=here,
        ended_by=ended_by,
        problem=problem,
        changes=changes,
        entities=len(taker.entities),
        fetched=tally["fetched"],
        edited=tally["edited"],
        deleted=tally["deleted"],
        redirected=tally["redirected"],
        unchanged=tally["unchanged"],
        outdated=tally["outdated"],
        not_admitted=tally["not_admitted"],
        slices=slices,
        requests=sum(http.spent.requests for http in sites) - sum(requests for requests, _ in spent_before),
        bytes=sum(http.spent.bytes for http in sites) - sum(size for _, size in spent_before),
        seconds=clock() - begun,
        behind_s=max(0.0, (now() - here.timestamp).total_seconds()),
        rejected=tuple(taker.rejected),
    )


@dataclass(frozen=True)
class _Slice:
    changes: list[Change]
    cursor: Cursor
    seen: int
    ended_by: EndedBy | None
    problem: str | None


def _collect(
    pages: Iterator[Page], cursor: Cursor, deadline: Deadline, count: Callable[[Sequence[str]], int], wanted: int
) -> _Slice:
    """Gather pages until enough entities are wanted, or half of the time is gone: the rest is for fetching them."""
    changes: list[Change] = []
    seen, found = 0, 0
    left = deadline.left()
    half = left / 2 if math.isfinite(left) else 0.0
    try:
        for number, page in enumerate(pages, start=1):
            changes.extend(page.changes)
            seen += page.seen
            cursor = page.cursor
            found += count(list(dict.fromkeys(change.local_id for change in page.changes)))
            if page.caught_up:
                return _Slice(changes, cursor, seen, "caught_up", None)
            if found >= wanted or number >= _MAX_SLICE_PAGES or deadline.left() <= half:
                return _Slice(changes, cursor, seen, None, None)
    except TimeIsUpError as error:
        return _Slice(changes, cursor, seen, "time", str(error))
    except UnavailableError as error:
        return _Slice(changes, cursor, seen, "unavailable", str(error))
    return _Slice(changes, cursor, seen, "caught_up", None)


def _before_unfinished(before: Cursor, changes: Sequence[Change], unfinished: Collection[str]) -> Cursor:
    """Return the place before the first change whose entity is not dealt with; never one before ``before``."""
    here = before
    for change in changes:
        if change.local_id in unfinished:
            break
        if change.timestamp >= here.timestamp:
            here = change.position
    return here


def _end(part: _Slice, taken: Taken, slices: int, max_slices: int | None) -> tuple[EndedBy | None, str | None]:
    if taken.ended_by in ("time", "unavailable"):
        return taken.ended_by, taken.problem
    if part.ended_by == "caught_up" and taken.ended_by is not None:
        return taken.ended_by, taken.problem
    if part.ended_by is not None:
        return part.ended_by, part.problem
    if max_slices is not None and slices >= max_slices:
        return "slice_limit", None
    return None, None


def _gap(graph: str, cursor: Cursor, limit: timedelta) -> Gap:
    return Gap(
        cursor.timestamp,
        limit,
        f"graph {graph!r}: changes are taken up to {iso(cursor.timestamp)}, and the feed remembers the last "
        f"{limit.days} days: what changed before is lost to it. Take the next dump: the refresh then begins there",
    )
