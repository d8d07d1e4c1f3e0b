"""Bringing staged rows up to what changed at the source, in proportion to what changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import polars as pl

from kgrag_assets.knowledge.errors import KnowledgeError
from kgrag_assets.knowledge.extraction import Part, parts_at
from kgrag_assets.knowledge.graph_folder import GraphFolder
from kgrag_assets.knowledge.loading import parts_folder, staging_of
from kgrag_assets.knowledge.overlay import applied_rows, labels_in, overlay_of, superclasses_in
from kgrag_assets.knowledge.staging import Overlay
from kgrag_assets.lake.changes import Written
from kgrag_assets.lake.lake import Lake
from kgrag_assets.rows.graph_changes import KG_CHANGES
from kgrag_assets.rows.knowledge_graph import KG_APPLIED_CHANGES, STAGED_ENTITIES, STAGED_TRIPLES, bucket_of
from kgrag_assets.rows.table import ROW_KEY, Table
from kgrag_assets.settings import GraphSettings


@dataclass(frozen=True)
class RefreshReport:
    """What a refresh did to the staged rows of one graph.

    ``changed`` entities were edited, deleted, merged or restored; ``touched`` heads had statements that show one of
    those by another name. ``written`` holds what was written, by bucket.
    """

    changed: int
    touched: int
    written: dict[int, tuple[Written, Written]]

    def total(self, of: Callable[[Written], int]) -> int:
        """Sum something over everything that was written."""
        return sum(of(one) for pair in self.written.values() for one in pair)


def refresh_graph(
    lake: Lake, folder: GraphFolder, settings: GraphSettings, bucket_names: Sequence[str]
) -> RefreshReport | None:
    """Bring the staged rows of a graph up to its ``kg_changes``.

    The rows are the same as those of a full load with these changes: both are made by the same queries, here for
    the heads alone that a change touches.

    Args:
        lake: hold the lock of ``kg_source_rows``.
        folder: the graph; its files were loaded.
        settings: number of buckets and memory.
        bucket_names: partition names of the buckets, in order.

    Returns:
        What was done, or None where only a full load can tell: the changes move the borders of the classes that
        the graph's filter keeps.

    Raises:
        KnowledgeError: the graph was never loaded.
        LakeError: the disk is full or cannot be written.
    """
    changes, applied = lake.read(KG_CHANGES, folder.name), lake.read(KG_APPLIED_CHANGES, folder.name)
    base = parts_of(lake, folder)
    changed = _changed_ids(changes, applied)
    if not changed:
        return RefreshReport(0, 0, {})
    overlay = overlay_of(lake, folder, changes, base, settings)
    with staging_of(lake, settings) as staging:
        if folder.filter.classes and _classes_move(folder, changed, applied, base, overlay):
            return None
        staging.add(folder, base, overlay, settle=False)
        renamed = _renamed(folder, changed, applied, base, overlay)
        touched = sorted(set(staging.affected_by(renamed)) | set(changed)) if renamed else changed
        staging.restrict(touched)
        entities, triples = staging.entities(), staging.triples()
    written: dict[int, tuple[Written, Written]] = {}
    by_bucket: dict[int, list[str]] = {}
    for local in touched:
        entity = f"{folder.namespace}:{local}"
        by_bucket.setdefault(bucket_of(entity, settings.buckets), []).append(entity)
    for bucket, ids in sorted(by_bucket.items()):
        name = bucket_names[bucket]
        here = pl.col("bucket") == bucket
        old_entities = _keys(lake, STAGED_ENTITIES, name, "entity_id", ids, folder.name)
        old_triples = _keys(lake, STAGED_TRIPLES, name, "head", ids, folder.name)
        written[bucket] = (
            lake.apply(STAGED_ENTITIES, name, entities.filter(here), old_entities),
            lake.apply(STAGED_TRIPLES, name, triples.filter(here), old_triples),
        )
    lake.write(KG_APPLIED_CHANGES, folder.name, applied_rows(changes, overlay, folder.filter.subclass_relation))
    return RefreshReport(len(changed), len(touched) - len(changed), written)


def parts_of(lake: Lake, folder: GraphFolder) -> tuple[Part, ...]:
    """Return the parts of a graph's files, in the order of the last load.

    Raises:
        KnowledgeError: the graph was never loaded.
    """
    parts = parts_at(parts_folder(lake, folder.name))
    if parts is None:
        raise KnowledgeError(f"knowledge graph {folder.name!r} was not loaded yet: materialize kg_source_rows")
    return parts


def _changed_ids(changes: pl.DataFrame, applied: pl.DataFrame) -> list[str]:
    now = changes.select("local_id", pl.col(ROW_KEY).alias("change_key"))
    before = applied.select("local_id", "change_key")
    moved = pl.concat([now.join(before, on=now.columns, how="anti"), before.join(now, on=now.columns, how="anti")])
    return moved["local_id"].unique().sort().to_list()


def _renamed(
    folder: GraphFolder, changed: list[str], applied: pl.DataFrame, base: Sequence[Part], overlay: Overlay
) -> list[str]:
    """Return the changed ids that other statements show by another name, or in place of which another id stands."""
    if folder.filter.tails == "kept":
        return changed  # any of them may have come or gone as a tail
    ids = pl.Series("local", changed, dtype=pl.String)
    known = {row[0]: (row[1], row[2]) for row in applied.select("local_id", "label", "redirect_to").iter_rows()}
    first, after, moved = labels_in(base, ids), labels_in(overlay.parts, ids), dict(overlay.redirects)
    renamed = []
    for local in changed:
        before = known.get(local, (first.get(local), None))
        now = (after.get(local) if local in overlay.covered else first.get(local), moved.get(local))
        if before != now:
            renamed.append(local)
    return renamed


def _classes_move(
    folder: GraphFolder, changed: list[str], applied: pl.DataFrame, base: Sequence[Part], overlay: Overlay
) -> bool:
    """Whether the changes may add a class to those that the filter keeps, or take one away."""
    relation = folder.filter.subclass_relation
    known = dict(applied.select("local_id", "superclasses").iter_rows())
    ids = pl.Series("local", changed, dtype=pl.String)
    first, after = superclasses_in(base, relation, ids), superclasses_in(overlay.parts, relation, ids)
    return any(
        known.get(local, first.get(local, "")) != (after if local in overlay.covered else first).get(local, "")
        for local in changed
    )


def _keys(lake: Lake, table: Table, bucket: str, column: str, ids: list[str], graph: str) -> pl.DataFrame:
    """Return the keys of a graph's rows in a bucket that are about some ids, with the ids."""
    wanted = pl.DataFrame({column: ids}, schema={column: pl.String}).lazy()
    rows = lake.scan(table, bucket, [column, "graph", ROW_KEY]).filter(pl.col("graph") == graph)
    return rows.join(wanted, on=column, how="semi").select(ROW_KEY, column).collect()
