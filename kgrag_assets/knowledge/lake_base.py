"""The graphs of the lake as a ``KnowledgeBase``: names from the lexicon, statements from the adjacency."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import cached_property

import polars as pl

from kgrag_assets.knowledge.adjacency import Adjacency
from kgrag_assets.knowledge.adjacency_update import open_graph
from kgrag_assets.knowledge.base import DEFAULT_TRIPLES, EntityInfo, Triple
from kgrag_assets.knowledge.lexicon import Lexicon
from kgrag_assets.knowledge.linking import LexicalLinker, LinkCandidate, linked_by_names
from kgrag_assets.lake.lake import Lake
from kgrag_assets.rows.knowledge_graph import KG_TRIPLES

# What a match of one of the query's other names is worth beside one of the query itself.
OTHER_NAME = 0.9


class LakeKnowledgeBase:
    """Answers the three questions of ``KnowledgeBase`` from the lake's own files; nothing is opened before it is asked.

    Literals are no edges: they are read from the rows of the head's bucket, some tens of milliseconds in a graph of
    Wikidata5M's size.
    """

    def __init__(
        self, lake: Lake, graphs: Collection[str] | None = None, name: str | None = None, *, literals: bool = True
    ) -> None:
        """Take the lake.

        Args:
            lake: its lexicon and adjacency must be up to date.
            graphs: answer from these knowledge graphs only; None for all.
            name: what people call this knowledge; None for the names of its graphs.
            literals: whether statements with a literal are looked up, too.
        """
        self._lake = lake
        self._chosen = None if graphs is None else tuple(sorted(set(graphs)))
        self._name = name
        self._literals = literals

    @property
    def name(self) -> str:
        """What people call it.

        Raises:
            KnowledgeError: no name was given, and the lexicon cannot be opened.
        """
        return self._name if self._name is not None else ", ".join(self._chosen or self._lexicon.graphs)

    def entity_linking(self, query: str, aliases: Sequence[str] = (), k: int = 10) -> list[LinkCandidate]:
        """Return at most ``k`` entities that a name, or one of its other names, may mean; best first.

        Names are compared as ``LexicalLinker.link_fuzzy`` does.

        Raises:
            KnowledgeError: the lexicon cannot be read, or does not have a graph that was chosen.
        """
        names = [(query, 1.0), *((alias, OTHER_NAME) for alias in aliases)]
        return linked_by_names(self._linker.link_fuzzy, names, k)

    def entity_info(self, entity: str) -> EntityInfo | None:
        """Return the names of an entity by its id, or None where no chosen graph knows it.

        What several graphs know is named as the first of them does; an id that only statements have, as these do.

        Raises:
            KnowledgeError: the lexicon or the adjacency cannot be read, or does not have a graph that was chosen.
        """
        known = self._lexicon.entities([entity]).get(entity)
        if known:
            first = known[0]
            return EntityInfo(entity, first.kind, first.label, first.aliases, first.description)
        node, relation = self._adjacency.node(entity), self._adjacency.relation(entity)
        if node is not None and self._adjacency.degree(node, self._wanted):
            return EntityInfo(entity, "entity", self._adjacency.label(node), (), "")
        if relation is not None and self._chosen is None:
            return EntityInfo(entity, "relation", self._adjacency.relation_label(relation), (), "")
        return None

    def entity_triples(self, entity: str, limit: int = DEFAULT_TRIPLES) -> list[Triple]:
        """Return at most ``limit`` statements with the entity as head or tail, each in its true direction.

        First those that lead to entities, then literals, then those that come from other entities. Two graphs that
        state the same give one statement.

        Raises:
            KnowledgeError: the adjacency cannot be read, or does not have a graph that was chosen.
            LakeError: the rows of literals cannot be read.
        """
        if limit < 1:
            return []
        found = list(self._edges(entity, limit, leaving=True))
        if len(found) < limit and self._literals:
            found += self._literal_statements(entity, limit - len(found))
        if len(found) < limit:
            found += self._edges(entity, limit - len(found), leaving=False)
        return found

    @cached_property
    def _lexicon(self) -> Lexicon:
        whole = Lexicon.of_lake(self._lake)
        return whole if self._chosen is None else whole.restricted_to(self._chosen)

    @cached_property
    def _linker(self) -> LexicalLinker:
        return LexicalLinker(self._lexicon)

    @cached_property
    def _adjacency(self) -> Adjacency:
        return open_graph(self._lake)

    @cached_property
    def _wanted(self) -> int | None:
        return self._adjacency.mask_of(self._chosen)

    def _edges(self, entity: str, limit: int, *, leaving: bool) -> Iterator[Triple]:
        graph = self._adjacency
        here = graph.node(entity)
        if here is None:
            return
        others, relations = (graph.out if leaving else graph.into)(here, self._wanted)
        if not leaving:
            # A statement of an entity about itself leaves it, too.
            kept = others != here
            others, relations = others[kept], relations[kept]
        for other, relation in zip(others[:limit].tolist(), relations[:limit].tolist(), strict=True):
            head, tail = (here, other) if leaving else (other, here)
            yield Triple(
                graph.entity_id(head),
                graph.relation_id(relation),
                graph.entity_id(tail),
                None,
                graph.label(head),
                graph.relation_label(relation),
                graph.label(tail),
            )

    def _literal_statements(self, entity: str, limit: int) -> list[Triple]:
        # Every head has a row of its own, in the same bucket as its statements.
        bucket = self._lexicon.partition_of(entity)
        if bucket is None:
            return []
        rows = self._lake.scan(
            KG_TRIPLES,
            bucket,
            ["graph", "head", "relation", "tail", "tail_value", "head_label", "relation_label", "tail_label"],
        ).filter((pl.col("head") == entity) & pl.col("tail").is_null())
        if self._chosen is not None:
            rows = rows.filter(pl.col("graph").is_in(self._chosen))
        found = rows.sort("relation", "tail_value", "graph").collect()
        distinct = found.unique(["relation", "tail_value"], keep="first", maintain_order=True).head(limit)
        columns = ("head", "relation", "tail_value", "head_label", "relation_label", "tail_label")
        return [
            Triple(head, relation, None, text, head_label, relation_label, tail_label)
            for head, relation, text, head_label, relation_label, tail_label in distinct.select(columns).iter_rows()
        ]
