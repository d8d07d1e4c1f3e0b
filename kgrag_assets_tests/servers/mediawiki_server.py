"""A server that answers like Wikidata's API, Wikimedia's stream of events and its dumps, from a small world."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import json
import re
import socket
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qsl, urlsplit

from kgrag_assets_tests.servers.wiki_world import Entity, Recent, World

__all__ = ["Entity", "Fault", "MediaWikiServer", "World"]

_BATCH = 50


@dataclass(frozen=True)
class Question:
    """One request as it came."""

    method: str
    path: str
    params: dict[str, str]
    headers: dict[str, str]


@dataclass(frozen=True)
class Fault:
    """An answer in place of the right one.

    ``cut``: the right answer is broken off after so many bytes. ``hang``: no answer until the server closes.
    """

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    cut: int | None = None
    hang: bool = False


@dataclass
class _File:
    content: bytes
    etag: str
    modified: datetime


class _QuietServer(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of clients that leave in the middle, as these are meant to."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class MediaWikiServer:
    """Serves a world on 127.0.0.1.

    ``url``: api.php. ``stream_url``: the stream. ``dumps_url``: the folder of dumps. ``asked``: all requests.
    ``faults``: answers instead of the right ones, for requests whose path begins as given; see ``fail``.
    ``page_limit``: recent changes on a page at most. ``max_answer``: entities that would make an answer longer are left
    out, as the real one does. ``stream_cut_after``: events after which a stream is broken off.
    ``gives_ranges``: whether parts of files are given. ``on_asked``: called with each request before it is answered.
    """

    def __init__(self, world: World | None = None) -> None:
        self.world = world or World()
        self.asked: list[Question] = []
        self.page_limit = 500
        self.max_answer: int | None = None
        self.stream_cut_after: int | None = None
        self.gives_ranges = True
        self.files: dict[str, _File] = {}
        self.on_asked: Callable[[Question], None] | None = None
        self._faults: list[tuple[str, Fault]] = []
        self._lock = threading.Lock()
        self._closing = threading.Event()
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_GET(self) -> None:
                server.handle(self)

            def do_HEAD(self) -> None:
                server.handle(self)

            def log_message(self, *_arguments: Any) -> None:
                """Say nothing."""

        self._http = _QuietServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing.set()
        with self.world.lock:
            self.world.lock.notify_all()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    @property
    def address(self) -> str:
        """``http://127.0.0.1:port``."""
        return f"http://127.0.0.1:{self._http.server_port}"

    @property
    def url(self) -> str:
        """The address of api.php."""
        return f"{self.address}/w/api.php"

    @property
    def stream_url(self) -> str:
        """The address of the stream of events."""
        return f"{self.address}/v2/stream/recentchange"

    @property
    def dumps_url(self) -> str:
        """The address of the folder of dumps."""
        return f"{self.address}/wikidatawiki/entities"

    def fail(self, fault: Fault, times: int = 1, path: str = "/w/api.php") -> None:
        """Answer the next requests to a path with a fault."""
        with self._lock:
            self._faults.extend([(path, fault)] * times)

    def lag(self, times: int = 1, seconds: float = 7.5, retry_after: str | None = "5") -> None:
        """Say that the databases lag, as the API does: an error with status 200."""
        error = {"code": "maxlag", "info": f"Waiting for 10.64.0.1: {seconds} seconds lagged.", "lag": seconds}
        headers = {} if retry_after is None else {"Retry-After": retry_after}
        self.fail(Fault(200, json.dumps({"error": error, "servedby": "mw1"}).encode(), headers), times)

    def refuse(
        self, times: int = 1, status: int = 429, retry_after: str | None = "1", path: str = "/w/api.php"
    ) -> None:
        """Refuse with a status, as the front servers do: a page, not JSON."""
        headers = {} if retry_after is None else {"Retry-After": retry_after}
        self.fail(Fault(status, b"<html>Too Many Requests</html>", headers), times, path)

    def questions(self, action: str) -> list[Question]:
        """Return the requests to the API with an action."""
        return [question for question in self.asked if question.params.get("action") == action]

    def publish_dump(self, date: str, entities: list[Entity] | None = None, modified: datetime | None = None) -> bytes:
        """Put a dump of entities (all of the world's by default) where the newest lies. Return it unpacked."""
        if entities is None:
            entities = [found for name in self.world.pages if (found := self.world.entity(name)) is not None]
        plain = b"[\n" + b",\n".join(json.dumps(entity).encode() for entity in entities) + b"\n]\n"
        when = (modified or self.world.now()).replace(microsecond=0)
        sums: dict[str, list[str]] = {"md5": [], "sha1": []}
        for ending, packed in (("bz2", bz2.compress(plain)), ("gz", gzip.compress(plain, mtime=0))):
            etag = f'"{hashlib.sha256(packed).hexdigest()[:12]}-{len(packed):x}"'
            name = f"wikidata-{date}-all.json.{ending}"
            self.files[f"/latest-all.json.{ending}"] = self.files[f"/{date}/{name}"] = _File(packed, etag, when)
            for kind, lines in sums.items():
                lines.append(f"{hashlib.new(kind, packed).hexdigest()}  {name}\n")
        for kind, lines in sums.items():
            content = "".join(lines).encode()
            self.files[f"/{date}/wikidata-{date}-{kind}sums.txt"] = _File(content, f'"{kind}{date}"', when)
        return plain

    def handle(self, handler: BaseHTTPRequestHandler) -> None:
        """Note a request and answer it."""
        parts = urlsplit(handler.path)
        headers = {name.lower(): value for name, value in handler.headers.items()}
        question = Question(handler.command, parts.path, dict(parse_qsl(parts.query)), headers)
        with self._lock:
            self.asked.append(question)
            place = next((at for at, (path, _) in enumerate(self._faults) if parts.path.startswith(path)), None)
            fault = None if place is None else self._faults.pop(place)[1]
        if self.on_asked is not None:
            self.on_asked(question)
        if fault is not None and fault.hang:
            self._closing.wait()
            handler.close_connection = True
        elif fault is not None and fault.cut is None:
            _send(handler, fault.status, fault.body, fault.headers)
        else:
            self._answer(handler, question, None if fault is None else fault.cut)

    def _answer(self, handler: BaseHTTPRequestHandler, question: Question, cut: int | None) -> None:
        if question.path == "/w/api.php":
            body = json.dumps(self._api(question.params)).encode()
            headers = {"content-type": "application/json; charset=utf-8"}
            if "gzip" in question.headers.get("accept-encoding", ""):
                body, headers["content-encoding"] = gzip.compress(body), "gzip"
            _send(handler, 200, body, headers, cut)
        elif question.path == "/v2/stream/recentchange":
            self._stream(handler, question)
        elif question.path.startswith("/wikidatawiki/entities"):
            self._file(handler, question, cut)
        else:
            _send(handler, 404, b"not found", {})

    # The API.

    def _api(self, params: dict[str, str]) -> dict[str, Any]:
        if params.get("action") == "wbgetentities":
            return self._get_entities(params)
        if params.get("action") == "query" and params.get("list") == "recentchanges":
            return self._recent_changes(params)
        if params.get("action") == "query" and "titles" in params:
            return self._titles(params["titles"].split("|"))
        return _error("badvalue", 'Unrecognized value for parameter "action"')

    def _get_entities(self, params: dict[str, str]) -> dict[str, Any]:
        ids = params.get("ids", "").split("|")
        if len(ids) > _BATCH:
            return _error("toomanyvalues", f'Too many values supplied for parameter "ids". The limit is {_BATCH}.')
        for local_id in ids:
            if not re.fullmatch(r"[QP][1-9]\d{0,9}", local_id) or int(local_id[1:]) > 2147483647:
                return {**_error("no-such-entity", f"Could not find such an entity. (Invalid id: {local_id})")}
        entities: dict[str, Any] = {}
        answer: dict[str, Any] = {"entities": entities, "success": 1}
        size = 0
        for local_id in ids:
            record = self._record(local_id, params)
            size += len(json.dumps(record))
            if self.max_answer is not None and size > self.max_answer:
                answer["warnings"] = {
                    "main": {"*": "This result was truncated because it would otherwise be too large"}
                }
                break
            entities[local_id] = record
        return answer

    def _titles(self, titles: list[str]) -> dict[str, Any]:
        if len(titles) > _BATCH:
            return _error("toomanyvalues", f'Too many values supplied for parameter "titles". The limit is {_BATCH}.')
        steps: dict[str, str] = {}
        with self.world.lock:
            for title in titles:
                local_id = title.removeprefix("Property:")
                while local_id not in steps and (target := self.world.redirect_of(local_id)) is not None:
                    steps[local_id] = target
                    local_id = target
        redirects = [{"from": _title(begin), "to": _title(end)} for begin, end in steps.items()]
        return {"batchcomplete": "", "query": {"redirects": redirects} if redirects else {}}

    def _record(self, local_id: str, params: dict[str, str]) -> dict[str, Any]:
        with self.world.lock:
            found = self.world.answer(local_id)
        if found is None:
            return {"id": local_id, "missing": ""}
        own_id, revision, entity, modified, page_id = found
        props, record = params["props"].split("|"), dict[str, Any]()
        if "info" in props:
            title, namespace = (f"Property:{own_id}", 120) if own_id.startswith("P") else (own_id, 0)
            when = modified.strftime("%Y-%m-%dT%H:%M:%SZ")
            record |= {"pageid": page_id, "ns": namespace, "title": title, "lastrevid": revision, "modified": when}
        if own_id != local_id:
            record["redirects"] = {"from": local_id, "to": own_id}
        record |= {"type": entity["type"], "id": own_id}
        languages = params.get("languages")
        for name in ("labels", "descriptions", "aliases"):
            if name in props:
                part = entity.get(name) or {}
                wanted = part if languages is None else {k: v for k, v in part.items() if k in languages.split("|")}
                record[name] = wanted or []  # PHP writes an empty map as an empty list
        for name in ("claims", "sitelinks"):
            if name in props:
                record[name] = entity.get(name) or []
        if "datatype" in entity:
            record["datatype"] = entity["datatype"]
        return record

    def _recent_changes(self, params: dict[str, str]) -> dict[str, Any]:
        start = datetime.fromisoformat(params["rcstart"])
        types, spaces = params["rctype"].split("|"), {int(space) for space in params["rcnamespace"].split("|")}
        begin: tuple[str, int] | None = None
        if "rccontinue" in params:
            stamp, _, number = params["rccontinue"].partition("|")
            if "continue" not in params or not (stamp.isdigit() and number.isdigit()):
                return _error("badcontinue", "Invalid continue param.")
            begin = (stamp, int(number))
        rows = self.world.sorted_recent(
            lambda row: (
                row.timestamp >= start
                and row.kind in types
                and row.namespace in spaces
                and (begin is None or (_stamp(row.timestamp), row.rcid) >= begin)
            )
        )
        limit = min(int(params["rclimit"]), self.page_limit, 500)
        answer: dict[str, Any] = {"query": {"recentchanges": [_entry(row) for row in rows[:limit]]}}
        if params.get("curtimestamp"):
            answer["curtimestamp"] = self.world.now().strftime("%Y-%m-%dT%H:%M:%SZ")
        if len(rows) > limit:
            following = rows[limit]
            answer["continue"] = {"rccontinue": f"{_stamp(following.timestamp)}|{following.rcid}", "continue": "-||"}
        else:
            answer["batchcomplete"] = ""
        return answer

    # The stream.

    def _stream(self, handler: BaseHTTPRequestHandler, question: Question) -> None:
        handler.send_response(200)
        handler.send_header("content-type", "text/event-stream; charset=utf-8")
        handler.send_header("connection", "close")
        handler.end_headers()
        handler.close_connection = True
        sent = 0
        after = _after(question)
        try:
            handler.wfile.write(b":ok\n\nretry: 100\n\n")
            while not self._closing.is_set():
                with self.world.lock:
                    rows = [row for row in self.world.recent if after(row)]
                    if not rows:
                        self.world.lock.wait(0.05)
                        continue
                for row in rows:
                    if self.stream_cut_after is not None and sent >= self.stream_cut_after:
                        return
                    handler.wfile.write(_events_of(row))
                    sent += 1
                last = rows[-1].rcid
                after = lambda row, last=last: row.rcid > last  # noqa: E731 - a place in the stream
        except OSError:
            return  # the client has left

    # The files.

    def _file(self, handler: BaseHTTPRequestHandler, question: Question, cut: int | None) -> None:
        name = question.path.removeprefix("/wikidatawiki/entities")
        if name == "/":
            dates = sorted({path.split("/")[1] for path in self.files if re.match(r"/\d{8}/", path)})
            listing = "".join(f'<a href="{date}/">{date}/</a>\n' for date in dates)
            _send(handler, 200, f"<html><pre>{listing}</pre></html>".encode(), {"content-type": "text/html"})
            return
        file = self.files.get(name)
        if file is None:
            _send(handler, 404, b"not found", {})
            return
        headers = {"etag": file.etag, "last-modified": format_datetime(file.modified.astimezone(UTC), usegmt=True)}
        content, status = file.content, 200
        asked = re.fullmatch(r"bytes=(\d+)-", question.headers.get("range", ""))
        if asked is not None and self.gives_ranges and question.headers.get("if-range", file.etag) == file.etag:
            begin = int(asked.group(1))
            if begin >= len(content):
                _send(handler, 416, b"", {**headers, "content-range": f"bytes */{len(content)}"})
                return
            headers["content-range"] = f"bytes {begin}-{len(content) - 1}/{len(content)}"
            content, status = content[begin:], 206
        _send(handler, status, content, headers, cut)


