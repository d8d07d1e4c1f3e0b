"""From a phrase to entities: which name wins, and how names are folded."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgrag_assets.indexing.port import Hits
from kgrag_assets.knowledge.folding import folded_all, singular_all
from kgrag_assets.knowledge.lexicon import Lexicon
from kgrag_assets.knowledge.lexicon_build import bring_lexicon_up_to_date
from kgrag_assets.knowledge.linking import LexicalLinker, LinkCandidate, folded, singular
from kgrag_assets.knowledge.misspelling import edits_between, spellings
from kgrag_assets.knowledge.vector_linking import VectorLinker
from kgrag_assets.rows.knowledge_graph import KG_ENTITIES
from kgrag_assets_tests.knowledge.named_entities import PARTITIONS, Named, rows_of, write_entities


def linker_of(*entities: tuple[str, str, list[str]]) -> LexicalLinker:
    rows: list[dict[str, object]] = [
        {
            "entity_id": entity_id,
            "graph": "test",
            "bucket": 0,
            "kind": "entity",
            "label": label,
            "aliases": aliases,
            "description": "",
            "row_key": entity_id,
        }
        for entity_id, label, aliases in entities
    ]
    frame: pl.DataFrame = KG_ENTITIES.frame(rows)
    return LexicalLinker.from_entities(frame)


def test_exact_before_folded_before_alias_before_singular() -> None:
    linker = linker_of(
        ("wd:Q5", "thing", ["patients"]),
        ("wd:Q4", "patient", []),
        ("wd:Q3", "other", ["Patient"]),
        ("wd:Q2", "Patient", []),
        ("wd:Q1", "patients", []),
    )
    found = linker.link("patient", 10)
    assert [item.entity_id for item in found] == ["wd:Q4", "wd:Q2", "wd:Q3", "wd:Q1", "wd:Q5"]
    assert [item.score for item in found] == sorted((item.score for item in found), reverse=True)
    assert len({item.score for item in found}) == 5
    assert found[0].score == 1.0
    assert [item.matched for item in found] == ["patient", "Patient", "Patient", "patients", "patients"]
    assert linker.link("patient", 2) == found[:2]


def test_a_plural_phrase_finds_the_singular_name() -> None:
    linker = linker_of(("wd:Q1", "home address", []), ("wd:Q2", "country", []), ("wd:Q3", "tax", []))
    for phrase, entity in (("home addresses", "wd:Q1"), ("Countries", "wd:Q2"), ("taxes", "wd:Q3")):
        (found,) = linker.link(phrase, 5)
        assert found.entity_id == entity
        assert 0 < found.score < 0.9


def test_among_equals_relations_come_first() -> None:
    linker = linker_of(("wd:Q1", "date of birth", []), ("wd:P569", "date of birth", []), ("wd:Paper", "paper", []))
    assert [item.entity_id for item in linker.link("date of birth", 5)] == ["wd:P569", "wd:Q1"]
    paper = linker_of(("my:A", "paper", []), ("my:Paper", "paper", []))
    assert [item.entity_id for item in paper.link("paper", 5)] == ["my:A", "my:Paper"]


def test_an_entity_is_found_once_by_its_best_name() -> None:
    (found,) = linker_of(("wd:Q1", "Patients", ["patient", "PATIENT"])).link("patient", 5)
    assert (found.score, found.matched) == (0.9, "patient")


@pytest.mark.parametrize("phrase", ["", " ", "id", "__", "?!", "-- x --"])
def test_short_phrases_are_linked_to_nothing(phrase: str) -> None:
    assert linker_of(("wd:Q1", "id", ["x", ""]), ("wd:Q2", "??", [])).link(phrase, 5) == []


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("Date_of-Birth", "date of birth"),
        ("Café  Zürich", "cafe zurich"),
        ("Straße", "strasse"),
        ("ICD-10", "icd 10"),
        ("\uff26\uff35\uff2c\uff2c width", "full width"),
        ("Aspirin\u2122", "aspirintm"),
        ("дата рождения", "дата рождения"),
        ("出生日期", "出生日期"),
        ("...", ""),
    ],
)
def test_folding(text: str, plain: str) -> None:
    assert folded(text) == plain


def test_names_in_other_scripts_are_linked() -> None:
    (found,) = linker_of(("wd:P569", "дата рождения", [])).link("Дата рождения", 5)
    assert found.entity_id == "wd:P569"


@given(st.text())
def test_folding_again_changes_nothing(text: str) -> None:
    assert folded(folded(text)) == folded(text)


@pytest.mark.parametrize(
    ("plural", "one"),
    [
        ("blood tests", "blood test"),
        ("countries", "country"),
        ("classes", "class"),
        ("boxes", "box"),
        ("branches", "branch"),
        ("courses", "course"),
        ("caches", "cache"),
        ("diagnosis", "diagnosis"),
        ("status", "status"),
        ("address", "address"),
        ("gas", "gas"),
        ("ties", "tie"),
        ("", ""),
    ],
)
def test_singular(plural: str, one: str) -> None:
    assert singular(plural) == one


@given(st.lists(st.text() | st.text("abys xeSéß'_-", max_size=12)))
def test_a_column_is_folded_as_its_names_are(names: list[str]) -> None:
    column = pl.Series("name", names, dtype=pl.String)
    plain = folded_all(column)
    assert plain.to_list() == [folded(name) for name in names]
    assert singular_all(plain).to_list() == [singular(name) for name in plain]
    assert plain.name == "name"


def answers(entities: list[Named], text: str) -> dict[str, tuple[float, str]]:
    """Compare every name of every entity with a phrase, by the rules as they are written in the linker's texts."""
    plain = folded(text)
    found: dict[str, tuple[float, str]] = {}
    for one in sorted(entities, key=lambda one: (one.entity_id, one.graph)):
        for place, name in enumerate((one.label, *one.aliases)):
            whole = folded(name)
            if len(plain) < 3 or len(whole) < 3:
                continue
            values = [
                (0.98 if place == 0 else 0.9) * share
                for asked, share in ((plain, 1.0), (singular(plain), 0.85))
                if asked == whole
            ] + [
                (0.85 if place == 0 else 0.75) * share
                for asked, share in ((plain, 1.0), (singular(plain), 0.85))
                if asked == singular(whole) != whole
            ]
            if plain == whole and name == text == one.label:
                values.append(1.0)
            if values and max(values) > found.get(one.entity_id, (0.0, ""))[0]:
                found[one.entity_id] = (max(values), name)
    return found


