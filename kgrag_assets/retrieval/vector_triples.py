"""Vector triple retrieval: the triples whose text is nearest to the two attributes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import polars as pl

from kgrag_assets.indexing.port import VectorIndex
from kgrag_assets.retrieval.protocol import Fact, FactEdge, RetrievalQuery, Subgraph
from kgrag_assets.retrieval.vectors import AttributeVectors
from kgrag_assets.rows.keys import key_of
from kgrag_assets.settings import RetrievalSettings

VERSION = "vector-triples-1"

# Both texts of an attribute are asked with: a long description can drown the name, and a short name says little.
VIEWS = ("name", "full")
# How much deeper than triples_per_attribute a search looks: a triple that is among the best of one attribute is
# given the other's cosine where it is anywhere in this depth.
DEPTH = 8


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
        triples: pl.DataFrame,
        settings: RetrievalSettings,
    ) -> None:
        """Take what is searched.

        Args:
            vectors: the task's attribute vectors.
            triple_index: index over triple ids; its data version stands for the triples' texts.
            triples: rows of ``kg_triples``.
            settings: ``triples_per_attribute``, ``min_cosine`` and ``max_facts`` are used.

        Raises:
            RetrievalError: the index is of another model than the vectors.
        """
        vectors.refuse_other_model(triple_index, "triple_index")
        self._vectors = vectors
        self._index = triple_index
        self._triples = triples
        self._settings = settings

    def key(self, query: RetrievalQuery) -> str:
        """Hash the two attributes' vectors, the settings used and the version of the triples."""
        options = self._settings
        return key_of(
            VERSION,
            query.pair_id,
            [self._vectors.key(side.attribute_id, view) for side in (query.source, query.target) for view in VIEWS],
            [options.triples_per_attribute, options.min_cosine, options.max_facts],
            self._index.data_version,
        )

    def retrieve(self, queries: Sequence[RetrievalQuery]) -> list[Subgraph]:
        """Find each pair's triples, best first.

        The score of a triple that is near to both attributes is the mean of its two cosines. One that is near
        to one of them only speaks for that one alone: its cosine is multiplied by ``min_cosine``, so that it
        stands below every triple that both are near to.
        """
        wanted = {side.attribute_id for query in queries for side in (query.source, query.target)}
        near = self._near(sorted(wanted))
        used = {triple for hits in near.values() for triple in hits}
        edges = self._edges(used)
        return [
            self._join(near[query.source.attribute_id], near[query.target.attribute_id], edges) for query in queries
        ]

    def _near(self, attribute_ids: list[str]) -> dict[str, dict[str, float]]:
        """Return the triples near each attribute with the better cosine of its two texts, best first."""
        near: dict[str, dict[str, float]] = {attribute_id: {} for attribute_id in attribute_ids}
        depth = self._settings.triples_per_attribute * DEPTH
        if not self._index.size or not attribute_ids:
            return near
        for view in VIEWS:
            hits = self._index.search(self._vectors.of(attribute_ids, view), depth)
            for row, attribute_id in enumerate(attribute_ids):
                found = near[attribute_id]
                for triple, cosine in hits.of(row):
                    if cosine >= self._settings.min_cosine:
                        found[triple] = max(found.get(triple, cosine), cosine)
        return {
            attribute_id: dict(sorted(found.items(), key=lambda hit: (-hit[1], hit[0])))
            for attribute_id, found in near.items()
        }

    def _edges(self, triple_ids: Iterable[str]) -> dict[str, FactEdge]:
        columns = ("triple_id", "head", "relation", "tail", "tail_value", "head_label", "relation_label", "tail_label")
        rows = self._triples.filter(pl.col("triple_id").is_in(sorted(triple_ids))).select(columns)
        return {
            triple: FactEdge(head, relation, tail if tail is not None else value, *labels)
            for triple, head, relation, tail, value, *labels in rows.iter_rows()
        }

    def _join(
        self, source: Mapping[str, float], target: Mapping[str, float], edges: Mapping[str, FactEdge]
    ) -> Subgraph:
        top = self._settings.triples_per_attribute
        # In the index and not in the table: the graph was read again since; then it is no fact any more.
        best = {triple for side in (source, target) for triple in list(side)[:top] if triple in edges}
        alone = max(self._settings.min_cosine, 0.0)
        scored: list[tuple[float, str]] = []
        for triple in best:
            cosines = [side[triple] for side in (source, target) if triple in side]
            score = sum(cosines) / 2 if len(cosines) == 2 else cosines[0] * alone
            scored.append((min(max(score, 0.0), 1.0), triple))
        scored.sort(key=lambda entry: (-entry[0], entry[1]))
        facts = tuple(_fact(triple, score, edges[triple]) for score, triple in scored[: self._settings.max_facts])
        status = "found" if facts else "no_seed"
        return Subgraph(self.name, status, (), facts, len(scored) - len(facts))


def _fact(triple: str, score: float, edge: FactEdge) -> Fact:
    text = f"{edge.head_label} —{edge.relation_label}→ {edge.tail_label}"
    return Fact(triple, "triple", text, round(score, 6), (edge.head, edge.tail), (edge,))