def _send(
    handler: BaseHTTPRequestHandler, status: int, body: bytes, headers: dict[str, str], cut: int | None = None
) -> None:
    handler.send_response(status)
    handler.send_header("content-length", str(len(body)))
    for name, value in headers.items():
        handler.send_header(name, value)
    handler.end_headers()
    if handler.command == "HEAD":
        return
    if cut is None:
        handler.wfile.write(body)
        return
    handler.wfile.write(body[:cut])
    handler.wfile.flush()
    handler.connection.shutdown(socket.SHUT_RDWR)
    handler.close_connection = True


def _error(code: str, info: str) -> dict[str, Any]:
    return {"error": {"code": code, "info": info, "*": "See /w/api.php for API usage."}, "servedby": "mw1"}


def _title(local_id: str) -> str:
    return f"Property:{local_id}" if local_id.startswith("P") else local_id


def _stamp(moment: datetime) -> str:
    return moment.strftime("%Y%m%d%H%M%S")


def _entry(row: Recent) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "type": row.kind,
        "ns": row.namespace,
        "title": row.title,
        "pageid": row.page_id,
        "revid": row.revid,
        "old_revid": row.old_revid,
        "rcid": row.rcid,
        "timestamp": row.timestamp.strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
    if row.log is not None:
        entry |= {"logid": row.rcid * 7, "logtype": row.log[0], "logaction": row.log[1], "logparams": {}}
    return entry