WORDS = st.lists(st.sampled_from(["patient", "Patients", "boxes", "box", "a", "date", "É", "of_"]), max_size=3).map(
    " ".join
)


@given(
    st.lists(
        st.builds(
            Named,
            entity_id=st.sampled_from(["wd:Q1", "wd:Q2", "wd:P1", "wd:P22", "x:Paper"]),
            label=WORDS,
            aliases=st.lists(WORDS, max_size=2).map(tuple),
            graph=st.sampled_from(["g", "h"]),
        ),
        unique_by=lambda one: (one.entity_id, one.graph),
    ),
    WORDS,
)
def test_links_are_those_of_every_name_compared(entities: list[Named], text: str) -> None:
    found = LexicalLinker.from_entities(rows_of(entities)).link(text, 100)
    assert {one.entity_id: (one.score, one.matched) for one in found} == answers(entities, text)
    relations_first = [(-one.score, not one.entity_id.startswith("wd:P"), one.entity_id) for one in found]
    assert relations_first == sorted(relations_first)


LINKER = linker_of(
    ("wd:P569", "date of birth", ["birth date", "born"]),
    ("wd:Q1", "patient", ["sick person"]),
    ("wd:Q2", "Patients", []),
    ("wd:Q3", "hypertension", ["high blood pressure"]),
    ("wd:Q4", "key board", []),
    ("wd:Q5", "number of children", []),
    ("wd:Q6", "form", []),
)


