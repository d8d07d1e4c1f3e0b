"""The lake's adjacency behind the retrieval methods: settings, chosen graphs, several seeds."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from kgrag_assets.knowledge.adjacency import Adjacency
from kgrag_assets.knowledge.adjacency_build import build_adjacency, frames_as_buckets
from kgrag_assets.knowledge.errors import KnowledgeError
from kgrag_assets.retrieval.local_search import LocalSearch
from kgrag_assets.rows.knowledge_graph import KG_ENTITIES
from kgrag_assets.settings import RetrievalSettings
from kgrag_assets_tests.knowledge.test_search import triples_of

STATEMENTS = [("wd:Q1", "wd:P1", "wd:Q2"), ("wd:Q2", "wd:P1", "wd:Q3"), ("wd:Q3", "wd:P1", "wd:Q4")]


@pytest.fixture
def adjacency(tmp_path: Path) -> Adjacency:
    rows = pl.concat([triples_of(STATEMENTS[:2], "one"), triples_of(STATEMENTS[2:], "two")])
    build_adjacency(frames_as_buckets(KG_ENTITIES.empty(), rows), tmp_path, "1")
    return Adjacency.open(tmp_path)


def test_paths_are_as_long_as_the_settings_say(adjacency: Adjacency) -> None:
    assert len(LocalSearch(adjacency, RetrievalSettings(max_hops=3)).between("wd:Q1", "wd:Q4").walks) == 1
    assert LocalSearch(adjacency, RetrievalSettings(max_hops=2)).between("wd:Q1", "wd:Q4").walks == ()


def test_only_the_graphs_of_the_task_are_walked(adjacency: Adjacency) -> None:
    search = LocalSearch(adjacency, RetrievalSettings(), ["one"])
    assert search.between("wd:Q1", "wd:Q4").walks == ()
    assert len(search.between("wd:Q1", "wd:Q3").walks) == 1
    assert [walk.nodes for walk in search.around("wd:Q3").walks] == [("wd:Q3", "wd:Q2")]
    with pytest.raises(KnowledgeError, match="does not have the knowledge graph 'three'"):
        LocalSearch(adjacency, RetrievalSettings(), ["three"]).around("wd:Q1")


def test_several_seeds_and_further_surroundings(adjacency: Adjacency) -> None:
    search = LocalSearch(adjacency, RetrievalSettings())
    among = search.among(["wd:Q1", "wd:Q3", "wd:Q4"])
    assert {walk.nodes for walk in among.walks} == {
        ("wd:Q3", "wd:Q4"),
        ("wd:Q1", "wd:Q2", "wd:Q3"),
        ("wd:Q1", "wd:Q2", "wd:Q3", "wd:Q4"),
    }
    assert [len(walk.steps) for walk in search.around("wd:Q1", depth=2).walks] == [1, 2]
