"""A small graph and schema with vectors made by hand, so that every cosine can be read off."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from kgrag_assets.indexing.hnsw import HnswIndex
from kgrag_assets.indexing.update import update_index
from kgrag_assets.knowledge.lexicon import LexiconEntity
from kgrag_assets.retrieval.names import GraphNames
from kgrag_assets.retrieval.pair_links import PairLinks
from kgrag_assets.retrieval.protocol import RetrievalQuery
from kgrag_assets.retrieval.walks import Step, Walk, Walks
from kgrag_assets.rows.candidate_pairs import CANDIDATE_PAIRS
from kgrag_assets.rows.embeddings import ATTRIBUTE_EMBEDDINGS
from kgrag_assets.rows.keys import attribute_id_of, key_of, pair_id_of
from kgrag_assets.rows.knowledge_graph import KG_ENTITIES, KG_TRIPLES, triple_id_of
from kgrag_assets.rows.schema_attributes import SCHEMA_ATTRIBUTES
from kgrag_assets.settings import IndexSettings

MODEL = "fake@1"
TASK = "small"
DIMENSION = 8

Statement = tuple[str, str, str]


def vector(**parts: float) -> np.ndarray:
    """Make a unit vector from named directions a..g; what is missing to length 1 goes into the last, unused one."""
    made = np.zeros(DIMENSION, dtype=np.float32)
    for name, value in parts.items():
        made["abcdefg".index(name)] = value
    rest = 1.0 - float(made @ made)
    assert rest >= -1e-6
    made[-1] = np.sqrt(max(rest, 0.0))
    return made


def attributes(columns: Mapping[tuple[str, str], str]) -> pl.DataFrame:
    """Make ``schema_attributes`` from (side, "table.column") to description."""
    rows = []
    for position, ((side, name), description) in enumerate(columns.items()):
        table, column = name.split(".")
        rows.append(
            {
                "task": TASK,
                "attribute_id": attribute_id_of(side, table, column),
                "side": side,
                "table_name": table,
                "column_name": column,
                "position": position,
                "data_type": "",
                "type_family": "unknown",
                "nullable": None,
                "is_primary_key": None,
                "references_table": None,
                "references_column": None,
                "table_description": "",
                "column_description": description,
                "sample_values": [],
                "distinct_count": None,
                "null_share": None,
                "profile": None,
                "origin": "test",
                "row_key": key_of(side, name, description),
            }
        )
    return SCHEMA_ATTRIBUTES.frame(rows)


def embeddings(schema: pl.DataFrame, vectors: Mapping[str, np.ndarray]) -> pl.DataFrame:
    """Make ``attribute_embeddings`` from vectors by column name; all views of an attribute are equal."""
    rows = [
        {
            "task": TASK,
            "attribute_id": attribute_id,
            "view": view,
            "text": description,
            "model_id": MODEL,
            "vector": vectors[column].tolist(),
            "row_key": key_of(attribute_id, view, description, vectors[column].tobytes()),
        }
        for attribute_id, column, description in schema.select(
            "attribute_id", "column_name", "column_description"
        ).iter_rows()
        for view in ("name", "column", "description", "full")
    ]
    return ATTRIBUTE_EMBEDDINGS.frame(rows)


def candidates(schema: pl.DataFrame) -> pl.DataFrame:
    """Make ``candidate_pairs`` of every source with every target."""
    rows = []
    names = ("attribute_id", "table_name", "column_name")
    sources = schema.filter(pl.col("side") == "source").select(names).rows()
    targets = schema.filter(pl.col("side") == "target").select(names).rows()
    for source, source_table, source_column in sources:
        for target, target_table, target_column in targets:
            pair: dict[str, object] = {
                "task": TASK,
                "pair_id": pair_id_of(source, target),
                "source_table": source_table,
                "source_column": source_column,
                "target_table": target_table,
                "target_column": target_column,
                "source_attribute_id": source,
                "target_attribute_id": target,
                "pairs_covered": 1,
                "row_key": key_of(source, target),
            }
            for name, dtype in CANDIDATE_PAIRS.schema.items():
                if name not in pair:
                    pair[name] = 1 if dtype == pl.Int32 else 0.5
            rows.append(pair)
    return CANDIDATE_PAIRS.frame(rows)


def entities(labels: Mapping[str, tuple[str, str]]) -> pl.DataFrame:
    """Make ``kg_entities`` from id to (label, description)."""
    rows = [
        {
            "entity_id": entity,
            "graph": "g",
            "bucket": 0,
            "kind": "relation" if ":P" in entity else "entity",
            "label": label,
            "aliases": [],
            "description": description,
            "row_key": key_of(entity, label, description),
        }
        for entity, (label, description) in labels.items()
    ]
    return KG_ENTITIES.frame(rows)


def triples(statements: list[Statement], labels: Mapping[str, tuple[str, str]]) -> pl.DataFrame:
    """Make ``kg_triples``."""
    rows = [
        {
            "triple_id": triple_id_of("g", head, relation, tail, None),
            "graph": "g",
            "bucket": 0,
            "head": head,
            "relation": relation,
            "tail": tail,
            "tail_value": None,
            "head_label": labels[head][0],
            "relation_label": labels[relation][0],
            "tail_label": labels[tail][0],
            "row_key": key_of(head, relation, tail),
        }
        for head, relation, tail in statements
    ]
    return KG_TRIPLES.frame(rows)


def index_of(vectors: Mapping[str, np.ndarray], version: str = "1") -> HnswIndex:
    """Make an index from id to vector."""
    ids = list(vectors)
    matrix = np.array([vectors[entry] for entry in ids], dtype=np.float32).reshape(len(ids), DIMENSION)
    keys = [f"{entry}@{version}" for entry in ids]
    return update_index(None, ids, keys, matrix, IndexSettings(), model_id=MODEL).index


class NamesOfRows:
    """The names that rows of ``kg_entities`` hold."""

    def __init__(self, rows: pl.DataFrame) -> None:
        self.rows = rows

    def entities(self, ids: Iterable[str]) -> dict[str, list[LexiconEntity]]:
        """Return the rows of each id."""
        found: dict[str, list[LexiconEntity]] = {}
        for row in self.rows.sort("entity_id", "graph").iter_rows(named=True):
            if row["entity_id"] in set(ids):
                entity = LexiconEntity(
                    row["entity_id"], row["graph"], row["kind"], row["label"], tuple(row["aliases"]), row["description"]
                )
                found.setdefault(row["entity_id"], []).append(entity)
        return found


class LabelsOfRows:
    """The labels that rows of ``kg_triples`` hold."""

    def __init__(self, rows: pl.DataFrame) -> None:
        self.nodes = dict(rows.select("head", "head_label").iter_rows())
        self.nodes.update(rows.drop_nulls("tail").select("tail", "tail_label").iter_rows())
        self.relations = dict(rows.select("relation", "relation_label").iter_rows())

    def node(self, entity_id: str) -> int | None:
        """Return the place of an entity."""
        return list(self.nodes).index(entity_id) if entity_id in self.nodes else None

    def label(self, node: int) -> str:
        """Return its label."""
        return str(list(self.nodes.values())[node])

    def relation(self, relation_id: str) -> int | None:
        """Return the place of a relation."""
        return list(self.relations).index(relation_id) if relation_id in self.relations else None

    def relation_label(self, relation: int) -> str:
        """Return its label."""
        return str(list(self.relations.values())[relation])


def names_of(entity_rows: pl.DataFrame, triple_rows: pl.DataFrame) -> GraphNames:
    """Make the names out of rows."""
    return GraphNames(NamesOfRows(entity_rows), LabelsOfRows(triple_rows))


class TriplesOfRows:
    """Looks triples up in a frame, and remembers what it was asked for."""

    def __init__(self, rows: pl.DataFrame) -> None:
        self.rows = rows
        self.asked: list[set[str]] = []

    def __call__(self, ids: Collection[str]) -> pl.DataFrame:
        self.asked.append(set(ids))
        return self.rows.filter(pl.col("triple_id").is_in(sorted(ids)))


class ListedSearch:
    """Searches paths by trying every walk: the oracle, and the counter of what it was asked."""

    def __init__(self, statements: list[Statement], max_hops: int = 3, *, exhausted: bool = False) -> None:
        self.statements = [Step(*statement) for statement in statements]
        self.max_hops = max_hops
        self.exhausted = exhausted
        self.asked: list[tuple[str, str]] = []

    def _extend(self, walk: Walk) -> list[Walk]:
        longer = []
        for step in self.statements:
            for one, other in ((step.head, step.tail), (step.tail, step.head)):
                if one == walk.nodes[-1] and other not in walk.nodes:
                    longer.append(Walk((*walk.nodes, other), (*walk.steps, step)))
        return longer

    def between(self, source: str, target: str, max_hops: int | None = None) -> Walks:
        """Return every simple path."""
        self.asked.append((source, target))
        found: list[Walk] = []
        open_walks = [Walk((source,), ())]
        for _ in range(self.max_hops if max_hops is None else max_hops):
            open_walks = [longer for walk in open_walks for longer in self._extend(walk)]
            found.extend(walk for walk in open_walks if walk.nodes[-1] == target)
        return Walks(tuple(found), 0, self.exhausted)

    def around(self, seed: str) -> Walks:
        """Return every statement of the seed."""
        return Walks(tuple(self._extend(Walk((seed,), ()))), 0, self.exhausted)


@dataclass(frozen=True)
class WordLink:
    """A link of the fake linker."""

    entity_id: str
    score: float


class WordLinker:
    """Links a phrase to what a dictionary says."""

    def __init__(self, known: Mapping[str, str]) -> None:
        self.known = known

    def link(self, text: str, k: int) -> list[WordLink]:  # noqa: ARG002  (the port's names)
        """Return the one entity of this phrase."""
        return [WordLink(self.known[text], 1.0)] if text in self.known else []


class Linked:
    """Links every pair to what it is told."""

    def __init__(self, links: PairLinks) -> None:
        self.links = links

    def key(self, query: RetrievalQuery) -> str:
        return query.pair_id

    def link_pairs(self, queries: Sequence[RetrievalQuery]) -> list[PairLinks]:
        return [self.links for _ in queries]
