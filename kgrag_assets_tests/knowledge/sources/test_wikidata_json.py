"""Wikidata's JSON: its forms, what is left aside, what is refused and why, both ways of reading, the real files."""

from __future__ import annotations

import bz2
import copy
import gzip
import json
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from kgrag_assets.knowledge.collector import ALIAS, DESCRIPTION, LABEL, LISTED, RELATION, Collector
from kgrag_assets.knowledge.sources import wikidata_json
from kgrag_assets.knowledge.sources.blocks import BLOCK_BYTES, BlockSource, ReadOptions
from kgrag_assets.knowledge.sources.wikidata_json import WikidataJsonReader, entity_rows

REAL = Path(__file__).parents[3].parent / "shared" / "data" / "wikidata_json"
ALL = ReadOptions(literals=("all",))


def text(value: str, language: str = "en") -> dict[str, str]:
    return {"language": language, "value": value}


def claim(content: object, rank: str = "normal", datatype: str | None = None) -> dict[str, Any]:
    snak = {"snaktype": "value", "property": "P1", "datavalue": {"value": content}}
    return {"rank": rank, "mainsnak": snak | ({} if datatype is None else {"datatype": datatype})}


def item_value(entity_id: str) -> dict[str, str]:
    return {"entity-type": "item", "id": entity_id}


def item(entity_id: str, label: str = "name", **parts: object) -> dict[str, Any]:
    return {"id": entity_id, "type": "item", "labels": {"en": text(label)}, **parts}


def read_file(path: Path, options: ReadOptions = ALL, block_bytes: int = BLOCK_BYTES) -> Collector:
    """Read a file as a load does, all its units into one collector."""
    source = BlockSource([path], path.parent, lambda _path: WikidataJsonReader(), options, block_bytes)
    found = Collector(file=path.name)
    for unit in source.units():
        if isinstance(unit, Collector):
            found.rejects += unit.rejects
        else:
            found.first_row = unit.first_row
            pickle.loads(pickle.dumps(unit)).read(found)  # noqa: S301  (as it goes to another process)
    return found


def read(folder: Path, content: str | bytes, name: str = "a.json", options: ReadOptions = ALL) -> Collector:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_file(path, options)


def rows(entity: object, options: ReadOptions = ALL) -> Collector:
    found = Collector()
    entity_rows(entity, options, found, 1)
    return found


def of(found: Collector, what: int) -> list[tuple[str, str]]:
    return [(local, text_) for local, kind, text_, _rank in found.names if kind == what]


def labels(found: Collector) -> dict[str, str]:
    return dict(of(found, LABEL))


def listed(found: Collector) -> list[str]:
    return [local for local, _text in of(found, LISTED)]


def edges(found: Collector) -> set[tuple[str, str, str]]:
    return {(head, relation, tail) for head, relation, tail, _value, _unit in found.edges if tail is not None}


def literals(found: Collector) -> list[tuple[str, str | None]]:
    return [(value, unit) for _head, _relation, _tail, value, unit in found.edges if value is not None]


def reasons(found: Collector) -> list[str]:
    return [reason for _file, _row, reason, _content in found.rejects]


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
        "\n" + json.dumps([Q1, Q2], indent=2),
        json.dumps({"entities": {"Q1": Q1, "Q2": Q2}, "success": 1}),
        json.dumps({"entities": {"Q1": Q1, "Q2": Q2}}, indent=1),
        "\ufeff" + json.dumps(Q1) + "\n\n" + json.dumps(Q2),
        "\ufeff" + json.dumps([Q1, Q2], indent=2),
    ],
    ids=["lines", "dump", "dump-crlf", "list", "list-indented", "blank", "api", "api-indented", "bom", "bom-indented"],
)
@pytest.mark.parametrize("block_bytes", [1, 100, BLOCK_BYTES])
def test_forms_of_a_file(tmp_path: Path, content: str, block_bytes: int) -> None:
    (tmp_path / "a.json").write_text(content, encoding="utf-8", newline="")
    found = read_file(tmp_path / "a.json", block_bytes=block_bytes)
    assert labels(found) == BOTH
    assert listed(found) == ["Q1", "Q2"]
    assert found.rejects == []


def test_one_entity_over_many_lines(tmp_path: Path) -> None:
    found = read(tmp_path, json.dumps(Q1, indent=4))
    assert (labels(found), found.rejects) == ({"Q1": "one"}, [])


