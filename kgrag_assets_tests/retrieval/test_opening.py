"""The methods over a real lake: saved indexes, memory-mapped adjacency, the graphs that a task chooses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from kgrag_assets.indexing.manifest import IndexFileError
from kgrag_assets.knowledge.adjacency_update import bring_adjacency_up_to_date
from kgrag_assets.knowledge.errors import KnowledgeError
from kgrag_assets.knowledge.lexicon_build import bring_lexicon_up_to_date
from kgrag_assets.knowledge.lexicon_files import lexicon_path
from kgrag_assets.lake.files import replace_folder
from kgrag_assets.lake.lake import Lake
from kgrag_assets.models.chat import ChatReply, ChatRequest
from kgrag_assets.models.distilling import fitted_folder
from kgrag_assets.models.embedders import EmbedProgress
from kgrag_assets.models.ledger import CallLedger
from kgrag_assets.models.retrying import Pause
from kgrag_assets.retrieval.assemble import RetrievedRows, queries_of, retrieve_task
from kgrag_assets.retrieval.opening import LLM_METHODS, open_retrievers
from kgrag_assets.retrieval.protocol import RetrievalError
from kgrag_assets.retrieval.queries import question_text
from kgrag_assets.rows.embeddings import ATTRIBUTE_EMBEDDINGS, ENTITY_EMBEDDINGS, TRIPLE_EMBEDDINGS
from kgrag_assets.rows.knowledge_graph import KG_ENTITIES, KG_TRIPLES
from kgrag_assets.rows.retrieved_subgraphs import RETRIEVED_SUBGRAPHS
from kgrag_assets.settings import EmbedderSettings, LanguageModelSettings, Settings
from kgrag_assets_tests.retrieval.small_world import (
    DIMENSION,
    MODEL,
    TASK,
    Statement,
    attributes,
    candidates,
    embeddings,
    entities,
    index_of,
    triples,
    vector,
)

NAMES = {
    "wd:P569": ("date of birth", "date on which the subject was born"),
    "wd:Q205892": ("calendar date", ""),
    "wd:Q47223": ("birthday", ""),
    "wd:P31": ("instance of", ""),
    "wd:P279": ("subclass of", ""),
}
STATEMENTS: list[Statement] = [
    ("wd:P569", "wd:P31", "wd:Q205892"),
    ("wd:Q47223", "wd:P279", "wd:Q205892"),
]
SCHEMA = attributes({("source", "pat.birth_dt"): "", ("target", "person.birthday"): ""})
ATTRIBUTE_VECTORS = {"birth_dt": vector(a=0.9), "birthday": vector(a=0.7, b=0.7)}
ENTITY_VECTORS = {"wd:P569": vector(a=1.0), "wd:Q47223": vector(b=1.0), "wd:Q205892": vector(c=1.0)}


PARTITIONS = ["0", "1"]


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    made = Lake.at(tmp_path)
    names, statements = entities(NAMES), triples(STATEMENTS, NAMES)
    for table, rows in ((KG_ENTITIES, names), (KG_TRIPLES, statements)):
        made.write(table, "0", rows)
        made.write(table, "1", table.empty())
    made.write(ATTRIBUTE_EMBEDDINGS, TASK, embeddings(SCHEMA, ATTRIBUTE_VECTORS))
    near: dict[str, np.ndarray] = dict(zip(statements["triple_id"], [vector(a=0.9), vector(b=0.9)], strict=True))
    replace_folder(made.paths.arrays("entity_index"), index_of(ENTITY_VECTORS).save)
    replace_folder(made.paths.arrays("triple_index"), index_of(near).save)
    bring_up_to_date(made)
    return made


def bring_up_to_date(lake: Lake) -> None:
    bring_adjacency_up_to_date(lake, PARTITIONS)
    bring_lexicon_up_to_date(lake, PARTITIONS)


def chosen(**options: dict[str, object]) -> Settings:
    return Settings(_env_file=None).for_task(dict(options), "test")


def retrieved(lake: Lake, settings: Settings) -> RetrievedRows:
    retrievers = open_retrievers(lake, settings, TASK)
    return retrieve_task(SCHEMA, candidates(SCHEMA), retrievers, RETRIEVED_SUBGRAPHS.empty())


def texts(rows: RetrievedRows, method: str) -> list[str]:
    facts = rows.frame.filter(pl.col("method") == method)["facts"][0]
    return [fact["text"] for fact in facts]


def test_both_methods_over_the_lakes_own_files(lake: Lake) -> None:
    rows = retrieved(lake, chosen())
    assert texts(rows, "entity_paths") == [
        "date of birth (P569): date on which the subject was born",
        "date of birth —instance of→ calendar date ←subclass of— birthday",
    ]
    assert texts(rows, "vector_triples") == [
        "date of birth —instance of→ calendar date",
        "birthday —subclass of→ calendar date",
    ]
    again = retrieved(lake, chosen())
    assert set(again.frame["row_key"]) == set(rows.frame["row_key"])


def test_only_the_methods_that_the_settings_name(lake: Lake) -> None:
    rows = retrieved(lake, chosen(retrieval={"methods": ["entity_paths"]}))
    assert rows.frame["method"].to_list() == ["entity_paths"]


def test_a_task_uses_the_graphs_it_names(lake: Lake) -> None:
    other = entities({"wd:Q1": ("nothing", "")}).with_columns(pl.lit("other").alias("graph"))
    lake.write(KG_ENTITIES, "1", other)
    bring_up_to_date(lake)
    rows = retrieved(lake, chosen(graph={"graphs": ["other"]}))
    assert rows.frame["status"].to_list() == ["no_seed", "no_seed"]
    assert retrieved(lake, chosen(graph={"graphs": ["g", "other"]})).frame["status"].to_list() == ["found", "found"]
    with pytest.raises(RetrievalError, match="'nowhere', which the lake does not have; it has g, other"):
        open_retrievers(lake, chosen(graph={"graphs": ["nowhere"]}), TASK)


def test_a_damaged_index_is_refused(lake: Lake) -> None:
    (lake.paths.arrays("entity_index") / "delta.npy").write_bytes(b"")
    with pytest.raises(IndexFileError, match=r"delta.npy.* Delete the folder"):
        open_retrievers(lake, chosen(), TASK)


def test_a_task_walks_only_the_statements_of_its_graphs(lake: Lake) -> None:
    # The other graph knows the two entities, but states nothing about them.
    both = {name: NAMES[name] for name in ("wd:P569", "wd:Q47223", "wd:P279")}
    lake.write(KG_ENTITIES, "1", entities(both).with_columns(pl.lit("other").alias("graph")))
    statement = triples([("wd:P569", "wd:P279", "wd:P569")], NAMES).with_columns(
        pl.lit("other").alias("graph"), pl.lit("t").alias("triple_id")
    )
    lake.write(KG_TRIPLES, "1", statement)
    bring_up_to_date(lake)
    rows = retrieved(lake, chosen(graph={"graphs": ["other"]}))
    assert texts(rows, "entity_paths") == ["date of birth (P569): date on which the subject was born"]
    assert texts(rows, "vector_triples") == []
    assert len(texts(retrieved(lake, chosen()), "entity_paths")) == 2


def test_another_name_changes_every_key_of_the_paths(lake: Lake) -> None:
    before = retrieved(lake, chosen()).frame
    named = entities({**NAMES, "wd:Q205892": ("day", "")})
    lake.write(KG_ENTITIES, "0", named)
    bring_up_to_date(lake)
    after = retrieved(lake, chosen()).frame
    changed = set(after["row_key"]) - set(before["row_key"])
    assert after.filter(pl.col("row_key").is_in(sorted(changed)))["method"].to_list() == ["entity_paths"]
    assert "day" in texts(retrieved(lake, chosen()), "entity_paths")[1]


def test_a_missing_lexicon_is_said(lake: Lake) -> None:
    lexicon_path(lake).unlink()
    with pytest.raises(KnowledgeError, match="kg_lexicon"):
        open_retrievers(lake, chosen(), TASK)


class Counted:
    """An embedder of the attributes' model that knows a few texts, and remembers what it embedded."""

    model_id = MODEL
    dimension = DIMENSION

    def __init__(self, known: dict[str, np.ndarray]) -> None:
        self.known = known
        self.embedded: list[str] = []

    def embed(self, texts: Sequence[str], progress: EmbedProgress | None = None) -> np.ndarray:  # noqa: ARG002 (the port's)
        """Return the vectors of known texts."""
        self.embedded += texts
        return np.stack([self.known[text] for text in texts])


