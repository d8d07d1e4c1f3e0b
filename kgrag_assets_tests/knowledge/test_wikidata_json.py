"""Wikidata's JSON: its forms, what is left aside, what is refused and why, and the real files."""

from __future__ import annotations

import bz2
import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from kgrag_assets.knowledge.statements import Statements
from kgrag_assets.knowledge.wikidata_json import read_wikidata_json

REAL = Path(__file__).parents[2].parent / "shared" / "data" / "wikidata_json"


def text(value: str, language: str = "en") -> dict[str, str]:
    return {"language": language, "value": value}


def claim(content: object, rank: str = "normal") -> dict[str, Any]:
    return {"rank": rank, "mainsnak": {"snaktype": "value", "datavalue": {"value": content}}}


def item_value(entity_id: str) -> dict[str, str]:
    return {"entity-type": "item", "id": entity_id}


def item(entity_id: str, label: str = "name", **parts: object) -> dict[str, Any]:
    return {"id": entity_id, "type": "item", "labels": {"en": text(label)}, **parts}


def read(folder: Path, content: str | bytes, name: str = "a.json", languages: tuple[str, ...] = ("en",)) -> Statements:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_wikidata_json([path], languages, literals=True)


def labels(found: Statements) -> dict[str, str | None]:
    return {name: names.label for name, names in found.names.items()}


Q1, Q2 = item("Q1", "one"), item("Q2", "two")
BOTH = {"Q1": "one", "Q2": "two"}


@pytest.mark.parametrize(
    "content",
    [
        "\n".join(map(json.dumps, (Q1, Q2))),
        "[\n" + ",\n".join(map(json.dumps, (Q1, Q2))) + "\n]\n",
        "[\r\n" + ",\r\n".join(map(json.dumps, (Q1, Q2))) + "\r\n]\r\n",
        json.dumps([Q1, Q2]),
        json.dumps([Q1, Q2], indent=2),
        json.dumps({"entities": {"Q1": Q1, "Q2": Q2}, "success": 1}),
        json.dumps({"entities": {"Q1": Q1, "Q2": Q2}}, indent=1),
        "\ufeff" + json.dumps(Q1) + "\n\n" + json.dumps(Q2),
    ],
    ids=["lines", "dump", "dump-crlf", "list", "list-indented", "api", "api-indented", "bom"],
)
def test_forms_of_a_file(tmp_path: Path, content: str) -> None:
    found = read(tmp_path, content)
    assert labels(found) == BOTH
    assert found.rejected == []


def test_one_entity_over_many_lines(tmp_path: Path) -> None:
    found = read(tmp_path, json.dumps(Q1, indent=4))
    assert (labels(found), found.rejected) == ({"Q1": "one"}, [])


def test_packed_files(tmp_path: Path) -> None:
    lines = json.dumps(Q1).encode() + b"\n"
    assert labels(read(tmp_path, gzip.compress(lines), "a.json.gz")) == {"Q1": "one"}
    assert labels(read(tmp_path, bz2.compress(lines), "a.json.bz2")) == {"Q1": "one"}


