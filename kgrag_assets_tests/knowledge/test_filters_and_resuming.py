"""Which part of a graph a filter keeps, and what a load does after it was killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest

from kgrag_assets.knowledge import extraction
from kgrag_assets.knowledge.graph_folder import load_graph_folder
from kgrag_assets.knowledge.opening import open_source
from kgrag_assets.knowledge.sources import blocks
from kgrag_assets.lake.lake import Lake
from kgrag_assets.rows.rejects import KG_REJECTS
from kgrag_assets_tests.knowledge.loaded import add_graph, load_all
from kgrag_assets_tests.knowledge.test_refreshing import entity

# Classes: Q1 > Q2 > Q3 by P279; Q10 is a Q3, Q11 a Q2, Q12 a Q9; Q13 is of no class.
WORLD = [
    entity(1, 1, {}, 1),
    entity(2, 1, {"P279": [1]}, 1),
    entity(3, 1, {"P279": [2]}, 1),
    entity(9, 1, {}, 1),
    entity(10, 1, {"P31": [3], "P50": [12]}, 1),
    entity(11, 1, {"P31": [2]}, 1),
    entity(12, 1, {"P31": [9], "P50": [10]}, 1),
    entity(13, 1, {"P50": [10]}, 1),
    {"type": "property", "id": "P50", "labels": {"en": {"language": "en", "value": "author"}}, "claims": {}},
]


def kept(place: Path, chosen: str, world: list[dict[str, object]] = WORLD) -> tuple[set[str], set[tuple[str, ...]]]:
    text = "\n".join(json.dumps(one) for one in world)
    folder = add_graph(place, "w", f"format: wikidata_json\nfilter: {chosen}\n", {"dump.json": text})
    loaded = load_all(place, [folder])
    ids = {one.removeprefix("wd:") for one in loaded.entities["entity_id"]}
    shown = loaded.triples.select("head", "relation", "tail", "tail_label").iter_rows()
    return ids, {tuple(part.removeprefix("wd:") for part in row) for row in shown}


def test_instances_and_subclasses_of_a_class(tmp_path: Path) -> None:
    ids, triples = kept(tmp_path, "{classes: [Q1]}")
    assert ids == {"Q1", "Q2", "Q3", "Q10", "Q11", "P50"}
    assert ("Q10", "P50", "Q12", "name 12-1") in triples, "the tail of a statement need not be kept to be read"
    assert {head for head, *_rest in triples} == {"Q2", "Q3", "Q10", "Q11"}


def test_tails_that_are_kept(tmp_path: Path) -> None:
    _ids, triples = kept(tmp_path, "{classes: [Q1], tails: kept}")
    assert ("Q10", "P31", "Q3", "name 3-1") in triples
    assert not [row for row in triples if row[2] == "Q12"]


def test_relations_that_only_the_filter_walks(tmp_path: Path) -> None:
    ids, triples = kept(tmp_path, "{classes: [Q1], relations: [P50]}")
    assert ids == {"Q1", "Q2", "Q3", "Q10", "Q11", "P50"}
    assert {relation for _head, relation, *_rest in triples} == {"P50"}
    _ids, triples = kept(tmp_path, "{without_relations: [P50]}")
    assert {relation for _head, relation, *_rest in triples} == {"P31", "P279"}


def test_counts(tmp_path: Path) -> None:
    famous = {**entity(20, 1, {"P31": [1]}, 1), "sitelinks": {name: {"site": name} for name in ("enwiki", "dewiki")}}
    ids, triples = kept(tmp_path, "{min_sitelinks: 2}", [*WORLD, famous])
    assert ids == {"Q20", "P50"}
    assert triples == {("Q20", "P31", "Q1", "name 1-1")}
    ids, _triples = kept(tmp_path, "{min_statements: 2}")
    assert ids == {"Q10", "Q12", "P50"}


def test_a_count_of_statements_in_another_format(tmp_path: Path) -> None:
    lines = ["node1\tlabel\tnode2", "Q1\tP31\tQ2", "Q1\tP31\tQ3", "Q2\tP31\tQ3", "P31\tlabel\t'instance of'@en"]
    config = "format: kgtk\nfilter: {min_statements: 2}\n"
    loaded = load_all(tmp_path, [add_graph(tmp_path, "k", config, {"a.tsv": "\n".join(lines)})])
    assert set(loaded.entities["entity_id"]) == {"wd:Q1", "wd:P31"}


def test_a_class_in_a_circle(tmp_path: Path) -> None:
    world = [entity(1, 1, {"P279": [2]}, 1), entity(2, 1, {"P279": [1]}, 1), entity(3, 1, {"P31": [2]}, 1)]
    ids, _triples = kept(tmp_path, "{classes: [Q1]}", world)
    assert ids == {"Q1", "Q2", "Q3"}


def lines_of(count: int) -> str:
    head = "node1\tlabel\tnode2\n"
    return head + "".join(f"Q{n}\tlabel\t'thing {n}'@en\nQ{n}\tP31\tQ{n % 50}\n" for n in range(count))


def test_a_second_load_reads_nothing_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 4096)
    folder = add_graph(tmp_path, "k", "format: kgtk\n", {"a.tsv": lines_of(2000)})
    first = load_all(tmp_path, [folder])
    again = load_all(tmp_path, [folder])
    assert first.report.units_kept == again.report.units_read == 0
    assert again.report.units_kept == first.report.units_read > 3
    assert not any(bucket.triples.changed for bucket in again.report.buckets.values())
    assert again.triples.equals(first.triples)


def test_one_changed_file_is_read_again_alone(tmp_path: Path) -> None:
    files = {f"{name}.tsv": lines_of(10 + place) for place, name in enumerate("abc")}
    folder = add_graph(tmp_path, "k", "format: kgtk\n", files)
    assert load_all(tmp_path, [folder]).report.units_read == 3
    (folder.path / "b.tsv").write_text(lines_of(40), encoding="utf-8")
    report = load_all(tmp_path, [folder]).report
    assert (report.units_read, report.units_kept) == (1, 2)
    (folder.path / "a.tsv").unlink()
    load_all(tmp_path, [folder])
    parts = Lake.at(tmp_path).paths.partition("kg_parts", "k")
    assert len([path for path in parts.iterdir() if path.is_dir()]) == 2


def test_several_processes_read_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = lines_of(3000) + "broken line\n"
    alone = load_all(tmp_path / "a", [add_graph(tmp_path / "a", "k", "format: kgtk\n", {"a.tsv": text})])
    monkeypatch.setattr(extraction, "POOL_FROM_BYTES", 0)
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 8192)
    place = tmp_path / "b"
    folder = add_graph(place, "k", "format: kgtk\n", {"a.tsv": text})
    source_parts = extraction.extract(open_source(folder, place), place / "parts", namespace="wd", buckets=4, workers=2)
    assert source_parts.read > 3
    rejects = pl.concat(list(extraction.rejects_of(source_parts.parts)))
    assert rejects["row"].to_list() == [6002] == alone.rejects["row"].to_list()
    edges = pl.concat([pl.read_parquet(part.table("edges")) for part in source_parts.parts])
    assert edges.height == alone.triples.height == 3000


LOADER = """
import sys
from pathlib import Path
from kgrag_assets.knowledge import extraction
from kgrag_assets.knowledge.sources import blocks
from kgrag_assets.knowledge.graph_folder import load_graph_folder
from kgrag_assets.lake.lake import Lake
from kgrag_assets_tests.knowledge.loaded import load_all
if __name__ == "__main__":
    blocks.BLOCK_BYTES = 4096
    place = Path(sys.argv[1])
    print("started", flush=True)
    load_all(place, [load_graph_folder(Lake.at(place).paths, "k")])
"""


def test_a_killed_load_goes_on_where_it_was(tmp_path: Path) -> None:
    add_graph(tmp_path, "k", "format: kgtk\n", {"a.tsv": lines_of(60_000)})
    script = tmp_path / "load.py"
    script.write_text(LOADER, encoding="utf-8")
    parts = Lake.at(tmp_path).paths.partition("kg_parts", "k")
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    process = subprocess.Popen([sys.executable, script, str(tmp_path)], env=environment, stdout=subprocess.PIPE)
    deadline = time.monotonic() + 120
    while len(list(parts.glob("[!.]*"))) < 5 and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    left = len([path for path in parts.glob("[!.]*") if path.is_dir()])
    assert left >= 5
    folder = load_graph_folder(Lake.at(tmp_path).paths, "k")
    blocks_of = blocks.BLOCK_BYTES
    try:
        blocks.BLOCK_BYTES = 4096
        loaded = load_all(tmp_path, [folder])
    finally:
        blocks.BLOCK_BYTES = blocks_of
    assert loaded.report.units_kept >= left
    assert loaded.triples.height == 60_000
    assert loaded.rejects.height == 0
    assert KG_REJECTS.conform(loaded.rejects).is_empty()
    assert not list(parts.glob(".*"))
