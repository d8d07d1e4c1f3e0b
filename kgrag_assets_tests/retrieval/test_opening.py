"""The methods over a real lake: saved indexes, memory-mapped adjacency, the graphs that a task chooses."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from kgrag_assets.indexing.manifest import IndexFileError
from kgrag_assets.knowledge.adjacency import build_adjacency
from kgrag_assets.lake.files import replace_folder
from kgrag_assets.lake.lake import Lake
from kgrag_assets.retrieval.assemble import RetrievedRows, retrieve_task
from kgrag_assets.retrieval.opening import open_retrievers
from kgrag_assets.retrieval.protocol import RetrievalError
from kgrag_assets.rows.embeddings import ATTRIBUTE_EMBEDDINGS
from kgrag_assets.rows.knowledge_graph import KG_ENTITIES, KG_TRIPLES
from kgrag_assets.rows.retrieved_subgraphs import RETRIEVED_SUBGRAPHS
from kgrag_assets.settings import Settings
from kgrag_assets_tests.retrieval.small_world import (
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


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    made = Lake.at(tmp_path)
    names, statements = entities(NAMES), triples(STATEMENTS, NAMES)
    made.write(KG_ENTITIES, "0", names)
    made.write(KG_TRIPLES, "0", statements)
    made.write(ATTRIBUTE_EMBEDDINGS, TASK, embeddings(SCHEMA, ATTRIBUTE_VECTORS))
    near: dict[str, np.ndarray] = dict(zip(statements["triple_id"], [vector(a=0.9), vector(b=0.9)], strict=True))
    replace_folder(made.paths.arrays("entity_index"), index_of(ENTITY_VECTORS).save)
    replace_folder(made.paths.arrays("triple_index"), index_of(near).save)

    def write(folder: Path) -> None:
        build_adjacency(names, statements, folder, "v1")

    replace_folder(made.paths.arrays("kg_graph"), write)
    return made


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
    rows = retrieved(lake, chosen(graph={"graphs": ["other"]}))
    assert rows.frame["status"].to_list() == ["no_seed", "no_seed"]
    assert retrieved(lake, chosen(graph={"graphs": ["g", "other"]})).frame["status"].to_list() == ["found", "found"]
    with pytest.raises(RetrievalError, match="'nowhere', which the lake does not have; it has g, other"):
        open_retrievers(lake, chosen(graph={"graphs": ["nowhere"]}), TASK)


def test_a_damaged_index_is_refused(lake: Lake) -> None:
    (lake.paths.arrays("entity_index") / "delta.npy").write_bytes(b"")
    with pytest.raises(IndexFileError, match=r"delta.npy.* Delete the folder"):
        open_retrievers(lake, chosen(), TASK)