def _after(question: Question) -> Callable[[Recent], bool]:
    """Say which events a stream begins with: those after the id, or of the moment and later."""
    last_id = question.headers.get("last-event-id")
    if last_id is not None:
        offset = json.loads(last_id)[0]["offset"]
        return lambda row: row.rcid > offset
    since = question.params.get("since")
    if since is None:
        return lambda _row: False
    moment = datetime.fromisoformat(since)
    return lambda row: row.timestamp >= moment


def _events_of(row: Recent) -> bytes:
    """Write a change as an event, with a canary and another wiki's change before it, as they go through the stream."""
    own: dict[str, Any] = {
        "$schema": "/mediawiki/recentchange/1.0.0",
        "meta": {
            "uri": f"https://www.wikidata.org/wiki/{row.title}",
            "id": f"00000000-0000-4000-8000-{row.rcid:012x}",
            "dt": row.timestamp.strftime("%Y-%m-%dT%H:%M:%S.123Z"),
            "domain": "www.wikidata.org",
            "stream": "mediawiki.recentchange",
        },
        "id": row.rcid,
        "type": row.kind,
        "namespace": row.namespace,
        "title": row.title,
        "timestamp": int(row.timestamp.timestamp()),
        "wiki": "wikidatawiki",
    }
    if row.log is None:
        own["revision"] = {"new": row.revid, "old": row.old_revid or None}
    else:
        own |= {"log_type": row.log[0], "log_action": row.log[1], "log_params": {}}
    canary = {**own, "title": "Q1", "meta": {**own["meta"], "domain": "canary"}}
    other = {**own, "title": "Q5", "wiki": "enwiki"}
    places = [
        [{"topic": "eqiad.mediawiki.recentchange", "partition": 0, "offset": at}]
        for at in (row.rcid - 1, row.rcid - 1, row.rcid)
    ]
    return b"".join(
        f"event: message\nid: {json.dumps(place)}\ndata: {json.dumps(event)}\n\n".encode()
        for place, event in zip(places, (canary, other, own), strict=True)
    )
