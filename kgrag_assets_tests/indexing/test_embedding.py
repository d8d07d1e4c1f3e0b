"""Only what changed is embedded; what is finished survives; vectors of two models never meet."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import hypothesis.strategies as st
import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings

from kgrag_assets.indexing.embedding import embed_rows, wanted_attributes
from kgrag_assets.indexing.entity_text import MAX_TEXT, entity_text, triple_text
from kgrag_assets.indexing.graph_embedding import EmbeddedPartition, embed_partition
from kgrag_assets.lake.lake import Lake
from kgrag_assets.models.embedders import EmbeddingError, EmbedProgress
from kgrag_assets.rows.embeddings import ATTRIBUTE_EMBEDDINGS, ENTITY_EMBEDDINGS, TRIPLE_EMBEDDINGS, vectors_of
from kgrag_assets.rows.keys import attribute_id_of
from kgrag_assets.rows.knowledge_graph import KG_ENTITIES, KG_TRIPLES, bucket_of, triple_id_of
from kgrag_assets.rows.schema_attributes import SCHEMA_ATTRIBUTES
from kgrag_assets.rows.table import with_row_key


def text_vector(text: str, dimension: int) -> np.ndarray:
    seed = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")
    drawn = np.random.default_rng(seed).normal(size=dimension)
    return (drawn / np.linalg.norm(drawn)).astype(np.float32)


@dataclass
class CountingEmbedder:
    """Answers by the hash of the text, and remembers what it was asked."""

    model_id: str = "fake@1"
    dimension: int = 6
    asked: list[str] = field(default_factory=list)
    die_after: int | None = None

    def embed(self, texts: Sequence[str], progress: EmbedProgress | None = None) -> np.ndarray:
        if self.die_after is not None and len(self.asked) + len(texts) > self.die_after:
            raise KeyboardInterrupt
        self.asked.extend(texts)
        if progress is not None:
            progress(len(texts))
        return np.array([text_vector(text, self.dimension) for text in texts], dtype=np.float32)


def entities(labels: dict[str, str]) -> pl.DataFrame:
    rows = [
        {
            "entity_id": entity,
            "graph": "g",
            "bucket": bucket_of(entity, 4),
            "kind": "entity",
            "label": label,
            "aliases": ["other"],
            "description": "",
            "row_key": "",
        }
        for entity, label in labels.items()
    ]
    return with_row_key(KG_ENTITIES.frame(rows)) if rows else KG_ENTITIES.empty()


def embedded(lake: Lake, labels: dict[str, str], embedder: CountingEmbedder | None = None) -> EmbeddedPartition:
    """Make these the entities of the lake's one bucket, and embed them."""
    lake.write(KG_ENTITIES, "b", entities(labels))
    return embed_partition(lake, ENTITY_EMBEDDINGS, "b", embedder or CountingEmbedder(), checkpoint=3)


def rows_of(lake: Lake) -> pl.DataFrame:
    return ENTITY_EMBEDDINGS.conform(lake.read(ENTITY_EMBEDDINGS, "b"))


graph_states = st.lists(
    st.dictionaries(st.sampled_from([f"wd:Q{number}" for number in range(8)]), st.sampled_from("abcde")),
    min_size=1,
    max_size=4,
)


@settings(max_examples=60, deadline=None)
@given(graph_states)
def test_any_sequence_of_edits_gives_each_row_its_texts_vector_and_embeds_no_text_it_has(
    states: list[dict[str, str]],
) -> None:
    with tempfile.TemporaryDirectory() as place:
        lake = Lake.at(Path(place))
        before: dict[str, str] = {}
        for labels in states:
            embedder = CountingEmbedder()
            result = embedded(lake, labels, embedder)
            frame = rows_of(lake)
            texts = {entity: f"{label} (other)" for entity, label in labels.items()}
            assert dict(frame.select("entity_id", "text").iter_rows()) == texts
            for text, vector in zip(frame["text"], vectors_of(frame), strict=False):
                assert np.array_equal(vector, text_vector(text, 6))
            assert sorted(embedder.asked) == sorted(set(texts.values()) - set(before.values()))
            assert result.texts_embedded == len(embedder.asked)
            assert result.written.kept == sum(1 for entity, text in texts.items() if before.get(entity) == text)
            assert result.written.removed == sum(1 for entity, text in before.items() if texts.get(entity) != text)
            before = texts


