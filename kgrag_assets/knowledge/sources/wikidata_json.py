"""Reading Wikidata's JSON in blocks: the dump's array form, one entity a line, single entities and API answers.

The format: https://doc.wikimedia.org/Wikibase/master/php/docs_topics_json.html. A line is decoded by msgspec
into records that have only what is asked for; one that does not fit them is parsed by ``json`` and checked part by
part, so that both give the same rows and only the second knows why something is refused.
"""

from __future__ import annotations

import io
import json
from functools import lru_cache
from typing import Annotated, Any, cast

import msgspec

from kgrag_assets.knowledge.collector import Collector
from kgrag_assets.knowledge.sources.blocks import ReadOptions
from kgrag_assets.knowledge.sources.wikidata_checked import checked_rows, entities_of, entity_rows
from kgrag_assets.knowledge.sources.wikidata_entity import (
    LETTERS,
    MOST_COUNTED,
    OTHER_ENTITIES,
    AnyKind,
    Entity,
    Kind,
    Place,
    Statement,
    Text,
    Wanted,
    is_id,
    take_entity,
)

__all__ = ["READER_VERSION", "WikidataJsonReader", "entity_rows"]

# Changes whenever the same bytes give other rows.
READER_VERSION = "wikidata-json-1"

_NO_ENTITY = (b"", b"[", b"]")


class WikidataJsonReader:
    """Reads blocks of lines of Wikidata entities."""

    @property
    def version(self) -> str:
        """Changes whenever the same bytes give other rows."""
        return READER_VERSION

    def context(self, start: bytes, file: str, into: Collector) -> bytes | None:  # noqa: ARG002  (the reader's port)
        """Return nothing: a line of Wikidata says all about itself."""
        return b""

    def whole(self, start: bytes) -> bool:
        """Whether a file that begins so looks like one value over several lines, to be read as one block."""
        lines = (line.strip().rstrip(b",") for line in io.BytesIO(start))
        line = next((line for line in lines if line not in _NO_ENTITY), b"")
        opens = line[:1] in (b"{", b"[") or start.lstrip()[:1] in (b"[", b"")
        return opens and isinstance(_parsed(line), str)

    def read(self, block: bytes, context: bytes, options: ReadOptions, into: Collector, *, first: bool) -> None:  # noqa: ARG002  (the reader's port)
        """Read whole lines; the block that begins a file is one value where that is how it can be read."""
        wanted = Wanted(options)
        if first and self.whole(block):
            parsed = _parsed(block)
            if not isinstance(parsed, str):
                place = Place(into, 1, lambda: block[:2000].decode("utf-8", "replace"))
                for value in entities_of(parsed[0]):
                    checked_rows(value, wanted, place)
                return
        decoder = _decoder(wanted.languages)
        ascii_only = block.isascii()
        for row, raw in enumerate(io.BytesIO(block), start=1):
            line = raw.strip().rstrip(b",")
            if line in _NO_ENTITY:
                continue
            place = Place(into, row, lambda line=line: line[:2000].decode("utf-8", "replace"))  # type: ignore[misc]
            # What is skipped while decoding is checked in all but its characters.
            if (ascii_only or _is_utf8(line)) and _decoded(line, decoder, wanted, place):
                continue
            parsed = _parsed(line)
            if isinstance(parsed, str):
                place.reject(parsed)
                continue
            for value in entities_of(parsed[0]):
                checked_rows(value, wanted, place)


def _parsed(line: bytes) -> tuple[Any] | str:
    """Return the one value that bytes are as JSON, or say why they are none."""
    try:
        return (json.loads(line.decode("utf-8")),)
    except UnicodeDecodeError:
        return "the line is not UTF-8"
    except json.JSONDecodeError as error:
        return f"not JSON: {error.msg} at character {error.pos + 1}"
    except (ValueError, RecursionError) as error:  # a number of thousands of digits; brackets without end
        return f"not JSON that can be read: {error}"


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _decoded(line: bytes, decoder: msgspec.json.Decoder[Any], wanted: Wanted, place: Place) -> bool:
    """Take a line's entity; False, and nothing taken, where the line has to be looked at part by part."""
    try:
        found = decoder.decode(line)
    except (msgspec.DecodeError, RecursionError):
        return False
    kind = found.type
    if kind in OTHER_ENTITIES and not (kind == "lexeme" and wanted.options.lexemes):
        return found.missing is msgspec.UNSET
    if kind not in ("item", "property") or found.missing is not msgspec.UNSET or not is_id(found.id, LETTERS[kind]):
        return False
    labels = _in_order(found.labels, wanted)
    claims = found.claims or {}
    if not claims and not any(labels):
        return False  # whether it has labels in other languages was not looked at
    if not (claims.keys() <= wanted.relations.keys() or all(map(wanted.is_relation, claims))):
        return False
    entity = Entity(
        id=found.id,
        kind=cast("Kind", kind),
        labels=labels,
        descriptions=_in_order(found.descriptions, wanted),
        aliases=tuple(aliases or () for aliases in _in_order(found.aliases, wanted)),
        claims=claims,
        sitelinks=len(found.sitelinks),
        revision=found.lastrevid,
    )
    take_entity(entity, wanted, place)
    return True


def _in_order(found: Any, wanted: Wanted) -> tuple[Any, ...]:  # noqa: ANN401  (a record made at run time)
    if isinstance(found, list):  # an empty map, as the API writes it
        return (None,) * len(wanted.languages)
    return msgspec.structs.astuple(found)


class _Skipped(msgspec.Struct, gc=False):
    """An object that is counted and not looked into."""


@lru_cache(maxsize=8)
def _decoder(languages: tuple[str, ...]) -> msgspec.json.Decoder[Any]:
    """Return a decoder of an entity into a record that has its names in these languages only."""
    texts = _by_language("Texts", languages, Text)
    empty = Annotated[list[Any], msgspec.Meta(max_length=0)]
    entity = msgspec.defstruct(
        "EntityRecord",
        [
            ("id", str),
            ("type", AnyKind),
            ("labels", texts | empty, []),
            ("descriptions", texts | empty, []),
            ("aliases", _by_language("TextLists", languages, list[Text]) | empty, []),
            ("claims", dict[str, list[Statement]] | empty, []),
            ("sitelinks", dict[str, _Skipped] | empty, []),
            ("lastrevid", Annotated[int, msgspec.Meta(ge=0, le=MOST_COUNTED)], 0),
            ("missing", msgspec.Raw | msgspec.UnsetType, msgspec.UNSET),
        ],
    )
    return msgspec.json.Decoder(entity)


def _by_language(name: str, languages: tuple[str, ...], content: Any) -> type[msgspec.Struct]:  # noqa: ANN401  (a type)
    """Return a record with one field for each language, in order, None where it is absent (null is refused)."""
    rename = {f"in_{rank}": language for rank, language in enumerate(languages)}
    return msgspec.defstruct(name, [(field, content | msgspec.UnsetType, None) for field in rename], rename=rename)
