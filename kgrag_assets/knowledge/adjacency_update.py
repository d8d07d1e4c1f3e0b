"""Keeping the adjacency of the lake up to date: an overlay while few heads changed, built anew where many did."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from kgrag_assets.knowledge.adjacency import Adjacency
from kgrag_assets.knowledge.adjacency_build import build_adjacency
from kgrag_assets.knowledge.errors import KnowledgeError
from kgrag_assets.knowledge.overlay_build import build_overlay
from kgrag_assets.lake.changes import mark_of
from kgrag_assets.lake.files import replace_folder
from kgrag_assets.lake.lake import Lake
from kgrag_assets.rows.keys import data_version_of
from kgrag_assets.rows.knowledge_graph import KG_ENTITIES, KG_TRIPLES
from kgrag_assets.rows.table import ROW_KEY, Table

# From this share of edges in the overlay on, the graph is built anew.
OVERLAY_SHARE = 0.1
HUBS_SHOWN = 15
_BUILT_FROM = "built_from.parquet"
_BUILT_FROM_SCHEMA = pl.Schema(
    {"table": pl.String, "partition": pl.String, "mark": pl.String, "row_key": pl.String, "id": pl.String}
)
_TRIPLE_COLUMNS = ("graph", "head", "relation", "tail", "head_label", "relation_label", "tail_label")
_ENTITY_COLUMNS = ("entity_id", "graph", "kind", "label")
# The column by which a row of each table belongs to a head.
_ID = {KG_ENTITIES.name: "entity_id", KG_TRIPLES.name: "head"}


@dataclass(frozen=True)
class AdjacencyUpdate:
    """What was done: ``written`` is false where the graph was up to date, ``rebuilt`` true where all of it was."""

    written: bool
    rebuilt: bool
    overlay_heads: int
    hubs: pl.DataFrame


def open_graph(lake: Lake) -> Adjacency:
    """Open the lake's adjacency with the overlay that lies on it.

    Raises:
        KnowledgeError: there is none, or its files do not agree.
    """
    base, overlay = lake.paths.arrays("kg_graph"), _overlay_folder(lake)
    return Adjacency.open(base, overlay if overlay.exists() else None)


def bring_adjacency_up_to_date(lake: Lake, partitions: Sequence[str]) -> AdjacencyUpdate:
    """Make the adjacency that of the rows of ``kg_entities`` and ``kg_triples``.

    Args:
        lake: hold the lock of ``kg_graph``.
        partitions: the buckets, in order.

    Raises:
        LakeError: rows cannot be read, or the disk is full.
    """
    version = data_version_of([lake.version(table, name) for name in partitions for table in (KG_ENTITIES, KG_TRIPLES)])
    opened = _opened(lake)
    if opened is not None and opened.data_version == version:
        return AdjacencyUpdate(False, False, len(opened.changed_heads()), _hubs(opened))
    base = _opened_base(lake) if opened is not None else None
    heads = None if base is None else _changed_heads(lake, partitions)
    if base is not None and heads is not None:
        updated = _with_overlay(lake, base, partitions, heads, version)
        if updated is not None:
            return AdjacencyUpdate(True, False, len(heads), _hubs(updated))
    _build(lake, partitions, version)
    return AdjacencyUpdate(True, True, 0, _hubs(open_graph(lake)))


def _with_overlay(
    lake: Lake, base: Adjacency, partitions: Sequence[str], heads: list[str], version: str
) -> Adjacency | None:
    # Only what an overlay takes, and one bucket after the other: keys are most of a row's bytes.
    rows = _rows_about(lake, KG_TRIPLES, _TRIPLE_COLUMNS, partitions, heads)
    if rows.height > OVERLAY_SHARE * max(1, base.edge_count):
        return None
    names = _rows_about(lake, KG_ENTITIES, _ENTITY_COLUMNS, partitions, heads)
    replace_folder(_overlay_folder(lake), lambda folder: _lay(base, heads, rows, names, folder, version))
    opened = open_graph(lake)
    return opened if opened.overlay_share <= OVERLAY_SHARE else None


def _rows_about(
    lake: Lake, table: Table, columns: Sequence[str], partitions: Sequence[str], ids: Sequence[str]
) -> pl.DataFrame:
    wanted = pl.DataFrame({_ID[table.name]: ids}, schema={_ID[table.name]: pl.String}).lazy()
    scans = [lake.scan(table, name, columns).join(wanted, on=_ID[table.name], how="semi") for name in partitions]
    return pl.concat([table.empty().select(columns), *(scan.collect() for scan in scans)])


def _lay(
    base: Adjacency, heads: list[str], triples: pl.DataFrame, entities: pl.DataFrame, folder: Path, version: str
) -> None:
    build_overlay(base, heads, triples, entities, folder, version)


def _build(lake: Lake, partitions: Sequence[str], version: str) -> None:
    buckets = [(lake.scan(KG_ENTITIES, name), lake.scan(KG_TRIPLES, name)) for name in partitions]

    def write(folder: Path) -> None:
        build_adjacency(buckets, folder, version)
        _state(lake, partitions).write_parquet(folder / _BUILT_FROM)

    replace_folder(lake.paths.arrays("kg_graph"), write)
    # An overlay on the graph before would be refused; it is of no use any more.
    overlay = _overlay_folder(lake)
    if overlay.is_symlink():
        target = overlay.resolve()
        overlay.unlink()
        shutil.rmtree(target, ignore_errors=True)


def _overlay_folder(lake: Lake) -> Path:
    return lake.paths.stage("kg_graph") / "overlay"


def _opened(lake: Lake) -> Adjacency | None:
    """Open what is there, or return None where it must be built."""
    with contextlib.suppress(KnowledgeError):
        return open_graph(lake)
    return _opened_base(lake)


def _opened_base(lake: Lake) -> Adjacency | None:
    try:
        return Adjacency.open(lake.paths.arrays("kg_graph"))
    except KnowledgeError:
        return None


def _state(lake: Lake, partitions: Sequence[str]) -> pl.DataFrame:
    """Return what names the rows that a graph is built from: the files' marks, and their changes with their ids."""
    frames = [pl.DataFrame(schema=_BUILT_FROM_SCHEMA)]
    for table, name in _parts(partitions):
        files = lake.files(table, name)
        where = {"table": table.name, "partition": name, "mark": mark_of(files.rows)}
        frames.append(pl.DataFrame([{**where, "row_key": None, "id": None}], schema=_BUILT_FROM_SCHEMA))
        added, removed = files.changed_rows(table, [_ID[table.name]])
        known = removed.filter(pl.col(_ID[table.name]).is_not_null())
        looked_up = _base_ids(lake, table, name, removed.join(known, on=ROW_KEY, how="anti")[ROW_KEY])
        ids = pl.concat([*(frame.rename({_ID[table.name]: "id"}) for frame in (added, known)), looked_up])
        literals = [pl.lit(value, dtype=pl.String).alias(column) for column, value in where.items()]
        frames.append(ids.with_columns(literals).select(_BUILT_FROM_SCHEMA.names()))
    return pl.concat(frames)


