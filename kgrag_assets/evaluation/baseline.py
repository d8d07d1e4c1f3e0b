"""The baseline that everything is measured against: all pairs ranked by plain cosine."""

from __future__ import annotations

import polars as pl

from kgrag_assets.models.embedders import Embedder


def plain_cosine(attributes: pl.DataFrame, embedder: Embedder) -> dict[tuple[str, str], float]:
    """Score every pair by the cosine of "table column. column description", names and texts as they are.

    Args:
        attributes: rows of ``schema_attributes`` of one task.
        embedder: the model.

    Returns:
        cosine by (source attribute id, target attribute id).
    """
    texts = {
        row["attribute_id"]: f"{row['table_name']} {row['column_name']}. {row['column_description']}"
        for row in attributes.iter_rows(named=True)
    }
    ids = list(texts)
    vectors = dict(zip(ids, embedder.embed([texts[key] for key in ids]), strict=True))
    sources = attributes.filter(pl.col("side") == "source")["attribute_id"].to_list()
    targets = attributes.filter(pl.col("side") == "target")["attribute_id"].to_list()
    return {(left, right): float(vectors[left] @ vectors[right]) for left in sources for right in targets}
