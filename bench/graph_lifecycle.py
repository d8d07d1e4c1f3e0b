"""A graph's whole life, timed: files to rows, adjacency and lexicon, and a refresh beside building all of it anew.

The graph is generated in Wikidata5M's shape and layout (see ``graph_shape.py``) and goes through the product's own
functions, stage by stage, in the order of its assets. Then 0.1 % of the entities change (a new label, a statement
more), the refresh runs, and a second lake is built from nothing with these changes: both must hold the same rows and
answer the same questions.

    python bench/graph_lifecycle.py                       # a hundredth, with embeddings and indexes
    python bench/graph_lifecycle.py --scale 0.1
    python bench/graph_lifecycle.py --scale 1 --no-vectors --buckets 16
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl

from kgrag_assets.automation.partitions import bucket_names
from kgrag_assets.indexing.graph_embedding import embed_partition
from kgrag_assets.indexing.hnsw import HnswIndex
from kgrag_assets.indexing.stored_vectors import stored_vectors
from kgrag_assets.indexing.update import open_previous, update_index
from kgrag_assets.knowledge.adjacency_update import bring_adjacency_up_to_date, open_graph
from kgrag_assets.knowledge.graph_folder import GraphFolder, load_graph_folder
from kgrag_assets.knowledge.lexicon_build import bring_lexicon_up_to_date
from kgrag_assets.knowledge.loading import load_graphs
from kgrag_assets.knowledge.refreshing import refresh_graph
from kgrag_assets.knowledge.search import paths_between
from kgrag_assets.lake.files import replace_folder
from kgrag_assets.lake.lake import Lake
from kgrag_assets.models.embedders import Embedder, make_embedder
from kgrag_assets.rows.embeddings import ENTITY_EMBEDDINGS, TRIPLE_EMBEDDINGS
from kgrag_assets.rows.graph_changes import KG_CHANGES, change_key_of
from kgrag_assets.rows.knowledge_graph import KG_ENTITIES, KG_TRIPLES, STAGED_ENTITIES, STAGED_TRIPLES
from kgrag_assets.settings import EmbedderSettings, GraphSettings, IndexSettings

RESULTS = Path(__file__).parent / "results" / "graph_lifecycle.md"
GRAPH = "generated"
SHARE = 0.001
ASKED = 300


class Stages:
    """Seconds of each stage, and the peak memory of the process after it."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.peak_mb: dict[str, float] = {}

    def run(self, name: str, work: Callable[[], object]) -> object:
        """Time a piece of work."""
        began = time.perf_counter()
        result = work()
        self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - began
        self.peak_mb[name] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"  {name}: {self.seconds[name]:.1f} s, peak {self.peak_mb[name]:.0f} MB", flush=True)
        return result

    @property
    def total(self) -> float:
        """Seconds of all stages."""
        return sum(self.seconds.values())


def main() -> None:
    """Run the life of a graph and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--scale", type=float, default=0.01, help="1 is Wikidata5M: 4.6 M entities, 20.6 M triples")
    parser.add_argument("--buckets", type=int, default=8)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--no-vectors", action="store_true", help="leave embeddings and vector indexes out")
    parser.add_argument(
        "--work", type=Path, default=Path("bench_work"), help="folder for the lakes; removed at the end"
    )
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    shutil.rmtree(options.work, ignore_errors=True)
    try:
        measure(options)
    finally:
        shutil.rmtree(options.work, ignore_errors=True)


def measure(options: argparse.Namespace) -> None:
    """Build, refresh, build again, compare."""
    settings = GraphSettings(buckets=options.buckets, workers=options.workers)
    embedder = None if options.no_vectors else make_embedder(EmbedderSettings(kind="static"))
    if embedder is not None:
        embedder.embed(["warm"])
    data = options.work / "data"
    data.mkdir(parents=True)
    # In a process of its own: its memory is not the product's.
    generator = str(Path(__file__).with_name("graph_shape.py"))
    arguments = [str(data), "--scale", str(options.scale), "--seed", str(options.seed), "--format", "wikidata5m"]
    subprocess.run([sys.executable, generator, *arguments], check=True)  # noqa: S603  (this folder's own script)
    size = sum(path.stat().st_size for path in data.iterdir()) / 1e6
    print(f"files: {size:.0f} MB")
    first, folder = lake_at(options.work / "first", data)
    built = Stages()
    print("build")
    build(first, folder, settings, embedder, built)
    entities, triples = (sum(rows(first, table, options.buckets)) for table in (KG_ENTITIES, KG_TRIPLES))
    disk = sizes(first)
    changes = changed_entities(first, options.buckets, options.seed)
    first.write(KG_CHANGES, GRAPH, changes)
    refreshed = Stages()
    print(f"refresh after {changes.height} changed entities")
    refresh(first, folder, settings, embedder, refreshed)
    second, folder = lake_at(options.work / "second", data)
    second.write(KG_CHANGES, GRAPH, changes)
    again = Stages()
    print("build anew with the changes")
    build(second, folder, settings, embedder, again)
    equal = same(first, second, options.buckets, options.seed, vectors=embedder is not None)
    table = report(options, size, entities, triples, changes.height, built, refreshed, again, equal, disk)
    print(table)
    options.out.parent.mkdir(exist_ok=True)
    options.out.write_text(table, encoding="utf-8")


def sizes(lake: Lake) -> dict[str, float]:
    """Return the megabytes of each stage; files that two stages share count once."""
    seen: set[int] = set()
    found: dict[str, float] = {}
    for stage in sorted(lake.paths.stage("").iterdir()):
        total = 0
        for path in stage.rglob("*"):
            status = path.lstat()
            if path.is_file() and not path.is_symlink() and status.st_ino not in seen:
                seen.add(status.st_ino)
                total += status.st_size
        if total > 1e6:
            found[stage.name] = total / 1e6
    return found


def lake_at(place: Path, data: Path) -> tuple[Lake, GraphFolder]:
    """Make a lake with the graph's folder."""
    lake = Lake.at(place)
    folder = lake.paths.knowledge_graphs / GRAPH
    folder.mkdir(parents=True)
    (folder / "kg.yaml").write_text(f"format: wikidata5m\npath: {data.resolve()}\n", encoding="utf-8")
    return lake, load_graph_folder(lake.paths, GRAPH)


