"""Reading Wikidata's JSON: one entity a line, the dump's array form, single entities and API answers.

The format: https://doc.wikimedia.org/Wikibase/master/php/docs_topics_json.html.
"""

from __future__ import annotations

import bz2
import gzip
import io
import itertools
import json
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, cast

from kgrag_assets.knowledge.statements import Statements, storable

_NO_TEXT = {"value": ""}
_KINDS = {"item": "Q", "property": "P"}
_ID = re.compile(r"[QP][0-9]{1,12}\Z")
_OTHER_ENTITIES = ("lexeme", "form", "sense", "mediainfo", "entity-schema")
# A file that is one entity over many lines is read whole; entities take a few MB at most.
_MAX_WHOLE = 64 << 20
_OPENERS: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open}


def _opened(path: Path) -> IO[bytes]:
    return cast("IO[bytes]", _OPENERS.get(path.suffix, open)(path, "rb"))


def read_wikidata_json(files: Sequence[Path], languages: Sequence[str], *, literals: bool) -> Statements:
    """Read files of Wikidata entities, plain, gzip or bzip2, line by line.

    Items and properties are taken. Lexemes and media files are left aside without a word: they are no
    concepts. Statements of deprecated rank, and those without a value, are not taken.

    Args:
        files: the files.
        languages: languages of names, in order of preference.
        literals: whether statements whose value is no entity are taken too, as text.
    """
    found = Statements()
    for path in files:
        try:
            with _opened(path) as handle:
                _read_file(path, handle, languages, found, literals=literals)
        except (OSError, EOFError, zlib.error) as error:
            found.reject(path.name, None, f"the file ends too early or is damaged ({error}): fetch it again", "")
    return found


def _read_file(path: Path, handle: IO[bytes], languages: Sequence[str], found: Statements, *, literals: bool) -> None:
    for number, value, text in _values(path, handle, found):
        for entity in _entities(value):
            for reason in _take(entity, languages, found, literals=literals):
                found.reject(path.name, number, reason, text)


def _values(path: Path, handle: IO[bytes], found: Statements) -> Iterator[tuple[int, Any, str]]:
    """Yield line number, parsed value and text of each line; a file that is one value over many lines, whole."""
    first = handle.readline().removeprefix(b"\xef\xbb\xbf")
    lines: Iterator[bytes] = itertools.chain([first], handle)
    if first.lstrip()[:1] in (b"{", b"[") and _refusal(first) is not None:
        whole = first + handle.read(_MAX_WHOLE)
        if _refusal(whole) is None:
            text = whole.decode("utf-8")
            yield 1, json.loads(text), text
            return
        lines = itertools.chain(io.BytesIO(whole + handle.readline()), handle)
    for number, raw in enumerate(lines, start=1):
        line = raw.strip().rstrip(b",")
        if line in (b"", b"[", b"]"):
            continue
        problem = _refusal(line)
        if problem is None:
            text = line.decode("utf-8")
            yield number, json.loads(text), text
        else:
            found.reject(path.name, number, problem, line.decode("utf-8", "replace"))


def _refusal(line: bytes) -> str | None:
    """Say why bytes are no JSON, or None where they are."""
    try:
        json.loads(line.decode("utf-8"))
    except UnicodeDecodeError:
        return "the line is not UTF-8"
    except json.JSONDecodeError as error:
        return f"not JSON: {error.msg} at character {error.pos + 1}"
    except (ValueError, RecursionError) as error:  # a number of thousands of digits; brackets without end
        return f"not JSON that can be read: {error}"
    return None


def _entities(value: Any) -> list[Any]:  # noqa: ANN401  (whatever JSON holds)
    if isinstance(value, list):  # the dump's array on one line, or one that is a file of its own
        return value
    if isinstance(value, dict) and isinstance(value.get("entities"), dict) and "id" not in value:
        return list(value["entities"].values())
    return [value]


def _take(entity: Any, languages: Sequence[str], found: Statements, *, literals: bool) -> Iterator[str]:  # noqa: ANN401  (whatever JSON holds)
    """Take one entity, and yield why not, or which of its parts could not be taken."""
    problem = _problem(entity)
    if problem is not None:
        yield problem
        return
    if entity.get("type") in _OTHER_ENTITIES:
        return
    entity_id = entity["id"]
    parts = {name: entity.get(name) or {} for name in ("labels", "aliases", "descriptions", "claims")}
    found.of(entity_id).listed = True
    yield from _take_names(entity_id, parts, languages, found)
    for relation, statements in parts["claims"].items():
        if not _is_id(relation, "P") or not isinstance(statements, list):
            yield f"{entity_id}: claims {relation[:60]!r} is not a property with a list of statements"
            continue
        for statement in statements:
            reason = _take_statement(entity_id, relation, statement, found, literals=literals)
            if reason is not None:
                yield f"{entity_id} {relation}: {reason}"