@pytest.mark.parametrize("name", ["a.json.gz", "a.json.bz2"])
def test_a_damaged_packed_file_is_refused(tmp_path: Path, name: str) -> None:
    lines = "".join(json.dumps(item(f"Q{number}", str(number * 7919))) + "\n" for number in range(1, 5000)).encode()
    packed = gzip.compress(lines) if name.endswith("gz") else bz2.compress(lines)
    middle = len(packed) // 2
    flipped = packed[:middle] + bytes(byte ^ 0xFF for byte in packed[middle : middle + 300]) + packed[middle + 300 :]
    for content in (packed[:middle], flipped, b"nothing packed"):
        found = read(tmp_path, content, name)
        assert found.rejected[-1].row is None
        assert "ends too early or is damaged" in found.rejected[-1].reason


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"{not json", "not JSON"),
        (b'{"id": "Q9", ', "not JSON"),
        (b"[" * 100_000, "not JSON that can be read"),
        (b'{"id": ' + b"9" * 10_000 + b"}", "not JSON that can be read"),
        (b'{"id": "Q9", "type": "item", "labels": {"en": {"value": "caf\xe9"}}}', "the line is not UTF-8"),
        (b"7", "an entity is a JSON object, this is int"),
        (b'"Q9"', "an entity is a JSON object, this is str"),
        (b"null", "an entity is a JSON object, this is NoneType"),
        (b"[[]]", "an entity is a JSON object, this is list"),
        (b"{}", "type must be item or property, not None"),
        (b'{"id": "Q9", "type": ["item"]}', "type must be item or property, not ['item']"),
        (b'{"id": "Q9", "type": "concept"}', "type must be item or property, not 'concept'"),
        (b'{"id": "P9", "type": "item", "labels": {"en": {"value": "x"}}}', "id 'P9' is not an id of a item"),
        ('{"id": "Q²", "type": "item", "labels": {}}'.encode(), "id 'Q²' is not an id of a item"),
        (b'{"id": 9, "type": "item"}', "id 9 is not an id of a item"),
        (b'{"type": "property", "labels": {}}', "id None is not an id of a property"),
        (b'{"id": "Q9", "type": "item", "labels": [], "claims": {}}', "neither labels nor claims"),
        (b'{"id": "Q9", "type": "item", "labels": "x"}', "labels must be an object, not str"),
        (b'{"id": "Q9", "type": "item", "claims": [1]}', "claims must be an object, not list"),
        (b'{"id": "Q9", "missing": ""}', "the server had no entity 'Q9'"),
        (b'{"entities": {"-1": {"title": "Nowhere", "missing": ""}}}', "the server had no entity 'Nowhere'"),
        (b'{"error": {"code": "no-such-entity"}}', "the server answered with an error"),
    ],
)
@pytest.mark.parametrize("first", [True, False])
def test_one_bad_line_is_refused_and_loses_no_other(tmp_path: Path, line: bytes, reason: str, first: bool) -> None:
    good = [json.dumps(Q1).encode(), json.dumps(Q2).encode()]
    lines = [line, *good] if first else [good[0], line, good[1]]
    found = read(tmp_path, b"\n".join(lines))
    (rejected,) = found.rejected
    assert rejected.row == (1 if first else 2)
    assert rejected.reason.startswith(reason)
    assert len(rejected.content) <= 500
    assert labels(found) == BOTH


def test_line_separators_within_a_text_end_no_line(tmp_path: Path) -> None:
    good = json.dumps(item("Q1", "one\u2028two\x85three"), ensure_ascii=False)
    found = read(tmp_path, "{broken\n" + good)
    assert labels(found) == {"Q1": "one two three"}
    assert [item_.row for item_ in found.rejected] == [1]


def test_a_lone_surrogate_is_written_so_that_a_table_can_hold_it(tmp_path: Path) -> None:
    found = read(tmp_path, '{"id": "Q1", "type": "item", "labels": {"en": {"value": "a\\ud800b"}}}')
    assert labels(found) == {"Q1": "a?b"}


def test_languages_in_order_of_preference(tmp_path: Path) -> None:
    parts = {
        "labels": {"de": text("Kranker", "de"), "fr": text("malade", "fr")},
        "descriptions": {"fr": text("une personne", "fr")},
        "aliases": {"de": [text("Patient", "de"), text("Kranke", "de")], "it": [text("malato", "it")]},
    }
    content = json.dumps({"id": "Q1", "type": "item", **parts})
    names = read(tmp_path, content, languages=("en", "fr", "de")).names["Q1"]
    assert (names.label, names.description) == ("malade", "une personne")
    assert list(names.aliases) == ["Patient", "Kranke"]
    other = read(tmp_path, content, languages=("es",))
    assert (other.names["Q1"].label, other.names["Q1"].listed, other.rejected) == (None, True, [])


def test_statements_left_aside(tmp_path: Path) -> None:
    claims = {
        "P31": [
            claim(item_value("Q5")),
            claim(item_value("Q6"), rank="deprecated"),
            claim(item_value("Q7"), rank="preferred"),
            {"rank": "normal", "mainsnak": {"snaktype": "somevalue"}},
            {"rank": "normal", "mainsnak": {"snaktype": "novalue"}},
            claim({"entity-type": "lexeme", "id": "L1"}),
        ],
        "P2": [claim({"entity-type": "item", "numeric-id": 42}), claim({"entity-type": "property", "numeric-id": 3})],
    }
    found = read(tmp_path, json.dumps(item("Q1", claims=claims)))
    assert found.rejected == []
    assert set(found.edges) == {("Q1", "P31", "Q5"), ("Q1", "P31", "Q7"), ("Q1", "P2", "Q42"), ("Q1", "P2", "P3")}


