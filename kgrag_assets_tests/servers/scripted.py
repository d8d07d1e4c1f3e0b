"""A real HTTP server on loopback that answers by a script: what the servers of all protocols share."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self


@dataclass(frozen=True)
class Reply:
    """One answer of the server, as it goes over the wire.

    ``hang``: no answer until the server closes. ``cut``: the connection is closed in the middle of the body.
    """

    status: int = 200
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    content_type: str = "application/json"
    hang: bool = False
    cut: bool = False

    def raw(self) -> bytes:
        """Return the body as bytes: bytes as they are, everything else as JSON (NaN included, as Python writes it)."""
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()


@dataclass(frozen=True)
class Asked:
    """One request as it came."""

    path: str
    headers: dict[str, str]
    body: Any


class ScriptedServer:
    """Serves ``answer`` on 127.0.0.1, or the next of ``script`` while there is one; notes what it was asked.

    ``on_asked`` is called with the number of each request, from 1, before it is answered.
    """

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self.script: list[Reply] = []
        self.on_asked: Callable[[int], None] | None = None
        self._lock = threading.Lock()
        self._closing = threading.Event()
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            # Without it each answer waits 40 ms for an acknowledgement.
            disable_nagle_algorithm = True

            def do_POST(self) -> None:
                server.handle(self)

            def log_message(self, *_arguments: Any) -> None:
                """Say nothing."""

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    @property
    def address(self) -> str:
        """``http://127.0.0.1:port``."""
        return f"http://127.0.0.1:{self._http.server_port}"

    def then(self, *replies: Reply) -> None:
        """Add to the script."""
        with self._lock:
            self.script.extend(replies)

    def answer(self, asked: Asked) -> Reply:
        """Answer a request as the protocol has it; subclasses say how."""
        raise NotImplementedError

    def handle(self, handler: BaseHTTPRequestHandler) -> None:
        """Read a request, note it and answer it."""
        length = int(handler.headers.get("content-length", 0))
        raw = handler.rfile.read(length)
        headers = {name.lower(): value for name, value in handler.headers.items()}
        asked = Asked(handler.path, headers, json.loads(raw) if raw else None)
        with self._lock:
            self.asked.append(asked)
            number = len(self.asked)
            scripted = self.script.pop(0) if self.script else None
        if self.on_asked is not None:
            self.on_asked(number)
        self._send(handler, scripted if scripted is not None else self.answer(asked))

    def _send(self, handler: BaseHTTPRequestHandler, reply: Reply) -> None:
        if reply.hang:
            self._closing.wait()
            handler.close_connection = True
            return
        body = reply.raw()
        handler.send_response(reply.status)
        handler.send_header("content-type", reply.content_type)
        handler.send_header("content-length", str(len(body)))
        for name, value in reply.headers.items():
            handler.send_header(name, value)
        handler.end_headers()
        if reply.cut:
            handler.wfile.write(body[: len(body) // 2])
            handler.wfile.flush()
            handler.connection.shutdown(socket.SHUT_RDWR)
            handler.close_connection = True
            return
        handler.wfile.write(body)


def vector_of(text: str, dimension: int) -> list[float]:
    """Make a vector that depends on the text only; not of unit length."""
    values = [float((ord(character) * (place + 3)) % 17 - 8) for place, character in enumerate(text)] or [1.0]
    return [values[place % len(values)] + place for place in range(dimension)]