def test_rows_that_did_not_change_are_not_even_worded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = Lake.at(tmp_path)
    labels = {f"wd:Q{number}": f"label {number}" for number in range(20)}
    embedded(lake, labels)
    worded: list[str] = []

    def listening(label: str, aliases: Sequence[str], description: str) -> str:
        worded.append(label)
        return entity_text(label, aliases, description)

    monkeypatch.setattr("kgrag_assets.indexing.graph_embedding.entity_text", listening)
    embedded(lake, {**labels, "wd:Q3": "another"})
    assert worded == ["another"]
    rows_file = lake.files(ENTITY_EMBEDDINGS, "b")
    assert rows_file.has_changes(), "a small change is laid beside the rows"
    assert rows_of(lake).height == 20


def test_a_killed_run_keeps_what_it_had_finished(tmp_path: Path) -> None:
    lake = Lake.at(tmp_path)
    labels = {f"wd:Q{number}": f"label {number}" for number in range(10)}
    with pytest.raises(KeyboardInterrupt):
        embedded(lake, labels, CountingEmbedder(die_after=8))
    assert lake.read_parts(ENTITY_EMBEDDINGS, "b").height == 6
    second = CountingEmbedder()
    result = embedded(lake, labels, second)
    assert len(second.asked) == 4
    assert (result.vectors_reused, result.texts_embedded) == (6, 4)
    assert rows_of(lake).height == 10
    assert lake.read_parts(ENTITY_EMBEDDINGS, "b").is_empty()


def test_another_model_embeds_everything_again_and_mixes_nothing(tmp_path: Path) -> None:
    lake = Lake.at(tmp_path)
    labels = {"wd:Q1": "a", "wd:Q2": "b"}
    embedded(lake, labels)
    second = embedded(lake, labels, CountingEmbedder(model_id="other@2", dimension=4)).written
    assert (second.kept, second.added, second.removed) == (0, 2, 2)
    assert rows_of(lake)["model_id"].unique().to_list() == ["other@2"]
    assert vectors_of(rows_of(lake)).shape == (2, 4)


def test_the_same_model_id_with_another_dimension_is_refused(tmp_path: Path) -> None:
    lake = Lake.at(tmp_path)
    embedded(lake, {"wd:Q1": "a"})
    with pytest.raises(EmbeddingError, match=r"stored vectors of fake@1 have \[6\] dimensions.* 4"):
        embedded(lake, {"wd:Q1": "c", "wd:Q2": "a"}, CountingEmbedder(dimension=4))


def test_rows_of_an_earlier_version_are_made_anew(tmp_path: Path) -> None:
    lake = Lake.at(tmp_path)
    embedded(lake, {"wd:Q1": "a", "wd:Q2": "b"})
    file = lake.files(ENTITY_EMBEDDINGS, "b").rows
    pl.read_parquet(file).drop("source_key").write_parquet(file)
    assert not lake.fits(ENTITY_EMBEDDINGS, "b")
    assert embedded(lake, {"wd:Q1": "a", "wd:Q2": "b"}).texts_embedded == 2
    assert rows_of(lake).height == 2
    file.write_bytes(b"damaged")
    assert embedded(lake, {"wd:Q1": "a"}).written.rows == 1


def test_some_rows_alone(tmp_path: Path) -> None:
    lake = Lake.at(tmp_path)
    lake.write(KG_ENTITIES, "b", entities({"wd:Q1": "a", "wd:Q2": "b", "wd:Q3": "c"}))
    for wanted in (["wd:Q1", "wd:Q2"], ["wd:Q2", "wd:Q3"], []):
        embed_partition(
            lake,
            ENTITY_EMBEDDINGS,
            "b",
            CountingEmbedder(),
            checkpoint=3,
            chosen=lambda rows, wanted=wanted: rows.filter(pl.col("entity_id").is_in(wanted)),
        )
        assert sorted(rows_of(lake)["entity_id"]) == wanted


def test_rows_of_another_model_than_the_embedder_are_refused() -> None:
    with pytest.raises(ValueError, match="wanted for model x@1, the embedder is fake@1"):
        embed_rows(
            wanted_attributes(attribute_rows("task", "words"), "x@1"),
            ATTRIBUTE_EMBEDDINGS.empty(),
            ATTRIBUTE_EMBEDDINGS.empty(),
            CountingEmbedder(),
            table=ATTRIBUTE_EMBEDDINGS,
            checkpoint=3,
        )


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (np.full((1, 6), np.nan), "length nan"),
        (np.ones((1, 6)), "unit length"),
        (np.zeros((1, 6)), r"length 0\.0"),
        (np.zeros((2, 6)), r"shape \(2, 6\) where \(1, 6\)"),
        (np.zeros((1, 5)), r"shape \(1, 5\) where \(1, 6\)"),
    ],
)
def test_bad_vectors_are_refused(tmp_path: Path, answer: np.ndarray, said: str) -> None:
    class Broken(CountingEmbedder):
        def embed(self, texts: Sequence[str], progress: EmbedProgress | None = None) -> np.ndarray:  # noqa: ARG002
            return answer

    with pytest.raises(EmbeddingError, match=said):
        embedded(Lake.at(tmp_path), {"wd:Q1": "a"}, Broken())


