"""The place in the feed of changes up to which all is taken, as text that a scheduler can keep."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from kgrag_assets.knowledge.changes.errors import CursorError
from kgrag_assets.knowledge.json_object import json_object_of

VERSION = 1
# A Last-Event-ID travels as an HTTP header; real ones take about 300 characters.
_MAX_EVENT_ID = 4000
_MAX_TEXT = 20_000


def iso(moment: datetime) -> str:
    """Write a moment as MediaWiki does: UTC, whole seconds, ``2026-05-01T12:00:00Z``."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def moment_of(text: object) -> datetime | None:
    """Read an ISO 8601 moment with a time zone; None where it is none."""
    if not isinstance(text, str) or len(text) > 40:
        return None
    try:
        moment = datetime.fromisoformat(text)
        return moment.astimezone(UTC) if moment.tzinfo is not None else None
    except (ValueError, OverflowError):
        return None


@dataclass(frozen=True)
class Cursor:
    """Everything that changed up to here is taken.

    ``timestamp``: of the last change, whole seconds in UTC; every feed can go on from it.
    ``rcid``: its number among the recent changes, where that feed gave it.
    ``last_event_id``: its id in the event stream, where that feed gave it.
    """

    timestamp: datetime
    rcid: int | None = None
    last_event_id: str | None = None

    @classmethod
    def at(cls, moment: datetime) -> Cursor:
        """Begin at a moment, such as that of the dump the graph was loaded from.

        Raises:
            CursorError: the moment has no time zone.
        """
        if moment.tzinfo is None:
            raise CursorError(f"{moment} has no time zone: give it in UTC")
        return cls(moment.astimezone(UTC).replace(microsecond=0))

    def to_text(self) -> str:
        """Write the cursor as one line of JSON."""
        fields: dict[str, object] = {"version": VERSION, "timestamp": iso(self.timestamp)}
        if self.rcid is not None:
            fields["rcid"] = self.rcid
        if self.last_event_id is not None:
            fields["last_event_id"] = self.last_event_id
        return json.dumps(fields, separators=(",", ":"), sort_keys=True)

    @classmethod
    def parse(cls, text: str) -> Cursor:
        """Read what ``to_text`` wrote.

        Raises:
            CursorError: the text is damaged or of another version.
        """
        fields = _fields(text)
        if fields.get("version") != VERSION:
            raise _damaged(text, f"its version is {str(fields.get('version'))[:20]}, this program reads {VERSION}")
        timestamp = moment_of(fields.get("timestamp"))
        if timestamp is None:
            raise _damaged(text, "its timestamp is not a moment in UTC")
        rcid, event_id = fields.get("rcid"), fields.get("last_event_id")
        if rcid is not None and (type(rcid) is not int or rcid < 0):
            raise _damaged(text, "its rcid is not a number")
        if event_id is not None and not is_event_id(event_id):
            raise _damaged(text, "its last_event_id is not an id of an event")
        return cls(timestamp.replace(microsecond=0), rcid, event_id)

    def back(self, seconds: float) -> datetime:
        """Return the moment some seconds before this place."""
        return self.timestamp - timedelta(seconds=seconds)


def is_event_id(value: object) -> bool:
    """Whether a value can be sent as ``Last-Event-ID``: printable ASCII of bounded length."""
    return isinstance(value, str) and 0 < len(value) <= _MAX_EVENT_ID and value.isascii() and value.isprintable()


def _fields(text: str) -> dict[str, Any]:
    fields = json_object_of(text) if len(text) <= _MAX_TEXT else None
    if fields is None:
        raise _damaged(text, "it is not an object in JSON")
    return fields


def _damaged(text: str, why: str) -> CursorError:
    return CursorError(
        f"the cursor {text[:120]!r} cannot be used: {why}. Delete it: the refresh then begins at the "
        f"date of the dump the graph was loaded from; changes that are taken twice do no harm"
    )
