"""Entity linking of pairs by the whole question about them: the query form ``question``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from kgrag_assets.indexing.port import VectorIndex
from kgrag_assets.retrieval.names import GraphNames, Name
from kgrag_assets.retrieval.pair_links import LinkedEntity, PairLinks
from kgrag_assets.retrieval.protocol import RetrievalQuery
from kgrag_assets.retrieval.queries import QuestionVectors
from kgrag_assets.retrieval.seeds import DEPTH, RELATION_BONUS
from kgrag_assets.retrieval.support import VERSION as SUPPORT_VERSION
from kgrag_assets.retrieval.support import AttributeWords, is_telling, sides_of, supported
from kgrag_assets.rows.keys import key_of
from kgrag_assets.schemas.attribute import Attribute
from kgrag_assets.settings import RetrievalSettings

VERSION = f"question-links-1/{SUPPORT_VERSION}"


class QuestionLinking:
    """Links a pair to the entities whose vectors are nearest to the one vector of the question about it."""

    def __init__(
        self,
        *,
        questions: QuestionVectors,
        entity_index: VectorIndex,
        names: GraphNames,
        settings: RetrievalSettings,
        words: Callable[[Attribute], AttributeWords] = AttributeWords.of,
    ) -> None:
        """Take what is searched.

        Raises:
            RetrievalError: the index is of another model than the questions.
        """
        questions.refuse_other_model(entity_index, "entity_index")
        self._questions = questions
        self._index = entity_index
        self._names = names
        self._settings = settings
        self._words = words

    def key(self, query: RetrievalQuery) -> str:
        """Hash what decides a pair's links, besides index and settings."""
        words = [self._words(side).key_parts() for side in (query.source, query.target)]
        return key_of(VERSION, self._questions.key(query), words)

    def link_pairs(self, queries: Sequence[RetrievalQuery]) -> list[PairLinks]:
        """Link each pair to the entities near to its question, best first.

        The score is the cosine, less up to ``UNSUPPORTED_LOSS`` of it for the words of the label that the attributes do
        not have, as in the concept form; relations have ``RELATION_BONUS``. What stands with the words of one attribute
        alone belongs to that side; all else to both. Left out is what lies below ``min_cosine`` before that loss, and
        what only says that it is an identifier.
        """
        if not queries or not self._index.size:
            return [PairLinks((), (), joint=True) for _ in queries]
        hits = self._index.search(self._questions.of(queries), self._settings.entities_per_attribute * DEPTH)
        near = [
            [(entity, cosine) for entity, cosine in hits.of(row) if cosine >= self._settings.min_cosine]
            for row in range(len(queries))
        ]
        names = self._names.of({entity for found in near for entity, _cosine in found})
        return [self._links(query, found, names) for query, found in zip(queries, near, strict=True)]

    def _links(self, query: RetrievalQuery, near: list[tuple[str, float]], names: Mapping[str, Name]) -> PairLinks:
        words = self._words(query.source), self._words(query.target)
        sides: tuple[list[LinkedEntity], list[LinkedEntity]] = ([], [])
        for entity, cosine in near:
            name = names[entity]
            if not is_telling(name.label):
                continue
            supports = sides_of(name.label, *words)
            told = [support for support in supports if support is not None]
            score = supported(cosine, sum(told) / len(told)) * (RELATION_BONUS if name.kind == "relation" else 1.0)
            linked = LinkedEntity(entity, round(min(score, 1.0), 6), cosine, 0.0)
            for side, support in zip(sides, supports, strict=True):
                if support is not None:
                    side.append(linked)
        for side in sides:
            side.sort(key=lambda entry: (-entry.score, entry.entity_id))
        return PairLinks(tuple(sides[0]), tuple(sides[1]), joint=True)
