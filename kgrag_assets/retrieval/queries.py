"""The whole question about a pair as one text and one vector: the query form ``question``."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kgrag_assets.indexing.port import VectorIndex
from kgrag_assets.models.embedders import Embedder
from kgrag_assets.retrieval.protocol import RetrievalError, RetrievalQuery
from kgrag_assets.rows.keys import key_of
from kgrag_assets.schemas.attribute import Attribute

VERSION = "question-1"

# Characters of a description: both attributes with their tables must fit into the 256 tokens that common models of
# sentences read, or the second one would not be asked about.
MAX_TEXT = 200
# Vectors kept: those of the pairs that all methods are asked about at a time, with room to spare.
KEPT = 8192


def question_text(query: RetrievalQuery) -> str:
    """Write the question about a pair: both attributes with table and descriptions, and whether they are the same.

    After Ma et al., "Knowledge Graph-based Retrieval-Augmented Generation for Schema Matching" (arXiv 2501.08686),
    whose retrieval embeds the whole question. Names stand as given.
    """
    return f"{_told(1, query.source)} {_told(2, query.target)} Are attribute 1 and attribute 2 the same?"


def _told(number: int, attribute: Attribute) -> str:
    table = f"table {attribute.table_name}" + _described(attribute.table_description, " ({})")
    return (
        f"Attribute {number} {attribute.column_name} of {table}"
        + _described(attribute.column_description, ": {}")
        + "."
    )


def _described(description: str, form: str) -> str:
    plain = " ".join(description.split()).rstrip(".")
    if len(plain) > MAX_TEXT:
        plain = plain[: MAX_TEXT - 1].rsplit(" ", 1)[0] + "…"
    return form.format(plain) if plain else ""


class QuestionVectors:
    """Vectors of the questions about pairs: each distinct text is embedded once while it is kept."""

    def __init__(self, embedder: Embedder) -> None:
        """Take the model; nothing is loaded yet."""
        self._embedder = embedder
        self._known: dict[str, np.ndarray] = {}

    def key(self, query: RetrievalQuery) -> str:
        """Hash the question and its model: equal keys mean equal vectors. Nothing is embedded."""
        return key_of(VERSION, question_text(query), self._embedder.model_id)

    def of(self, queries: Sequence[RetrievalQuery]) -> np.ndarray:
        """Return the vectors of the questions, float32 of shape (queries, dimension).

        Raises:
            EmbeddingError: the model gave something that is not one vector per text.
            ModelUnavailableError: the model cannot be used.
        """
        texts = [question_text(query) for query in queries]
        new = list(dict.fromkeys(text for text in texts if text not in self._known))
        if new:
            if len(self._known) + len(new) > KEPT:
                wanted = set(texts)
                self._known = {text: vector for text, vector in self._known.items() if text in wanted}
            self._known.update(zip(new, self._embedder.embed(new), strict=True))
        rows = [self._known[text] for text in texts]
        return np.stack(rows) if rows else np.zeros((0, self._embedder.dimension), dtype=np.float32)

    def refuse_other_model(self, index: VectorIndex, name: str) -> None:
        """Refuse an index whose vectors are of another model.

        Raises:
            RetrievalError: the models differ; cosines between them mean nothing.
        """
        if index.size and index.model_id != self._embedder.model_id:
            raise RetrievalError(
                f"questions are embedded by {self._embedder.model_id}, and {name} holds vectors of {index.model_id}: "
                f"bring {name} up to date with one embedder"
            )
