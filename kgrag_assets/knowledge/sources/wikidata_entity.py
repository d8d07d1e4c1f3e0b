"""One entity of Wikidata as typed records, and the rows it gives: what belongs here is true however it was parsed."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import msgspec

from kgrag_assets.knowledge.collector import Collector
from kgrag_assets.knowledge.sources.blocks import ReadOptions
from kgrag_assets.knowledge.sources.wikidata_values import (
    ALL_LITERALS,
    Datatype,
    Value,
    ValueProblemError,
    literal,
    literal_kind,
    one_line,
)

Rank = Literal["preferred", "normal", "deprecated"]
SnakType = Literal["value", "somevalue", "novalue"]
Kind = Literal["item", "property", "lexeme"]
AnyKind = Literal["item", "property", "lexeme", "form", "sense", "mediainfo", "entity-schema"]
LETTERS: Mapping[str, str] = {"item": "Q", "property": "P", "lexeme": "L"}
# Kinds of entities that are left aside without a word.
OTHER_ENTITIES = frozenset({"lexeme", "form", "sense", "mediainfo", "entity-schema"})

MOST_COUNTED = 2**63 - 1  # what a column of whole numbers holds

_PARTS_OF_LEXEMES = frozenset({"lexeme", "form", "sense"})
_ID = re.compile(r"[QP][0-9]{1,12}\Z")
_LEXEME_ID = re.compile(r"(L[0-9]{1,12})(-[FS][0-9]{1,6})?\Z")


class Text(msgspec.Struct, gc=False):
    """A text in the language that its place says."""

    value: str


class DataValue(msgspec.Struct, gc=False):
    """The value of a statement."""

    value: str | Value


class Snak(msgspec.Struct, gc=False):
    """What a statement says."""

    snaktype: SnakType = "value"
    datavalue: DataValue | msgspec.UnsetType = msgspec.UNSET
    datatype: Datatype | None = None


class Statement(msgspec.Struct, gc=False):
    """A statement without its qualifiers and references."""

    mainsnak: Snak
    rank: Rank = "normal"


class Entity(msgspec.Struct, frozen=True):
    """An entity: names in the order of the wanted languages, each None where there is none; claims by property.

    Each key of ``claims`` was asked about with ``Wanted.is_relation``.
    """

    id: str
    kind: Kind
    labels: Sequence[Text | None]
    descriptions: Sequence[Text | None]
    aliases: Sequence[Sequence[Text]]
    claims: Mapping[str, Sequence[Statement]]
    sitelinks: int
    revision: int


class Place(msgspec.Struct, frozen=True):
    """Where an entity stands, for what is rejected of it; ``content`` is asked only then."""

    into: Collector
    row: int
    content: Callable[[], str]

    def reject(self, reason: str) -> None:
        """Keep the reason."""
        self.into.reject(self.row, reason, self.content())


@dataclass
class Wanted:
    """Reading options made ready for many entities; ``relations`` remembers of each property seen if it is read."""

    options: ReadOptions
    languages: tuple[str, ...] = ()
    relations: dict[str, bool] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.languages = tuple(dict.fromkeys(self.options.languages))
        self.literals = frozenset(self.options.literals)
        self.all_literals = ALL_LITERALS in self.literals
        self.best = self.options.ranks == "best"

    def is_relation(self, relation: str) -> bool:
        """Whether this is the id of a property."""
        if relation not in self.relations:
            if not is_id(relation, "P"):
                return False
            self.relations[relation] = self.options.wants_relation(relation)
        return True

    def keeps(self, entity: Entity, statements: int) -> bool:
        """Whether the filters let an entity through: properties always, and no lexeme has sitelinks."""
        if entity.kind == "property":
            return True
        linked = entity.kind == "lexeme" or entity.sitelinks >= self.options.min_sitelinks
        return linked and statements >= self.options.min_statements


def is_id(value: object, letter: str) -> bool:
    """Whether a value is the id of an item (Q), property (P) or lexeme (L)."""
    if not isinstance(value, str) or value[:1] != letter:
        return False
    if letter == "L":
        match = _LEXEME_ID.match(value)
        return match is not None and match[2] is None
    return _ID.match(value) is not None


def take_entity(entity: Entity, wanted: Wanted, place: Place) -> None:
    """Hand an entity's rows to the collector.

    An entity that the filters leave out still gives its label, for statements that speak of it, and its
    statements with the relations that are always read, for the filters that follow classes.
    """
    into = place.into
    local = entity.id
    statements = sum(map(len, entity.claims.values()))
    kept = wanted.keeps(entity, statements)
    _first(entity.labels, local, into.label)
    if kept:
        into.listed(local)
        if entity.kind == "property":
            into.relation(local)
        into.count(local, sitelinks=entity.sitelinks, statements=statements, revision=entity.revision)
        _first(entity.descriptions, local, into.describe)
        for rank, aliases in enumerate(entity.aliases):
            for alias in aliases:
                if text := one_line(alias.value):
                    into.alias(local, text, rank)
        for relation, group in entity.claims.items():
            if wanted.relations[relation]:
                _take_statements(local, relation, group, wanted, place)
    else:
        for relation in wanted.options.always_relations:
            _take_statements(local, relation, entity.claims.get(relation, ()), wanted, place, literals=False)


def _first(texts: Sequence[Text | None], local: str, take: Callable[[str, str, int], None]) -> None:
    for rank, found in enumerate(texts):
        if found is not None:
            text = one_line(found.value)
            if text:
                take(local, text, rank)
                return


def _take_statements(
    head: str, relation: str, group: Sequence[Statement], wanted: Wanted, place: Place, *, literals: bool = True
) -> None:
    only_preferred = wanted.best and any(statement.rank == "preferred" for statement in group)
    wants = wanted.literals if literals else frozenset()
    take = place.into.edges.append
    for statement in group:
        rank, snak = statement.rank, statement.mainsnak
        if rank == "deprecated" or (only_preferred and rank != "preferred") or snak.snaktype != "value":
            continue
        if snak.datavalue is msgspec.UNSET:
            place.reject(f"{head} {relation}: the statement has no value")
            continue
        value = snak.datavalue.value
        try:
            if isinstance(value, str) or value.entity_type is None:
                if wants and (wanted.all_literals or literal_kind(snak.datatype, value) in wants):
                    written = literal(value, wanted.languages)
                    if written is not None:
                        take((head, relation, None, *written))
            else:
                tail = _tail(value, wanted)
                # A sense that speaks of another sense of its lexeme would be a lexeme that speaks of itself.
                if tail is not None and (tail != head or tail[0] != "L"):
                    take((head, relation, tail, None, None))
        except ValueProblemError as problem:
            place.reject(f"{head} {relation}: {problem}")


def _tail(value: Value, wanted: Wanted) -> str | None:
    """Return the entity that a value is, None where it is of a kind that is left aside."""
    tail = value.id
    if tail is not None and value.entity_type in ("item", "property") and _ID.match(tail):
        return tail
    if value.entity_type in OTHER_ENTITIES:
        if not (wanted.options.lexemes and value.entity_type in _PARTS_OF_LEXEMES):
            return None
        match = _LEXEME_ID.match(tail or "")
        if match:
            return match[1]
    elif tail is None:
        # Older files give a number without its letter.
        letter = {"item": "Q", "property": "P"}.get(str(value.entity_type))
        old = f"{letter}{value.numeric_id}"
        if letter is not None and _ID.match(old):
            return old
    elif _ID.match(tail):
        return tail
    raise ValueProblemError(f"the object {str(tail)[:60]!r} is not an id")
