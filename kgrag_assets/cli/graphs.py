"""Listing the knowledge graphs, and taking what changed at their sources."""

from __future__ import annotations

from typing import Any

import polars as pl

from kgrag_assets.cli.place import Place
from kgrag_assets.knowledge.errors import KnowledgeError
from kgrag_assets.knowledge.following import Followed, behind, follow
from kgrag_assets.knowledge.graph_folder import list_graphs, load_graph_folder
from kgrag_assets.knowledge.sensors import followed_graphs, look_events
from kgrag_assets.lake.lake import Lake
from kgrag_assets.rows.graph_changes import KG_CHANGES
from kgrag_assets.rows.knowledge_graph import KG_ENTITIES, KG_TRIPLES
from kgrag_assets.rows.rejects import KG_REJECTS


def listed_graphs(lake: Lake) -> list[dict[str, Any]]:
    """List the graphs with what the lake holds of them, the unusable ones with the reason."""
    counts = {table.name: _by_graph(lake, table.name) for table in (KG_ENTITIES, KG_TRIPLES)}
    rejects = lake.read(KG_REJECTS, None, ["graph"])["graph"]
    rows = []
    for listed in list_graphs(lake.paths):
        row: dict[str, Any] = {
            "graph": listed.name,
            "format": "",
            "entities": counts[KG_ENTITIES.name].get(listed.name, 0),
            "triples": counts[KG_TRIPLES.name].get(listed.name, 0),
            "rejected_lines": int((rejects == listed.name).sum()),
            "followed": False,
            "behind_s": None,
            "changes": 0,
            "problem": listed.problem or "",
        }
        if listed.problem is None:
            folder = load_graph_folder(lake.paths, listed.name)
            row["format"] = folder.format
            if folder.refresh is not None:
                row["followed"] = True
                try:
                    row["behind_s"] = behind(lake, folder)
                except KnowledgeError as error:  # the other graphs are listed all the same
                    row["problem"] = str(error)
                row["changes"] = lake.read(KG_CHANGES, listed.name, ["graph"]).height
        rows.append(row)
    return rows


def _by_graph(lake: Lake, name: str) -> dict[str, int]:
    table = KG_ENTITIES if name == KG_ENTITIES.name else KG_TRIPLES
    scans = [lake.scan(table, partition, ["graph"]) for partition in lake.partitions(table)]
    if not scans:
        return {}
    return dict(pl.concat(scans).group_by("graph").len().collect().iter_rows())


def take_changes(place: Place, graph: str | None) -> list[Followed]:
    """Look at the sources of all followed graphs, or of one, until they have no more, and tell Dagster.

    Raises:
        KnowledgeError: the graph is not followed, or its source refuses to be asked.
    """
    folders = followed_graphs(place.lake)
    wanted = [load_graph_folder(place.lake.paths, graph)] if graph is not None else folders
    if not wanted:
        raise KnowledgeError("no knowledge graph is followed: add a refresh section to its kg.yaml")
    looks: list[Followed] = []
    for folder in wanted:
        while True:
            look = follow(place.lake, folder)
            looks.append(look)
            if look.summary().get("ended_by") not in ("time", "slice_limit"):
                break
    for event in look_events(place.instance, place.lake, folders, looks):
        place.instance.report_runless_asset_event(event)
    return looks
