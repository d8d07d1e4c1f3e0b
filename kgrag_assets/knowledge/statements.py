"""What a loader hands on, whatever the format: names, statements, and lines that could not be taken."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

ENTITY_ID = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,99}\Z")
MAX_REJECT_CONTENT = 500
_PROPERTY = re.compile(r"P[0-9]+\Z")


def is_relation_id(local_id: str) -> bool:
    """Whether an id names a relation: Wikidata's properties do, ``P`` and digits."""
    return _PROPERTY.match(local_id) is not None


@dataclass
class Names:
    """Names of one entity; ``language_rank`` is the place of the label's language in the graph's list."""

    label: str | None = None
    label_rank: int = 1 << 30
    description: str = ""
    description_rank: int = 1 << 30
    aliases: dict[str, None] = field(default_factory=dict)
    listed: bool = False


@dataclass(frozen=True)
class Rejected:
    """A line that was not taken."""

    file: str
    row: int | None
    reason: str
    content: str


@dataclass
class Statements:
    """Everything read from one graph, by local ids (``Q42``)."""

    names: dict[str, Names] = field(default_factory=dict)
    edges: dict[tuple[str, str, str], None] = field(default_factory=dict)
    literals: dict[tuple[str, str, str], None] = field(default_factory=dict)
    rejected: list[Rejected] = field(default_factory=list)

    def of(self, entity: str) -> Names:
        """Return the names of an entity, beginning them where it is new."""
        found = self.names.get(entity)
        if found is None:
            found = self.names[entity] = Names()
        return found

    def label(self, entity: str, text: str, rank: int) -> None:
        """Take a label if its language comes before the one at hand."""
        names = self.of(entity)
        names.listed = True
        if rank < names.label_rank:
            names.label, names.label_rank = text, rank

    def describe(self, entity: str, text: str, rank: int) -> None:
        """Take a description if its language comes before the one at hand."""
        names = self.of(entity)
        if rank < names.description_rank:
            names.description, names.description_rank = text, rank

    def reject(self, file: str, row: int | None, reason: str, content: str) -> None:
        """Keep a line that cannot be taken, with its reason."""
        self.rejected.append(Rejected(file, row, storable(reason), storable(content[:MAX_REJECT_CONTENT])))


def storable(text: str) -> str:
    """Write a lone surrogate, which JSON can spell and no table can hold, as a question mark."""
    return text.encode("utf-8", "replace").decode("utf-8")