def test_packed_files(tmp_path: Path) -> None:
    lines = json.dumps(Q1).encode() + b"\n"
    assert labels(read(tmp_path, gzip.compress(lines), "a.json.gz")) == {"Q1": "one"}
    assert labels(read(tmp_path, bz2.compress(lines), "a.json.bz2")) == {"Q1": "one"}


LINES = [
    (b"{not json", "not JSON: "),
    (b'{"id": "Q9", ', "not JSON: "),
    (b"[" * 100_000, "not JSON that can be read"),
    (b'{"id": ' + b"9" * 10_000 + b"}", "not JSON that can be read"),
    (b'{"id": "Q9", "type": "item", "labels": {"en": {"value": "caf\xe9"}}}', "the line is not UTF-8"),
    (b'{"id": "Q9", "type": "item", "labels": {"en": {"value": "x"}}, "title": "\xe9"}', "the line is not UTF-8"),
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
    (b'{"id": "Q9", "type": "item", "labels": {"en": {"value": "x"}}, "missing": ""}', "the server had no entity 'Q9'"),
    (b'{"id": "L9", "type": "lexeme", "missing": ""}', "the server had no entity 'L9'"),
    (b'{"entities": {"-1": {"title": "Nowhere", "missing": ""}}}', "the server had no entity 'Nowhere'"),
    (b'{"error": {"code": "no-such-entity"}}', "the server answered with an error"),
]


@pytest.mark.parametrize(("line", "reason"), LINES)
@pytest.mark.parametrize("first", [True, False])
def test_one_bad_line_is_refused_and_loses_no_other(tmp_path: Path, line: bytes, reason: str, first: bool) -> None:
    good = [json.dumps(Q1).encode(), json.dumps(Q2).encode()]
    found = read(tmp_path, b"\n".join([line, *good] if first else [good[0], line, good[1]]))
    ((_file, row, said, content),) = found.rejects
    assert row == (1 if first else 2)
    assert said.startswith(reason)
    assert len(content) <= 500
    assert labels(found) == BOTH


def test_a_row_is_counted_over_all_blocks_of_a_file(tmp_path: Path) -> None:
    lines = [json.dumps(item(f"Q{number}")) for number in range(1, 200)]
    lines[150] = "{broken"
    (tmp_path / "a.json").write_text("[\n" + ",\n".join(lines) + "\n]")
    found = read_file(tmp_path / "a.json", block_bytes=1000)
    assert [row for _file, row, _reason, _content in found.rejects] == [152]
    assert len(labels(found)) == 198


def test_line_separators_within_a_text_end_no_line(tmp_path: Path) -> None:
    good = json.dumps(item("Q1", "one\u2028two\x85three"), ensure_ascii=False)
    found = read(tmp_path, "{broken\n" + good)
    assert labels(found) == {"Q1": "one two three"}
    assert [row for _file, row, _reason, _content in found.rejects] == [1]


def test_a_lone_surrogate_is_written_so_that_a_table_can_hold_it(tmp_path: Path) -> None:
    found = read(tmp_path, '{"id": "Q1", "type": "item", "labels": {"en": {"value": "a\\ud800b"}}}')
    assert labels(found) == {"Q1": "a?b"}
    assert found.frames("wd", 4).names.height == 2


def test_languages_in_order_of_preference() -> None:
    parts = {
        "labels": {"de": text("Kranker", "de"), "fr": text("malade", "fr"), "en": text("  ")},
        "descriptions": {"fr": text("une personne", "fr")},
        "aliases": {"de": [text("Patient", "de"), text("Kranke", "de")], "it": [text("malato", "it")]},
    }
    entity = {"id": "Q1", "type": "item", **parts}
    found = rows(entity, ReadOptions(languages=("en", "fr", "de", "it")))
    assert [row for row in found.names if row[1] == LABEL] == [("Q1", LABEL, "malade", 1)]
    assert of(found, DESCRIPTION) == [("Q1", "une personne")]
    assert [row[2:] for row in found.names if row[1] == ALIAS] == [("Patient", 2), ("Kranke", 2), ("malato", 3)]
    other = rows(entity, ReadOptions(languages=("es",)))
    assert (other.names, other.rejects) == ([("Q1", LISTED, "", 0)], [])


