"""Looking something up in the lake's knowledge graphs: what a name may mean, and what the graphs say of it."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from kgrag_assets.knowledge.lake_base import LakeKnowledgeBase
from kgrag_assets.lake.lake import Lake


def looked_up(lake: Lake, name: str, graph: str | None, candidates: int, statements: int) -> dict[str, Any]:
    """Link a name to entities, and describe the best of them.

    Args:
        lake: the lake; its graphs must have been loaded.
        name: a name, or an entity's id such as ``wd:P569``.
        graph: look in this graph alone.
        candidates: entities listed.
        statements: statements of the best entity listed, those that leave it first.

    Raises:
        KnowledgeError: the lake has no graph yet, or none of this name.
    """
    base = LakeKnowledgeBase(lake, graphs=None if graph is None else (graph,))
    found = base.entity_linking(name, k=candidates)
    info = base.entity_info(name)
    if info is None and found:
        info = base.entity_info(found[0].entity_id)
    triples = [] if info is None else base.entity_triples(info.entity_id, limit=statements)
    return {
        "candidates": [asdict(candidate) for candidate in found],
        "entity": None if info is None else asdict(info),
        "statements": [asdict(triple) for triple in triples],
    }
