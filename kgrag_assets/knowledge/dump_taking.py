"""Taking the newest dump of a graph's source: it replaces the graph's file once it is whole."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from kgrag_assets.knowledge.changes.cursor import Cursor, iso
from kgrag_assets.knowledge.changes.dumps import Dump, fetch_dump, latest_dump
from kgrag_assets.knowledge.changes.polite_http import PoliteHttp, user_agent_of
from kgrag_assets.knowledge.errors import KnowledgeError
from kgrag_assets.knowledge.following import drop_changes_before, write_cursor
from kgrag_assets.knowledge.graph_folder import GraphFolder
from kgrag_assets.knowledge.json_object import read_note
from kgrag_assets.knowledge.loading import Track
from kgrag_assets.knowledge.opening import data_files
from kgrag_assets.lake.files import write_whole
from kgrag_assets.lake.lake import Lake
from kgrag_assets.rows.graph_changes import KG_CHANGES

_NOTES = "kg_dumps"
# A dump is written for days: what changed while it was is taken from the changes of before its date.
WRITTEN_FOR_DAYS = 7
# The first is several times faster to read.
PACKINGS = ("gz", "bz2")


@dataclass(frozen=True)
class TakenDump:
    """The dump that a graph has: ``fetched`` is false where it had that one already."""

    graph: str
    version: str
    path: Path
    fetched: bool
    megabytes: float


def take_dump(lake: Lake, folder: GraphFolder, track: Track = lambda _what, _size: lambda _done: None) -> TakenDump:
    """Fetch the newest dump where the graph has another one, and follow changes from its date on.

    The new dump takes the place of the file that the graph was loaded from.

    Args:
        lake: where it is noted which dump a graph has.
        folder: a graph whose ``refresh.dumps`` says where dumps are.
        track: tells about progress: called with what is done and its bytes, the result with the bytes since.

    Raises:
        KnowledgeError: the graph has no such setting or several files, the site cannot be asked, or the file is not
            what it should be.
        LakeError: the disk is full.
    """
    options = folder.refresh
    if options is None or options.dumps is None:
        raise KnowledgeError(f"knowledge graph {folder.name!r}: kg.yaml has no refresh.dumps")
    before, packings = _replaced(folder)
    note = lake.paths.partition(_NOTES, folder.name) / "dump.json"
    agent = user_agent_of(options.contact)
    with PoliteHttp(options.dumps, agent, min_interval_s=options.min_interval_s) as http:
        dump = latest_dump(options.dumps, http, packings)
        path = _place(folder, before, dump)
        size = round(dump.size / 1e6, 1)
        if read_note(note).get("version") == dump.version and path.is_file():
            return TakenDump(folder.name, dump.version, path, fetched=False, megabytes=size)
        tell, arrived = track(f"dump of {folder.name}", dump.size), 0

        def progress(done: int, size: int) -> None:  # noqa: ARG001  (the protocol's names)
            nonlocal arrived
            tell(max(0, done - arrived))
            arrived = done

        fetch_dump(dump, path, http, progress)
    if before is not None and before != path:
        # Both would be read, and what the new dump has no more would stay.
        before.unlink(missing_ok=True)
    if dump.modified is not None:
        begun = Cursor.at(dump.modified).back(WRITTEN_FOR_DAYS * 86_400)
        with lake.lock(KG_CHANGES.name, folder.name):
            drop_changes_before(lake, folder.name, iso(begun))
            write_cursor(lake, folder.name, Cursor.at(begun))
    write_whole(note, json.dumps({"version": dump.version, "url": dump.url}))
    return TakenDump(folder.name, dump.version, path, fetched=True, megabytes=size)


def _replaced(folder: GraphFolder) -> tuple[Path | None, tuple[str, ...]]:
    """Return the file whose place a dump takes, and the packings that may come: a file is read by its ending."""
    files = data_files(folder)
    if len(files) > 1:
        raise KnowledgeError(
            f"knowledge graph {folder.name!r} has {len(files)} files, and a dump takes the place of one: "
            "keep that alone, or let kg.yaml's path name it"
        )
    if not folder.data_path.is_file():
        return (files[0] if files else None), PACKINGS
    packing = folder.data_path.suffix.removeprefix(".")
    if packing not in PACKINGS:
        raise KnowledgeError(
            f"{folder.data_path} is not packed as dumps are: let kg.yaml's path name a folder, or a file that ends in "
            f".{' or .'.join(PACKINGS)}"
        )
    return folder.data_path, (packing,)


def _place(folder: GraphFolder, before: Path | None, dump: Dump) -> Path:
    if folder.data_path.is_file():
        return folder.data_path
    parent = folder.data_path if before is None else before.parent
    return parent / f"dump.json.{dump.url.rpartition('.')[2]}"