def test_cheap_vectors_are_rescored_with_the_full_model(lake: Lake) -> None:
    plain = retrieved(lake, chosen()).frame
    cheap = f"static/{fitted_folder(Path(), MODEL, 100_000).name}@0/1"
    triple_vectors = dict(zip(triples(STATEMENTS, NAMES)["triple_id"], [vector(a=0.9), vector(b=0.9)], strict=True))
    known: dict[str, np.ndarray] = {}
    for name, table, id_column, vectors in (
        ("entity_index", ENTITY_EMBEDDINGS, "entity_id", ENTITY_VECTORS),
        ("triple_index", TRIPLE_EMBEDDINGS, "triple_id", triple_vectors),
    ):
        rows = [
            {
                id_column: one,
                "graph": "g",
                "bucket": 0,
                "source_key": one,
                "text": f"text of {one}",
                "model_id": cheap,
                "vector": [1.0] * DIMENSION,
                "row_key": one,
            }
            for one in vectors
        ]
        lake.write(table, "0", table.frame(rows))
        known.update({f"text of {one}": full for one, full in vectors.items()})
        blurred = {one: (full + 0.05) / np.linalg.norm(full + 0.05) for one, full in vectors.items()}
        replace_folder(lake.paths.arrays(name), replace(index_of(blurred), model_id=cheap).save)
    embedder = Counted(known)
    settings = Settings(_env_file=None, embedder=EmbedderSettings(first_stage="static"))
    found = retrieve_task(
        SCHEMA,
        candidates(SCHEMA),
        open_retrievers(lake, settings, TASK, embedder),
        RETRIEVED_SUBGRAPHS.empty(),
    ).frame
    # The same scores as with the full model's own vectors; each text was embedded once.
    columns = ["method", "status", "facts"]
    assert found.select(columns).sort("method").equals(plain.select(columns).sort("method"))
    assert sorted(embedder.embedded) == sorted(known)
    with pytest.raises(RetrievalError, match="bring triple_index"):
        open_retrievers(lake, chosen(), TASK, embedder)
    other = Settings(_env_file=None, embedder=EmbedderSettings(first_stage="static", first_stage_texts=200))
    with pytest.raises(RetrievalError, match="triple_index: the first stage's vectors"):
        open_retrievers(lake, other, TASK, embedder)


