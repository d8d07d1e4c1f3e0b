"""The names of entities and relations, looked up for the few that a fact speaks of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import polars as pl


@dataclass(frozen=True)
class Name:
    """An entity's label, description and kind (entity or relation); the label is the id where the graph has none."""

    label: str
    description: str
    kind: str = "entity"


class GraphNames:
    """Labels and descriptions out of ``kg_entities`` and, for relations that are no entities, ``kg_triples``."""

    def __init__(self, entities: pl.DataFrame, triples: pl.DataFrame) -> None:
        """Take the rows; nothing is copied. An id that several graphs have is named as the first graph does."""
        self._entities = entities
        self._triples = triples
        self._relations: dict[str, str] | None = None

    def of(self, ids: Iterable[str]) -> Mapping[str, Name]:
        """Return the names of all given ids; an unknown one is named by its id."""
        wanted = set(ids)
        if not wanted:
            return {}
        listed = pl.Series("id", sorted(wanted), dtype=pl.String).implode()
        found = {entity: Name(entity, "") for entity in wanted}
        relations = self._relation_labels()
        found.update({entity: Name(relations[entity], "", "relation") for entity in wanted & relations.keys()})
        rows = self._entities.filter(pl.col("entity_id").is_in(listed)).sort("entity_id", "graph", descending=True)
        # Descending, so that the first graph is written last and stays.
        for entity, label, description, kind in rows.select("entity_id", "label", "description", "kind").iter_rows():
            found[entity] = Name(label, description, kind)
        return found

    def _relation_labels(self) -> dict[str, str]:
        """Read the relations' labels out of the triples: once, there are few of them in many rows."""
        if self._relations is None:
            labels = self._triples.lazy().group_by("relation").agg(pl.col("relation_label").min()).collect()
            self._relations = dict(labels.iter_rows())
        return self._relations


def local_id(entity_id: str) -> str:
    """Return an id without its graph's namespace, as people write it: ``P569`` of ``wd:P569``."""
    return entity_id.split(":", 1)[-1]
