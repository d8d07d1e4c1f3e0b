"""Following a graph's source: its changes taken into the lake, from where the last look ended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl

from kgrag_assets.knowledge.changes.cursor import Cursor, iso, moment_of
from kgrag_assets.knowledge.changes.drain import DrainResult, Gap, drain
from kgrag_assets.knowledge.changes.errors import CursorError
from kgrag_assets.knowledge.changes.event_stream import EventStreamFeed
from kgrag_assets.knowledge.changes.feed import ChangeFeed
from kgrag_assets.knowledge.changes.mediawiki import PROPS, MediaWikiClient
from kgrag_assets.knowledge.changes.polite_http import PoliteHttp, user_agent_of
from kgrag_assets.knowledge.changes.recent_changes import RecentChangesFeed
from kgrag_assets.knowledge.changes.states import held_states
from kgrag_assets.knowledge.collector import LISTED, Collector, Rejected
from kgrag_assets.knowledge.errors import KnowledgeError
from kgrag_assets.knowledge.graph_folder import GraphFolder
from kgrag_assets.knowledge.refresh_options import RefreshOptions
from kgrag_assets.knowledge.sources.wikidata_checked import entity_rows
from kgrag_assets.lake.files import write_whole
from kgrag_assets.lake.lake import Lake
from kgrag_assets.rows.graph_changes import KG_CHANGES
from kgrag_assets.rows.knowledge_graph import STAGED_ENTITIES
from kgrag_assets.rows.rejects import KG_CHANGE_REJECTS
from kgrag_assets.rows.table import ROW_KEY, with_row_key


@dataclass(frozen=True)
class Followed:
    """One look at a graph's source: what was taken, or that the gap since the last look is too long."""

    graph: str
    result: DrainResult | Gap

    def summary(self) -> dict[str, Any]:
        """Say what was done, in numbers."""
        result = self.result
        if isinstance(result, Gap):
            return {"since": iso(result.since), "problem": result.message}
        return {
            "behind_s": round(result.behind_s),
            "last_change": iso(result.cursor_after.timestamp),
            "changes_seen": result.changes,
            "entities_fetched": result.fetched,
            "edited": result.edited,
            "deleted": result.deleted,
            "redirected": result.redirected,
            "requests": result.requests,
            "megabytes": round(result.bytes / 1e6, 3),
            "seconds": round(result.seconds, 2),
            "rejected": len(result.rejected),
            "ended_by": result.ended_by,
            "problem": result.problem or "",
        }

    @property
    def staged(self) -> int:
        """Entities whose new state was taken into the lake."""
        result = self.result
        return 0 if isinstance(result, Gap) else result.edited + result.deleted + result.redirected


def follow(lake: Lake, folder: GraphFolder, seconds: float | None = None) -> Followed:
    """Take what changed at a graph's source since the last look into ``kg_changes``.

    A crash at any moment repeats work and loses no change: the place of the look is kept after what it covers.

    Args:
        lake: where changes are kept; this takes the lock of the graph's changes.
        folder: a graph with ``refresh``.
        seconds: time for this look; without it the graph's own.

    Raises:
        KnowledgeError: the graph is not followed, or its source refuses to be asked.
        LakeError: the disk is full, or another look is going on.
    """
    options = folder.refresh
    if options is None:
        raise KnowledgeError(f"knowledge graph {folder.name!r} is not followed: kg.yaml has no refresh section")
    with lake.lock(KG_CHANGES.name, folder.name, wait_s=options.seconds + 5):
        cursor = read_cursor(lake, folder)
        props = (*PROPS, "sitelinks") if folder.filter.min_sitelinks else PROPS
        agent = user_agent_of(options.contact)
        with MediaWikiClient(
            options.api,
            agent,
            languages=folder.read.languages,
            props=props,
            min_interval_s=options.min_interval_s,
        ) as client:
            result = drain(
                folder.name,
                _feed(options, client, agent),
                client,
                cursor,
                admits=lambda document: _admits(folder, document),
                known=lambda ids: _known(lake, folder, ids),
                stage=lambda rows: _stage(lake, folder.name, rows),
                staged=lambda ids: held_states(lake.scan(KG_CHANGES, folder.name), folder.name, ids),
                new_entities=options.new_entities,
                time_budget_s=options.seconds if seconds is None else seconds,
            )
        if isinstance(result, DrainResult):
            _keep_rejects(lake, folder.name, result.rejected)
            write_cursor(lake, folder.name, result.cursor_after)
    return Followed(folder.name, result)


