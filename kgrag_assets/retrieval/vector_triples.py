"""Vector triple retrieval: the triples whose text is nearest to the two attributes, or to the question about them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice

from kgrag_assets.indexing.port import VectorIndex
from kgrag_assets.retrieval.adaptive import VERSION as ADAPTIVE_VERSION
from kgrag_assets.retrieval.adaptive import depths_of, is_enough
from kgrag_assets.retrieval.lake_rows import TriplesOf
from kgrag_assets.retrieval.protocol import Fact, FactEdge, RetrievalQuery, Subgraph
from kgrag_assets.retrieval.queries import QuestionVectors
from kgrag_assets.retrieval.support import VERSION as SUPPORT_VERSION
from kgrag_assets.retrieval.support import AttributeWords, sides_of, support_of, supported
from kgrag_assets.retrieval.vectors import AttributeVectors
from kgrag_assets.rows.keys import key_of
from kgrag_assets.schemas.attribute import Attribute
from kgrag_assets.settings import RetrievalSettings

VERSION = f"vector-triples-2/{SUPPORT_VERSION}"

# Three texts of an attribute are asked with: a short name alone says little, and in the longest text the table's words
# can drown the column's; the description alone is nearest to how a statement reads.
VIEWS = ("column", "description", "full")
# How much deeper than triples_per_attribute a search looks: a triple that is among the best of one attribute is
# given the other's cosine where it is anywhere in this depth.
DEPTH = 8
# What a triple is worth that both attributes are near to: a little less than an entity that both are linked to, for it
# speaks of a second thing besides.
BOTH_SIDED = 0.9
# What a triple is worth that only one of the two attributes is near to: below every one that both are near to, unless
# that one has none of their words.
ONE_SIDED = 0.4

# How near triples are to one attribute, best first.
_Near = Mapping[str, float]


class VectorTriples:
    """Finds triples by the cosine of their text with an attribute's text, or with the question about the pair.

    In the concept form, work grows with the number of different attributes, not with the number of pairs.
    """

    name = "vector_triples"

    def __init__(
        self,
        *,
        vectors: AttributeVectors | QuestionVectors,
        triple_index: VectorIndex,
        triples: TriplesOf,
        settings: RetrievalSettings,
        words: Callable[[Attribute], AttributeWords] = AttributeWords.of,
    ) -> None:
        """Take what is searched.

        Args:
            vectors: the task's attribute vectors, or those of the questions about its pairs: they decide the query
                form.
            triple_index: index over triple ids; its data version stands for the triples' texts.
            triples: looks up rows of ``kg_triples``.
            settings: ``triples_per_attribute``, ``min_cosine``, ``max_facts`` and ``adaptive`` are used.
            words: gives an attribute's own words.

        Raises:
            RetrievalError: the index is of another model than the vectors.
        """
        vectors.refuse_other_model(triple_index, "triple_index")
        self._vectors = vectors
        self._index = triple_index
        self._triples = triples
        self._settings = settings
        self._words = words
        self._known: dict[str, _Near] = {}
        self._edges: dict[str, FactEdge] = {}
        self._keys: dict[str, str] = {}

    def key(self, query: RetrievalQuery) -> str:
        """Hash the vectors searched with, the attributes' words, the settings used and the version of the triples."""
        options = self._settings
        vectors = self._vectors
        return key_of(
            VERSION,
            ADAPTIVE_VERSION if options.adaptive else None,
            query.pair_id,
            vectors.key(query) if isinstance(vectors, QuestionVectors) else None,
            [self._key(side) for side in (query.source, query.target)],
            [options.triples_per_attribute, options.min_cosine, options.max_facts],
            self._index.data_version,
        )

    def _key(self, attribute: Attribute) -> str:
        # An attribute stands in many pairs.
        found = self._keys.get(attribute.attribute_id)
        if found is None:
            own = self._vectors
            vectors = (
                [own.key(attribute.attribute_id, view) for view in VIEWS] if isinstance(own, AttributeVectors) else []
            )
            found = self._keys[attribute.attribute_id] = key_of(vectors, self._words(attribute).key_parts())
        return found

    def retrieve(self, queries: Sequence[RetrievalQuery]) -> list[Subgraph]:
        """Find each pair's triples, best first.

        Triples below ``min_cosine`` are not used. How near a triple is to one attribute is its cosine, less up to
        ``UNSUPPORTED_LOSS`` of it for the words of its head and tail that the attribute does not have. The score
        of a triple that is near to both attributes is the mean of the two, times ``BOTH_SIDED``. One that is near
        to one of them only speaks for that one alone: its score is that one's, times ``ONE_SIDED``. By the question,
        both have its cosine, unless the triple's words stand with one of the two alone: then it speaks for that one.
        """
        if isinstance(self._vectors, QuestionVectors):
            near = self._near_question(self._vectors, queries)
        else:
            near = self._near_attributes(self._vectors, queries)
        return [self._subgraph(source, target) for source, target in near]

    def _near_attributes(
        self, vectors: AttributeVectors, queries: Sequence[RetrievalQuery]
    ) -> list[tuple[_Near, _Near]]:
        sides = {side.attribute_id: side for query in queries for side in (query.source, query.target)}
        # An attribute stands in many pairs: its triples are searched once.
        cosines = self._cosines(vectors, sorted(sides.keys() - self._known.keys()))
        self._read_edges({triple for hits in cosines.values() for triple in hits})
        for attribute_id, hits in cosines.items():
            self._known[attribute_id] = self._near(sides[attribute_id], hits)
        return [(self._known[query.source.attribute_id], self._known[query.target.attribute_id]) for query in queries]

    def _near_question(
        self, questions: QuestionVectors, queries: Sequence[RetrievalQuery]
    ) -> list[tuple[_Near, _Near]]:
        if not self._index.size or not queries:
            return [({}, {}) for _ in queries]
        hits = self._index.search(questions.of(queries), self._settings.triples_per_attribute * DEPTH)
        used = [
            [(triple, cosine) for triple, cosine in hits.of(row) if cosine >= self._settings.min_cosine]
            for row in range(len(queries))
        ]
        self._read_edges({triple for found in used for triple, _cosine in found})
        return [self._sided(query, found) for query, found in zip(queries, used, strict=True)]

    def _sided(self, query: RetrievalQuery, cosines: Iterable[tuple[str, float]]) -> tuple[_Near, _Near]:
        words = self._words(query.source), self._words(query.target)
        near: tuple[dict[str, float], dict[str, float]] = ({}, {})
        for triple, cosine in cosines:
            edge = self._edges.get(triple)
            if edge is None:
                continue  # as in _near
            for side, support in zip(near, sides_of(f"{edge.head_label} {edge.tail_label}", *words), strict=True):
                if support is not None:
                    side[triple] = supported(cosine, support)
        return _best_first(near[0]), _best_first(near[1])

    def _cosines(self, vectors: AttributeVectors, attribute_ids: list[str]) -> dict[str, dict[str, float]]:
        """Return the triples around each attribute with the best cosine of its texts."""
        found: dict[str, dict[str, float]] = {attribute_id: {} for attribute_id in attribute_ids}
        depth = self._settings.triples_per_attribute * DEPTH
        if not self._index.size or not attribute_ids:
            return found
        for view in VIEWS:
            hits = self._index.search(vectors.of(attribute_ids, view), depth)
            for row, attribute_id in enumerate(attribute_ids):
                known = found[attribute_id]
                for triple, cosine in hits.of(row):
                    if cosine >= self._settings.min_cosine:
                        known[triple] = max(known.get(triple, cosine), cosine)
        return found

    def _near(self, attribute: Attribute, cosines: Mapping[str, float]) -> _Near:
        """Weigh the cosines by the words, best first."""
        words = self._words(attribute).content
        near: dict[str, float] = {}
        for triple, cosine in cosines.items():
            edge = self._edges.get(triple)
            if edge is None:
                continue  # in the index and not in the table: the graph was read again since, it is no fact any more
            near[triple] = supported(cosine, support_of(f"{edge.head_label} {edge.tail_label}", words))
        return _best_first(near)

    def _read_edges(self, triple_ids: Iterable[str]) -> None:
        columns = ("triple_id", "head", "relation", "tail", "tail_value", "head_label", "relation_label", "tail_label")
        new = set(triple_ids) - self._edges.keys()
        if new:
            for triple, head, relation, tail, value, *labels in self._triples(new).select(columns).iter_rows():
                self._edges[triple] = FactEdge(head, relation, tail if tail is not None else value, *labels)

    def _subgraph(self, source: _Near, target: _Near) -> Subgraph:
        depth, *further = depths_of(self._settings.triples_per_attribute, self._settings)
        scored = _joined(source, target, depth.k)
        for deeper in further:
            best = scored[0][0] if scored else 0.0
            if is_enough([best]) or _most_beyond(source, target, depth.k) <= best:
                break
            depth, scored = deeper, _joined(source, target, deeper.k)
        notes = f"looked at the best {depth.k} triples of each attribute" if self._settings.adaptive else ""
        kept = scored[: self._settings.max_facts]
        facts = tuple(_fact(triple, score, self._edges[triple]) for score, triple in kept)
        return Subgraph(self.name, "found" if facts else "no_seed", (), facts, len(scored) - len(facts), notes=notes)


