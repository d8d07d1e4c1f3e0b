"""Wikidata5M's files: told apart by name or by their lines, read, and what is refused."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from kgrag_assets.knowledge.collector import Collector
from kgrag_assets.knowledge.sources.blocks import ReadOptions
from kgrag_assets.knowledge.sources.lines import MAX_DESCRIPTION, shortened
from kgrag_assets.knowledge.sources.wikidata5m import Wikidata5MReader, files_of, reader_of
from kgrag_assets_tests.knowledge.sources.reading import Found, read_files

ENTITIES = "Q42\tDouglas Adams\tDouglas  Noel Adams\tDNA\tDouglas Adams\nQ5\thuman\tpeople\n"
RELATIONS = "P31\tinstance of\tis a\nP106\toccupation\n"
TEXTS = (
    "Q42\tDouglas Noel Adams was an English author, best known for a trilogy of five books. He was born in 1952. "
    + "He wrote more. " * 40
    + "\n"
)
TRIPLES = "Q42\tP31\tQ5\nQ42\tP106\tQ36180\nQ5\tP31\tQ55983715\n"
PLAIN = ReadOptions()


def write(folder: Path, **files: str) -> Path:
    for name, content in files.items():
        (folder / f"{name}.txt").write_text(content, encoding="utf-8", newline="")
    return folder


def read(folder: Path, options: ReadOptions = PLAIN, block_bytes: int = 1 << 20) -> Found:
    return read_files(files_of(folder), reader_of, options, root=folder, block_bytes=block_bytes)


@pytest.mark.parametrize("block_bytes", [1, 50, 1 << 20])
@pytest.mark.parametrize(
    "names",
    [
        ("wikidata5m_entity", "wikidata5m_relation", "wikidata5m_text", "wikidata5m_transductive_train"),
        ("wikidata5m_entity", "wikidata5m_relation", "wikidata5m_text", "wikidata5m_all_triplet"),
        ("wikidata5m_entity", "wikidata5m_relation", "wikidata5m_text", "wikidata5m_inductive_valid"),
        ("a", "b", "c", "d"),
    ],
)
def test_files_are_told_apart_by_name_or_by_their_lines(
    tmp_path: Path, names: tuple[str, str, str, str], block_bytes: int
) -> None:
    found = read(
        write(tmp_path, **dict(zip(names, (ENTITIES, RELATIONS, TEXTS, TRIPLES), strict=True))), PLAIN, block_bytes
    )
    assert found.rejects == []
    assert found.labels == {"Q42": "Douglas Adams", "Q5": "human", "P31": "instance of", "P106": "occupation"}
    assert found.aliases == {"Q42": ["Douglas Noel Adams", "DNA"], "Q5": ["people"], "P31": ["is a"]}
    assert found.edges == [("Q42", "P31", "Q5"), ("Q42", "P106", "Q36180"), ("Q5", "P31", "Q55983715")]
    assert found.relations == {"P31", "P106"}
    assert found.descriptions["Q42"].startswith("Douglas Noel Adams was an English author")
    assert len(found.descriptions["Q42"]) <= MAX_DESCRIPTION


def test_packed_files_and_read_me_files(tmp_path: Path) -> None:
    (tmp_path / "wikidata5m_all_triplet.txt.gz").write_bytes(gzip.compress(TRIPLES.encode()))
    write(tmp_path, README="Read this.\n")
    assert [path.name for path in files_of(tmp_path)] == ["wikidata5m_all_triplet.txt.gz"]
    assert len(read(tmp_path).edges) == 3


def test_only_wanted_relations_are_read(tmp_path: Path) -> None:
    found = read(write(tmp_path, wikidata5m_test=TRIPLES), ReadOptions(without_relations=("P31",)))
    assert (found.edges, found.listed, found.relations) == ([("Q42", "P106", "Q36180")], {"Q42"}, {"P106"})


@pytest.mark.parametrize(
    ("name", "line", "reason"),
    [
        ("wikidata5m_transductive_train", "Q1\tP31", "2 columns where head, relation and tail"),
        ("wikidata5m_transductive_train", "Q1\tP31\tQ5\t", "4 columns"),
        ("wikidata5m_transductive_train", "X1\tP31\tQ5", "the head is not an id: 'X1'"),
        ("wikidata5m_transductive_train", "Q1\tQ31\tQ5", "the relation is not a property: 'Q31'"),
        ("wikidata5m_transductive_train", "Q1\tP31\tQ 5", "the tail is not an id: 'Q 5'"),
        ("wikidata5m_entity", "Q1", "the id has no name"),
        ("wikidata5m_entity", "Q1\t \t", "the id has no name"),
        ("wikidata5m_entity", "name\tQ1", "the first cell is not an id: 'name'"),
        ("wikidata5m_text", "Q1\t ", "the text is empty"),
        ("wikidata5m_text", "a text", "the first cell is not an id: 'a text'"),
    ],
)
def test_one_bad_line_is_refused_and_loses_no_other(tmp_path: Path, name: str, line: str, reason: str) -> None:
    good = {"wikidata5m_entity": "Q7\tseven\n", "wikidata5m_text": "Q7\ta number\n"}.get(name, "Q7\tP31\tQ5\n")
    found = read(write(tmp_path, **{name: f"{good}\n{line}\r\n{good.replace('Q7', 'Q8')}"}))
    ((file, row, why, content),) = found.rejects
    assert (file, row, content) == (f"{name}.txt", 3, line)
    assert why.startswith(reason)
    taken = {*found.labels, *found.descriptions, *(head for head, *_ in found.edges)}
    assert taken == {"Q7", "Q8"}


def test_a_file_that_is_something_else_is_refused(tmp_path: Path) -> None:
    found = read(write(tmp_path, notes="These are notes.\nThey go on.\n"))
    ((row, reason),) = found.reasons
    assert row is None
    assert reason.startswith("notes.txt: no line is an id with names")
    assert Wikidata5MReader().context(b"", "x", Collector()) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("short  text", "short text"),
        ("One sentence. " + "x" * 400, "One sentence. " + "x" * 285 + "…"),
        (
            "A first sentence that is long enough to stand alone. " + "word " * 80,
            "A first sentence that is long enough to stand alone.",
        ),
        ("word " * 80, ("word " * 60).rstrip() + "…"),
    ],
)
def test_long_descriptions_are_cut(text: str, expected: str) -> None:
    cut = shortened(text)
    assert len(cut) <= MAX_DESCRIPTION
    assert cut == expected or (cut.endswith("…") and expected.startswith(cut[:-1].rstrip()))