def test_a_question_is_searched_with_the_given_embedder(lake: Lake) -> None:
    settings = chosen(retrieval={"query_form": "question"})
    query = queries_of(SCHEMA, candidates(SCHEMA))[0]
    embedder = Counted({question_text(query): vector(a=0.8, b=0.5)})
    found = retrieve_task(
        SCHEMA, candidates(SCHEMA), open_retrievers(lake, settings, TASK, embedder), RETRIEVED_SUBGRAPHS.empty()
    )
    # One entity has the words of the source attribute, the other those of the target.
    path = "date of birth —instance of→ calendar date ←subclass of— birthday"
    assert texts(found, "entity_paths") == [path]
    assert len(texts(found, "vector_triples")) == 2
    # Both methods searched with it.
    assert embedder.embedded == [question_text(query)]
    assert not set(found.frame["row_key"]) & set(retrieved(lake, chosen()).frame["row_key"])


def test_a_question_needs_an_index_of_the_embedders_model(lake: Lake) -> None:
    embedder = Counted({})
    embedder.model_id = "other@2"
    with pytest.raises(RetrievalError, match=r"triple_index holds vectors of fake@1"):
        open_retrievers(lake, chosen(retrieval={"query_form": "question"}), TASK, embedder)


def test_methods_are_opened_once_in_the_order_of_the_settings(lake: Lake) -> None:
    settings = chosen(retrieval={"methods": ["entity_paths", "vector_triples", "entity_paths"]})
    assert [method.name for method in open_retrievers(lake, settings, TASK)] == ["entity_paths", "vector_triples"]
    assert open_retrievers(lake, chosen(retrieval={"methods": []}), TASK) == []


@pytest.mark.parametrize("method", LLM_METHODS)
def test_a_method_that_asks_a_model_says_which_setting_is_missing(lake: Lake, method: str) -> None:
    settings = chosen(retrieval={"methods": ["vector_triples", method]})
    with pytest.raises(RetrievalError, match=f"{method} asks a language model.*KGRAG_RETRIEVAL_LLM__PROVIDER"):
        open_retrievers(lake, settings, TASK)


def test_fused_rows_of_both_methods(lake: Lake) -> None:
    settings = chosen(retrieval={"fusion": "rrf"})
    rows = retrieve_task(
        SCHEMA,
        candidates(SCHEMA),
        open_retrievers(lake, settings, TASK),
        RETRIEVED_SUBGRAPHS.empty(),
        settings=settings.retrieval,
    )
    assert sorted(rows.frame["method"]) == ["entity_paths", "fusion", "vector_triples"]
    assert set(texts(rows, "fusion")) == {*texts(rows, "entity_paths"), *texts(rows, "vector_triples")}


class Silent:
    """A chat model that never answers, and counts what it is asked."""

    provider = "openai"
    model = "silent"

    def __init__(self) -> None:
        self.pause = Pause()
        self.asked: list[ChatRequest] = []

    def ask(self, request: ChatRequest) -> ChatReply:
        """Fail as a slow server does."""
        self.asked.append(request)
        return ChatReply("", "timeout", "too late", 0, 0, 0.0, None)


@pytest.mark.parametrize("method", LLM_METHODS)
def test_a_model_that_does_not_answer_is_asked_again_the_next_time(lake: Lake, method: str) -> None:
    settings = chosen(retrieval={"methods": [method]}).model_copy(
        update={"retrieval_llm": LanguageModelSettings(provider="openai", model="silent")}
    )
    silent, embedder = Silent(), Counted({})
    asked: list[int] = []
    frame = RETRIEVED_SUBGRAPHS.empty()
    with CallLedger(lake.paths.ledger) as ledger:
        for _ in range(2):
            retrievers = open_retrievers(lake, settings, TASK, embedder, ledger=ledger, model=silent)
            assert [one.name for one in retrievers] == [method]
            rows = retrieve_task(SCHEMA, candidates(SCHEMA), retrievers, frame)
            assert rows.frame["status"].to_list() == ["no_answer"]
            assert not frame.height or set(frame["row_key"]) == set(rows.frame["row_key"])
            frame = rows.frame
            asked.append(len(silent.asked))
        assert asked[0] > 0
        assert asked[1] == 2 * asked[0]
        assert set(ledger.frame()["request_hash"]) == {request.request_hash for request in silent.asked}
