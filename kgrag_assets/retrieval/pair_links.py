"""The entities that a pair is linked to, whichever way they were found, and which of them are its seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from kgrag_assets.retrieval.names import Name
from kgrag_assets.retrieval.protocol import RetrievalQuery, Seed


@dataclass(frozen=True)
class LinkedEntity:
    """An entity linked to an attribute: the fused score, its cosine, and how well a name of it matches (0 for none)."""

    entity_id: str
    score: float
    cosine: float
    lexical: float


@dataclass(frozen=True)
class PairLinks:
    """The entities that the two attributes of a pair are linked to, best first.

    ``joint``: they were linked by one question about the pair, so that an entity may belong to both sides at once.
    """

    source: tuple[LinkedEntity, ...]
    target: tuple[LinkedEntity, ...]
    joint: bool = False

    def best(self, k: int) -> PairLinks:
        """Return the seeds: the best ``k`` of each side, or the best ``2 * k`` of a question."""
        if not self.joint:
            return PairLinks(self.source[:k], self.target[:k])
        chosen = {entry.entity_id for entry in self.ranked()[: 2 * k]}
        return PairLinks(
            tuple(entry for entry in self.source if entry.entity_id in chosen),
            tuple(entry for entry in self.target if entry.entity_id in chosen),
            joint=True,
        )

    def ranked(self) -> list[LinkedEntity]:
        """Return the entities of both sides, each once, best first."""
        distinct: dict[str, LinkedEntity] = {}
        for entry in (*self.source, *self.target):
            known = distinct.get(entry.entity_id)
            if known is None or known.score < entry.score:
                distinct[entry.entity_id] = entry
        return sorted(distinct.values(), key=lambda entry: (-entry.score, entry.entity_id))

    def seeds(self, names: Mapping[str, Name]) -> tuple[Seed, ...]:
        """Return all of them as seeds: ranked for each side or, of a question, in one list with their side."""
        if not self.joint:
            return tuple(
                Seed(entry.entity_id, names[entry.entity_id].label, side, rank, entry.score)
                for side, links in (("source", self.source), ("target", self.target))
                for rank, entry in enumerate(links, start=1)
            )
        sides = ({entry.entity_id for entry in self.source}, {entry.entity_id for entry in self.target})
        side_of = {(True, True): "both", (True, False): "source", (False, True): "target"}
        return tuple(
            Seed(
                entry.entity_id,
                names[entry.entity_id].label,
                side_of[entry.entity_id in sides[0], entry.entity_id in sides[1]],
                rank,
                entry.score,
            )
            for rank, entry in enumerate(self.ranked(), start=1)
        )


class PairLinking(Protocol):
    """Links pairs to entities; ``EntityLinking`` does it by concept, ``question_links.QuestionLinking`` by question."""

    def key(self, query: RetrievalQuery) -> str:
        """Hash what decides a pair's links, besides index, linker and settings."""

    def link_pairs(self, queries: Sequence[RetrievalQuery]) -> list[PairLinks]:
        """Link each pair to all entities that are near enough."""