@pytest.mark.parametrize(
    ("text", "entity", "kind"),
    [
        ("patient", "wd:Q1", "exact"),
        ("PATIENT", "wd:Q1", "folded"),
        ("Sick_person", "wd:Q1", "alias"),
        ("sick persons", "wd:Q1", "singular"),
        ("dob", "wd:P569", "abbreviation"),
        ("no of children", "wd:Q5", "abbreviation"),
        ("hypertention", "wd:Q3", "fuzzy"),
        ("hypretension", "wd:Q3", "fuzzy"),
        ("birthdate", "wd:P569", "fuzzy"),
        ("keyboard", "wd:Q4", "fuzzy"),
        ("hyper tension", "wd:Q3", "fuzzy"),
        ("hihg blod pressure", "wd:Q3", "fuzzy"),
        ("paitents", "wd:Q2", "fuzzy"),
    ],
)
def test_how_a_phrase_matches(text: str, entity: str, kind: str) -> None:
    found = LINKER.link_fuzzy(text, 5)
    assert (found[0].entity_id, found[0].kind) == (entity, kind)
    assert 0 < found[0].score <= 1
    plainly = LINKER.link(text, 5)
    if kind in ("abbreviation", "fuzzy"):
        assert plainly == []
        assert found[0].score < 0.8
    else:
        assert found == plainly


def test_further_ways_are_chosen_and_worth_less() -> None:
    assert LINKER.link_fuzzy("dob", 5, abbreviations=False) == []
    assert LINKER.link_fuzzy("hypertention", 5, misspellings=False) == []
    assert LINKER.link_fuzzy("hypertention", 5, min_similarity=0.95) == []
    # Short words are too like one another, and what is found as written is not spelled otherwise.
    assert LINKER.link_fuzzy("fro", 5) == []
    assert [one.entity_id for one in LINKER.link_fuzzy("form", 5)] == ["wd:Q6"]
    assert [one.entity_id for one in LINKER.link_fuzzy("from", 5, min_similarity=0.7)] == ["wd:Q6"]
    near, far = LINKER.link_fuzzy("patiens", 5), LINKER.link_fuzzy("hyprtensiom", 5)
    assert near[0].score > far[0].score > 0.5


@given(st.text("abc", max_size=7), st.text("abc", max_size=7))
def test_edits_are_a_distance_in_which_swaps_count_once(one: str, other: str) -> None:
    assert edits_between(one, other) == edits_between(other, one)
    assert (edits_between(one, other) == 0) == (one == other)
    swaps = {one[:at] + one[at + 1] + one[at] + one[at + 2 :] for at in range(len(one) - 1)}
    if other in swaps and other != one:
        assert edits_between(one, other) == 1


@given(st.lists(st.text("abcd", min_size=1, max_size=9), min_size=1, max_size=5), st.lists(st.text("abcd", min_size=4)))
def test_spellings_differ_from_the_phrase_and_are_bounded(words: list[str], known: list[str]) -> None:
    phrase = " ".join(words)
    found = spellings(phrase, lambda word: [one for one in known if one != word][:12])
    assert phrase not in found
    assert all(share < 1 for share in found.values())
    assert len(found) <= 600


class Near:
    """An index with the answer to every question."""

    size = 3

    def search(self, queries: np.ndarray, k: int) -> Hits:
        assert queries.shape == (1, 2)
        ids, scores = ["wd:Q2", "wd:Q9", "wd:P569"][:k], [0.9, 0.8, -0.1][:k]
        return Hits([ids], np.array([scores], dtype=np.float32))


def test_vectors_link_to_the_same_candidates(tmp_path: Path) -> None:
    lake = write_entities(tmp_path, [Named("wd:Q2", "Diabetes"), Named("wd:P569", "date of birth")])
    bring_lexicon_up_to_date(lake, PARTITIONS)
    linker = VectorLinker(Near(), lambda _text: np.array([1.0, 0.0]), Lexicon.of_lake(lake))
    found = linker.link("sugar disease", 5)
    assert found == [
        LinkCandidate("wd:Q2", "Diabetes", pytest.approx(0.9), "Diabetes", "vector"),
        LinkCandidate("wd:P569", "date of birth", 0.0, "date of birth", "vector"),
    ]
    assert linker.link("sugar disease", 1) == found[:1]
    assert linker.link("?", 5) == []
    assert linker.link("x", 0) == []
