"""Which part of a graph is kept: by class, by how much the world says of an entity, by relation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kgrag_assets.knowledge.collector import id_problem
from kgrag_assets.knowledge.errors import KnowledgeError

_LISTS = ("classes", "relations", "without_relations")
_COUNTS = ("min_sitelinks", "min_statements")


@dataclass(frozen=True)
class GraphFilter:
    """What ``filter`` in ``kg.yaml`` says; an empty one keeps everything.

    An entity is kept where it is an instance or a subclass of one of ``classes`` (through any number of subclass
    steps), or one of them, and has at least so many sitelinks and statements. Relations are always kept as
    entities. A statement is kept where its head is kept and its relation wanted; its tail need not be kept
    (``tails: kept`` asks for that too), so that a reader still sees what a column's concept is a part of.
    """

    classes: tuple[str, ...] = ()
    instance_relation: str = "P31"
    subclass_relation: str = "P279"
    min_sitelinks: int = 0
    min_statements: int = 0
    relations: tuple[str, ...] = ()
    without_relations: tuple[str, ...] = ()
    tails: str = "any"

    @property
    def walked_relations(self) -> tuple[str, ...]:
        """Relations that the filter itself needs, whether their statements are wanted or not."""
        return (self.instance_relation, self.subclass_relation) if self.classes else ()

    def wants_relation(self, relation: str) -> bool:
        """Whether statements with a relation are kept."""
        return (not self.relations or relation in self.relations) and relation not in self.without_relations


def read_filter(values: object, origin: str) -> GraphFilter:
    """Read the ``filter`` section of ``kg.yaml``.

    Raises:
        KnowledgeError: an unknown or unusable setting.
    """
    if values is None:
        return GraphFilter()
    known = set(GraphFilter.__dataclass_fields__)
    if not isinstance(values, Mapping):
        raise KnowledgeError(f"{origin}: filter must hold settings such as `classes: [Q8513]`")
    unknown = sorted(str(name) for name in values if name not in known)
    if unknown:
        raise KnowledgeError(f"{origin}: unknown setting filter.{unknown[0]}; use {', '.join(sorted(known))}")
    read: dict[str, Any] = {}
    for name in _LISTS:
        read[name] = ids(values.get(name, []), f"{origin}: filter.{name}")
    for name in _COUNTS:
        count = values.get(name, 0)
        if type(count) is not int or count < 0:
            raise KnowledgeError(f"{origin}: filter.{name} must be a number of at least 0, not {count!r}")
        read[name] = count
    for name in ("instance_relation", "subclass_relation"):
        if name in values:
            (read[name],) = ids([values[name]], f"{origin}: filter.{name}")
    tails = values.get("tails", "any")
    if tails not in ("any", "kept"):
        raise KnowledgeError(f"{origin}: filter.tails must be any or kept, not {tails!r}")
    return GraphFilter(**read, tails=tails)


def ids(values: object, origin: str) -> tuple[str, ...]:
    """Read a list of local ids.

    Raises:
        KnowledgeError: it is no list, or one of them cannot be an id.
    """
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise KnowledgeError(f"{origin} must be a list of ids, such as [Q5, Q8513]")
    for value in values:
        problem = id_problem(value)
        if problem is not None:
            raise KnowledgeError(f"{origin}: {problem}")
    return tuple(values)