def read_cursor(lake: Lake, folder: GraphFolder) -> Cursor:
    """Return where the next look at a graph begins: where the last one ended, or at the date of its files.

    Raises:
        CursorError: what is kept cannot be read.
        KnowledgeError: ``refresh.since`` is no date.
    """
    path = _cursor_path(lake, folder.name)
    if _was_looked_at(lake, folder.name):
        try:
            return Cursor.parse(path.read_text(encoding="utf-8", errors="replace"))
        except CursorError as error:
            raise CursorError(f"{path}: {error}") from error
    since = folder.refresh.since if folder.refresh is not None else None
    if since is None:
        return Cursor.at(datetime.now(UTC))
    moment = moment_of(since if "T" in since else f"{since.strip()}T00:00:00Z")
    if moment is None:
        raise KnowledgeError(
            f"{folder.path / 'kg.yaml'}: refresh.since must be a date such as 2026-11-30, not {since!r}"
        )
    return Cursor.at(moment)


def write_cursor(lake: Lake, graph: str, cursor: Cursor) -> None:
    """Keep where the next look begins."""
    if not lake.has(KG_CHANGES, graph):
        lake.write(KG_CHANGES, graph, KG_CHANGES.empty())
    write_whole(_cursor_path(lake, graph), cursor.to_text())


def _was_looked_at(lake: Lake, graph: str) -> bool:
    # A cursor whose changes are gone, of a damaged file that was deleted, say, would leave them out for good.
    return _cursor_path(lake, graph).is_file() and lake.has(KG_CHANGES, graph)


def _cursor_path(lake: Lake, graph: str) -> Path:
    return lake.paths.partition(KG_CHANGES.name, graph) / "cursor.json"


def _feed(options: RefreshOptions, client: MediaWikiClient, agent: str) -> ChangeFeed:
    if options.feed == "eventstreams":
        return EventStreamFeed(PoliteHttp(options.stream, agent, min_interval_s=options.min_interval_s))
    return RecentChangesFeed(client)


def _keep_rejects(lake: Lake, graph: str, rejected: Sequence[Rejected]) -> None:
    if not rejected:
        return
    columns = {name: dtype for name, dtype in KG_CHANGE_REJECTS.schema.items() if name != ROW_KEY}
    rows = [(graph, one.file, one.row, one.reason, one.content) for one in rejected]
    frame = with_row_key(pl.DataFrame(rows, schema=columns, orient="row")).select(KG_CHANGE_REJECTS.names)
    both = pl.concat([lake.read(KG_CHANGE_REJECTS, graph), frame]).unique(ROW_KEY, keep="last", maintain_order=True)
    lake.write(KG_CHANGE_REJECTS, graph, both)


def _admits(folder: GraphFolder, document: dict[str, Any]) -> bool:
    """Whether an entity would be read from a dump; of what class it is, the join with all others tells."""
    found = Collector()
    entity_rows(document, folder.read, found, 1)
    return any(what == LISTED for _local, what, _text, _rank in found.names)


def _known(lake: Lake, folder: GraphFolder, ids: Sequence[str]) -> set[str]:
    prefix = f"{folder.namespace}:"
    wanted = pl.DataFrame({"entity_id": [prefix + local for local in ids]}, schema={"entity_id": pl.String}).lazy()
    scans = [lake.scan(STAGED_ENTITIES, name, ["entity_id", "graph"]) for name in lake.partitions(STAGED_ENTITIES)]
    if not scans:
        return set()
    rows = pl.concat(scans).filter(pl.col("graph") == folder.name).join(wanted, on="entity_id", how="semi")
    return {entity.removeprefix(prefix) for entity in rows.collect()["entity_id"]}


def _stage(lake: Lake, graph: str, rows: pl.DataFrame) -> None:
    wanted = rows.select("local_id").lazy()
    before = lake.scan(KG_CHANGES, graph, ["local_id", ROW_KEY]).join(wanted, on="local_id", how="semi").collect()
    lake.apply(KG_CHANGES, graph, rows, before[ROW_KEY])


def drop_changes_before(lake: Lake, graph: str, moment: str) -> int:
    """Forget the changes from before a dump was begun: it knows them, and later ones.

    Args:
        lake: hold the lock of the graph's changes.
        graph: the graph.
        moment: when the dump was begun, ISO 8601 in UTC, a date or with a time of day.

    Returns:
        how many were dropped.
    """
    old = lake.scan(KG_CHANGES, graph, ["changed_at", ROW_KEY]).filter(pl.col("changed_at") < moment).collect()
    if old.height:
        lake.apply(KG_CHANGES, graph, KG_CHANGES.empty(), old[ROW_KEY])
    return old.height


def changes_version(lake: Lake, graph: str) -> str:
    """Return the data version of a graph's changes."""
    return lake.version(KG_CHANGES, graph)


def behind(lake: Lake, folder: GraphFolder) -> float | None:
    """Return the age in seconds of the last change that was taken, None where there was no look yet."""
    if not _was_looked_at(lake, folder.name):
        return None
    return (datetime.now(UTC) - read_cursor(lake, folder).timestamp).total_seconds()