def test_counts_and_relations() -> None:
    claims = {"P1": [claim(item_value("Q5")), claim("x", rank="deprecated")], "P2": [claim("y")]}
    found = rows(item("Q1", claims=claims, sitelinks={"enwiki": {"title": "x"}, "dewiki": {}}, lastrevid=12))
    assert found.counts == [("Q1", 2, 3, 12)]
    assert of(found, RELATION) == []
    found = rows({"id": "P7", "type": "property", "labels": {"en": text("part of")}})
    assert (found.counts, of(found, RELATION), listed(found)) == ([("P7", 0, 0, 0)], [("P7", "")], ["P7"])


def test_statements_left_aside() -> None:
    claims = {
        "P31": [
            claim(item_value("Q5")),
            claim(item_value("Q6"), rank="deprecated"),
            claim(item_value("Q7"), rank="preferred"),
            {"rank": "normal", "mainsnak": {"snaktype": "somevalue"}},
            {"rank": "normal", "mainsnak": {"snaktype": "novalue"}},
            claim({"entity-type": "lexeme", "id": "L1"}),
            claim({"entity-type": "entity-schema", "id": "E1"}),
        ],
        "P2": [claim({"entity-type": "item", "numeric-id": 42}), claim({"entity-type": "property", "numeric-id": 3})],
    }
    found = rows(item("Q1", claims=claims))
    assert found.rejects == []
    assert edges(found) == {("Q1", "P31", "Q5"), ("Q1", "P31", "Q7"), ("Q1", "P2", "Q42"), ("Q1", "P2", "P3")}


def test_the_best_rank_of_each_property() -> None:
    unknown = {"rank": "preferred", "mainsnak": {"snaktype": "somevalue"}}
    claims = {
        "P1": [claim(item_value("Q1")), claim(item_value("Q2"), "preferred"), claim(item_value("Q3"), "preferred")],
        "P2": [claim(item_value("Q4")), claim(item_value("Q5"), "deprecated")],
        "P3": [claim(item_value("Q6"), "deprecated")],
        # The best that is known is that it is not known.
        "P4": [claim(item_value("Q7")), unknown],
    }
    found = rows(item("Q9", claims=claims), ReadOptions(ranks="best"))
    assert edges(found) == {("Q9", "P1", "Q2"), ("Q9", "P1", "Q3"), ("Q9", "P2", "Q4")}
    assert found.counts == [("Q9", 0, 8, 0)]


def test_literals_of_the_chosen_kinds() -> None:
    claims = {
        "P1": [claim("abc", datatype="string"), claim("id-7", datatype="external-id")],
        "P2": [claim("http://a.b", datatype="url"), claim("a.jpg", datatype="commonsMedia")],
        "P3": [claim({"text": "hello", "language": "en"}, datatype="monolingualtext")],
        "P4": [claim({"text": "hallo", "language": "de"}, datatype="monolingualtext")],
        "P5": [claim({"time": "+1952-03-11T00:00:00Z", "precision": 11}, datatype="time")],
        "P6": [claim({"amount": "+7", "unit": "http://www.wikidata.org/entity/Q11573"}, datatype="quantity")],
        "P7": [claim("older files do not say the datatype")],
        "P8": [claim(7), claim(None), claim(["x"]), claim({}), claim("x", datatype="newer")],
    }

    def taken(*kinds: str) -> list[tuple[str, str | None]]:
        found = rows(item("Q1", claims=claims), ReadOptions(literals=kinds))
        assert found.rejects == []
        return literals(found)

    assert taken() == []
    assert taken("string") == [("abc", None), ("older files do not say the datatype", None)]
    assert taken("commons-media", "url") == [("http://a.b", None), ("a.jpg", None)]
    assert taken("time", "quantity") == [("11 March 1952", None), ("7", "Q11573")]
    assert taken("monolingualtext") == [("hello", None)]
    assert len(taken("all")) == 9


def test_relations_that_are_not_wanted() -> None:
    claims = {"P1": [claim(item_value("Q5"))], "P2": [claim(item_value("Q6"))], "P3": [claim(item_value("Q7"))]}
    found = rows(item("Q1", claims=claims), ReadOptions(relations=("P1",), always_relations=("P3",)))
    assert edges(found) == {("Q1", "P1", "Q5"), ("Q1", "P3", "Q7")}
    assert found.counts == [("Q1", 0, 3, 0)]
    found = rows(item("Q1", claims=claims), ReadOptions(without_relations=("P1", "P3")))
    assert edges(found) == {("Q1", "P2", "Q6")}