def _best_first(near: Mapping[str, float]) -> _Near:
    return dict(sorted(near.items(), key=lambda hit: (-hit[1], hit[0])))


def _joined(source: _Near, target: _Near, k: int) -> list[tuple[float, str]]:
    """Score the best ``k`` triples of each side for the pair, best first."""
    scored: list[tuple[float, str]] = []
    for triple in {triple for side in (source, target) for triple in islice(side, k)}:
        near = [side[triple] for side in (source, target) if triple in side]
        score = BOTH_SIDED * sum(near) / 2 if len(near) == 2 else ONE_SIDED * near[0]
        scored.append((min(max(score, 0.0), 1.0), triple))
    scored.sort(key=lambda entry: (-entry[0], entry[1]))
    return scored


def _most_beyond(source: _Near, target: _Near, k: int) -> float:
    """Return what a triple can score at most that is not among the best ``k`` of either side; 0 where there is none."""
    next_ones = [next(islice(side.values(), k, None), 0.0) for side in (source, target)]
    return max(BOTH_SIDED * sum(next_ones) / 2 if all(next_ones) else 0.0, ONE_SIDED * max(next_ones))


def _fact(triple: str, score: float, edge: FactEdge) -> Fact:
    text = f"{edge.head_label} —{edge.relation_label}→ {edge.tail_label}"
    return Fact(triple, "triple", text, round(score, 6), (edge.head, edge.tail), (edge,))
