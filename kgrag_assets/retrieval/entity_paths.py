"""Entity path retrieval: the two attributes' entities, those they share, and the paths between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kgrag_assets.retrieval.names import GraphNames, Name, local_id
from kgrag_assets.retrieval.protocol import Fact, RetrievalQuery, Seed, Subgraph
from kgrag_assets.retrieval.seeds import VERSION as SEEDS_VERSION
from kgrag_assets.retrieval.seeds import EntityLinking, LinkedEntity
from kgrag_assets.retrieval.vector_triples import ONE_SIDED
from kgrag_assets.retrieval.walks import CachedSearch, GraphSearch, Walk
from kgrag_assets.rows.keys import key_of
from kgrag_assets.settings import RetrievalSettings

VERSION = "entity-paths-1"

# What each hop leaves of a path's score: a fact further off speaks less for the pair.
HOP_DECAY = 0.8
# The table counts in 32 bits; at hubs of millions of edges a sum passes that.
MAX_COUNT = 2**31 - 1


@dataclass(frozen=True)
class _Found:
    """A fact before its names are looked up: the entity that both share, or a walk."""

    score: float
    shared: str | None
    walk: Walk | None


class EntityPaths:
    """Links both attributes to entities and searches what lies between these.

    An entity that both are linked to is a fact of its own (a path of no hops), however many others are nearer
    to one of them. Between the best ``entities_per_attribute`` of the two sides, the seeds, paths of at most
    ``max_hops`` are searched. Where both sides together have a single entity,
    or only one side has any, the neighbourhood of the best one is taken.
    """

    name = "entity_paths"

    def __init__(
        self,
        *,
        linking: EntityLinking,
        search: GraphSearch,
        names: GraphNames,
        settings: RetrievalSettings,
        graph_version: str,
    ) -> None:
        """Take what is searched.

        Args:
            linking: links attributes to entities.
            search: searches walks; must be bound to ``settings.max_hops`` and ``settings.hub_cap``.
            names: labels and descriptions.
            settings: how many seeds and facts are kept, and how far a path may go.
            graph_version: hash of everything in the graph, its index included: when it changes, every pair is
                retrieved again.
        """
        self._linking = linking
        self._search = CachedSearch(search)
        self._names = names
        self._settings = settings
        self._graph_version = graph_version

    def key(self, query: RetrievalQuery) -> str:
        """Hash the two attributes' vectors and phrases, the settings used and the version of the graph."""
        options = self._settings
        return key_of(
            VERSION,
            SEEDS_VERSION,
            query.pair_id,
            self._linking.key_parts(query.source),
            self._linking.key_parts(query.target),
            [options.entities_per_attribute, options.min_cosine, options.max_hops, options.hub_cap, options.max_facts],
            self._graph_version,
        )

    def retrieve(self, queries: Sequence[RetrievalQuery]) -> list[Subgraph]:
        """Find each pair's shared entities and paths, best first.

        The score of a fact is the mean of its two seeds' scores, times ``HOP_DECAY`` for each hop. The
        neighbourhood of a seed that only one side has speaks for that side alone and is multiplied by
        ``ONE_SIDED``, as a triple of one side is.
        """
        linked = self._linking.link([side for query in queries for side in (query.source, query.target)])
        found = [self._find(linked[query.source.attribute_id], linked[query.target.attribute_id]) for query in queries]
        top = self._settings.entities_per_attribute
        ids = {entry.entity_id for links in linked.values() for entry in links[:top]}
        for facts, _, _ in found:
            for fact in facts:
                ids |= {fact.shared} if fact.shared is not None else set()
                ids |= fact.walk.ids() if fact.walk is not None else set()
        names = dict(self._names.of(ids))
        return [
            self._subgraph(linked[query.source.attribute_id], linked[query.target.attribute_id], names, *result)
            for query, result in zip(queries, found, strict=True)
        ]

    def _find(self, source: list[LinkedEntity], target: list[LinkedEntity]) -> tuple[list[_Found], int, bool]:
        """Return the facts kept, how many were left out, and whether a search ended early."""
        facts: list[_Found] = []
        cut, exhausted = 0, False
        of_target = {entry.entity_id: entry.score for entry in target}
        for entry in source:
            other = of_target.get(entry.entity_id)
            if other is not None:
                facts.append(_Found((entry.score + other) / 2, entry.entity_id, None))
        top = self._settings.entities_per_attribute
        source, target = source[:top], target[:top]
        for one in source:
            for two in target:
                if one.entity_id == two.entity_id:
                    continue
                result = self._search.between(one.entity_id, two.entity_id)
                cut += result.cut
                exhausted = exhausted or result.exhausted
                mean = (one.score + two.score) / 2
                facts.extend(_Found(mean * HOP_DECAY ** len(walk.steps), None, walk) for walk in result.walks)
        seeds = sorted([*source, *target], key=lambda entry: (-entry.score, entry.entity_id))
        single = len({entry.entity_id for entry in seeds}) == 1
        if seeds and (single or not source or not target):
            result = self._search.around(seeds[0].entity_id)
            cut += result.cut
            exhausted = exhausted or result.exhausted
            share = 1.0 if source and target else ONE_SIDED
            score = seeds[0].score * HOP_DECAY * share
            facts.extend(_Found(score, None, walk) for walk in result.walks)
        facts.sort(key=_order)
        kept = facts[: self._settings.max_facts]
        return kept, cut + len(facts) - len(kept), exhausted

    def _subgraph(
        self,
        source: list[LinkedEntity],
        target: list[LinkedEntity],
        names: dict[str, Name],
        found: list[_Found],
        cut: int,
        exhausted: bool,
    ) -> Subgraph:
        seeds = tuple(
            Seed(entry.entity_id, names[entry.entity_id].label, side, rank, entry.score)
            for side, links in (("source", source), ("target", target))
            for rank, entry in enumerate(links[: self._settings.entities_per_attribute], start=1)
        )
        facts = tuple(_fact(entry, names) for entry in found)
        if not seeds:
            status = "no_seed"
        elif not facts:
            status = "no_path"
        else:
            status = "cut" if exhausted else "found"
        return Subgraph(self.name, status, seeds, facts, min(cut, MAX_COUNT))


def _order(fact: _Found) -> tuple[float, int, tuple[str, ...], tuple[str, ...]]:
    """Best first; equal ones by length and then by their ids, so that the order never depends on chance."""
    if fact.walk is None:
        return (-fact.score, 0, (fact.shared or "",), ())
    return (-fact.score, len(fact.walk.steps), fact.walk.nodes, tuple(step.relation for step in fact.walk.steps))


def _fact(found: _Found, names: Mapping[str, Name]) -> Fact:
    score = round(min(max(found.score, 0.0), 1.0), 6)
    if found.walk is not None:
        walk = found.walk
        return Fact(walk.fact_id, "path", walk.text(names), score, walk.nodes, walk.edges(names))
    entity = found.shared or ""
    name = names[entity]
    text = f"{name.label} ({local_id(entity)})" + (f": {name.description}" if name.description else "")
    return Fact(key_of("shared_entity", entity), "shared_entity", text, score, (entity,), ())
