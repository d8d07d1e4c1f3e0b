"""The lexicon: it answers as names in memory do, follows every change of the rows, and survives a kill."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
import sqlite3
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kgrag_assets.knowledge import lexicon_build
from kgrag_assets.knowledge.errors import KnowledgeError
from kgrag_assets.knowledge.lexicon import Lexicon, LexiconEntity
from kgrag_assets.knowledge.lexicon_build import LexiconUpdate, bring_lexicon_up_to_date
from kgrag_assets.knowledge.lexicon_files import lexicon_path
from kgrag_assets.knowledge.linking import LexicalLinker
from kgrag_assets.knowledge.name_source import NamesInMemory
from kgrag_assets.lake.lake import Lake
from kgrag_assets.rows.keys import data_version_of
from kgrag_assets.rows.knowledge_graph import KG_ENTITIES
from kgrag_assets_tests.knowledge.named_entities import PARTITIONS, Named, rows_of, write_entities

WORDS = (
    "patient",
    "patients",
    "Patient",
    "birth",
    "date of",
    "Straße",
    "naïve",
    "axes",
    "_x",
    "AB",
    "数据库",
    "patinet",
)
NAMES = st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(" ".join)
GRAPHS = st.lists(
    st.builds(
        Named,
        entity_id=st.sampled_from([f"wd:{kind}{number}" for number in range(8) for kind in "QP"]),
        label=NAMES,
        aliases=st.lists(NAMES | st.text(max_size=6), max_size=3).map(tuple),
        graph=st.sampled_from(("g", "h")),
        description=st.sampled_from(("", "said")),
    ),
    max_size=14,
    unique_by=lambda one: (one.entity_id, one.graph),
)
ENTITIES = [
    Named("wd:Q1", "patient", ("sick person", "case"), description="person who receives care"),
    Named("wd:Q2", "Diabetes mellitus", ("diabetes",)),
    Named("wd:P569", "date of birth", ("DOB", "birth date"), kind="relation"),
    Named("wd:Q2", "Zuckerkrankheit", (), graph="h"),
    Named("wd:Q7", "keyboard"),
]


def lexicon_of(root: Path, entities: Sequence[Named]) -> Lexicon:
    lake = write_entities(root, entities)
    bring_lexicon_up_to_date(lake, PARTITIONS)
    return Lexicon.of_lake(lake)


def content(lake: Lake) -> list[list[tuple[object, ...]]]:
    """Return all that a lexicon says, whatever its numbering."""
    with sqlite3.connect(lexicon_path(lake)) as file:
        queries = (
            """SELECT e.entity_id, g.name, kind, label, aliases, description, row_key, p.name FROM entities e
            JOIN graphs g ON g.number = e.graph JOIN partitions p ON p.number = e.place >> 32 ORDER BY 1, 2""",
            """SELECT spelling, e.entity_id, g.name, way FROM names n JOIN entities e ON e.place = n.entity
            JOIN graphs g ON g.number = e.graph ORDER BY 1, 2, 3, 4""",
            "SELECT word, uses FROM words ORDER BY word",
            "SELECT name, entities FROM graphs WHERE entities ORDER BY name",
            "SELECT name, version FROM partitions ORDER BY name",
            "SELECT value FROM meta ORDER BY name",
        )
        return [file.execute(query).fetchall() for query in queries]


@settings(max_examples=20, deadline=None)
@given(GRAPHS, st.lists(NAMES | st.text(max_size=8), min_size=1, max_size=6))
def test_it_answers_as_names_in_memory_do(entities: list[Named], phrases: list[str]) -> None:
    with TemporaryDirectory() as folder:
        lexicon = lexicon_of(Path(folder), entities)
        for chosen in (None, ("g",)):
            seen = [one for one in entities if chosen is None or one.graph in chosen]
            if chosen is not None and "g" not in lexicon.graphs:
                continue
            on_disk = LexicalLinker(lexicon if chosen is None else lexicon.restricted_to(chosen))
            in_memory = LexicalLinker.from_entities(rows_of(seen))
            for phrase in phrases:
                assert on_disk.link(phrase, 10) == in_memory.link(phrase, 10)
                if chosen is None:
                    assert on_disk.link_fuzzy(phrase, 10) == in_memory.link_fuzzy(phrase, 10)
        lexicon.close()


@settings(max_examples=20, deadline=None)
@given(
    st.lists(st.text("abcd", min_size=1, max_size=11), max_size=30, unique=True),
    st.lists(st.text("abcd", min_size=3, max_size=12), min_size=1, max_size=10),
)
def test_every_like_word_is_found(words: list[str], asked: list[str]) -> None:
    entities = [Named(f"wd:Q{number}", word) for number, word in enumerate(words)]
    with TemporaryDirectory() as folder:
        lexicon = lexicon_of(Path(folder), entities)
        every = NamesInMemory(rows_of(entities))
        for word in asked:
            assert lexicon.similar_words(word) == every.similar_words(word)
        lexicon.close()


@settings(max_examples=20, deadline=None)
@given(st.lists(GRAPHS, min_size=2, max_size=4))
def test_a_lexicon_that_follows_changes_is_the_one_that_is_built(states: list[list[Named]]) -> None:
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(lexicon_build, "REBUILD_SHARE", 1e9)
        lake = Lake.at(Path(folder) / "lake")
        for entities in states:
            write_entities(lake.paths.root, entities)
            before = Lexicon.of_lake(lake).data_version if lexicon_path(lake).exists() else None
            done = bring_lexicon_up_to_date(lake, PARTITIONS)
            opened = Lexicon.of_lake(lake)
            assert opened.data_version == data_version_of([lake.version(KG_ENTITIES, name) for name in PARTITIONS])
            assert done.written == (before != opened.data_version)
            assert not bring_lexicon_up_to_date(lake, PARTITIONS).written
            for word in ("patients", "patinet", "brith", "keybord"):
                assert opened.similar_words(word) == NamesInMemory(rows_of(entities)).similar_words(word)
            opened.close()
        followed = content(lake)
        lexicon_path(lake).unlink()
        rebuilt = bring_lexicon_up_to_date(lake, PARTITIONS)
        assert rebuilt.rebuilt
        assert content(lake) == followed
        assert rebuilt.names == done.names


MANY = {f"wd:Q{number}": f"thing {number}" for number in range(100)}
# Edits of a few of them: another name, none any more (empty text), or new ones.
EDITS = st.dictionaries(
    st.integers(0, 5).map(lambda number: f"wd:Q{98 + number}"), st.sampled_from(["", "patinet", "axes"])
)


@settings(max_examples=20, deadline=None)
@given(st.lists(EDITS, min_size=2, max_size=4))
def test_few_changes_of_many_rows_are_followed_too(edits: list[dict[str, str]]) -> None:
    with TemporaryDirectory() as folder:
        lake = write_entities(Path(folder), [Named(one, label) for one, label in MANY.items()])
        bring_lexicon_up_to_date(lake, PARTITIONS)
        rows_before = set(MANY.items())
        for edit in edits:
            rows = {(one, label) for one, label in {**MANY, **edit}.items() if label}
            write_entities(Path(folder), [Named(one, label) for one, label in sorted(rows)])
            done = bring_lexicon_up_to_date(lake, PARTITIONS)
            assert (done.rebuilt, done.added, done.removed) == (False, len(rows - rows_before), len(rows_before - rows))
            rows_before = rows
        followed = content(lake)
        lexicon_path(lake).unlink()
        bring_lexicon_up_to_date(lake, PARTITIONS)
        assert content(lake) == followed


def test_changes_are_made_in_place_and_counted(tmp_path: Path) -> None:
    many = [*ENTITIES, *(Named(f"wd:Q{number}", f"thing {number}") for number in range(100, 200))]
    lake = write_entities(tmp_path, many)
    assert bring_lexicon_up_to_date(lake, PARTITIONS) == LexiconUpdate(True, True, 105, 0, 111)
    file = lexicon_path(lake).stat().st_ino
    reader = Lexicon.of_lake(lake)
    version = reader.data_version
    changed = [
        Named("wd:Q1", "client", ("case",)),
        *many[2:],
        Named("wd:Q900", "brand new"),
        Named("x:1", "x", (), "x"),
    ]
    write_entities(tmp_path, changed)
    done = bring_lexicon_up_to_date(lake, PARTITIONS)
    assert (done.written, done.rebuilt, done.added, done.removed) == (True, False, 3, 2)
    assert lexicon_path(lake).stat().st_ino == file
    # The reader that was open sees the change as well; what it was opened with it still says.
    assert [one.entity_id for one in LexicalLinker(reader).link("client", 5)] == ["wd:Q1"]
    assert LexicalLinker(reader).link("sick person", 5) == []
    assert reader.data_version == version
    opened = Lexicon.of_lake(lake)
    assert opened.data_version != version
    assert opened.graphs == ("g", "h", "x")
    assert bring_lexicon_up_to_date(lake, PARTITIONS).written is False


def test_readers_are_not_disturbed_by_a_writer(tmp_path: Path) -> None:
    many = [Named(f"wd:Q{number}", f"thing {number}") for number in range(100)]
    shared = lexicon_of(tmp_path, [*many, Named("x:1", "state 0")])
    stop = threading.Event()

    def read() -> int:
        count = 0
        own = Lexicon(lexicon_path(Lake.at(tmp_path)))
        while not stop.is_set() or not count:
            for lexicon in (own, shared):
                found = LexicalLinker(lexicon).link_fuzzy("thing 57", 5)
                assert [one.entity_id for one in found] == ["wd:Q57"]
                assert len(lexicon.entities(["x:1"])["x:1"]) == 1
            count += 1
        return count

    with ThreadPoolExecutor(4) as pool:
        readers = [pool.submit(read) for _ in range(4)]
        try:
            for state in range(1, 6):
                lake = write_entities(tmp_path, [*many, Named("x:1", f"state {state}")])
                assert not bring_lexicon_up_to_date(lake, PARTITIONS).rebuilt
        finally:
            stop.set()
        assert all(reader.result(60) for reader in readers)
    assert shared.entities(["x:1"])["x:1"][0].label == "state 5"


def test_many_changes_build_anew_and_readers_keep_the_old_file(tmp_path: Path) -> None:
    old = lexicon_of(tmp_path, ENTITIES)
    lake = write_entities(tmp_path, [Named("wd:Q5", "all new")])
    done = bring_lexicon_up_to_date(lake, PARTITIONS)
    assert (done.rebuilt, done.added, done.removed) == (True, 1, 5)
    assert LexicalLinker(old).link("patient", 5)
    assert Lexicon.of_lake(lake).graphs == ("g",)


def test_other_partitions_are_built_anew(tmp_path: Path) -> None:
    lake = write_entities(tmp_path, ENTITIES)
    bring_lexicon_up_to_date(lake, PARTITIONS)
    assert bring_lexicon_up_to_date(lake, [*PARTITIONS, "bucket-03"]).rebuilt
    assert Lexicon.of_lake(lake).partition_of("wd:Q1") in PARTITIONS
    assert Lexicon.of_lake(lake).partition_of("wd:Q99") is None


def test_entities_by_id(tmp_path: Path) -> None:
    lexicon = lexicon_of(tmp_path, ENTITIES)
    found = lexicon.entities(["wd:Q1", "wd:Q2", "wd:Q99"])
    assert set(found) == {"wd:Q1", "wd:Q2"}
    assert found["wd:Q1"] == [
        LexiconEntity("wd:Q1", "g", "entity", "patient", ("sick person", "case"), "person who receives care")
    ]
    assert [one.label for one in found["wd:Q2"]] == ["Diabetes mellitus", "Zuckerkrankheit"]
    only = lexicon.restricted_to(["h"])
    assert only.graphs == ("h",)
    assert [one.label for one in only.entities(["wd:Q2"])["wd:Q2"]] == ["Zuckerkrankheit"]
    assert only.entities(["wd:Q1"]) == {}
    with pytest.raises(KnowledgeError, match="does not have the knowledge graph 'i'; it has g, h"):
        lexicon.restricted_to(["h", "i"])


def test_an_empty_graph_has_a_lexicon(tmp_path: Path) -> None:
    lexicon = lexicon_of(tmp_path, [])
    assert lexicon.graphs == ()
    assert lexicon.entities(["wd:Q1"]) == {}
    assert LexicalLinker(lexicon).link_fuzzy("patient", 5) == []


def _damage(path: Path) -> None:
    path.write_bytes(b"SQLite format 3\0" + b"x" * 4096)


def _another_version(path: Path) -> None:
    with sqlite3.connect(path) as file:
        file.execute("UPDATE meta SET value = 'lexicon-0' WHERE name = 'format'")


def _empty(path: Path) -> None:
    path.write_bytes(b"")


@pytest.mark.parametrize("harm", [_damage, _another_version, _empty, Path.unlink])
def test_what_cannot_be_used_is_refused_and_built_anew(tmp_path: Path, harm: Callable[[Path], None]) -> None:
    lexicon_of(tmp_path, ENTITIES).close()
    lake = Lake.at(tmp_path)
    harm(lexicon_path(lake))
    with pytest.raises(KnowledgeError, match="kg_lexicon"):
        Lexicon.of_lake(lake)
    assert bring_lexicon_up_to_date(lake, PARTITIONS).rebuilt
    assert Lexicon.of_lake(lake).graphs == ("g", "h")


def _killed_in_the_transaction(root: str) -> None:
    path = lexicon_path(Lake.at(Path(root)))
    file = sqlite3.connect(path, isolation_level=None)
    file.execute("PRAGMA cache_size = 1")
    file.execute("PRAGMA cache_spill = 1")
    file.execute("BEGIN IMMEDIATE")
    file.execute("UPDATE entities SET label = 'half done ' || hex(randomblob(500))")
    file.execute("DELETE FROM names")
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_kill_within_a_change_leaves_the_state_before(tmp_path: Path) -> None:
    many = [*ENTITIES, *(Named(f"wd:Q{number}", f"thing {number} " * 20) for number in range(100, 400))]
    lexicon_of(tmp_path, many).close()
    lake = Lake.at(tmp_path)
    shutil.copytree(tmp_path, tmp_path.with_name("copy"))
    before = content(Lake.at(tmp_path.with_name("copy")))
    process = multiprocessing.get_context("spawn").Process(target=_killed_in_the_transaction, args=(str(tmp_path),))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    # The kill came when pages were on the disk already: their journal lies beside the file.
    assert lexicon_path(lake).with_name("lexicon.sqlite-journal").stat().st_size > 0
    opened = Lexicon.of_lake(lake)
    assert [one.entity_id for one in LexicalLinker(opened).link("patient", 5)] == ["wd:Q1"]
    assert content(lake) == before
    assert not bring_lexicon_up_to_date(lake, PARTITIONS).written


def test_a_journal_left_behind_is_not_played_into_a_new_file(tmp_path: Path) -> None:
    many = [Named(f"wd:Q{number}", f"thing {number} " * 20) for number in range(300)]
    lexicon_of(tmp_path, many).close()
    lake = Lake.at(tmp_path)
    process = multiprocessing.get_context("spawn").Process(target=_killed_in_the_transaction, args=(str(tmp_path),))
    process.start()
    process.join()
    lexicon_path(lake).unlink()
    write_entities(tmp_path, ENTITIES)
    bring_lexicon_up_to_date(lake, PARTITIONS)
    assert [one.entity_id for one in LexicalLinker(Lexicon.of_lake(lake)).link("patient", 5)] == ["wd:Q1"]


def test_a_failed_build_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lexicon_of(tmp_path, ENTITIES).close()
    lake = write_entities(tmp_path, [Named("wd:Q5", "all new")])

    def fail(*_arguments: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(lexicon_build, "_index", fail)
    with pytest.raises(KnowledgeError, match=r"lexicon.sqlite cannot be written \(database or disk is full\)"):
        bring_lexicon_up_to_date(lake, PARTITIONS)
    assert [one.entity_id for one in LexicalLinker(Lexicon.of_lake(lake)).link("patient", 5)] == ["wd:Q1"]
    assert [path.name for path in lexicon_path(lake).parent.iterdir()] == ["lexicon.sqlite"]
