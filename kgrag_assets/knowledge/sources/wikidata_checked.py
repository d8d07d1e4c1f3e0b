"""Parsed JSON as an entity of Wikidata, with a reason for every part that is not what it should be."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

import msgspec

from kgrag_assets.knowledge.collector import Collector
from kgrag_assets.knowledge.sources.blocks import ReadOptions
from kgrag_assets.knowledge.sources.wikidata_entity import (
    LETTERS,
    MOST_COUNTED,
    OTHER_ENTITIES,
    DataValue,
    Entity,
    Kind,
    Place,
    Snak,
    SnakType,
    Statement,
    Text,
    Wanted,
    is_id,
    take_entity,
)
from kgrag_assets.knowledge.sources.wikidata_values import Datatype, Value, value_of
from kgrag_assets.models.endpoints import storable

# How the kinds spell what they have: names of an item are labels, of a lexeme lemmas.
_MAPS = {"lexeme": ("lemmas", "claims"), "item": ("labels", "aliases", "descriptions", "claims")}


def entity_rows(entity: object, options: ReadOptions, into: Collector, row: int) -> None:
    """Take one parsed entity, as the dump and ``wbgetentities`` give it.

    A part that is not what it should be is rejected with its reason and loses no other part; an entity that
    the server does not have (``missing``) is rejected.

    Args:
        entity: the parsed JSON, whatever it holds.
        options: what to read.
        into: takes the rows, and the rejects at ``row``.
        row: number of its line in the unit, from 1.
    """
    checked_rows(entity, Wanted(options), Place(into, row, lambda: json.dumps(entity)))


def checked_rows(value: object, wanted: Wanted, place: Place) -> None:
    """Take one parsed entity; as ``entity_rows``, with options made ready."""
    problem = _problem(value, wanted)
    if problem is not None:
        place.reject(problem)
        return
    entity = cast("dict[str, Any]", value)
    if entity["type"] in OTHER_ENTITIES and not (entity["type"] == "lexeme" and wanted.options.lexemes):
        return
    take_entity(_Checked(entity, wanted, place).entity(), wanted, place)


def entities_of(value: object) -> list[object]:
    """Return the entities of a JSON value: of a list, of an answer of the API, or itself."""
    if isinstance(value, list):  # the dump's array on one line, or one that is a file of its own
        return value
    if isinstance(value, dict) and isinstance(value.get("entities"), dict) and "id" not in value:
        return list(value["entities"].values())
    return [value]


def _problem(entity: object, wanted: Wanted) -> str | None:  # noqa: PLR0911  (one way out a fault)
    """Say why a value is no entity that can be taken."""
    if not isinstance(entity, dict):
        return f"an entity is a JSON object, this is {type(entity).__name__}"
    entity_id, kind = entity.get("id"), entity.get("type")
    if "missing" in entity:
        return f"the server had no entity {entity_id or entity.get('title')!r}"
    if "error" in entity and entity_id is None:
        return "the server answered with an error instead of entities: fetch it again"
    if isinstance(kind, str) and kind in OTHER_ENTITIES and not (kind == "lexeme" and wanted.options.lexemes):
        return None
    if not isinstance(kind, str) or kind not in LETTERS:
        return f"type must be item or property, not {kind!r}"
    if not is_id(entity_id, LETTERS[kind]):
        return f"id {entity_id!r} is not an id of a {kind}"
    maps = _MAPS.get(kind, _MAPS["item"])
    for name in maps:
        part = entity.get(name) or {}
        if not isinstance(part, dict):
            # An empty map is written as [] by the API; anything else in its place is wrong.
            return f"{name} must be an object, not {type(part).__name__}"
    if not entity.get(maps[0]) and not entity.get("claims"):
        return f"neither {maps[0]} nor claims: nothing can be said about it"
    return None


class _Checked:
    """Reads the parts of one parsed entity."""

    def __init__(self, entity: dict[str, Any], wanted: Wanted, place: Place) -> None:
        self._parts = entity
        self._id: str = entity["id"]
        self._wanted = wanted
        self._place = place

    def entity(self) -> Entity:
        kind: Kind = self._parts["type"]
        claims: dict[str, list[Statement]] = {}
        self._add_claims(self._parts.get("claims") or {}, claims)
        if kind == "lexeme":
            labels = self._texts(self._parts, "lemmas")
            descriptions, aliases = self._lexeme_names(labels, claims)
        else:
            labels, descriptions = self._texts(self._parts, "labels"), self._texts(self._parts, "descriptions")
            aliases = list(self._aliases())
        sitelinks, revision = self._parts.get("sitelinks"), self._parts.get("lastrevid")
        return Entity(
            id=self._id,
            kind=kind,
            labels=labels,
            descriptions=descriptions,
            aliases=aliases,
            claims=claims,
            sitelinks=len(sitelinks) if isinstance(sitelinks, dict) else 0,
            revision=revision if type(revision) is int and 0 <= revision <= MOST_COUNTED else 0,
        )

    def _texts(self, of: Mapping[str, Any], name: str) -> list[Text | None]:
        """Return the texts of a map by language, in the order of the wanted ones."""
        found: list[Text | None] = []
        part = of.get(name) or {}
        for language in self._wanted.languages:
            text = _text(part[language]) if language in part else None
            if text is None and language in part:
                self._place.reject(f"{self._id}: {name} {language!r} is not an object with a text as value")
            found.append(text)
        return found

    def _aliases(self) -> Iterator[list[Text]]:
        part = self._parts.get("aliases") or {}
        for language in self._wanted.languages:
            aliases = part.get(language, [])
            texts = [_text(alias) for alias in aliases] if isinstance(aliases, list) else [None]
            if None in texts:
                reason = f"{self._id}: aliases {language!r} is not a list of objects with a text as value"
                self._place.reject(reason)
            yield [text for text in texts if text is not None]

    def _lexeme_names(
        self, lemmas: Sequence[Text | None], claims: dict[str, list[Statement]]
    ) -> tuple[list[Text | None], list[list[Text]]]:
        """Return the glosses of a lexeme's senses as descriptions, and the words of its forms as aliases.

        A lexeme stands for its senses: what is said of them, such as the item for a sense, is said of it.
        """
        aliases: list[list[Text]] = [[] for _ in self._wanted.languages]
        glosses: list[list[str]] = [[] for _ in self._wanted.languages]
        for form in self._pieces("forms", "representations"):
            for rank, text in enumerate(self._texts(form, "representations")):
                if text is not None and text != lemmas[rank] and text not in aliases[rank]:
                    aliases[rank].append(text)
        for sense in self._pieces("senses", "glosses"):
            for rank, text in enumerate(self._texts(sense, "glosses")):
                if text is not None:
                    glosses[rank].append(text.value)
            self._add_claims(sense.get("claims") or {}, claims)
        return [Text("; ".join(texts)) if texts else None for texts in glosses], aliases

    def _pieces(self, name: str, names: str) -> Iterator[dict[str, Any]]:
        pieces = self._parts.get(name) or []
        for piece in pieces if isinstance(pieces, list) else [pieces]:
            if isinstance(piece, dict) and isinstance(piece.get(names) or {}, dict):
                yield piece
            else:
                self._place.reject(f"{self._id}: {name} is not a list of objects with {names}")

    def _add_claims(self, part: object, claims: dict[str, list[Statement]]) -> None:
        if not isinstance(part, dict):
            self._place.reject(f"{self._id}: claims must be an object, not {type(part).__name__}")
            return
        for relation, statements in part.items():
            if not self._wanted.is_relation(relation) or not isinstance(statements, list):
                reason = f"{self._id}: claims {relation[:60]!r} is not a property with a list of statements"
                self._place.reject(reason)
                continue
            group = claims.setdefault(relation, [])
            for statement in statements:
                read = _statement(statement)
                if isinstance(read, Statement):
                    group.append(read)
                else:
                    self._place.reject(f"{self._id} {relation}: {read}")


def _text(value: object) -> Text | None:
    text = value.get("value") if isinstance(value, dict) else None
    return Text(storable(text)) if isinstance(text, str) else None


def _statement(statement: object) -> Statement | str:
    """Return a statement, or say why there is none."""
    if not isinstance(statement, dict):
        return f"a statement is an object, not {type(statement).__name__}"
    snak = statement.get("mainsnak")
    if not isinstance(snak, dict):
        return "the statement has no mainsnak"
    rank, snaktype, datatype = statement.get("rank"), snak.get("snaktype"), snak.get("datatype")
    return Statement(
        mainsnak=Snak(
            # What is not known is left as it is here, whatever the record's type says.
            snaktype=cast("SnakType", snaktype) if snaktype in ("somevalue", "novalue") else "value",
            datavalue=_datavalue(snak.get("datavalue")),
            datatype=cast("Datatype", datatype) if isinstance(datatype, str) else None,
        ),
        rank=rank if rank in ("preferred", "deprecated") else "normal",
    )


def _datavalue(value: object) -> DataValue | msgspec.UnsetType:
    if not isinstance(value, dict) or "value" not in value:
        return msgspec.UNSET
    content = value["value"]
    if isinstance(content, str):
        return DataValue(storable(content))
    # A number or a list is nothing that could be said; so is an object without any known part.
    return DataValue(value_of(content) if isinstance(content, dict) else Value())