@pytest.mark.parametrize(
    ("content", "value"),
    [
        ("plain  text", "plain text"),
        ({"text": "a title", "language": "en"}, "a title"),
        ({"time": "+1952-03-11T00:00:00Z", "precision": 11}, "1952-03-11T00:00:00Z"),
        ({"amount": "+17", "unit": "1"}, "17"),
        ({"amount": "-3", "unit": "1"}, "-3"),
    ],
)
def test_literals(tmp_path: Path, content: object, value: str) -> None:
    line = json.dumps(item("Q1", claims={"P1": [claim(content)]}))
    assert list(read(tmp_path, line).literals) == [("Q1", "P1", value)]
    assert not read_wikidata_json([tmp_path / "a.json"], ["en"], literals=False).literals


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        ({"claims": {"P1": "Q5", "P2": [claim(item_value("Q5"))]}}, "Q1: claims 'P1' is not a property"),
        ({"claims": {"no id": [claim("x")], "P2": [claim(item_value("Q5"))]}}, "Q1: claims 'no id' is not a property"),
        ({"claims": {"P2": [claim(item_value("Q5")), 7]}}, "Q1 P2: a statement is an object, not int"),
        ({"claims": {"P2": [claim(item_value("Q5")), {}]}}, "Q1 P2: the statement has no mainsnak"),
        ({"claims": {"P2": [claim(item_value("Q5")), {"mainsnak": {}}]}}, "Q1 P2: the statement has no value"),
        ({"claims": {"P2": [claim(item_value("Q5")), claim(item_value("Qx"))]}}, "Q1 P2: the object 'Qx' is not an id"),
        ({"claims": {"P2": [claim(item_value("Q5"))]}, "aliases": {"en": "x"}}, "Q1: aliases 'en' is not a list"),
        ({"claims": {"P2": [claim(item_value("Q5"))]}, "descriptions": {"en": "x"}}, "Q1: descriptions 'en' is not"),
    ],
)
def test_a_bad_part_loses_no_other(tmp_path: Path, parts: dict[str, object], reason: str) -> None:
    found = read(tmp_path, json.dumps(item("Q1", "one", **parts)))
    (rejected,) = found.rejected
    assert rejected.reason.startswith(reason)
    assert labels(found) == {"Q1": "one"}
    assert list(found.edges) == [("Q1", "P2", "Q5")]


@pytest.mark.parametrize("kind", ["lexeme", "mediainfo"])
def test_other_kinds_are_left_aside_without_a_word(tmp_path: Path, kind: str) -> None:
    found = read(tmp_path, json.dumps({"id": "L1", "type": kind}))
    assert (found.names, found.rejected) == ({}, [])


def real(*names: str) -> Statements:
    if not REAL.is_dir():
        pytest.skip("Wikidata's files are not on this machine")
    return read_wikidata_json([REAL.joinpath(name) for name in names], ["en"], literals=False)


def test_real_lines_of_a_dump() -> None:
    found = real("dump/entities")
    assert found.rejected == []
    assert sum(names.listed for names in found.names.values()) == 49
    assert found.names["Q22"].label == "Scotland"


@pytest.mark.parametrize(
    ("name", "expected", "refused"),
    [
        ("api/wbgetentites-Oliver-Kahn.json", {"Q131261": "Oliver Kahn"}, 0),
        ("api/wbgetentities-1234567890-missing.json", {}, 1),
        ("api/wbgetentities-Douglas-Adams.json", {"Q42": "Douglas Adams"}, 0),
        ("api/wbgetentities-Q1.json", {"Q1": "universe"}, 0),
        ("api/wbgetentities-Q32063953.json", {"Q1040": "Karlsruhe"}, 0),
        ("api/wbgetentities-Q6-Q42-P31.json", {"Q42": "Douglas Adams", "P31": "instance of"}, 1),
        ("api/wbgetentities-RandomImage.jpg.json", {}, 0),
        ("api/wbgetentities-bogus.json", {}, 1),
        ("api/wbgetentities-missing-mid.json", {}, 1),
        ("api/wbgetentities-titles.json", {}, 0),
        ("api/wbgetentities-virtual-Test.jpg.json", {}, 1),
        ("datamodel/item.json", {"Q34987": "Bile"}, 0),
        ("datamodel/lexeme.json", {}, 0),
        ("datamodel/mediainfo.json", {}, 0),
        ("datamodel/property.json", {"P3467": "Inventario Sculture - Polo Museale Fiorentino"}, 0),
        ("datamodel/wd_L3354.json", {}, 0),
        ("datamodel/wd_P279.json", {"P279": "subclass of"}, 0),
        ("datamodel/wd_Q42.json", {"Q42": "Douglas Adams"}, 0),
    ],
)
def test_real_answers_and_entities(name: str, expected: dict[str, str], refused: int) -> None:
    found = real(name)
    assert labels(found) == expected
    assert len(found.rejected) == refused
    assert bool(found.edges) == bool(expected)
