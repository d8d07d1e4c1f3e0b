"""Taking one slice of changes: which entities are wanted, fetching them, and staging what they have become."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

import polars as pl

from kgrag_assets.knowledge.changes.errors import TimeIsUpError, UnavailableError
from kgrag_assets.knowledge.changes.feed import Change
from kgrag_assets.knowledge.changes.mediawiki import MediaWikiClient
from kgrag_assets.knowledge.changes.states import (
    Held,
    State,
    Touched,
    collapse,
    is_behind,
    is_missing,
    redirect_of,
    redirected,
    states_of,
)
from kgrag_assets.knowledge.collector import Rejected
from kgrag_assets.models.endpoints import storable
from kgrag_assets.rows.graph_changes import DELETED, EDITED, KG_CHANGES, REDIRECTED


@dataclass(frozen=True)
class Wishes:
    """Which entities are wanted; for its fields see ``drain``."""

    admits: Callable[[dict[str, Any]], bool]
    known: Callable[[Sequence[str]], Collection[str]]
    staged: Callable[[Sequence[str]], Mapping[str, Held]] | None
    new_entities: bool


@dataclass(frozen=True)
class Taken:
    """How a slice ended: the ids that are not dealt with, and why."""

    unfinished: frozenset[str]
    ended_by: Literal["time", "unavailable", "lagging"] | None
    problem: str | None


class Taker:
    """Takes slices, one after the other, and remembers what it staged."""

    def __init__(
        self,
        graph: str,
        client: MediaWikiClient,
        wishes: Wishes,
        stage: Callable[[pl.DataFrame], None],
        settle_s: float,
        lag_wait_s: float,
        now: Callable[[], datetime],
    ) -> None:
        self.tally: Counter[str] = Counter()
        self.rejected: list[Rejected] = []
        self.entities: set[str] = set()
        self._graph = graph
        self._client = client
        self._wishes = wishes
        self._stage = stage
        self._settle_s = settle_s
        self._lag_wait_s = lag_wait_s
        self._now = now
        self._done: dict[str, Held] = {}

    def wanted(self, ids: Sequence[str]) -> list[str]:
        """Return those of some ids that have to be looked at, in order."""
        if self._wishes.new_entities:
            return list(ids)
        familiar = self._known(ids) | set(self._held(ids))
        return [local_id for local_id in ids if local_id in familiar]

    def take(self, changes: Sequence[Change], *, patient: bool) -> Taken:
        """Fetch and stage what the entities of some changes have become.

        Args:
            changes: the changes, in order.
            patient: whether records from before their changes are waited for and fetched once more.
        """
        touched = collapse(changes)
        ids = list(touched)
        known, held = self._known(ids), self._held(ids)
        wanted = {
            local_id: touched[local_id]
            for local_id in ids
            if self._wishes.new_entities or local_id in known or local_id in held
        }
        self.entities.update(wanted)
        at_hand = [local_id for local_id in wanted if _is_at_hand(wanted[local_id], held.get(local_id))]
        self.tally["unchanged"] += len(at_hand)
        done = set(at_hand)
        work = _Work({name: at for name, at in wanted.items() if name not in done}, touched, known | set(held), held)
        taken = self._fetch(work, patient=patient)
        if work.rows:
            self._stage(KG_CHANGES.frame([state.row(self._graph) for state in work.rows.values()]))
            self.tally.update(state.action for state in work.rows.values())
            self._done.update({state.local_id: state.held() for state in work.rows.values()})
        return taken

    def _fetch(self, work: _Work, *, patient: bool) -> Taken:
        ended_by: Literal["time", "unavailable"] | None = None
        problem: str | None = None
        try:
            lagging = self._round(work, list(work.touched))
            if lagging and patient:
                self._client.http.wait(min(self._lag_wait_s, self._client.http.deadline.left()))
                self._round(work, lagging)
        except TimeIsUpError as error:
            ended_by, problem = "time", str(error)
        except UnavailableError as error:
            ended_by, problem = "unavailable", str(error)
        unfinished = work.unfinished()
        if ended_by is None and unfinished:
            names = ", ".join(sorted(unfinished)[:5])
            return Taken(
                unfinished,
                "lagging",
                f"{self._client.endpoint} does not show the last changes of {len(unfinished)} entities yet ({names}): "
                f"they are taken by the next refresh",
            )
        return Taken(unfinished, ended_by, problem)

    def _round(self, work: _Work, ids: Sequence[str]) -> list[str]:
        """Fetch ids and note their states; return those whose records are from before their changes."""
        lagging: list[str] = []
        targets: list[str] = []
        for answers in self._client.entities(ids):
            self.tally["fetched"] += len(answers.records)
            for local_id, reason in answers.refused.items():
                self._reject(work, local_id, reason)
            leads = self._leads(work, answers.records)
            for local_id, record in answers.records.items():
                touched = work.touched[local_id]
                try:
                    if local_id in leads:
                        states = [redirected(touched, leads[local_id])]
                        targets += work.follow(touched, leads[local_id])
                    elif self._is_early(work, touched, record):
                        lagging.append(local_id)
                        continue
                    else:
                        states = states_of(touched, record)
                except ValueError as error:
                    self._reject(work, local_id, str(error))
                    continue
                self._note(work, touched, states, record)
                work.finished.add(local_id)
        if targets:
            # Each of them is new to this slice, so that even redirects in a circle come to an end.
            work.held.update(self._held(targets))
            lagging += self._round(work, targets)
        return lagging

    def _leads(self, work: _Work, records: Mapping[str, dict[str, Any]]) -> dict[str, str]:
        """Say which of the missing ones are redirects: the site calls those missing that lead to no entity."""
        doubtful = [
            local_id
            for local_id, record in records.items()
            if is_missing(record) and work.touched[local_id].last != "gone" and local_id in work.familiar
        ]
        return self._client.redirects(doubtful) if doubtful else {}

    def _is_early(self, work: _Work, touched: Touched, record: dict[str, Any]) -> bool:
        """Whether a record, or that of what an entity leads to, is from before changes of late."""
        target = redirect_of(touched.local_id, record)
        about = [touched] if target is None else [touched, *filter(None, [work.announced.get(target)])]
        return any(
            (self._now() - one.timestamp).total_seconds() < self._settle_s and is_behind(one, record) for one in about
        )

    def _note(self, work: _Work, touched: Touched, states: Sequence[State], record: dict[str, Any]) -> None:
        own = states[-1]
        if touched.local_id not in work.familiar:
            # One that nobody holds: gone, or merged into another, it concerns nobody.
            if own.action != EDITED:
                return
            if not self._wishes.admits(record):
                self.tally["not_admitted"] += 1
                return
        targets = [state for state in states if state.local_id != own.local_id]
        held = {**self._held([state.local_id for state in targets]), **work.held}
        for state in (*targets, own):
            logged = state.local_id in work.touched and work.touched[state.local_id].logged
            before = work.rows.get(state.local_id)
            at_hand = held.get(state.local_id) if before is None else before.held()
            if at_hand == state.held():
                # The target of a redirect was no business of its own: only the entity's own state is counted.
                self.tally["unchanged"] += state is own and before is None
            elif _is_older(state, at_hand, logged=logged):
                self.tally["outdated"] += 1
            else:
                work.rows[state.local_id] = state

    def _reject(self, work: _Work, local_id: str, reason: str) -> None:
        self.rejected.append(Rejected(self._client.endpoint, None, storable(reason), local_id))
        work.finished.add(local_id)

    def _known(self, ids: Sequence[str]) -> set[str]:
        return set(self._wishes.known(ids)) if ids else set()

    def _held(self, ids: Sequence[str]) -> dict[str, Held]:
        before = dict(self._wishes.staged(ids)) if self._wishes.staged is not None and ids else {}
        return {**before, **{name: self._done[name] for name in ids if name in self._done}}


class _Work:
    """A slice on its way: what is to be fetched, all that was announced, ids the graph is familiar with, and rows."""

    def __init__(
        self, touched: dict[str, Touched], announced: Mapping[str, Touched], familiar: set[str], held: dict[str, Held]
    ) -> None:
        self.touched = touched
        self.announced = announced
        self.familiar = familiar
        self.held = held
        self.rows: dict[str, State] = {}
        self.finished: set[str] = set()
        self.sources: dict[str, str] = {}

    def follow(self, touched: Touched, target: str) -> list[str]:
        """Add what an entity leads to, where it is new to the slice; return the ids that were added."""
        if target in self.touched:
            return []
        at = self.announced.get(target) or Touched(target, 0, None, touched.timestamp, logged=False)
        self.touched[target] = at
        self.sources[target] = touched.local_id
        self.familiar.add(target)
        return [target]

    def unfinished(self) -> frozenset[str]:
        """Return what is not dealt with; a redirect whose target is not, is taken back, so that both are looked at."""
        left = set(self.touched) - self.finished
        for local_id in list(left):
            source = self.sources.get(local_id)
            while source is not None and source not in left:
                left.add(source)
                self.rows.pop(source, None)
                source = self.sources.get(source)
        return frozenset(left)


def _is_at_hand(touched: Touched, held: Held | None) -> bool:
    """Whether all that was announced is staged already, so that nothing needs to be fetched."""
    if held is None or held.action not in (EDITED, REDIRECTED):
        return False
    return 0 < touched.revision <= held.revision


def _is_older(state: State, held: Held | None, *, logged: bool) -> bool:
    """Whether a state is from before the staged one. Revisions only go back where pages were restored."""
    if held is None or logged or DELETED in (state.action, held.action):
        return False
    return 0 < state.revision < held.revision