def silent(_what: str, _total: int) -> Callable[[int], None]:
    """Tell nobody about progress."""
    return lambda _steps: None


def build(lake: Lake, folder: GraphFolder, settings: GraphSettings, embedder: Embedder | None, stages: Stages) -> None:
    """Go from files to everything that is built of them."""
    names = bucket_names(settings.buckets)
    stages.run("read and join", lambda: load_graphs(lake, [folder], settings, names, silent))
    follow(lake, settings, embedder, stages)


def refresh(
    lake: Lake, folder: GraphFolder, settings: GraphSettings, embedder: Embedder | None, stages: Stages
) -> None:
    """Bring everything up to the changes."""
    names = bucket_names(settings.buckets)
    stages.run("read and join", lambda: refresh_graph(lake, folder, settings, names))
    follow(lake, settings, embedder, stages)


def follow(lake: Lake, settings: GraphSettings, embedder: Embedder | None, stages: Stages) -> None:
    """Do what the assets below the staged rows do."""
    names = bucket_names(settings.buckets)
    stages.run("rows of buckets", lambda: [adopt(lake, name) for name in names])
    stages.run("adjacency", lambda: bring_adjacency_up_to_date(lake, names))
    stages.run("lexicon", lambda: bring_lexicon_up_to_date(lake, names))
    if embedder is None:
        return
    for table, column in ((ENTITY_EMBEDDINGS, "entity_id"), (TRIPLE_EMBEDDINGS, "triple_id")):
        stages.run(
            "embeddings",
            lambda table=table: [embed_partition(lake, table, name, embedder, checkpoint=200_000) for name in names],
        )
        stages.run("vector indexes", lambda table=table, column=column: index(lake, table, column, names, embedder))


def adopt(lake: Lake, name: str) -> None:
    """Do what the assets of a bucket's rows do."""
    lake.adopt(KG_ENTITIES, name, STAGED_ENTITIES)
    lake.adopt(KG_TRIPLES, name, STAGED_TRIPLES)


def index(lake: Lake, table: object, column: str, names: list[str], embedder: Embedder) -> None:
    """Do what the asset of an index does."""
    with stored_vectors(lake, table, names, column) as stored:  # type: ignore[arg-type]
        folder = lake.paths.arrays(f"{column}_index")
        updated = update_index(
            open_previous(folder),
            ids=stored.ids,
            row_keys=stored.row_keys,
            vectors=stored,
            # In full: halves in the base and full vectors in the delta differ in the fourth digit.
            settings=IndexSettings(storage="full"),
            model_id=embedder.model_id,
        )
        if updated.changed:
            replace_folder(folder, updated.index.save)


def rows(lake: Lake, table: object, buckets: int) -> list[int]:
    """Count rows by bucket."""
    return [lake.scan(table, name).select(pl.len()).collect().item() for name in bucket_names(buckets)]  # type: ignore[arg-type]