@pytest.mark.parametrize(
    ("limits", "kept"),
    [
        ({"min_sitelinks": 2}, True),
        ({"min_sitelinks": 3}, False),
        ({"min_statements": 3}, True),
        ({"min_statements": 4}, False),
        ({"min_sitelinks": 2, "min_statements": 4}, False),
    ],
)
def test_entities_below_the_limits_leave_their_label_and_what_classes_need(
    tmp_path: Path, limits: dict[str, int], kept: bool
) -> None:
    parts = {
        "descriptions": {"en": text("a thing")},
        "aliases": {"en": [text("other")]},
        "claims": {"P31": [claim(item_value("Q5")), claim("x")], "P2": [claim(item_value("Q6"))]},
        "sitelinks": {"enwiki": {}, "dewiki": {}},
    }
    options = ReadOptions(literals=("all",), always_relations=("P31",), **limits)  # type: ignore[arg-type]
    found = read(tmp_path, json.dumps(item("Q1", "one", **parts)), options=options)
    assert labels(found) == {"Q1": "one"}
    if kept:
        assert (len(found.names), len(found.edges), len(found.counts)) == (4, 3, 1)
    else:
        assert found.names == [("Q1", LABEL, "one", 0)]
        assert found.edges == [("Q1", "P31", "Q5", None, None)]
        assert found.counts == []
    relation = {"id": "P9", "type": "property", "labels": {"en": text("x")}}
    assert listed(rows(relation, options)) == ["P9"]


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        ({"claims": {"P1": "Q5", "P2": [claim(item_value("Q5"))]}}, "Q1: claims 'P1' is not a property"),
        ({"claims": {"no id": [claim("x")], "P2": [claim(item_value("Q5"))]}}, "Q1: claims 'no id' is not a property"),
        ({"claims": {"P2": [claim(item_value("Q5")), 7]}}, "Q1 P2: a statement is an object, not int"),
        ({"claims": {"P2": [claim(item_value("Q5")), {}]}}, "Q1 P2: the statement has no mainsnak"),
        ({"claims": {"P2": [claim(item_value("Q5")), {"mainsnak": {}}]}}, "Q1 P2: the statement has no value"),
        ({"claims": {"P2": [claim(item_value("Q5")), claim(item_value("Qx"))]}}, "Q1 P2: the object 'Qx' is not an id"),
        (
            {"claims": {"P2": [claim(item_value("Q5")), claim({"amount": "+3", "unit": "m"})]}},
            "Q1 P2: the unit 'm' is not an item",
        ),
        ({"claims": {"P2": [claim(item_value("Q5"))]}, "aliases": {"en": "x"}}, "Q1: aliases 'en' is not a list"),
        ({"claims": {"P2": [claim(item_value("Q5"))]}, "descriptions": {"en": "x"}}, "Q1: descriptions 'en' is not"),
    ],
)
def test_a_bad_part_loses_no_other(tmp_path: Path, parts: dict[str, object], reason: str) -> None:
    found = read(tmp_path, json.dumps(item("Q1", "one", **parts)))
    (said,) = reasons(found)
    assert said.startswith(reason)
    assert labels(found) == {"Q1": "one"}
    assert found.edges == [("Q1", "P2", "Q5", None, None)]


@pytest.mark.parametrize("kind", ["lexeme", "mediainfo", "form"])
def test_other_kinds_are_left_aside_without_a_word(tmp_path: Path, kind: str) -> None:
    found = read(tmp_path, json.dumps({"id": "L1", "type": kind}))
    assert (found.names, found.rejects) == ([], [])


LEXEME = {
    "id": "L1",
    "type": "lexeme",
    "lemmas": {"en": text("bank"), "en-gb": text("bank", "en-gb")},
    "language": "Q1860",
    "lexicalCategory": "Q1084",
    "lastrevid": 5,
    "claims": {"P1": [claim("x"), claim({"entity-type": "form", "id": "L9-F2"})]},
    "forms": [
        {"id": "L1-F1", "representations": {"en": text("bank")}, "claims": []},
        {"id": "L1-F2", "representations": {"en": text("banks")}, "claims": {"P3": [claim(item_value("Q3"))]}},
    ],
    "senses": [
        {"id": "L1-S1", "glosses": {"en": text("place for money")}, "claims": {"P5137": [claim(item_value("Q22687"))]}},
        {
            "id": "L1-S2",
            "glosses": {"en": text("side of a river"), "de": text("Ufer", "de")},
            "claims": {
                "P5972": [
                    claim({"entity-type": "sense", "id": "L34791-S1"}),
                    claim({"entity-type": "sense", "id": "L1-S1"}),
                ]
            },
        },
    ],
}


