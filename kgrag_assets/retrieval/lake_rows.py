"""The few rows of the lake's large tables that retrieval asks for by id, all ids of a call in one pass."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import polars as pl

from kgrag_assets.lake.lake import Lake
from kgrag_assets.rows.knowledge_graph import KG_TRIPLES
from kgrag_assets.rows.table import Table

# Rows of ``kg_triples`` of some triple ids, in any order.
TriplesOf = Callable[[Collection[str]], pl.DataFrame]
# The texts of some ids, in their order; None for an id that has none.
TextsOf = Callable[[Sequence[str]], Sequence[str | None]]


def rows_of(lake: Lake, table: Table, id_column: str, ids: Collection[str], columns: Sequence[str]) -> pl.DataFrame:
    """Return the rows of some ids, from all partitions; of the others only the ids are read.

    Raises:
        LakeError: a partition cannot be read.
    """
    found = [table.empty().select(columns)]
    if ids:
        wanted = pl.Series(id_column, sorted(ids), dtype=pl.String).implode()
        for name in lake.partitions(table):
            rows = lake.scan(table, name, list(dict.fromkeys((id_column, *columns))))
            found.append(rows.filter(pl.col(id_column).is_in(wanted)).select(columns).collect())
    return pl.concat(found)


def triples_of(lake: Lake) -> TriplesOf:
    """Return a function that looks triples up."""
    return lambda ids: rows_of(lake, KG_TRIPLES, "triple_id", ids, KG_TRIPLES.names)


def texts_of(lake: Lake, table: Table, id_column: str) -> TextsOf:
    """Return a function that looks up the texts that were embedded; of several graphs' rows, the first graph's."""

    def look_up(ids: Sequence[str]) -> list[str | None]:
        rows = rows_of(lake, table, id_column, set(ids), [id_column, "graph", "text"])
        first = rows.sort(id_column, "graph").unique(id_column, keep="first").select(id_column, "text")
        known: dict[str, str] = dict(first.iter_rows())
        return [known.get(entry) for entry in ids]

    return look_up


def ids_of_graphs(lake: Lake, table: Table, id_column: str, graphs: Collection[str]) -> pl.Series:
    """Return the ids of all rows of some graphs; no other column is read.

    Raises:
        LakeError: a partition cannot be read.
    """
    chosen = pl.Series("graph", sorted(graphs), dtype=pl.String).implode()
    found = [
        lake.scan(table, name, [id_column, "graph"]).filter(pl.col("graph").is_in(chosen)).select(id_column).collect()
        for name in lake.partitions(table)
    ]
    return pl.concat([table.empty().select(id_column), *found])[id_column]
