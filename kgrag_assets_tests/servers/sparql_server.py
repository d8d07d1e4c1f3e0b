"""A real SPARQL engine behind a small HTTP front on loopback, which can also answer by a script."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

import pyoxigraph as ox

from kgrag_assets_tests.servers.scripted import Reply

ENTITY = "http://www.wikidata.org/entity/"
DIRECT = "http://www.wikidata.org/prop/direct/"
LABEL = "http://www.w3.org/2000/01/rdf-schema#label"
ALIAS = "http://www.w3.org/2004/02/skos/core#altLabel"
DESCRIPTION = "http://schema.org/description"
RESULTS = "application/sparql-results+json"


@dataclass(frozen=True)
class AskedQuery:
    """One request as it came."""

    method: str
    path: str
    query: str
    headers: dict[str, str]


class SparqlServer:
    """Serves a store at ``/sparql`` on 127.0.0.1; the next of ``script`` goes before what the store would say.

    ``on_asked`` is called with the number of each request, from 1, before it is answered. ``most_rows`` cuts
    answers silently, as some endpoints do.
    """

    def __init__(self) -> None:
        self.store = ox.Store()
        self.asked: list[AskedQuery] = []
        self.script: list[Reply] = []
        self.on_asked: Callable[[int], None] | None = None
        self.most_rows: int | None = None
        self._lock = threading.Lock()
        self._closing = threading.Event()
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            # Without it each answer waits 40 ms for an acknowledgement.
            disable_nagle_algorithm = True

            def do_POST(self) -> None:
                length = int(self.headers.get("content-length", 0))
                server.handle(self, self.rfile.read(length).decode())

            def do_GET(self) -> None:
                server.handle(self, urlsplit(self.path).query)

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
    def url(self) -> str:
        """Address of the endpoint."""
        return f"http://127.0.0.1:{self._http.server_port}/sparql"

    def state(self, statements: Iterable[tuple[str, str, str]]) -> None:
        """Add statements between Wikidata's ids: ``("wd:Q42", "wd:P31", "wd:Q5")``."""
        for head, relation, tail in statements:
            self.store.add(
                ox.Quad(
                    ox.NamedNode(ENTITY + head.removeprefix("wd:")),
                    ox.NamedNode(DIRECT + relation.removeprefix("wd:")),
                    ox.NamedNode(ENTITY + tail.removeprefix("wd:")),
                )
            )

    def value(self, head: str, relation: str, value: str, datatype: str | None = None) -> None:
        """Add a statement whose tail is a literal."""
        kind = ox.NamedNode(datatype) if datatype is not None else None
        self.store.add(
            ox.Quad(ox.NamedNode(ENTITY + head), ox.NamedNode(DIRECT + relation), ox.Literal(value, datatype=kind))
        )

    def name(self, local: str, text: str, language: str = "en", predicate: str = LABEL) -> None:
        """Add a name of one of Wikidata's ids."""
        self.store.add(
            ox.Quad(ox.NamedNode(ENTITY + local), ox.NamedNode(predicate), ox.Literal(text, language=language))
        )

    def clear(self) -> None:
        """Forget all statements and requests."""
        self.store.clear()
        self.asked.clear()
        self.script.clear()

    def then(self, *replies: Reply) -> None:
        """Add to the script."""
        with self._lock:
            self.script.extend(replies)

    def handle(self, handler: BaseHTTPRequestHandler, form: str) -> None:
        """Note a request and answer it."""
        query = parse_qs(form, keep_blank_values=True).get("query", [""])[0]
        headers = {name.lower(): value for name, value in handler.headers.items()}
        with self._lock:
            self.asked.append(AskedQuery(handler.command, handler.path, query, headers))
            number = len(self.asked)
            scripted = self.script.pop(0) if self.script else None
        if self.on_asked is not None:
            self.on_asked(number)
        self._send(handler, scripted if scripted is not None else self._answer(handler.path, query))

    def _answer(self, path: str, query: str) -> Reply:
        if urlsplit(path).path != "/sparql":
            return Reply(404, b"<html>no such page</html>", content_type="text/html")
        try:
            results = self.store.query(query)
        except SyntaxError as error:
            return Reply(400, f"MALFORMED QUERY: {error}".encode(), content_type="text/plain")
        if not isinstance(results, ox.QuerySolutions):
            return Reply(400, b"not a SELECT", content_type="text/plain")
        raw = results.serialize(format=ox.QueryResultsFormat.JSON)
        document = json.loads(raw or b"")
        document["results"]["bindings"] = document["results"]["bindings"][: self.most_rows]
        return Reply(200, document, content_type=RESULTS)

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
        handler.wfile.write(body[: len(body) // 2] if reply.cut else body)
        if reply.cut:
            handler.close_connection = True