def test_lexemes_where_they_are_wanted(tmp_path: Path) -> None:
    options = ReadOptions(lexemes=True, literals=("string",), min_sitelinks=5)
    found = read(tmp_path, json.dumps(LEXEME), options=options)
    assert found.rejects == []
    assert (labels(found), listed(found)) == ({"L1": "bank"}, ["L1"])
    assert of(found, ALIAS) == [("L1", "banks")]
    assert of(found, DESCRIPTION) == [("L1", "place for money; side of a river")]
    # A lexeme stands for its senses and, as a value, for its forms.
    assert edges(found) == {("L1", "P1", "L9"), ("L1", "P5137", "Q22687"), ("L1", "P5972", "L34791")}
    assert literals(found) == [("x", None)]
    assert found.counts == [("L1", 0, 5, 5)]
    value = item("Q1", claims={"P1": [claim({"entity-type": "sense", "id": "L2-S1"})]})
    assert edges(rows(value, ReadOptions(lexemes=True))) == {("Q1", "P1", "L2")}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"id": "L1-F1"}, "id 'L1-F1' is not an id of a lexeme"),
        ({"lemmas": 3}, "lemmas must be an object, not int"),
        ({"lemmas": {}, "claims": []}, "neither lemmas nor claims"),
        ({"forms": 3}, "L1: forms is not a list of objects with representations"),
        ({"forms": [{"representations": {"en": "x"}}]}, "L1: representations 'en' is not an object with a text"),
        ({"senses": [{"glosses": 7}]}, "L1: senses is not a list of objects with glosses"),
        ({"senses": [{"claims": 7}]}, "L1: claims must be an object, not int"),
        ({"claims": {"P1": [claim({"entity-type": "form", "id": "Q2"})]}}, "L1 P1: the object 'Q2' is not an id"),
    ],
)
def test_bad_lexemes(change: dict[str, object], reason: str) -> None:
    found = rows(LEXEME | change, ReadOptions(lexemes=True))
    (said,) = reasons(found)
    assert said.startswith(reason)


# Both ways of reading give the same.


def both(block: bytes, options: ReadOptions) -> Iterator[Collector]:
    for slowly in (False, True):
        found = Collector()
        decoded = (lambda *_arguments: False) if slowly else wikidata_json._decoded
        with mock.patch.object(wikidata_json, "_decoded", decoded):
            WikidataJsonReader().read(block, b"", options, found, first=False)
        yield found


def assert_same(block: bytes, options: ReadOptions = ALL) -> Collector:
    fast, slow = both(block, options)
    assert fast.names == slow.names
    assert fast.edges == slow.edges
    assert fast.counts == slow.counts
    assert sorted(fast.rejects) == sorted(slow.rejects)
    return fast


CHOICES = [
    ReadOptions(),
    ALL,
    ReadOptions(languages=("de", "en", "mul", "de"), literals=("time", "monolingualtext"), ranks="best"),
    ReadOptions(min_sitelinks=100, always_relations=("P31", "P279"), relations=("P31",), literals=("all",)),
    ReadOptions(lexemes=True, min_statements=50),
]


@pytest.mark.parametrize("options", CHOICES)
def test_real_lines_are_read_the_same_both_ways(options: ReadOptions) -> None:
    found = assert_same(real_bytes("dump/entities"), options)
    assert found.rejects == []
    assert found.edges


@pytest.mark.parametrize("options", CHOICES)
@pytest.mark.parametrize("entity", [*sorted(path.name for path in REAL.glob("*/*.json"))])
def test_real_answers_are_read_the_same_both_ways(entity: str, options: ReadOptions) -> None:
    (path,) = REAL.glob(f"*/{entity}")
    document = json.loads(path.read_bytes())
    found = list(document["entities"].values()) if "entities" in document else [document]
    assert_same(b"\n".join(json.dumps(value).encode() for value in found), options)


def test_lines_are_decoded_the_fast_way() -> None:
    with mock.patch.object(wikidata_json, "checked_rows", side_effect=AssertionError("parsed the slow way")):
        found = Collector()
        WikidataJsonReader().read(real_bytes("dump/entities"), b"", ALL, found, first=True)
    assert len(listed(found)) == 49


@pytest.mark.parametrize("line", [line for line, _reason in LINES])
def test_bad_lines_are_refused_the_same_both_ways(line: bytes) -> None:
    assert assert_same(line).rejects


