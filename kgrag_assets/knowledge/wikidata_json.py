"""Reading Wikidata's JSON: one entity a line, the dump's array form, single entities and API answers.

The format: https://doc.wikimedia.org/Wikibase/master/php/docs_topics_json.html.
"""

from __future__ import annotations

import bz2
import gzip
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, cast

from kgrag_assets.knowledge.statements import Statements

_KINDS = {"item": "Q", "property": "P"}
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
        except (OSError, EOFError) as error:
            found.reject(path.name, None, f"the file ends too early or is damaged ({error}): fetch it again", "")
    return found


def _read_file(path: Path, handle: IO[bytes], languages: Sequence[str], found: Statements, *, literals: bool) -> None:
    for number, value, text in _values(path, handle, found):
        for entity in _entities(value):
            reason = _take(entity, languages, found, literals=literals)
            if reason is not None:
                found.reject(path.name, number, reason, text)


def _values(path: Path, handle: IO[bytes], found: Statements) -> Iterator[tuple[int, Any, str]]:
    """Yield line number, parsed value and text of each line; a file that is one value over many lines, whole."""
    for number, raw in enumerate(handle, start=1):
        text = raw.decode("utf-8", "replace").strip().rstrip(",")
        if text in ("", "[", "]"):
            continue
        try:
            yield number, json.loads(text), text
        except json.JSONDecodeError as error:
            if number == 1 and text.startswith("{"):
                whole = (raw + handle.read()).decode("utf-8", "replace")
                try:
                    yield 1, json.loads(whole), whole
                except json.JSONDecodeError:
                    found.reject(path.name, 1, f"not JSON: {error.msg} at character {error.pos + 1}", text)
                else:
                    return
                # Not one value: read on line by line from what was taken in one go.
                for later, line in enumerate(whole.splitlines()[1:], start=2):
                    yield from _value(path, later, line, found)
                return
            found.reject(path.name, number, f"not JSON: {error.msg} at character {error.pos + 1}", text)


def _value(path: Path, number: int, line: str, found: Statements) -> Iterator[tuple[int, Any, str]]:
    text = line.strip().rstrip(",")
    if text in ("", "[", "]"):
        return
    try:
        yield number, json.loads(text), text
    except json.JSONDecodeError as error:
        found.reject(path.name, number, f"not JSON: {error.msg} at character {error.pos + 1}", text)


def _entities(value: Any) -> list[Any]:  # noqa: ANN401  (whatever JSON holds)
    if isinstance(value, dict) and isinstance(value.get("entities"), dict) and "id" not in value:
        return list(value["entities"].values())
    return [value]


def _take(entity: Any, languages: Sequence[str], found: Statements, *, literals: bool) -> str | None:  # noqa: ANN401, PLR0911  (one way out a fault)
    if not isinstance(entity, dict):
        return f"an entity is a JSON object, this is {type(entity).__name__}"
    entity_id, kind = entity.get("id"), entity.get("type")
    if "missing" in entity:
        return f"the server had no entity {entity_id!r}"
    if kind in ("lexeme", "mediainfo", "form", "sense"):
        return None
    if kind not in _KINDS:
        return f"type must be item or property, not {kind!r}"
    if not isinstance(entity_id, str) or entity_id[:1] != _KINDS[kind] or not entity_id[1:].isdigit():
        return f"id {entity_id!r} is not an id of a {kind}"
    parts = {name: entity.get(name) or {} for name in ("labels", "aliases", "descriptions", "claims")}
    for name, part in parts.items():
        if not isinstance(part, dict):
            # An empty map is written as [] by the API; anything else in its place is wrong.
            return f"{name} must be an object, not {type(part).__name__}"
    if not parts["labels"] and not parts["claims"]:
        return "neither labels nor claims: nothing can be said about it"
    found.of(entity_id).listed = True
    _take_names(entity_id, parts, languages, found)
    for relation, statements in parts["claims"].items():
        for statement in statements if isinstance(statements, list) else []:
            _take_statement(entity_id, relation, statement, found, literals=literals)
    return None


def _take_names(entity_id: str, parts: Mapping[str, Any], languages: Sequence[str], found: Statements) -> None:
    for rank, language in enumerate(languages):
        label = _text(parts["labels"].get(language))
        if label:
            found.label(entity_id, label, rank)
        description = _text(parts["descriptions"].get(language))
        if description:
            found.describe(entity_id, description, rank)
        aliases = parts["aliases"].get(language)
        for alias in aliases if isinstance(aliases, list) else []:
            text = _text(alias)
            if text:
                found.of(entity_id).aliases[text] = None


def _text(value: object) -> str:
    text = value.get("value") if isinstance(value, dict) else None
    return " ".join(text.split()) if isinstance(text, str) else ""


def _take_statement(head: str, relation: str, statement: object, found: Statements, *, literals: bool) -> None:
    if not isinstance(statement, dict) or statement.get("rank") == "deprecated":
        return
    snak = statement.get("mainsnak")
    if not isinstance(snak, dict) or snak.get("snaktype") != "value":
        return
    value = snak.get("datavalue")
    content = value.get("value") if isinstance(value, dict) else None
    if isinstance(content, dict) and isinstance(content.get("entity-type"), str):
        tail = content.get("id") or _old_id(content)
        if isinstance(tail, str) and tail[:1] in ("Q", "P"):
            found.edges[head, relation, tail] = None
    elif literals:
        text = _literal(content)
        if text:
            found.literals[head, relation, text] = None


def _old_id(content: Mapping[str, Any]) -> str | None:
    """Older dumps give a number without its letter."""
    letter = _KINDS.get(str(content.get("entity-type")))
    number = content.get("numeric-id")
    return f"{letter}{number}" if letter and isinstance(number, int) else None


def _literal(content: object) -> str:
    if isinstance(content, str):
        return " ".join(content.split())
    if not isinstance(content, dict):
        return ""
    for name in ("text", "time", "amount"):
        if isinstance(content.get(name), str):
            return str(content[name]).lstrip("+")
    return ""
