"""Which entities the attributes of tasks lead to: those they are linked to, and their neighbours."""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl

from kgrag_assets.knowledge.adjacency import Adjacency
from kgrag_assets.lake.lake import Lake
from kgrag_assets.models.embedders import Embedder
from kgrag_assets.retrieval.opening import open_linking
from kgrag_assets.rows.reachable_entities import REACHABLE_ENTITIES
from kgrag_assets.rows.schema_attributes import SCHEMA_ATTRIBUTES
from kgrag_assets.rows.table import with_row_key
from kgrag_assets.schemas.attribute import attributes_of
from kgrag_assets.settings import Settings


def reachable_from_tasks(
    lake: Lake, settings: Settings, tasks: Iterable[str], embedder: Embedder | None = None
) -> pl.DataFrame:
    """Return rows of ``reachable_entities`` for all tasks of the lake.

    A hub's neighbours, beyond ``hub_cap``, are left out: every entity would be reached through ``human``.

    Args:
        lake: the lake; schemas, attribute vectors, entity index, lexicon and adjacency must be up to date.
        settings: the settings; a task's own do not narrow what it may reach.
        tasks: names of tasks.
        embedder: the model of the attributes' vectors.

    Raises:
        RetrievalError: an index is of another model than the attributes' vectors.
    """
    linked: set[str] = set()
    near: set[str] = set()
    for task in tasks:
        attributes = attributes_of(lake.read(SCHEMA_ATTRIBUTES, task)).values()
        linking, adjacency = open_linking(lake, settings, task, embedder)
        for found in linking.link(attributes).values():
            linked |= {entity.entity_id for entity in found}
        for entity in linked - near:
            near |= _neighbours(adjacency, entity, settings.retrieval.hub_cap)
    rows = [(entity, entity in linked) for entity in sorted(linked | near)]
    return with_row_key(pl.DataFrame(rows, schema={"entity_id": pl.String, "linked": pl.Boolean}, orient="row")).select(
        REACHABLE_ENTITIES.names
    )


def _neighbours(adjacency: Adjacency, entity: str, hub_cap: int) -> set[str]:
    node = adjacency.node(entity)
    if node is None:
        return set()
    (tails, _relations), (heads, _others) = adjacency.out(node), adjacency.into(node)
    numbers = {*tails[:hub_cap].tolist(), *heads[:hub_cap].tolist()}
    return {adjacency.entity_id(number) for number in numbers}
