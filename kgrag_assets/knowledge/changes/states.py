"""From changes and the site's records to rows: what each touched entity has become."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import polars as pl

from kgrag_assets.knowledge.changes.cursor import iso, moment_of
from kgrag_assets.knowledge.changes.feed import Change, ChangeKind
from kgrag_assets.knowledge.changes.mediawiki import is_entity_id
from kgrag_assets.models.endpoints import storable
from kgrag_assets.rows.graph_changes import DELETED, EDITED, REDIRECTED, change_key_of

# Where a page lies at the site, and how it was asked for: no part of what the entity says.
_NOT_KEPT = frozenset({"pageid", "ns", "title", "redirects"})


@dataclass(frozen=True)
class Touched:
    """One entity's changes as one: its newest revision, what happened last, and whether revisions may go back.

    ``last`` is None for an entity that is only looked at because another one leads to it.
    """

    local_id: str
    revision: int
    last: ChangeKind | None
    timestamp: datetime
    logged: bool


@dataclass(frozen=True)
class Held:
    """What is staged of an entity already: ``action`` and ``revision`` of its row."""

    action: str
    revision: int
    redirect_to: str | None = None


@dataclass(frozen=True)
class State:
    """What an entity is now."""

    local_id: str
    action: str
    redirect_to: str | None
    revision: int
    changed_at: str
    document: str

    def held(self) -> Held:
        """Return this state as one that is staged."""
        return Held(self.action, self.revision, self.redirect_to)

    def row(self, graph: str) -> dict[str, object]:
        """Return the row of ``KG_CHANGES``."""
        return {
            "graph": graph,
            "local_id": self.local_id,
            "action": self.action,
            "redirect_to": self.redirect_to,
            "revision": self.revision,
            "changed_at": self.changed_at,
            "document": self.document,
            "row_key": change_key_of(graph, self.local_id, self.action, self.redirect_to, self.revision),
        }


def collapse(changes: Iterable[Change]) -> dict[str, Touched]:
    """Make one of all changes of each entity, in the order in which entities first appear.

    A deletion or a restoration takes back what revision is to be expected: restored pages may end with an older one.
    """
    touched: dict[str, Touched] = {}
    for change in changes:
        before = touched.get(change.local_id)
        moved = change.kind != "touched"
        if before is None:
            revision = 0 if moved else change.revision
            touched[change.local_id] = Touched(change.local_id, revision, change.kind, change.timestamp, moved)
            continue
        touched[change.local_id] = replace(
            before,
            revision=0 if moved else max(before.revision, change.revision),
            last=change.kind,
            timestamp=max(before.timestamp, change.timestamp),
            logged=before.logged or moved,
        )
    return touched


def held_states(frame: pl.DataFrame | pl.LazyFrame, graph: str, ids: Sequence[str]) -> dict[str, Held]:
    """Look up what is staged of some ids of a graph.

    Args:
        frame: rows of ``KG_CHANGES``, or a query of them.
        graph: the graph.
        ids: ids at the source.
    """
    rows = frame.lazy().filter((pl.col("graph") == graph) & pl.col("local_id").is_in(list(ids)))
    columns = rows.select("local_id", "action", "revision", "redirect_to").collect()
    return {name: Held(action, revision, target) for name, action, revision, target in columns.iter_rows()}


def end_of(local_id: str, held: Mapping[str, Held]) -> str | None:
    """Follow redirects to their end.

    Args:
        local_id: any entity.
        held: states of entities; one without a state is as it was.

    Returns:
        The id of the entity that stands for this one now, mostly itself; None where there is none any more.
    """
    passed: set[str] = set()
    while (state := held.get(local_id)) is not None and state.action != EDITED:
        if state.action == DELETED or state.redirect_to is None or local_id in passed:
            return None
        passed.add(local_id)
        local_id = state.redirect_to
    return local_id


def is_missing(record: Mapping[str, Any]) -> bool:
    """Whether the site says that it has no such entity."""
    return "missing" in record


def is_behind(touched: Touched, record: Mapping[str, Any]) -> bool:
    """Whether a record is from before the changes that were announced: a database of the site lags."""
    if touched.last is None:
        return False
    if is_missing(record):
        return touched.last != "gone"
    if touched.last == "gone":
        return True
    if redirect_of(touched.local_id, record) is not None:
        return False  # the record is that of another entity, whose revisions say nothing about this one
    revision = record.get("lastrevid")
    return type(revision) is int and revision < touched.revision


def redirect_of(local_id: str, record: Mapping[str, Any]) -> str | None:
    """Return the id that an entity leads to; None where the record is its own."""
    target = record.get("id")
    return target if isinstance(target, str) and target != local_id else None


def redirected(touched: Touched, target: str) -> State:
    """Return the state of an entity that leads to another one."""
    return State(touched.local_id, REDIRECTED, target, touched.revision, iso(touched.timestamp), "")


def states_of(touched: Touched, record: Mapping[str, Any]) -> list[State]:
    """Say what an entity is now, and, where it leads to another one, what that one is.

    Raises:
        ValueError: the record is not that of an entity; the text says why.
    """
    when = iso(touched.timestamp)
    if is_missing(record):
        return [State(touched.local_id, DELETED, None, 0, when, "")]
    target = redirect_of(touched.local_id, record)
    if target is None:
        return [_edited(touched.local_id, record, when)]
    # The target first: where its record is damaged, nothing leads to it either.
    found = _edited(target, record, when)
    return [found, redirected(touched, target)]


def _edited(local_id: str, record: Mapping[str, Any], when: str) -> State:
    if not is_entity_id(local_id) or record.get("id") != local_id:
        raise ValueError(f"the record's id is {str(record.get('id'))[:60]!r}")
    revision = record.get("lastrevid")
    if type(revision) is not int or not 0 < revision < 1 << 62:
        raise ValueError(f"the record of {local_id} has no revision (lastrevid)")
    modified = moment_of(record.get("modified"))
    kept = {name: part for name, part in record.items() if name not in _NOT_KEPT}
    document = storable(json.dumps(kept, ensure_ascii=False, sort_keys=True, separators=(",", ":")))
    return State(local_id, EDITED, None, revision, when if modified is None else iso(modified), document)
