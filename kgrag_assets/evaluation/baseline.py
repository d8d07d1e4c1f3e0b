"""The baseline that everything is measured against: all pairs ranked by plain cosine."""

from __future__ import annotations

import polars as pl

from kgrag_assets.evaluation.metrics import RankedPair
from kgrag_assets.models.embedders import Embedder

# About what a small sentence embedder reads before it cuts by itself.
DESCRIPTION_CHARACTERS = 400


def plain_cosine(attributes: pl.DataFrame, embedder: Embedder) -> list[RankedPair]:
    """Score every pair by the cosine of "table column. column description".

    Underscores of the names are written as blanks, and a description is cut at ``DESCRIPTION_CHARACTERS``; nothing
    else is done to the texts.

    Args:
        attributes: rows of ``schema_attributes`` of one task.
        embedder: the model.

    Returns:
        all pairs, ranked within each source attribute; none is proposed.
    """
    sides: dict[str, list[tuple[str, str]]] = {"source": [], "target": []}
    texts: dict[str, list[str]] = {"source": [], "target": []}
    for row in attributes.sort("side", "position").iter_rows(named=True):
        sides[row["side"]].append((row["table_name"], row["column_name"]))
        name = f"{row['table_name']} {row['column_name']}".replace("_", " ")
        texts[row["side"]].append(f"{name}. {row['column_description'][:DESCRIPTION_CHARACTERS]}")
    cosines = embedder.embed(texts["source"]) @ embedder.embed(texts["target"]).T
    pairs = []
    for place, source in enumerate(sides["source"]):
        for rank, column in enumerate((-cosines[place]).argsort(kind="stable").tolist(), start=1):
            score = float(cosines[place, column])
            pairs.append(RankedPair(source, sides["target"][column], score, rank, proposed=False))
    return pairs
