"""Loading small graphs in tests: a lake, folders in it, and the staged rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from kgrag_assets.automation.partitions import bucket_names
from kgrag_assets.knowledge.graph_folder import GraphFolder, load_graph_folder
from kgrag_assets.knowledge.loading import LoadReport, load_graphs
from kgrag_assets.lake.lake import Lake
from kgrag_assets.rows.knowledge_graph import STAGED_ENTITIES, STAGED_TRIPLES
from kgrag_assets.settings import GraphSettings


@dataclass(frozen=True)
class Loaded:
    """What a load wrote."""

    lake: Lake
    report: LoadReport
    entities: pl.DataFrame
    triples: pl.DataFrame

    @property
    def rejects(self) -> pl.DataFrame:
        return self.report.rejects


def add_graph(place: Path, name: str, config: str, files: Mapping[str, str | bytes]) -> GraphFolder:
    """Write a graph's folder into the lake at ``place``."""
    lake = Lake.at(place)
    folder = lake.paths.knowledge_graphs / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "kg.yaml").write_text(config, encoding="utf-8")
    for file, content in files.items():
        (folder / file).write_bytes(content if isinstance(content, bytes) else content.encode())
    return load_graph_folder(lake.paths, name)


def load_all(place: Path, folders: Sequence[GraphFolder], buckets: int = 4) -> Loaded:
    """Load graphs into the lake at ``place``."""
    lake = Lake.at(place)
    settings = GraphSettings(buckets=buckets, workers=1)
    report = load_graphs(lake, folders, settings, bucket_names(buckets), lambda _what, _size: lambda _done: None)
    return Loaded(lake, report, *staged(lake))


def staged(lake: Lake) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the staged entities and triples, sorted by key."""
    entities, triples = (lake.read_all(table).sort("row_key") for table in (STAGED_ENTITIES, STAGED_TRIPLES))
    return entities, triples
