"""From a graph's files to rows of ``kg_entities``, ``kg_triples`` and ``kg_rejects``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from kgrag_assets.knowledge.fingerprint import data_files
from kgrag_assets.knowledge.graph_folder import GraphFolder
from kgrag_assets.knowledge.kgtk import read_kgtk
from kgrag_assets.knowledge.statements import Rejected, Statements, is_relation_id
from kgrag_assets.knowledge.wikidata_json import read_wikidata_json
from kgrag_assets.rows.keys import key_of
from kgrag_assets.rows.knowledge_graph import KG_ENTITIES, KG_TRIPLES, bucket_of, triple_id_of
from kgrag_assets.rows.rejects import KG_REJECTS
from kgrag_assets.rows.table import with_row_key

# Wikidata keeps a name that is the same in many languages once, as "mul".
_ANY_LANGUAGE = "mul"
_READERS = {"kgtk": read_kgtk, "wikidata_json": read_wikidata_json}


@dataclass(frozen=True)
class LoadedGraph:
    """Rows of one or several graphs."""

    entities: pl.DataFrame
    triples: pl.DataFrame
    rejects: pl.DataFrame


def load_graph(folder: GraphFolder, buckets: int) -> LoadedGraph:
    """Read one graph.

    Every entity that has a label or statements of its own gets a row. A statement whose end or relation has
    no label shows its id instead.

    Args:
        folder: the graph.
        buckets: number of buckets that entities are split into.
    """
    files = data_files(folder)
    languages = tuple(dict.fromkeys((*folder.languages, _ANY_LANGUAGE)))
    found = _READERS[folder.format](files, languages, literals=folder.literals)
    if not files:
        found.reject(str(folder.data_path), None, f"no file of the format {folder.format} lies here", "")
    return LoadedGraph(
        entities=_entities(folder, found, buckets),
        triples=_triples(folder, found, buckets),
        rejects=_rejects(folder.name, found.rejected),
    )


def load_graphs(folders: Sequence[GraphFolder], buckets: int) -> LoadedGraph:
    """Read several graphs, one after the other."""
    loaded = [load_graph(folder, buckets) for folder in folders]
    return LoadedGraph(
        entities=pl.concat([KG_ENTITIES.empty(), *(graph.entities for graph in loaded)]),
        triples=pl.concat([KG_TRIPLES.empty(), *(graph.triples for graph in loaded)]),
        rejects=pl.concat([KG_REJECTS.empty(), *(graph.rejects for graph in loaded)]),
    )


def _entities(folder: GraphFolder, found: Statements, buckets: int) -> pl.DataFrame:
    rows = []
    for local, names in found.names.items():
        if not names.listed:
            continue  # only an alias or a description: nothing to call it by
        entity_id = f"{folder.namespace}:{local}"
        label = names.label if names.label is not None else local
        kind = "relation" if is_relation_id(local) else "entity"
        aliases = [alias for alias in names.aliases if alias != label]
        bucket = bucket_of(entity_id, buckets)
        row_key = key_of("kg_entity", entity_id, folder.name, kind, label, aliases, names.description)
        rows.append((entity_id, folder.name, bucket, kind, label, aliases, names.description, row_key))
    return pl.DataFrame(rows, schema=KG_ENTITIES.schema, orient="row")


def _triples(folder: GraphFolder, found: Statements, buckets: int) -> pl.DataFrame:
    def name(local: str) -> str:
        names = found.names.get(local)
        return names.label if names is not None and names.label is not None else local

    rows = []
    statements = [
        *((edge, True) for edge in found.edges),
        *((literal, False) for literal in found.literals),
    ]
    for (head, relation, tail), is_entity in statements:
        head_id, relation_id = f"{folder.namespace}:{head}", f"{folder.namespace}:{relation}"
        tail_id = f"{folder.namespace}:{tail}" if is_entity else None
        value = None if is_entity else tail
        labels = (name(head), name(relation), name(tail) if is_entity else tail)
        triple_id = triple_id_of(folder.name, head_id, relation_id, tail_id, value)
        rows.append(
            (
                triple_id,
                folder.name,
                bucket_of(head_id, buckets),
                head_id,
                relation_id,
                tail_id,
                value,
                *labels,
                key_of("kg_triple", triple_id, labels),
            )
        )
    return pl.DataFrame(rows, schema=KG_TRIPLES.schema, orient="row")


def _rejects(graph: str, rejected: Sequence[Rejected]) -> pl.DataFrame:
    rows = [(graph, item.file, item.row, item.reason, item.content) for item in rejected]
    columns = {name: dtype for name, dtype in KG_REJECTS.schema.items() if name != "row_key"}
    frame = pl.DataFrame(rows, schema=columns, orient="row").unique(maintain_order=True)
    return with_row_key(frame).select(KG_REJECTS.names)
