"""Server-sent events: bytes in, events out, whatever the pieces the bytes come in.

The format: https://html.spec.whatwg.org/multipage/server-sent-events.html.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kgrag_assets.knowledge.changes.errors import TooLargeError


@dataclass(frozen=True)
class Event:
    """One event; ``event_id`` is the last id the stream has named up to it."""

    data: str
    event_id: str | None


class SseReader:
    """Reads one stream. ``retry_s`` is how long the server asks to wait before coming back."""

    def __init__(self, max_event_bytes: int = 4 << 20) -> None:
        self.retry_s: float | None = None
        self._max = max_event_bytes
        self._rest = b""
        self._first = True
        self._data: list[str] = []
        self._size = 0
        self._id: str | None = None

    def feed(self, part: bytes) -> Iterator[Event]:
        """Take the next bytes, and yield the events they complete.

        Raises:
            TooLargeError: one event is larger than the bound.
        """
        self._rest += part
        if self._first:
            if len(self._rest) < 3 and b"\xef\xbb\xbf".startswith(self._rest):
                return
            self._rest = self._rest.removeprefix(b"\xef\xbb\xbf")
            self._first = False
        # A carriage return at the end may be half of a line's end: it waits for what follows.
        held = self._rest.endswith(b"\r")
        text = self._rest[:-1] if held else self._rest
        lines = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        self._rest = lines.pop() + (b"\r" if held else b"")
        if len(self._rest) + self._size > self._max:
            raise TooLargeError(f"an event of the stream is larger than {self._max:,} bytes")
        for line in lines:
            event = self._line(line)
            if event is not None:
                yield event

    def _line(self, line: bytes) -> Event | None:
        if not line:
            data, self._data, self._size = self._data, [], 0
            return Event("\n".join(data), self._id) if data else None
        self._size += len(line)
        if self._size > self._max:
            raise TooLargeError(f"an event of the stream is larger than {self._max:,} bytes")
        name, _, value = line.decode("utf-8", "replace").partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
        elif name == "id" and "\0" not in value:
            self._id = value
        elif name == "retry" and value.isascii() and value.isdigit() and len(value) < 9:
            self.retry_s = int(value) / 1000
        return None
