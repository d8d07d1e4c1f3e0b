"""A server on loopback that speaks Qdrant's REST for the calls of the served index, over the client's own engine."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from pydantic import BaseModel
from qdrant_client import QdrantClient, models


class QdrantOverHttp(ThreadingHTTPServer):
    """Answers from memory; remembers each request as (method, path, body)."""

    def __init__(self, key: str | None = None) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.key = key
        self.engine = QdrantClient(":memory:")
        self.guard = threading.Lock()
        self.requests: list[tuple[str, str, dict[str, Any]]] = []
        # Requests to be answered before the server breaks down; None for no end.
        self.healthy: int | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def sent(self, method: str, end: str) -> list[dict[str, Any]]:
        """Bodies of the requests whose path ends like this."""
        return [body for kind, path, body in self.requests if kind == method and path.endswith(end)]

    def answer(self, method: str, path: str, body: dict[str, Any]) -> Any:
        name, _, rest = path.removeprefix("/collections/").partition("/")
        calls: dict[tuple[str, str], Callable[[str, dict[str, Any]], Any]] = {
            ("GET", "exists"): lambda name, _: {"exists": self.engine.collection_exists(name)},
            ("GET", ""): lambda name, _: self.engine.get_collection(name),
            ("PUT", ""): self._make,
            ("PATCH", ""): lambda name, body: self.engine.update_collection(name, metadata=body["metadata"]),
            ("POST", "points/count"): lambda name, body: self.engine.count(name, exact=body["exact"]),
            ("POST", "points"): lambda name, body: self.engine.retrieve(name, body["ids"], body["with_payload"]),
            ("POST", "points/scroll"): self._scroll,
            ("POST", "points/query/batch"): self._query,
            ("PUT", "points"): lambda name, body: self.engine.upsert(name, models.PointsBatch(**body).batch),
            ("POST", "points/delete"): lambda name, body: self.engine.delete(name, models.PointIdsList(**body)),
        }
        return calls[method, rest](name, body)

    def _make(self, name: str, body: dict[str, Any]) -> Any:
        made = models.CreateCollection(**body)
        return self.engine.create_collection(name, vectors_config=made.vectors, metadata=made.metadata)

    def _scroll(self, name: str, body: dict[str, Any]) -> Any:
        records, offset = self.engine.scroll(
            name, limit=body["limit"], offset=body.get("offset"), with_payload=body["with_payload"]
        )
        return {"points": [record.model_dump(mode="json") for record in records], "next_page_offset": offset}

    def _query(self, name: str, body: dict[str, Any]) -> Any:
        # The client's engine compares all points: what a server is told of its graph means nothing to it.
        asked = [each.model_copy(update={"params": None}) for each in models.QueryRequestBatch(**body).searches]
        return [answer.model_dump(mode="json") for answer in self.engine.query_batch_points(name, asked)]


class _Handler(BaseHTTPRequestHandler):
    server: QdrantOverHttp
    protocol_version = "HTTP/1.1"

    def _serve(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length)) if length else {}
        path = self.path.partition("?")[0]
        server = self.server
        if server.key is not None and self.headers.get("api-key") != server.key:
            self._write(403, {"status": {"error": "forbidden"}})
            return
        if server.healthy is not None:
            server.healthy -= 1
            if server.healthy < 0:
                self._write(503, {"status": {"error": "overloaded"}})
                return
        with server.guard:
            server.requests.append((self.command, path, body))
            result = server.answer(self.command, path, body)
        plain = [entry.model_dump(mode="json") if isinstance(entry, BaseModel) else entry for entry in _listed(result)]
        self._write(200, {"result": plain if isinstance(result, list) else plain[0], "status": "ok", "time": 0.0})

    do_GET = do_PUT = do_POST = do_PATCH = _serve  # noqa: N815 - names that http.server looks for

    def _write(self, status: int, content: dict[str, Any]) -> None:
        raw = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        """Say nothing."""


def _listed(result: Any) -> list[Any]:
    return result if isinstance(result, list) else [result]


@contextmanager
def serving(key: str | None = None) -> Iterator[QdrantOverHttp]:
    """Run the server for a while."""
    with QdrantOverHttp(key) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