def changed_entities(lake: Lake, buckets: int, seed: int) -> pl.DataFrame:
    """Make 0.1 % of the entities change: each has a new label and one statement more, as the API would answer."""
    random = np.random.default_rng(seed)
    scans = [lake.scan(KG_ENTITIES, name, ["entity_id", "label", "kind"]) for name in bucket_names(buckets)]
    known = pl.concat(scans).filter(pl.col("kind") == "entity").sort("entity_id").collect()
    chosen = known[np.sort(random.choice(known.height, max(1, round(known.height * SHARE)), replace=False))]
    edges = pl.concat(
        [lake.scan(KG_TRIPLES, name, ["head", "relation", "tail"]) for name in bucket_names(buckets)]
    ).join(chosen.lazy().select(pl.col("entity_id").alias("head")), on="head", how="semi")
    by_head: dict[str, list[tuple[str, str]]] = {}
    for head, relation, tail in edges.collect().iter_rows():
        by_head.setdefault(head, []).append((relation, tail))
    others = known["entity_id"].gather(random.integers(0, known.height, chosen.height))
    frames = []
    for entity, label, other in zip(chosen["entity_id"], chosen["label"], others, strict=True):
        statements = [*by_head.get(entity, []), ("wd:P361", other)]
        document = json.dumps(entity_of(entity[3:], f"{label} anew", statements))
        row = (GRAPH, entity[3:], "edited", None, 1, "2026-11-30T00:00:00Z")
        frames.append((*row, document, change_key_of(*row[:5])))
    return pl.DataFrame(frames, schema=KG_CHANGES.schema, orient="row")


def entity_of(local: str, label: str, statements: list[tuple[str, str]]) -> dict[str, object]:
    """Write an entity as Wikidata's API does."""
    claims: dict[str, list[object]] = {}
    for relation, tail in statements:
        value = {"value": {"entity-type": "item", "id": tail[3:]}, "type": "wikibase-entityid"}
        snak = {"snaktype": "value", "property": relation[3:], "datatype": "wikibase-item", "datavalue": value}
        claims.setdefault(relation[3:], []).append({"mainsnak": snak, "type": "statement", "rank": "normal"})
    named = {"en": {"language": "en", "value": label}}
    return {"type": "item", "id": local, "lastrevid": 1, "labels": named, "claims": claims}


def same(first: Lake, second: Lake, buckets: int, seed: int, *, vectors: bool) -> dict[str, bool]:
    """Compare two lakes: versions of all rows, paths between random entities, and nearest neighbours."""
    names = bucket_names(buckets)
    tables = (KG_ENTITIES, KG_TRIPLES)
    found = {
        "rows": all(first.version(table, name) == second.version(table, name) for table in tables for name in names)
    }
    graphs = open_graph(first), open_graph(second)
    random = np.random.default_rng(seed + 1)
    ids = [graphs[1].entity_id(int(node)) for node in random.integers(0, graphs[1].node_count, 2 * ASKED)]
    found["paths"] = all(
        paths_between(graphs[0], one, two).paths == paths_between(graphs[1], one, two).paths
        for one, two in zip(ids[::2], ids[1::2], strict=True)
    )
    if vectors:
        for column in ("entity_id", "triple_id"):
            indexes = [HnswIndex.open(lake.paths.arrays(f"{column}_index")) for lake in (first, second)]
            queries = random.normal(size=(50, indexes[0].dimension)).astype(np.float32)
            queries /= np.linalg.norm(queries, axis=1, keepdims=True)
            exact = [one.search_exact(queries, 10).scores for one in indexes]
            found[f"nearest of {column}"] = bool(np.allclose(exact[0], exact[1], atol=1e-5))
    return found


def report(  # one table of everything
    options: argparse.Namespace,
    size: float,
    entities: int,
    triples: int,
    changed: int,
    built: Stages,
    refreshed: Stages,
    again: Stages,
    equal: dict[str, bool],
    disk: dict[str, float],
) -> str:
    """Write the table."""
    lines = [
        (
            f"A graph of Wikidata5M's shape at scale {options.scale:g}: {entities:,} entities, {triples:,} triples, "
            f"{size:,.0f} MB of text files, {options.buckets} buckets, {options.workers} processes; then {changed:,} "
            f"changed entities. {platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}."
        ),
        "",
        "| stage | build s | peak MB | refresh s | build anew with the changes s | refresh / build |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for name, seconds in built.seconds.items():
        other, anew = refreshed.seconds[name], again.seconds[name]
        lines.append(
            f"| {name} | {seconds:.1f} | {built.peak_mb[name]:,.0f} | {other:.2f} | {anew:.1f} | {other / anew:.1%} |"
        )
    lines.append(
        f"| all | {built.total:.1f} | {max(built.peak_mb.values()):,.0f} | {refreshed.total:.2f} | {again.total:.1f} "
        f"| {refreshed.total / again.total:.1%} |"
    )
    lines += ["", "On disk, MB: " + ", ".join(f"{name} {megabytes:,.0f}" for name, megabytes in disk.items()) + "."]
    lines += ["", "Refreshed and built anew are equal in: " + ", ".join(f"{k} {v}" for k, v in equal.items()) + ".", ""]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
