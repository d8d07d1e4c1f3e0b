"""Vector triple retrieval: the triples whose text is nearest to the two attributes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from kgrag_assets.indexing.port import VectorIndex
from kgrag_assets.retrieval.lake_rows import TriplesOf
from kgrag_assets.retrieval.protocol import Fact, FactEdge, RetrievalQuery, Subgraph
from kgrag_assets.retrieval.support import VERSION as SUPPORT_VERSION
from kgrag_assets.retrieval.support import AttributeWords, support_of, supported
from kgrag_assets.retrieval.vectors import AttributeVectors
from kgrag_assets.rows.keys import key_of
from kgrag_assets.schemas.attribute import Attribute
from kgrag_assets.settings import RetrievalSettings

VERSION = f"vector-triples-1/{SUPPORT_VERSION}"

# Two texts of an attribute are asked with: a short name alone says little, and in the longer text the table's words
# and a long description can drown it.
VIEWS = ("column", "full")
# How much deeper than triples_per_attribute a search looks: a triple that is among the best of one attribute is
# given the other's cosine where it is anywhere in this depth.
DEPTH = 8
# What a triple is worth that both attributes are near to: a little less than an entity that both are linked to, for it
# speaks of a second thing besides.
BOTH_SIDED = 0.9
# What a triple is worth that only one of the two attributes is near to: below every one that both are near to, unless
# that one has none of their words.
ONE_SIDED = 0.4


class VectorTriples:
    """Finds triples by the cosine of their text with an attribute's text.

    Work grows with the number of different attributes, not with the number of pairs.
    """

    name = "vector_triples"

    def __init__(
        self,
        *,
        vectors: AttributeVectors,
        triple_index: VectorIndex,
        triples: TriplesOf,
        settings: RetrievalSettings,
        words: Callable[[Attribute], AttributeWords] = AttributeWords.of,
    ) -> None:
        """Take what is searched.

        Args:
            vectors: the task's attribute vectors.
            triple_index: index over triple ids; its data version stands for the triples' texts.
            triples: looks up rows of ``kg_triples``.
            settings: ``triples_per_attribute``, ``min_cosine`` and ``max_facts`` are used.
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
        self._known: dict[str, dict[str, float]] = {}
        self._edges: dict[str, FactEdge] = {}

    def key(self, query: RetrievalQuery) -> str:
        """Hash the two attributes' vectors and words, the settings used and the version of the triples."""
        options = self._settings
        return key_of(
            VERSION,
            query.pair_id,
            [self._vectors.key(side.attribute_id, view) for side in (query.source, query.target) for view in VIEWS],
            [self._words(side).key_parts() for side in (query.source, query.target)],
            [options.triples_per_attribute, options.min_cosine, options.max_facts],
            self._index.data_version,
        )

    def retrieve(self, queries: Sequence[RetrievalQuery]) -> list[Subgraph]:
        """Find each pair's triples, best first.

        Triples below ``min_cosine`` are not used. How near a triple is to one attribute is its cosine, less up to
        ``UNSUPPORTED_LOSS`` of it for the words of its head and tail that the attribute does not have. The score
        of a triple that is near to both attributes is the mean of the two, times ``BOTH_SIDED``. One that is near
        to one of them only speaks for that one alone: its score is that one's, times ``ONE_SIDED``.
        """
        sides = {side.attribute_id: side for query in queries for side in (query.source, query.target)}
        # An attribute stands in many pairs: its triples are searched once.
        cosines = self._cosines(sorted(sides.keys() - self._known.keys()))
        self._read_edges({triple for hits in cosines.values() for triple in hits})
        for attribute_id, hits in cosines.items():
            self._known[attribute_id] = self._near(sides[attribute_id], hits)
        return [self._join(self._known[q.source.attribute_id], self._known[q.target.attribute_id]) for q in queries]

    def _cosines(self, attribute_ids: list[str]) -> dict[str, dict[str, float]]:
        """Return the triples around each attribute with the better cosine of its two texts."""
        found: dict[str, dict[str, float]] = {attribute_id: {} for attribute_id in attribute_ids}
        depth = self._settings.triples_per_attribute * DEPTH
        if not self._index.size or not attribute_ids:
            return found
        for view in VIEWS:
            hits = self._index.search(self._vectors.of(attribute_ids, view), depth)
            for row, attribute_id in enumerate(attribute_ids):
                known = found[attribute_id]
                for triple, cosine in hits.of(row):
                    if cosine >= self._settings.min_cosine:
                        known[triple] = max(known.get(triple, cosine), cosine)
        return found

    def _near(self, attribute: Attribute, cosines: Mapping[str, float]) -> dict[str, float]:
        """Weigh the cosines by the words, best first."""
        words = self._words(attribute).content
        near: dict[str, float] = {}
        for triple, cosine in cosines.items():
            edge = self._edges.get(triple)
            if edge is None:
                continue  # in the index and not in the table: the graph was read again since, it is no fact any more
            near[triple] = supported(cosine, support_of(f"{edge.head_label} {edge.tail_label}", words))
        return dict(sorted(near.items(), key=lambda hit: (-hit[1], hit[0])))

    def _read_edges(self, triple_ids: Iterable[str]) -> None:
        columns = ("triple_id", "head", "relation", "tail", "tail_value", "head_label", "relation_label", "tail_label")
        rows = self._triples(set(triple_ids) - self._edges.keys()).select(columns)
        for triple, head, relation, tail, value, *labels in rows.iter_rows():
            self._edges[triple] = FactEdge(head, relation, tail if tail is not None else value, *labels)

    def _join(self, source: Mapping[str, float], target: Mapping[str, float]) -> Subgraph:
        top = self._settings.triples_per_attribute
        best = {triple for side in (source, target) for triple in list(side)[:top]}
        scored: list[tuple[float, str]] = []
        for triple in best:
            near = [side[triple] for side in (source, target) if triple in side]
            score = BOTH_SIDED * sum(near) / 2 if len(near) == 2 else ONE_SIDED * near[0]
            scored.append((min(max(score, 0.0), 1.0), triple))
        scored.sort(key=lambda entry: (-entry[0], entry[1]))
        facts = tuple(_fact(triple, score, self._edges[triple]) for score, triple in scored[: self._settings.max_facts])
        status = "found" if facts else "no_seed"
        return Subgraph(self.name, status, (), facts, len(scored) - len(facts))


def _fact(triple: str, score: float, edge: FactEdge) -> Fact:
    text = f"{edge.head_label} —{edge.relation_label}→ {edge.tail_label}"
    return Fact(triple, "triple", text, round(score, 6), (edge.head, edge.tail), (edge,))