def test_progress_adds_up(tmp_path: Path) -> None:
    told: list[int] = []
    announced: list[int] = []

    def start(total: int) -> Callable[[int], None]:
        announced.append(total)
        return told.append

    lake = Lake.at(tmp_path)
    lake.write(KG_ENTITIES, "b", entities({f"wd:Q{number}": str(number) for number in range(7)}))
    embed_partition(lake, ENTITY_EMBEDDINGS, "b", CountingEmbedder(), checkpoint=3, start_progress=start)
    assert announced == [7]
    assert sum(told) == 7


def test_triples_become_rows_of_their_table(tmp_path: Path) -> None:
    key = triple_id_of("g", "wd:Q1", "wd:P31", "wd:Q2", None)
    triple = {
        "triple_id": key,
        "graph": "g",
        "bucket": 1,
        "head": "wd:Q1",
        "relation": "wd:P31",
        "tail": "wd:Q2",
        "tail_value": None,
        "head_label": "Douglas\nAdams",
        "relation_label": "instance of",
        "tail_label": "human",
        "row_key": "k",
    }
    lake = Lake.at(tmp_path)
    lake.write(KG_TRIPLES, "b", KG_TRIPLES.frame([triple]))
    embed_partition(lake, TRIPLE_EMBEDDINGS, "b", CountingEmbedder(), checkpoint=1)
    rows = TRIPLE_EMBEDDINGS.conform(lake.read(TRIPLE_EMBEDDINGS, "b"))
    assert rows["text"].to_list() == ["Douglas Adams instance of human"]


def test_attributes_become_rows_of_their_table() -> None:
    embedder = CountingEmbedder()
    wanted = wanted_attributes(attribute_rows("task a", "date of birth"), embedder.model_id)
    nothing = ATTRIBUTE_EMBEDDINGS.empty()
    rows = embed_rows(wanted, nothing, nothing, embedder, table=ATTRIBUTE_EMBEDDINGS, checkpoint=1).frame
    assert ATTRIBUTE_EMBEDDINGS.conform(rows)["view"].to_list() == ["name", "column", "description", "full"]
    edited = wanted_attributes(attribute_rows("task a", "day of birth"), embedder.model_id)
    changed = edited.filter(~edited["row_key"].is_in(wanted["row_key"].implode()))
    assert sorted(changed["view"]) == ["description", "full"]
    other = wanted_attributes(attribute_rows("task b", "date of birth"), embedder.model_id)
    assert not set(other["row_key"]) & set(wanted["row_key"])
    assert wanted_attributes(SCHEMA_ATTRIBUTES.empty(), embedder.model_id).is_empty()


def attribute_rows(task: str, description: str) -> pl.DataFrame:
    row = {
        "task": task,
        "attribute_id": attribute_id_of("source", "pat", "birth_dt"),
        "side": "source",
        "table_name": "pat",
        "column_name": "birth_dt",
        "position": 0,
        "data_type": "date",
        "type_family": "date",
        "nullable": None,
        "is_primary_key": None,
        "references_table": None,
        "references_column": None,
        "table_description": "",
        "column_description": description,
        "sample_values": [],
        "distinct_count": None,
        "null_share": None,
        "profile": None,
        "origin": "source.csv",
        "row_key": "k",
    }
    return SCHEMA_ATTRIBUTES.frame([row])


def test_texts_of_entities_and_triples() -> None:
    assert entity_text("date of birth", [], "") == "date of birth"
    aliases = ["Date of  Birth", "DOB", "dob", "born", "birthday", "birth date"]
    expected = "date of birth (DOB, born, birthday): when the subject was born"
    assert entity_text("date of birth", aliases, "when the subject\nwas born") == expected
    assert len(entity_text("x" * 900, [], "y")) == MAX_TEXT
    assert triple_text("a", "b", "c" * 900).startswith("a b c")
    assert len(triple_text("a", "b", "c" * 900)) == MAX_TEXT
