"""From rows of ``kg_entities`` to rows of the lexicon, a column at a time."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from kgrag_assets.knowledge.folding import folded_all, singular_all
from kgrag_assets.knowledge.lexicon_files import written_aliases
from kgrag_assets.knowledge.name_source import MIN_PHRASE
from kgrag_assets.rows.table import ROW_KEY

# What a row of the lexicon is made from.
COLUMNS = ["entity_id", "graph", "kind", "label", "aliases", "description", ROW_KEY]
EntityRow = tuple[int, str, int, str, str, str, str, bytes]


def with_places(rows: pl.DataFrame, first: int) -> pl.DataFrame:
    """Give entities numbers from ``first`` on, in ``place``, and turn row keys into bytes."""
    return rows.with_columns(
        pl.int_range(first, first + rows.height, dtype=pl.Int64).alias("place"), key_bytes(rows[ROW_KEY])
    )


def key_bytes(keys: pl.Series) -> pl.Series:
    """Write row keys as 16 bytes; one that is no hash stays its text."""
    decoded = keys.str.decode("hex", strict=False)
    return (
        pl.DataFrame({"hash": decoded, "text": keys.cast(pl.Binary)})
        .select(pl.when(pl.col("hash").bin.size() == 16).then("hash").otherwise("text").alias(keys.name))
        .to_series()
    )


def entity_rows(placed: pl.DataFrame, graphs: dict[str, int]) -> Iterator[EntityRow]:
    """Yield the row of each entity, in the order of the table's columns."""
    for place, entity_id, graph, kind, label, aliases, description, key in placed.select("place", *COLUMNS).iter_rows():
        yield place, entity_id, graphs[graph], kind, label, written_aliases(aliases), description, key


def name_rows(placed: pl.DataFrame) -> pl.DataFrame:
    """Return ``spelling, entity, way`` of all names, sorted; ``way`` is twice the name's place, plus 1 for a singular.

    The label's place is 0, the aliases' are from 1 on.
    """
    names = (
        placed.select(pl.col("place").alias("entity"), pl.concat_list(pl.concat_list("label"), "aliases").alias("name"))
        .with_columns(pl.int_ranges(pl.col("name").list.len()).alias("way"))
        .explode("name", "way", empty_as_null=False, keep_nulls=False)
    )
    whole = names.select(folded_all(names["name"]).alias("spelling"), "entity", pl.col("way") * 2).filter(
        pl.col("spelling").str.len_chars() >= MIN_PHRASE
    )
    singulars = whole.with_columns(singular_all(whole["spelling"]).alias("one")).filter(
        pl.col("one") != pl.col("spelling")
    )
    return pl.concat([whole, singulars.select(pl.col("one").alias("spelling"), "entity", pl.col("way") + 1)]).sort(
        "spelling", "entity", "way"
    )


def word_uses(names: pl.DataFrame) -> pl.DataFrame:
    """Count in how many names each word stands: ``word, uses``, sorted; singulars are no names of their own."""
    return (
        names.filter(pl.col("way") % 2 == 0)
        .select(pl.col("spelling").str.split(" ").alias("word"))
        .explode("word")
        .group_by("word")
        .agg(pl.len().cast(pl.Int64).alias("uses"))
        .sort("word")
    )
