"""Taking the newest dump of a graph's source: it replaces the graph's file once it is whole."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from kgrag_assets.knowledge.changes.cursor import Cursor, iso
from kgrag_assets.knowledge.changes.dumps import fetch_dump, latest_dump
from kgrag_assets.knowledge.changes.polite_http import PoliteHttp, user_agent_of
from kgrag_assets.knowledge.errors import KnowledgeError
from kgrag_assets.knowledge.following import drop_changes_before, write_cursor
from kgrag_assets.knowledge.graph_folder import GraphFolder
from kgrag_assets.knowledge.json_object import read_note
from kgrag_assets.lake.files import write_whole
from kgrag_assets.lake.lake import Lake
from kgrag_assets.rows.graph_changes import KG_CHANGES

_NOTES = "kg_dumps"
# A dump is written for days: what changed while it was is taken from the changes of before its date.
WRITTEN_FOR_DAYS = 7


@dataclass(frozen=True)
class TakenDump:
    """The dump that a graph has: ``fetched`` is false where it had that one already."""

    graph: str
    version: str
    path: Path
    fetched: bool
    megabytes: float


def take_dump(lake: Lake, folder: GraphFolder, tell: Callable[[int], None] = lambda _bytes: None) -> TakenDump:
    """Fetch the newest dump where the graph has another one, and follow changes from its date on.

    Args:
        lake: where it is noted which dump a graph has.
        folder: a graph whose ``refresh.dumps`` says where dumps are.
        tell: called with the bytes that arrived since.

    Raises:
        KnowledgeError: the graph has no such setting, the site cannot be asked, or the file is not what it should be.
        LakeError: the disk is full.
    """
    options = folder.refresh
    if options is None or options.dumps is None:
        raise KnowledgeError(f"knowledge graph {folder.name!r}: kg.yaml has no refresh.dumps")
    http = PoliteHttp(options.dumps, user_agent_of(options.contact), min_interval_s=options.min_interval_s)
    note = lake.paths.partition(_NOTES, folder.name) / "dump.json"
    dump = latest_dump(options.dumps, http)
    known = read_note(note)
    ending = dump.url.rpartition(".")[2]
    path = folder.data_path if folder.data_path.is_file() else folder.data_path / f"dump.json.{ending}"
    size = round(dump.size / 1e6, 1)
    if known.get("version") == dump.version and path.is_file():
        return TakenDump(folder.name, dump.version, path, fetched=False, megabytes=size)
    arrived = 0

    def progress(done: int, size: int) -> None:  # noqa: ARG001  (the protocol's names)
        nonlocal arrived
        tell(max(0, done - arrived))
        arrived = done

    fetch_dump(dump, path, http, progress)
    if dump.modified is not None:
        begun = Cursor.at(dump.modified).back(WRITTEN_FOR_DAYS * 86_400)
        with lake.lock(KG_CHANGES.name, folder.name):
            drop_changes_before(lake, folder.name, iso(begun))
            write_cursor(lake, folder.name, Cursor.at(begun))
    text = json.dumps({"version": dump.version, "url": dump.url})
    write_whole(note, text)
    return TakenDump(folder.name, dump.version, path, fetched=True, megabytes=size)
