"""Entity path retrieval: the two attributes' entities, those they share, and the paths between them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from kgrag_assets.retrieval.adaptive import VERSION as ADAPTIVE_VERSION
from kgrag_assets.retrieval.adaptive import Depth, depths_of, is_enough
from kgrag_assets.retrieval.names import GraphNames, Name, local_id
from kgrag_assets.retrieval.pair_links import LinkedEntity, PairLinking, PairLinks
from kgrag_assets.retrieval.protocol import MAX_COUNT, Fact, FactEdge, RetrievalQuery, Subgraph
from kgrag_assets.retrieval.vector_triples import ONE_SIDED
from kgrag_assets.retrieval.walks import CachedSearch, GraphSearch, Walk, walk_order
from kgrag_assets.rows.keys import key_of
from kgrag_assets.settings import RetrievalSettings

VERSION = "entity-paths-2"

# What each hop leaves of a path's score: a fact further off speaks less for the pair.
HOP_DECAY = 0.8


@dataclass(frozen=True)
class _Found:
    """A fact before its names are looked up: the entity that both share, or a walk."""

    score: float
    shared: str | None
    walk: Walk | None


@dataclass(frozen=True)
class _Result:
    """What one search for a pair came to: the facts kept, how many were left out, whether a search ended early."""

    seeds: PairLinks
    depth: Depth
    facts: tuple[_Found, ...]
    cut: int
    exhausted: bool


class EntityPaths:
    """Links a pair to entities and searches what lies between these.

    An entity that both attributes are linked to is a fact of its own (a path of no hops), however many others are
    nearer to one of them. Between the best ``entities_per_attribute`` of the two sides, the seeds, paths of at most
    ``max_hops`` are searched. Where both sides together have a single entity, or only one side has any, the
    neighbourhood of the best one is taken. With ``adaptive``, few seeds and short paths come first (``adaptive``).

    Work grows with the number of different pairs of seeds; pairs with the same links share the result.
    """

    name = "entity_paths"

    def __init__(
        self,
        *,
        linking: PairLinking,
        search: GraphSearch,
        names: GraphNames,
        settings: RetrievalSettings,
        graph_version: str,
    ) -> None:
        """Take what is searched.

        Args:
            linking: links pairs to entities, by concept or by question.
            search: searches walks; must be bound to ``settings.hub_cap``.
            names: labels and descriptions.
            settings: how many seeds and facts are kept, and how far a path may go.
            graph_version: hash of everything in the graph, its index included: when it changes, every pair is
                retrieved again.
        """
        self._linking = linking
        self._search = CachedSearch(search, settings.max_facts)
        self._names = names
        self._settings = settings
        self._graph_version = graph_version
        self._called: dict[str, Name] = {}
        self._written: dict[str | Walk, tuple[str, str, tuple[FactEdge, ...]]] = {}

    def key(self, query: RetrievalQuery) -> str:
        """Hash what links the pair, the settings used and the version of the graph."""
        options = self._settings
        return key_of(
            VERSION,
            ADAPTIVE_VERSION if options.adaptive else None,
            query.pair_id,
            self._linking.key(query),
            [options.entities_per_attribute, options.min_cosine, options.max_hops, options.hub_cap, options.max_facts],
            self._graph_version,
        )

    def retrieve(self, queries: Sequence[RetrievalQuery]) -> list[Subgraph]:
        """Find each pair's shared entities and paths, best first.

        The score of a fact is the mean of its two seeds' scores, times ``HOP_DECAY`` for each hop. The
        neighbourhood of a seed that only one side has speaks for that side alone and is multiplied by
        ``ONE_SIDED``, as a triple of one side is. A path between two seeds that each side has counts once.
        """
        linked = self._linking.link_pairs(queries)
        results = {links: self._search_for(links) for links in dict.fromkeys(linked)}
        found = [results[links] for links in linked]
        ids: set[str] = set()
        for result in results.values():
            ids.update(entry.entity_id for entry in (*result.seeds.source, *result.seeds.target))
            for fact in result.facts:
                ids |= {fact.shared} if fact.shared is not None else set()
                ids |= fact.walk.ids() if fact.walk is not None else set()
        self._called.update(self._names.of(ids - self._called.keys()))
        return [self._subgraph(result) for result in found]

    def _search_for(self, links: PairLinks) -> _Result:
        first, *further = depths_of(self._settings.entities_per_attribute, self._settings)
        found = self._find(links, first)
        for depth in further:
            best = max((fact.score for fact in found.facts), default=0.0)
            if is_enough([best]) or _most_beyond(links, found.depth, further[-1]) <= best:
                break
            found = self._find(links, depth)
        return found

    def _find(self, links: PairLinks, depth: Depth) -> _Result:
        seeds = links.best(depth.k)
        facts = list(_shared(seeds if links.joint else links))
        cut, exhausted = 0, False
        for (one, two), mean in _pairs(seeds).items():
            result = self._search.between(one, two, depth.hops)
            cut += result.cut
            exhausted = exhausted or result.exhausted
            facts.extend(_Found(mean * HOP_DECAY ** len(walk.steps), None, walk) for walk in result.walks)
        ranked = seeds.ranked()
        if ranked and (len(ranked) == 1 or not seeds.source or not seeds.target):
            around = self._search.around(ranked[0].entity_id)
            cut += around.cut
            exhausted = exhausted or around.exhausted
            share = 1.0 if seeds.source and seeds.target else ONE_SIDED
            score = ranked[0].score * HOP_DECAY * share
            facts.extend(_Found(score, None, walk) for walk in around.walks)
        facts.sort(key=_order)
        kept = tuple(facts[: self._settings.max_facts])
        return _Result(seeds, depth, kept, cut + len(facts) - len(kept), exhausted)

    def _subgraph(self, result: _Result) -> Subgraph:
        seeds = result.seeds.seeds(self._called)
        facts = tuple(self._fact(entry) for entry in result.facts)
        if not seeds:
            status = "no_seed"
        elif not facts:
            status = "no_path"
        else:
            status = "cut" if result.exhausted else "found"
        k, hops = result.depth.k, result.depth.hops
        notes = f"searched {_count(k, 'seed')} for each attribute, {_count(hops, 'hop')}"
        return Subgraph(
            self.name,
            status,
            seeds,
            facts,
            min(result.cut, MAX_COUNT),
            notes=notes if self._settings.adaptive else "",
        )

    def _fact(self, found: _Found) -> Fact:
        score = round(min(max(found.score, 0.0), 1.0), 6)
        what = found.walk if found.walk is not None else found.shared or ""
        said = self._written.get(what)
        if said is None:
            said = self._written[what] = _written(what, self._called)
        fact_id, text, edges = said
        if isinstance(what, Walk):
            return Fact(fact_id, "path", text, score, what.nodes, edges)
        return Fact(fact_id, "shared_entity", text, score, (what,), ())


def _shared(links: PairLinks) -> Iterator[_Found]:
    of_target = {entry.entity_id: entry.score for entry in links.target}
    for entry in links.source:
        other = of_target.get(entry.entity_id)
        if other is not None:
            yield _Found((entry.score + other) / 2, entry.entity_id, None)


def _pairs(seeds: PairLinks) -> Mapping[tuple[str, str], float]:
    """Return the pairs of entities between which paths are searched, with the mean of their scores.

    Two entities that each side has make two pairs, of which the one that speaks more for the attributes stands.
    """
    best: dict[tuple[str, str], tuple[float, tuple[str, str]]] = {}
    for one, two in _crossed(seeds.source, seeds.target):
        ends = (one.entity_id, two.entity_id)
        mean = (one.score + two.score) / 2
        both = min(ends), max(ends)
        known = best.get(both)
        if known is None or (-mean, ends) < (-known[0], known[1]):
            best[both] = mean, ends
    return {ends: mean for mean, ends in best.values()}


def _most_beyond(links: PairLinks, done: Depth, deeper: Depth) -> float:
    """Return what a fact can score at most that a deeper search may find beyond what was searched; 0 for none."""
    if not links.source or not links.target:
        return 0.0
    best = (links.source[0].score + links.target[0].score) / 2
    most = best * HOP_DECAY ** (done.hops + 1) if deeper.hops > done.hops else 0.0
    taken = {entry.entity_id for entry in (*links.best(done.k).source, *links.best(done.k).target)}
    for side, other in ((links.source, links.target), (links.target, links.source)):
        new = next((entry.score for entry in side if entry.entity_id not in taken), None)
        if new is not None and deeper.k > done.k:
            most = max(most, (new + other[0].score) / 2 * HOP_DECAY)
    if links.joint and deeper.k > done.k:
        # Entities that both sides share are looked for among the seeds alone, here.
        most = max([most, *(fact.score for fact in _shared(links) if fact.shared not in taken)])
    return most


def _crossed(
    source: Iterable[LinkedEntity], target: Sequence[LinkedEntity]
) -> Iterator[tuple[LinkedEntity, LinkedEntity]]:
    return ((one, two) for one in source for two in target if one.entity_id != two.entity_id)


def _order(fact: _Found) -> tuple[float, int, tuple[str, ...], tuple[str, ...]]:
    """Best first; equal ones by length and then by their ids."""
    if fact.walk is None:
        return (-fact.score, 0, (fact.shared or "",), ())
    return (-fact.score, *walk_order(fact.walk))


def _written(what: str | Walk, names: Mapping[str, Name]) -> tuple[str, str, tuple[FactEdge, ...]]:
    """Return a fact's id, its text and its statements."""
    if isinstance(what, Walk):
        return what.fact_id, what.text(names), what.edges(names)
    name = names[what]
    text = f"{name.label} ({local_id(what)})" + (f": {name.description}" if name.description else "")
    return key_of("shared_entity", what), text, ()


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
