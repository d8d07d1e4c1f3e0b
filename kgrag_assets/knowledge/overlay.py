"""Changes since a graph's files were written, as an overlay over the rows of its files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec
import polars as pl

from kgrag_assets.knowledge.collector import LABEL, Collector
from kgrag_assets.knowledge.extraction import Part, extract
from kgrag_assets.knowledge.graph_folder import GraphFolder
from kgrag_assets.knowledge.sources.blocks import ReadOptions
from kgrag_assets.knowledge.sources.protocol import Unit
from kgrag_assets.knowledge.sources.wikidata_checked import entity_rows
from kgrag_assets.knowledge.sources.wikidata_json import READER_VERSION
from kgrag_assets.knowledge.staging import Overlay
from kgrag_assets.lake.lake import Lake
from kgrag_assets.rows.graph_changes import EDITED, REDIRECTED
from kgrag_assets.rows.keys import key_of
from kgrag_assets.rows.knowledge_graph import KG_APPLIED_CHANGES, bucket_of
from kgrag_assets.rows.table import with_row_key
from kgrag_assets.settings import GraphSettings

CHANGE_PARTS = "kg_change_parts"
# Changed entities are read in so many groups by id: one more change reads one group again.
GROUPS = 16


@dataclass(frozen=True)
class ChangesUnit:
    """A group of changed entities."""

    key: str
    file: str
    first_row: int
    size: int
    documents: tuple[str, ...]
    options: ReadOptions

    def read(self, into: Collector) -> None:
        """Read the documents, which are entities as the API answers them."""
        for row, document in enumerate(self.documents, start=1):
            entity_rows(msgspec.json.decode(document), self.options, into, row)


@dataclass(frozen=True)
class ChangesSource:
    """The edited entities among rows of ``kg_changes``."""

    graph: str
    changes: pl.DataFrame
    options: ReadOptions

    @property
    def size(self) -> int:
        """Number of documents."""
        return self.changes.height

    def units(self) -> Iterator[Unit]:
        """Yield one unit per group of ids."""
        groups: dict[int, list[tuple[str, str]]] = {}
        rows = self.changes.sort("local_id").select("local_id", "row_key", "document").iter_rows()
        for local, row_key, document in rows:
            groups.setdefault(bucket_of(local, GROUPS), []).append((row_key, document))
        for number in sorted(groups):
            keys = [key for key, _document in groups[number]]
            yield ChangesUnit(
                key=key_of("changes", READER_VERSION, repr(self.options), keys),
                file=f"changes of {self.graph}",
                first_row=number * 1_000_000 + 1,
                size=len(keys),
                documents=tuple(document for _key, document in groups[number]),
                options=self.options,
            )


def overlay_of(
    lake: Lake, folder: GraphFolder, changes: pl.DataFrame, base: Sequence[Part], settings: GraphSettings
) -> Overlay:
    """Make the overlay of a graph's changes; edits that its files know, or later ones, are left out.

    A deletion or merge holds whatever revision the files have: it has none of its own. Those from before a dump was
    written are dropped when it is taken (``following.drop_changes_before``).

    Args:
        lake: where the parts of changed entities lie.
        folder: the graph.
        changes: its rows of ``kg_changes``.
        base: the parts of its files.
        settings: number of buckets.
    """
    if changes.is_empty():
        return Overlay()
    later = _base_revisions(base, changes["local_id"])
    at_hand = pl.col("local_id").replace_strict(later, default=-1, return_dtype=pl.Int64)
    live = changes.filter((pl.col("action") != EDITED) | (pl.col("revision") > at_hand))
    edited = live.filter(pl.col("action") == EDITED)
    extraction = extract(
        ChangesSource(folder.name, edited, folder.read),
        lake.paths.partition(CHANGE_PARTS, folder.name),
        namespace=folder.namespace,
        buckets=settings.buckets,
        workers=1,
    )
    moved = dict(live.filter(pl.col("action") == REDIRECTED).select("local_id", "redirect_to").iter_rows())
    return Overlay(
        parts=extraction.parts,
        covered=frozenset(live["local_id"]),
        redirects=tuple(sorted((local, _end(local, moved)) for local in moved)),
    )


def applied_rows(changes: pl.DataFrame, overlay: Overlay, subclass_relation: str) -> pl.DataFrame:
    """Return rows of ``kg_applied_changes``: which changes the overlay holds, and what they say of each id."""
    labels = labels_in(overlay.parts)
    superclasses = superclasses_in(overlay.parts, subclass_relation)
    moved = dict(overlay.redirects)
    rows = [
        (graph, local, row_key, moved.get(local), labels.get(local), superclasses.get(local, ""))
        for graph, local, row_key in changes.select("graph", "local_id", "row_key").iter_rows()
    ]
    schema = {name: dtype for name, dtype in KG_APPLIED_CHANGES.schema.items() if name != "row_key"}
    return with_row_key(pl.DataFrame(rows, schema=schema, orient="row"))


def labels_in(parts: Sequence[Part], only: pl.Series | None = None) -> dict[str, str]:
    """Return the label of each id in parts, or of some ids: the first language's, and among those the first read."""
    if not parts:
        return {}
    scans = [
        pl.scan_parquet(part.table("names"), hive_partitioning=False)
        .filter(pl.col("what") == LABEL)
        .select("local", "text", "rank", "place", pl.lit(ordinal).alias("ordinal"))
        for ordinal, part in enumerate(parts)
    ]
    names = pl.concat(scans)
    if only is not None:
        names = names.join(only.alias("local").to_frame().lazy(), on="local", how="semi")
    found = names.sort("rank", "ordinal", "place").unique("local", keep="first", maintain_order=True)
    return dict(found.select("local", "text").collect().iter_rows())


def superclasses_in(parts: Sequence[Part], relation: str, only: pl.Series | None = None) -> dict[str, str]:
    """Return the superclasses of each id in parts, or of some ids: their ids, sorted, as one text."""
    if not parts:
        return {}
    edges = pl.scan_parquet([part.table("edges") for part in parts], hive_partitioning=False)
    steps = edges.filter((pl.col("relation") == relation) & pl.col("tail").is_not_null())
    if only is not None:
        steps = steps.join(only.alias("head").to_frame().lazy(), on="head", how="semi")
    found = steps.group_by("head").agg(pl.col("tail").unique().sort().str.join(" "))
    return dict(found.collect().iter_rows())


def _base_revisions(base: Sequence[Part], ids: pl.Series) -> dict[str, int]:
    if not base:
        return {}
    wanted = ids.alias("local").to_frame().lazy()
    counts = pl.scan_parquet([part.table("counts") for part in base], hive_partitioning=False)
    found = counts.select("local", "revision").join(wanted, on="local", how="semi")
    return dict(found.group_by("local").agg(pl.col("revision").max()).collect().iter_rows())


def _end(local: str, moved: Mapping[str, str]) -> str:
    """Follow merges of merges; a circle, which the source forbids, ends where it closes."""
    seen = {local}
    here = moved[local]
    while here in moved and here not in seen:
        seen.add(here)
        here = moved[here]
    return here