def _parts(partitions: Sequence[str]) -> Iterator[tuple[Table, str]]:
    for name in partitions:
        yield KG_ENTITIES, name
        yield KG_TRIPLES, name


def _base_ids(lake: Lake, table: Table, partition: str, keys: pl.Series) -> pl.DataFrame:
    """Return key and id of rows that changes removed: they still stand in the partition's rows file."""
    if keys.is_empty():
        return pl.DataFrame(schema={ROW_KEY: pl.String, "id": pl.String})
    rows = pl.scan_parquet(lake.files(table, partition).rows, hive_partitioning=False)
    found = rows.select(ROW_KEY, pl.col(_ID[table.name]).alias("id"))
    return found.join(keys.alias(ROW_KEY).to_frame().lazy(), on=ROW_KEY, how="semi").collect()


def _changed_heads(lake: Lake, partitions: Sequence[str]) -> list[str] | None:
    """Return the ids of all rows that came or went since the graph was built, or None where that cannot be told."""
    path = lake.paths.arrays("kg_graph") / _BUILT_FROM
    try:
        before = pl.read_parquet(path)
    except (OSError, pl.exceptions.PolarsError):
        return None
    now = _state(lake, partitions)
    marks = ["table", "partition", "mark"]
    was, is_now = (
        state.filter(pl.col("row_key").is_null()).select(marks).sort(marks).drop_nulls() for state in (before, now)
    )
    if not was.equals(is_now) or was.height != 2 * len(partitions):
        return None
    rows = [state.filter(pl.col("row_key").is_not_null()).select("table", "row_key", "id") for state in (before, now)]
    moved = pl.concat(
        [
            rows[0].join(rows[1], on=["table", "row_key"], how="anti"),
            rows[1].join(rows[0], on=["table", "row_key"], how="anti"),
        ]
    )
    return moved["id"].unique().sort().to_list()


def _hubs(graph: Adjacency) -> pl.DataFrame:
    """Return the nodes with most edges, as the base counts them."""
    view = graph.view
    degrees = np.diff(view.out_starts) + np.diff(view.in_starts)
    top = np.argsort(-degrees, kind="stable")[:HUBS_SHOWN]
    rows = [(graph.entity_id(int(node)), graph.label(int(node)), int(degrees[node])) for node in top]
    return pl.DataFrame(rows, schema={"id": pl.String, "label": pl.String, "edges": pl.Int64}, orient="row")
