"""The vectors of a task's attributes by attribute and view, as retrieval asks for them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from kgrag_assets.indexing.port import VectorIndex
from kgrag_assets.retrieval.protocol import RetrievalError
from kgrag_assets.rows.embeddings import vectors_of
from kgrag_assets.rows.table import ROW_KEY


class AttributeVectors:
    """Rows of ``attribute_embeddings`` of one task."""

    def __init__(self, attribute_embeddings: pl.DataFrame) -> None:
        """Take the rows.

        Raises:
            TableError: the rows are of several models or dimensions.
        """
        frame = attribute_embeddings
        self._matrix = vectors_of(frame)
        self._keys: list[str] = frame[ROW_KEY].to_list()
        self._models: list[str] = frame["model_id"].unique().to_list()
        subjects = frame.select("attribute_id", "view").iter_rows()
        self._row: dict[tuple[str, str], int] = {(subject, view): row for row, (subject, view) in enumerate(subjects)}

    def _place(self, attribute_id: str, view: str) -> int:
        try:
            return self._row[attribute_id, view]
        except KeyError:
            raise RetrievalError(
                f"attribute {attribute_id} has no vector of the view {view!r}: bring attribute_embeddings up to date"
            ) from None

    def key(self, attribute_id: str, view: str) -> str:
        """Return the row key of a vector: equal keys mean equal vectors.

        Raises:
            RetrievalError: the attribute has no vector.
        """
        return self._keys[self._place(attribute_id, view)]

    def of(self, attribute_ids: Sequence[str], view: str) -> np.ndarray:
        """Return the vectors of these attributes, float32 of shape (attributes, dimension).

        Raises:
            RetrievalError: an attribute has no vector.
        """
        return np.asarray(self._matrix[[self._place(attribute_id, view) for attribute_id in attribute_ids]])

    def refuse_other_model(self, index: VectorIndex, name: str) -> None:
        """Refuse an index whose vectors are of another model.

        Raises:
            RetrievalError: the models differ; cosines between them mean nothing.
        """
        if index.size and self._models and self._models != [index.model_id]:
            raise RetrievalError(
                f"the attributes' vectors are of {self._models[0]}, those of {name} of {index.model_id}: "
                f"bring {name} and attribute_embeddings up to date with one embedder"
            )
