"""From what the programs of a pair found to the facts about the pair."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from kgrag_assets.knowledge.base import EntityInfo, Triple
from kgrag_assets.retrieval.entity_paths import HOP_DECAY
from kgrag_assets.retrieval.fusion import Content, content_of
from kgrag_assets.retrieval.names import Name, local_id
from kgrag_assets.retrieval.protocol import Fact, FactEdge
from kgrag_assets.retrieval.search_code.nearness import Side
from kgrag_assets.retrieval.vector_triples import BOTH_SIDED, ONE_SIDED
from kgrag_assets.retrieval.walks import Step, Walk
from kgrag_assets.rows.keys import key_of

# Statements that the search for paths of one pair looks at: programs find tens, but two of them may share a hub.
MAX_LOOKS = 20_000


@dataclass(frozen=True)
class PairFacts:
    """All facts of a pair, best first; ``exhausted`` where the search for paths ended at its budget."""

    facts: tuple[Fact, ...]
    exhausted: bool


def facts_of(source: Side, target: Side, names: Mapping[str, Name], max_hops: int) -> PairFacts:
    """Put together the facts of a pair; each says what the graph has stated.

    - An entity that speaks for both attributes: the mean of its two scores.
    - A path of at most ``max_hops`` statements, of either program, from an entity of the source to one of the target:
      the mean of the two ends' scores, times ``HOP_DECAY`` for each statement.
    - A statement that is near to both: the mean of the two, times ``BOTH_SIDED``; one that speaks for one attribute
      only: that one's, times ``ONE_SIDED``.

    Of facts that say the same the one of the best score stands.

    Args:
        source: what speaks for the source attribute.
        target: what speaks for the target attribute.
        names: the names of all entities and relations among them.
        max_hops: statements of a path.
    """
    walked = _Walked(_Links(source.statements, target.statements), max_hops)
    best: dict[Content, Fact] = {}
    for fact in (
        *_shared(source, target, names),
        *_paths(source, target, walked, names),
        *_triples(source, target),
    ):
        content = content_of(fact)
        if content not in best or best[content].score < fact.score:
            best[content] = fact
    ordered = sorted(best.values(), key=lambda fact: (-fact.score, len(fact.edges), fact.nodes, fact.fact_id))
    return PairFacts(tuple(ordered), walked.exhausted)


def names_in(infos: Iterable[EntityInfo], triples: Iterable[Triple]) -> dict[str, Name]:
    """Return the names of entities and relations as the graph's answers have them."""
    names: dict[str, Name] = {}
    for triple in triples:
        names.setdefault(triple.head, Name(triple.head_label, ""))
        names.setdefault(triple.relation, Name(triple.relation_label, "", "relation"))
        if triple.tail is not None:
            names.setdefault(triple.tail, Name(triple.tail_label, ""))
    names.update({info.entity_id: Name(info.label, info.description, info.kind) for info in infos})
    return names


def _shared(source: Side, target: Side, names: Mapping[str, Name]) -> Iterator[Fact]:
    of_target = {link.entity_id: link.score for link in target.links}
    for link in source.links:
        other = of_target.get(link.entity_id)
        if other is not None:
            entity, name = link.entity_id, names[link.entity_id]
            text = f"{name.label} ({local_id(entity)})" + (f": {name.description}" if name.description else "")
            score = round((link.score + other) / 2, 6)
            yield Fact(key_of("shared_entity", entity), "shared_entity", text, score, (entity,), ())


def _paths(source: Side, target: Side, walked: _Walked, names: Mapping[str, Name]) -> Iterator[Fact]:
    ends = {link.entity_id: link.score for link in target.links}
    for link in source.links:
        for walk in walked.from_one(link.entity_id, ends):
            mean = (link.score + ends[walk.nodes[-1]]) / 2
            score = round(mean * HOP_DECAY ** len(walk.steps), 6)
            yield Fact(walk.fact_id, "path", walk.text(names), score, walk.nodes, walk.edges(names))


def _triples(source: Side, target: Side) -> Iterator[Fact]:
    for triple in dict.fromkeys((*source.statements, *target.statements)):
        near = [side.statements[triple] for side in (source, target) if triple in side.statements]
        score = BOTH_SIDED * sum(near) / 2 if len(near) == 2 else ONE_SIDED * near[0]
        tail = triple.tail if triple.tail is not None else triple.value or ""
        labels = (triple.head_label, triple.relation_label, triple.tail_label)
        yield Fact(
            key_of("triple", triple.head, triple.relation, triple.tail, triple.value),
            "triple",
            f"{triple.head_label} —{triple.relation_label}→ {triple.tail_label}",
            round(min(max(score, 0.0), 1.0), 6),
            (triple.head, tail),
            (FactEdge(triple.head, triple.relation, tail, *labels),),
        )


class _Links:
    """The statements between entities that the programs found, by either end."""

    def __init__(self, *found: Iterable[Triple]) -> None:
        self._at: dict[str, list[tuple[str, Step]]] = {}
        for triple in dict.fromkeys(triple for statements in found for triple in statements):
            if triple.tail is not None and triple.tail != triple.head:
                step = Step(triple.head, triple.relation, triple.tail)
                self._at.setdefault(triple.head, []).append((triple.tail, step))
                self._at.setdefault(triple.tail, []).append((triple.head, step))

    def at(self, node: str) -> Sequence[tuple[str, Step]]:
        return self._at.get(node, ())


class _Walked:
    """Searches simple paths, all together within ``MAX_LOOKS``; shorter ones first."""

    def __init__(self, links: _Links, max_hops: int) -> None:
        self._links = links
        self._max_hops = max_hops
        self._looks = 0
        self.exhausted = False

    def from_one(self, start: str, ends: Mapping[str, float]) -> Iterator[Walk]:
        """Yield the paths from an entity to any of the ends."""
        walks = [Walk((start,), ())]
        for _ in range(self._max_hops):
            longer: list[Walk] = []
            for walk in walks:
                for other, step in self._links.at(walk.nodes[-1]):
                    if self._looks >= MAX_LOOKS:
                        self.exhausted = True
                        return
                    self._looks += 1
                    if other in walk.nodes:
                        continue
                    further = Walk((*walk.nodes, other), (*walk.steps, step))
                    if other in ends:
                        yield further
                    longer.append(further)
            walks = longer
