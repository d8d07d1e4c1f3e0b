"""What ``kgrag tasks`` and ``kgrag status`` list."""

from __future__ import annotations

from typing import Any

from kgrag_assets.cli.place import Place
from kgrag_assets.cli.running import observe, plan, stale_of
from kgrag_assets.lake.lake import Lake
from kgrag_assets.rows.attribute_mappings import ATTRIBUTE_MAPPINGS
from kgrag_assets.schemas.task_folder import list_tasks, load_task


def listed_tasks(lake: Lake) -> list[dict[str, Any]]:
    """Describe each task folder: name, title, size of its mapping where there is one, or what is wrong with it."""
    rows: list[dict[str, Any]] = []
    for listed in list_tasks(lake.paths):
        row: dict[str, Any] = {"task": listed.name, "title": "", "proposed": None, "no_match": None, "note": ""}
        if listed.problem is not None:
            row["note"] = f"not used: {listed.problem}"
        else:
            row["title"] = load_task(lake.paths, listed.name).title
            if lake.outdated(ATTRIBUTE_MAPPINGS, listed.name):
                row["note"] = "mapped by an earlier version: run it again"
            elif lake.has(ATTRIBUTE_MAPPINGS, listed.name):
                decisions = lake.read(ATTRIBUTE_MAPPINGS, listed.name)["decision"]
                row["proposed"] = int((decisions == "proposed").sum())
                row["no_match"] = int((decisions == "no_match").sum())
            else:
                row["note"] = "not mapped yet"
        rows.append(row)
    return rows


def stale_rows(place: Place, task: str | None) -> list[dict[str, str]]:
    """List what is stale for one task or for all, upstream first, with the reason of each.

    Raises:
        SchemaError: the named task does not exist or cannot be used.
    """
    names = observe(place, task)
    found: dict[tuple[str, str | None], dict[str, str]] = {}
    for name in names:
        for job, partitions in plan(place, name):
            for stale in stale_of(place, job, partitions):
                found[stale.asset, stale.partition] = {
                    "asset": stale.asset,
                    "partition": stale.partition or "",
                    "state": "missing" if stale.missing else "stale",
                    "why": "; ".join(stale.reasons),
                }
    return list(found.values())