def _problem(entity: Any) -> str | None:  # noqa: ANN401, PLR0911  (whatever JSON holds; one way out a fault)
    """Say why a value is no entity that can be taken."""
    if not isinstance(entity, dict):
        return f"an entity is a JSON object, this is {type(entity).__name__}"
    entity_id, kind = entity.get("id"), entity.get("type")
    if "missing" in entity:
        return f"the server had no entity {entity_id or entity.get('title')!r}"
    if "error" in entity and entity_id is None:
        return "the server answered with an error instead of entities: fetch it again"
    if kind in _OTHER_ENTITIES:
        return None
    if not isinstance(kind, str) or kind not in _KINDS:
        return f"type must be item or property, not {kind!r}"
    if not _is_id(entity_id, _KINDS[kind]):
        return f"id {entity_id!r} is not an id of a {kind}"
    for name in ("labels", "aliases", "descriptions", "claims"):
        part = entity.get(name) or {}
        if not isinstance(part, dict):
            # An empty map is written as [] by the API; anything else in its place is wrong.
            return f"{name} must be an object, not {type(part).__name__}"
    if not entity.get("labels") and not entity.get("claims"):
        return "neither labels nor claims: nothing can be said about it"
    return None


def _is_id(value: object, letter: str) -> bool:
    return isinstance(value, str) and value[:1] == letter and _ID.match(value) is not None


def _take_names(entity_id: str, parts: Mapping[str, Any], languages: Sequence[str], found: Statements) -> Iterator[str]:
    for rank, language in enumerate(languages):
        for name, take in (("labels", found.label), ("descriptions", found.describe)):
            text = _text(parts[name].get(language, _NO_TEXT))
            if text is None:
                yield f"{entity_id}: {name} {language!r} is not an object with a text as value"
            elif text:
                take(entity_id, text, rank)
        aliases = parts["aliases"].get(language, [])
        texts = [_text(alias) for alias in aliases] if isinstance(aliases, list) else [None]
        if None in texts:
            yield f"{entity_id}: aliases {language!r} is not a list of objects with a text as value"
        found.of(entity_id).aliases.update(dict.fromkeys(text for text in texts if text))


def _text(value: object) -> str | None:
    text = value.get("value") if isinstance(value, dict) else None
    return storable(" ".join(text.split())) if isinstance(text, str) else None


def _take_statement(  # noqa: PLR0911  (one way out a fault)
    head: str, relation: str, statement: object, found: Statements, *, literals: bool
) -> str | None:
    """Take one statement, or say why not; those that are right and not wanted are left aside without a word."""
    if not isinstance(statement, dict):
        return f"a statement is an object, not {type(statement).__name__}"
    snak = statement.get("mainsnak")
    if not isinstance(snak, dict):
        return "the statement has no mainsnak"
    if statement.get("rank") == "deprecated" or snak.get("snaktype") in ("somevalue", "novalue"):
        return None
    value = snak.get("datavalue")
    if not isinstance(value, dict) or "value" not in value:
        return "the statement has no value"
    content = value["value"]
    if isinstance(content, dict) and isinstance(content.get("entity-type"), str):
        if content["entity-type"] in _OTHER_ENTITIES:
            return None
        tail = content.get("id") or _old_id(content)
        if not isinstance(tail, str) or not _ID.match(tail):
            return f"the object {str(tail)[:60]!r} is not an id"
        found.edges[head, relation, tail] = None
    elif literals:
        text = _literal(content)
        if text:
            found.literals[head, relation, storable(text)] = None
    return None


def _old_id(content: Mapping[str, Any]) -> str | None:
    """Older dumps give a number without its letter."""
    letter = _KINDS.get(str(content.get("entity-type")))
    number = content.get("numeric-id")
    return f"{letter}{number}" if letter and type(number) is int else None


def _literal(content: object) -> str:
    if isinstance(content, str):
        return " ".join(content.split())
    if not isinstance(content, dict):
        return ""
    for name in ("text", "time", "amount"):
        if isinstance(content.get(name), str):
            return str(content[name]).lstrip("+")
    return ""