FULL = item(
    "Q1",
    "one",
    descriptions={"en": text("a thing")},
    aliases={"en": [text("uno"), text("un")], "fr": []},
    claims={
        "P31": [claim(item_value("Q5"), "preferred", "wikibase-item"), claim(item_value("Q6"))],
        "P2": [claim({"time": "+1952-03-11T00:00:00Z", "precision": 11}, datatype="time")],
        "P3": [claim({"amount": "+7", "unit": "http://www.wikidata.org/entity/Q11573"}, datatype="quantity")],
        "P4": [claim({"latitude": 57, "longitude": -5.25, "precision": None, "globe": "Q2"}, datatype="string")],
        "P5": [claim("text"), {"mainsnak": {"snaktype": "novalue"}, "rank": "normal"}],
        "P6": [claim({"text": "x", "language": "en"}), claim({"entity-type": "item", "numeric-id": 4})],
    },
    sitelinks={"enwiki": {"site": "enwiki", "badges": []}},
    lastrevid=3,
)

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3)
    | st.sampled_from(["Q7", "L1", "P8", "item", "property", "lexeme", "sense", "deprecated", "somevalue", "url", "1"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["en", "id", "value", "x"]), inner),
    max_leaves=4,
)  # fmt: skip


def places(value: object) -> list[tuple[Any, Any]]:
    """Return every (container, key) within a JSON value."""
    pairs = (
        list(value.items()) if isinstance(value, dict) else list(enumerate(value)) if isinstance(value, list) else []
    )
    return [(value, key) for key, _inner in pairs] + [place for _key, inner in pairs for place in places(inner)]


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data(), st.sampled_from(CHOICES), st.sampled_from([FULL, FULL, LEXEME]))
def test_whatever_stands_in_an_entity_is_read_the_same_both_ways(
    data: st.DataObject, options: ReadOptions, whole: dict[str, Any]
) -> None:
    entity = copy.deepcopy(whole)
    for _ in range(data.draw(st.integers(1, 3))):
        container, key = data.draw(st.sampled_from(places(entity)))
        action = data.draw(st.sampled_from(["replace", "remove", "rename"]))
        if action == "replace" or isinstance(container, list):
            container[key] = data.draw(JSON_VALUES)
        else:
            value = container.pop(key)
            if action == "rename":
                container[data.draw(st.sampled_from(["missing", "en", "value", "P9", "x", "error", "entities"]))] = (
                    value
                )
    found = assert_same(json.dumps(entity).encode(), options)
    found.frames("wd", 4)  # a table can hold it


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 10_000), st.binary(max_size=2), st.integers(0, 3))
@example(0, b"\xef\xbb\xbf", 0)
def test_damaged_bytes_are_read_the_same_both_ways(place: int, put: bytes, cut: int) -> None:
    line = json.dumps(FULL, separators=(",", ":")).encode()
    at = place % len(line)
    assert_same(line[:at] + put.replace(b"\n", b" ") + line[at + cut :])


# The real files.


def real_bytes(name: str) -> bytes:
    if not REAL.is_dir():
        pytest.skip("Wikidata's files are not on this machine")
    return (REAL / name).read_bytes()


@pytest.mark.parametrize("block_bytes", [200_000, BLOCK_BYTES])
def test_real_lines_of_a_dump(block_bytes: int) -> None:
    real_bytes("dump/entities")
    found = read_file(REAL / "dump" / "entities", block_bytes=block_bytes)
    assert found.rejects == []
    assert len(listed(found)) == 49
    assert labels(found)["Q22"] == "Scotland"
    assert all(sitelinks > 0 and statements > 0 for _local, sitelinks, statements, _revision in found.counts)


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
    real_bytes(name)
    found = read_file(REAL / name, ReadOptions(), block_bytes=1000)
    assert labels(found) == expected
    assert len(found.rejects) == refused
    assert bool(found.edges) == bool(expected)


def test_real_lexemes() -> None:
    real_bytes("datamodel/wd_L3354.json")
    found = read_file(REAL / "datamodel" / "wd_L3354.json", ReadOptions(lexemes=True))
    assert (labels(found), of(found, ALIAS), found.rejects) == ({"L3354": "bank"}, [("L3354", "banks")], [])
    assert {("L3354", "P5137", "Q22687"), ("L3354", "P5972", "L34791")} <= edges(found)
