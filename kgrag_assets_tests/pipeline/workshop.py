"""A small lake with a task and a graph, an embedder that needs no model, and ways to change what people put in."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from kgrag_assets.lake.lake import Lake
from kgrag_assets.rows.keys import key_of
from kgrag_assets.settings import GraphSettings, Settings

TASK = "small shop"
GRAPH = "tiny"
HEADER = ["table", "column", "data_type", "table_description", "column_description"]

SOURCE = [
    ["clients", "cl_id", "integer", "people who buy", "identifier of the client"],
    ["clients", "dob", "date", "people who buy", "date of birth of the client"],
    ["clients", "sex", "char(1)", "people who buy", "sex of the client"],
    ["orders", "ord_dt", "date", "what was bought", "date of the order"],
    ["orders", "parking_lot", "text", "what was bought", ""],
]
TARGET = [
    ["person", "person_id", "integer", "each human in the data", "identifier of the person"],
    ["person", "birth_date", "date", "each human in the data", "date of birth of the person"],
    ["person", "gender", "varchar", "each human in the data", "sex or gender of the person"],
    ["purchase", "purchase_date", "date", "each purchase", "date on which the purchase was made"],
]
REFERENCE = [
    ["clients", "cl_id", "person", "person_id"],
    ["clients", "dob", "person", "birth_date"],
    ["clients", "sex", "person", "gender"],
    ["orders", "ord_dt", "purchase", "purchase_date"],
]
LABELS = {
    "Q1": "human",
    "Q2": "birth",
    "Q3": "identifier",
    "Q4": "point in time",
    "Q5": "purchase",
    "Q6": "customer",
    "Q7": "date",
    "P1": "date of birth",
    "P2": "sex or gender",
    "P31": "instance of",
    "P279": "subclass of",
}
DESCRIPTIONS = {
    "P1": "date on which the subject was born",
    "P2": "sex or gender of the person",
    "Q5": "buying of goods",
}
EDGES = [
    ("P1", "P31", "Q7"),
    ("Q7", "P279", "Q4"),
    ("Q6", "P279", "Q1"),
    ("Q5", "P31", "Q4"),
    ("Q2", "P279", "Q4"),
]


class WordEmbedder:
    """Vectors of hashed words: texts that share words are near. Remembers every text it was given."""

    dimension = 64

    def __init__(self, model_id: str = "words-1") -> None:
        self.model_id = model_id
        self.seen: list[str] = []

    def embed(self, texts: Sequence[str], progress: Callable[[int], None] | None = None) -> np.ndarray:
        self.seen += texts
        vectors = np.full((len(texts), self.dimension), 1e-3, dtype=np.float32)
        for row, text in enumerate(texts):
            for word in text.lower().replace("_", " ").replace(".", " ").replace(":", " ").split():
                vectors[row, int(key_of(self.model_id, word)[:8], 16) % self.dimension] += 1.0
        if progress is not None:
            progress(len(texts))
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def settings_for(root: Path, **sections: object) -> Settings:
    """Make the settings of a lake below ``root``, with few buckets."""
    graph = GraphSettings(buckets=3)
    return Settings(_env_file=None, lake=root / "lake", graph=graph, **sections)  # type: ignore[call-arg]


def write_rows(path: Path, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as handle:
        csv.writer(handle).writerows([header, *rows])


def put_task(
    lake: Lake,
    source: Sequence[Sequence[str]] = SOURCE,
    target: Sequence[Sequence[str]] = TARGET,
    reference: Sequence[Sequence[str]] = REFERENCE,
    name: str = TASK,
) -> Path:
    """Write a task's folder."""
    folder = lake.paths.tasks / name
    write_rows(folder / "source.csv", HEADER, source)
    write_rows(folder / "target.csv", HEADER, target)
    columns = ["source_table", "source_column", "target_table", "target_column"]
    write_rows(folder / "reference.csv", columns, reference)
    return folder


def put_graph(lake: Lake, labels: dict[str, str] | None = None, descriptions: dict[str, str] | None = None) -> None:
    """Write the graph's folder."""
    folder = lake.paths.knowledge_graphs / GRAPH
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "kg.yaml").write_text("format: kgtk\npath: .\nlanguages: [en]\nnamespace: wd\n")

    def tsv(name: str, rows: list[tuple[str, str, str]]) -> None:
        lines = ["node1\tlabel\tnode2\tid", *(f"{a}\t{b}\t{c}\t{a}-{b}-{n}" for n, (a, b, c) in enumerate(rows))]
        (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")

    labelled = LABELS if labels is None else labels
    described = DESCRIPTIONS if descriptions is None else descriptions
    tsv("labels.en.tsv", [(node, "label", f"'{text}'@en") for node, text in labelled.items()])
    tsv("descriptions.en.tsv", [(node, "description", f"'{text}'@en") for node, text in described.items()])
    tsv("edges.tsv", [edge for edge in EDGES if edge[0] in labelled and edge[2] in labelled])


def changed(rows: Sequence[Sequence[str]], table: str, column: str, description: str) -> list[list[str]]:
    """Return the rows with one column's description changed."""
    return [[*row[:4], description] if row[:2] == [table, column] else list(row) for row in rows]
