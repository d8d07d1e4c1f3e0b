"""What a feed of changes is: single changes, pages of them, and the port that both feeds implement."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal, Protocol

from kgrag_assets.knowledge.changes.cursor import Cursor
from kgrag_assets.knowledge.changes.polite_http import PoliteHttp

# touched: the page has a new revision; gone: it was deleted; back: old revisions of it were restored.
ChangeKind = Literal["touched", "gone", "back"]


@dataclass(frozen=True)
class Change:
    """One change of one entity. ``revision`` is the one it made, 0 where it made none."""

    local_id: str
    kind: ChangeKind
    revision: int
    timestamp: datetime
    position: Cursor


@dataclass(frozen=True)
class Page:
    """Changes in the order of the feed; ``cursor`` is the place after them, and after changes of no interest.

    ``caught_up``: the feed has nothing after this page now. ``seen``: entries of the feed, of interest or not.
    """

    changes: tuple[Change, ...]
    cursor: Cursor
    caught_up: bool
    seen: int
    server_time: datetime | None = None


class ChangeFeed(Protocol):
    """Where changes come from. A feed may give a change twice; it never leaves one out that it remembers."""

    http: PoliteHttp

    @property
    def remembers(self) -> timedelta:
        """How far back the feed can be asked."""
        ...

    def pages(self, cursor: Cursor) -> Generator[Page]:
        """Yield pages of changes after a place, until one says ``caught_up``.

        Raises:
            UnavailableError, TimeIsUpError, ChangesError: as ``PoliteHttp.ask``.
        """
        ...


def kind_of(change_type: object, log_type: object, log_action: object) -> ChangeKind | None:
    """Say what a change did to its page; None where it left the text alone, as a protection does.

    Args:
        change_type: edit, new or log.
        log_type: of a log entry: delete, suppress, import, protect, …
        log_action: of a log entry: delete, restore, …
    """
    if change_type in ("edit", "new"):
        return "touched"
    if change_type == "log" and log_type in ("delete", "suppress"):
        if log_action == "restore":
            return "back"
        # delete_redir: a redirect that made way for a move. Hidden revisions (revision, event) stay what they are.
        return "gone" if log_action in ("delete", "delete_redir") else None
    return "back" if change_type == "log" and log_type in ("import", "merge") else None


def number_of(value: object) -> int:
    """Return a number that counts something, 0 for everything else."""
    return value if type(value) is int and value > 0 else 0
