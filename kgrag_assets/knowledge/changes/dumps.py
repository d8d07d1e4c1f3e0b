"""The weekly dump: which is the newest that is complete, and downloading it so that an interruption costs little."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Literal, Protocol

import httpx

from kgrag_assets.knowledge.changes.errors import ChangesError, RefusedError, UnavailableError
from kgrag_assets.knowledge.changes.polite_http import PoliteHttp
from kgrag_assets.knowledge.json_object import read_note
from kgrag_assets.lake.files import explained, sync_file, sync_folder
from kgrag_assets.models.errors import TransientFailure

_FOLDER = re.compile(r'href="(\d{8})/?"')
_SUM = re.compile(r"([0-9a-f]{32,64}) [ *](\S+)")
_RANGE = re.compile(r"bytes (\d+)-(\d+)/(\d+)\Z")
_FOLDERS_LOOKED_AT = 4
_BLOCK = 1 << 20
# Downloads that bring nothing, one after the other, before it is given up.
_MAX_FRUITLESS = 5


@dataclass(frozen=True)
class Dump:
    """A dump as the site offers it; ``etag`` and ``modified`` tell it from another one at the same address."""

    url: str
    size: int
    modified: datetime | None
    etag: str | None
    checksum: str | None = None
    checksum_kind: Literal["sha1", "md5"] | None = None

    @property
    def version(self) -> str:
        """Return what tells this dump from the one before and after it."""
        return f"{self.etag or ''} {self.modified.isoformat() if self.modified else ''} {self.size}"


class Progress(Protocol):
    """Is told how far a download is."""

    def __call__(self, done: int, size: int) -> None:
        """Take note: bytes that are on disk, and bytes in all."""
        ...


def latest_dump(base_url: str, http: PoliteHttp, formats: Sequence[str] = ("bz2", "gz")) -> Dump:
    """Find the newest complete dump of all entities.

    ``latest-all.json.*`` leads to the last dump that was finished. The dated folder of the same dump is looked up
    too: its address keeps its content while it is downloaded, and checksums lie there.

    Args:
        base_url: folder of the dumps, ``https://dumps.wikimedia.org/wikidatawiki/entities``.
        http: made for that site.
        formats: endings that are wanted; of two dumps of the same age the first.

    Raises:
        ChangesError: there is none, or the site refuses.
        UnavailableError, TimeIsUpError: as ``PoliteHttp.ask``.
    """
    base = base_url.rstrip("/")
    found = [(ending, _look(http, f"{base}/latest-all.json.{ending}")) for ending in formats]
    there = [(ending, dump) for ending, dump in found if dump is not None]
    if not there:
        raise ChangesError(f"{base} has no latest-all.json.{' or .'.join(formats)}: is the address right?")
    oldest = datetime.min.replace(tzinfo=UTC)
    # max keeps the first of equals.
    ending, latest = max(there, key=lambda pair: pair[1].modified or oldest)
    return _dated(http, base, ending, latest) or latest


def _look(http: PoliteHttp, url: str) -> Dump | None:
    def read(response: httpx.Response, _body: bytes) -> Dump:
        size = response.headers.get("content-length", "")
        if not size.isdigit() or int(size) == 0:
            raise ChangesError(f"{url}: the site does not say how long the file is")
        return Dump(url, int(size), _date_of(response), response.headers.get("etag"))

    try:
        return http.ask(url, method="HEAD", headers={"Accept-Encoding": "identity"}, read=read)
    except RefusedError as error:
        if error.status == 404:
            return None
        raise


def _date_of(response: httpx.Response) -> datetime | None:
    try:
        return parsedate_to_datetime(response.headers.get("last-modified", "")).astimezone(UTC)
    except (ValueError, TypeError, OverflowError):
        return None


def _dated(http: PoliteHttp, base: str, ending: str, latest: Dump) -> Dump | None:
    """Find the dated file that ``latest`` stands for, with its checksum."""
    listing = _text(http, f"{base}/") or ""
    for date in sorted(set(_FOLDER.findall(listing)), reverse=True)[:_FOLDERS_LOOKED_AT]:
        name = f"wikidata-{date}-all.json.{ending}"
        dump = _look(http, f"{base}/{date}/{name}")
        if dump is None or (dump.size, dump.modified, dump.etag) != (latest.size, latest.modified, latest.etag):
            continue
        kinds: tuple[Literal["sha1", "md5"], ...] = ("sha1", "md5")
        for kind in kinds:
            sums = _sums(_text(http, f"{base}/{date}/wikidata-{date}-{kind}sums.txt") or "")
            if len(sums.get(name, "")) == hashlib.new(kind, usedforsecurity=False).digest_size * 2:
                return Dump(dump.url, dump.size, dump.modified, dump.etag, sums[name], kind)
        return dump
    return None


def _text(http: PoliteHttp, url: str) -> str | None:
    try:
        return http.ask(url, read=lambda _response, body: body.decode("utf-8", "replace"))
    except RefusedError as error:
        if error.status == 404:
            return None
        raise


def _sums(text: str) -> dict[str, str]:
    return {name: digest for digest, name in _SUM.findall(text)}


def fetch_dump(dump: Dump, path: Path, http: PoliteHttp, progress: Progress | None = None) -> Path:
    """Download a dump; go on where an earlier call ended, if the site still has the same file.

    What has arrived lies in ``<name>.part`` beside the path, and what it is a part of in ``<name>.part.note``.

    Args:
        dump: as ``latest_dump`` found it.
        path: where it is to lie; a file that is there is replaced when the new one is whole.
        http: made for the site.
        progress: is told about once per MB.

    Returns:
        The path.

    Raises:
        UnavailableError: the site breaks off again and again; what has arrived is kept for the next call.
        TimeIsUpError: the deadline of ``http`` passed; as above.
        ChangesError: the file at the site is another one by now, or what arrived does not fit its checksum.
        LakeError: the disk is full, or the place cannot be written.
    """
    part = path.with_name(f"{path.name}.part")
    note = path.with_name(f"{path.name}.part.note")
    with explained(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        if read_note(note) != _note_of(dump):
            part.unlink(missing_ok=True)
            note.write_text(json.dumps(_note_of(dump)), "utf-8")
        part.touch()
    room, needed = shutil.disk_usage(path.parent).free, dump.size - part.stat().st_size
    if room < needed:
        raise ChangesError(
            f"{path}: {needed:,} bytes are still to come, and only {room:,} are free on that disk: make room"
        )
    download = _Download(dump, part, http, progress)
    fruitless = 0
    while (size := part.stat().st_size) != dump.size:
        download.go_on(last=fruitless >= _MAX_FRUITLESS)
        fruitless = 0 if part.stat().st_size > size else fruitless + 1
    with explained(path):
        _check(dump, part, note, http)
        sync_file(part)
        part.replace(path)
        note.unlink(missing_ok=True)
        sync_folder(path.parent)
    return path


def _note_of(dump: Dump) -> dict[str, object]:
    return {name: None if value is None else str(value) for name, value in asdict(dump).items()}


class _Download:
    """Appends to a part of a file what the site gives of the rest."""

    def __init__(self, dump: Dump, part: Path, http: PoliteHttp, progress: Progress | None) -> None:
        self._dump = dump
        self._part = part
        self._http = http
        self._progress = progress

    def go_on(self, *, last: bool) -> None:
        """Ask for the rest, and keep what arrives, until it breaks off; ``last``: then say so."""

        def once() -> None:
            try:
                self._receive()
            except TransientFailure:
                # What arrived before it broke is progress, and no reason to wait longer and longer.
                if last or self._part.stat().st_size == before:
                    raise

        before = self._part.stat().st_size
        self._http.retrying(once)
        if last and self._part.stat().st_size == before:
            raise UnavailableError(f"{self._dump.url}: the download breaks off again and again; try later")

    def _receive(self) -> None:
        begin = self._part.stat().st_size
        headers = {"Accept-Encoding": "identity"}
        if begin:
            headers["Range"] = f"bytes={begin}-"
            strong = self._dump.etag if self._dump.etag and not self._dump.etag.startswith("W/") else None
            if strong:
                headers["If-Range"] = strong
        with self._http.open(self._dump.url, headers=headers) as response:
            self._same(response)
            if response.status_code == 416:
                # More is here than the file is long: none of it can be trusted.
                self._empty()
                return
            if begin and response.status_code == 206:
                self._fits(response, begin)
            elif begin:
                self._empty()  # the site does not give parts
            self._append(response)

    def _append(self, response: httpx.Response) -> None:
        size = self._part.stat().st_size
        with explained(self._part), self._part.open("ab") as file:
            told = size
            # In the pieces it comes in: gathered into blocks, what came before a break would be lost.
            for piece in response.iter_raw():
                size += len(piece)
                if size > self._dump.size:
                    raise ChangesError(f"{self._dump.url} is longer than it said; look for the newest dump again")
                file.write(piece)
                if self._progress is not None and (size - told >= _BLOCK or size == self._dump.size):
                    self._progress(size, self._dump.size)
                    told = size
                self._http.deadline.check()

    def _empty(self) -> None:
        with explained(self._part):
            self._part.write_bytes(b"")

    def _same(self, response: httpx.Response) -> None:
        etag = response.headers.get("etag")
        moved = self._dump.etag is not None and etag is not None and etag != self._dump.etag
        date = _date_of(response)
        moved = moved or (self._dump.modified is not None and date is not None and date != self._dump.modified)
        if moved:
            raise ChangesError(
                f"{self._dump.url} has become another file since the download began: look for the newest dump again"
            )

    def _fits(self, response: httpx.Response, begin: int) -> None:
        found = _RANGE.match(response.headers.get("content-range", ""))
        if found is None or (int(found.group(1)), int(found.group(3))) != (begin, self._dump.size):
            raise TransientFailure(
                "error", f"asked for bytes from {begin}, got {response.headers.get('content-range', 'none')[:60]!r}"
            )


def _check(dump: Dump, part: Path, note: Path, http: PoliteHttp) -> None:
    if dump.checksum is None or dump.checksum_kind is None:
        return
    digest = hashlib.new(dump.checksum_kind, usedforsecurity=False)
    with part.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
            http.deadline.check()
    if digest.hexdigest() != dump.checksum:
        part.unlink()
        note.unlink(missing_ok=True)
        raise ChangesError(
            f"{dump.url}: what arrived does not fit its {dump.checksum_kind} sum and was removed: fetch it again"
        )
