"""Which embedder the graph's rows get: the same as the attributes, or a cheap first stage fitted to it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import polars as pl

from kgrag_assets.indexing.entity_text import entity_text, triple_text
from kgrag_assets.lake.lake import Lake
from kgrag_assets.models.embedders import Embedder
from kgrag_assets.models.first_stage import FirstStage
from kgrag_assets.rows.knowledge_graph import KG_ENTITIES, KG_TRIPLES
from kgrag_assets.rows.table import ROW_KEY
from kgrag_assets.settings import EmbedderSettings

FIRST_STAGE = "first_stage_model"
# Texts are drawn from rows whose key begins with some digits: keys are hashes, so that is a fair draw, and rows
# that are not drawn are not even worded. So many times the texts that are wanted are left to choose from.
_MARGIN = 3


def graph_embedder_of(settings: EmbedderSettings, embedder: Embedder, lake: Lake) -> Embedder:
    """Return the embedder of the graph's rows.

    Args:
        settings: with ``first_stage`` static, a cheap model is fitted to the full one.
        embedder: the embedder of attributes.
        lake: where the fitted model lies.
    """
    if settings.first_stage == "none":
        return embedder
    return FirstStage(settings.model, embedder, lake.paths.arrays(FIRST_STAGE), settings.first_stage_texts)


def family_of(embedder: object) -> str:
    """Return what is known of an embedder's id before it is fitted, for code versions."""
    if isinstance(embedder, FirstStage):
        return embedder.family
    model_id: str = embedder.model_id  # type: ignore[attr-defined]  # every embedder has one
    return model_id


def graph_texts(lake: Lake, partitions: Sequence[str], size: int) -> Iterator[str]:
    """Yield texts of entities and triples, a fair draw of a few times ``size`` of them."""
    scans = [
        (lake.scan(table, name), table is KG_ENTITIES) for name in partitions for table in (KG_ENTITIES, KG_TRIPLES)
    ]
    rows = sum(scan.select(pl.len()).collect().item() for scan, _entity in scans)
    share = min(1.0, _MARGIN * size / max(1, rows))
    below = f"{min(0xFFFF, int(share * 0x10000)):04x}"
    for scan, is_entity in scans:
        drawn = scan if share >= 1 else scan.filter(pl.col(ROW_KEY).str.slice(0, 4) < below)
        if is_entity:
            for label, aliases, description in drawn.select("label", "aliases", "description").collect().iter_rows():
                yield entity_text(label, aliases, description)
        else:
            for labels in drawn.select("head_label", "relation_label", "tail_label").collect().iter_rows():
                yield triple_text(*labels)
