"""Measure what embedding a graph costs and finds: full model, lower precision, static vectors, and both in two stages.

Texts are written by the product from labels, aliases and descriptions of a KGTK graph; questions are attributes of
the tasks and other texts of the graph. What is searched was never seen by the fit of the static model. The answer of
exact search over vectors of the full model is the truth.

    python bench/embedding.py --graph ../shared/data/wikidata_arnold --tasks ../shared/data/tasks
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
import yaml
from onnx_int8 import OnnxEmbedder, export

from kgrag_assets.automation.partitions import bucket_names
from kgrag_assets.indexing.entity_text import entity_text, triple_text
from kgrag_assets.indexing.rescoring import FullVectors, TwoStageIndex
from kgrag_assets.indexing.update import update_index
from kgrag_assets.knowledge.graph_folder import load_graph_folder
from kgrag_assets.knowledge.loading import load_graphs
from kgrag_assets.lake.lake import Lake
from kgrag_assets.models.distilling import fit_static, sample_of
from kgrag_assets.models.embedders import Embedder, make_embedder
from kgrag_assets.models.static_embedder import StaticEmbedder
from kgrag_assets.rows.knowledge_graph import STAGED_ENTITIES, STAGED_TRIPLES
from kgrag_assets.schemas.attribute import attributes_of
from kgrag_assets.schemas.attribute_text import attribute_text
from kgrag_assets.schemas.reading import read_task
from kgrag_assets.schemas.task_folder import load_folder
from kgrag_assets.settings import EmbedderSettings, GraphSettings, IndexSettings

REPOSITORY = Path(__file__).parents[1]
SHARED = REPOSITORY.parent / "shared" / "data"
MODEL = "packaged:all-MiniLM-L6-v2"
K = 10
# Wikidata5M, as the paper has it.
ENTITIES, TRIPLES = 4_600_000, 20_600_000
COST_WIDTH = 500
WIDTHS = (100, 200, 300, 500, 1000)


@dataclass(frozen=True)
class Rates:
    """Texts a second, for the two kinds of text; and triples a second of one core's time, whoever else is busy."""

    entities: float
    triples: float
    triples_of_a_core: float

    @property
    def hours(self) -> float:
        """Hours for a graph of Wikidata5M's size, each text once."""
        return (ENTITIES / self.entities + TRIPLES / self.triples) / 3600


def read_texts(graph: Path, scratch: Path) -> tuple[list[str], list[str], list[str]]:
    """Return the texts of entities and triples, each once, and the labels, by the product's own loader."""
    settings = GraphSettings()
    lake = Lake.at(scratch)
    folder = lake.paths.knowledge_graphs / "bench"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "kg.yaml").write_text(yaml.safe_dump({"format": "kgtk", "path": str(graph.resolve())}), encoding="utf-8")
    buckets = bucket_names(settings.buckets)
    load_graphs(lake, [load_graph_folder(lake.paths, "bench")], settings, buckets, lambda _what, _steps: lambda _: None)
    entities, triples = lake.read_all(STAGED_ENTITIES, buckets), lake.read_all(STAGED_TRIPLES, buckets)
    about = {entity_text(*row) for row in entities.select("label", "aliases", "description").iter_rows()}
    said = {triple_text(*row) for row in triples.select("head_label", "relation_label", "tail_label").iter_rows()}
    return sorted(about), sorted(said), sorted(set(entities["label"]))


def read_questions(tasks: Path) -> dict[str, list[str]]:
    """Return the attributes' texts by view."""
    views: dict[str, set[str]] = {"column": set(), "full": set()}
    for folder in sorted(path for path in tasks.iterdir() if path.is_dir()) if tasks.is_dir() else ():
        for attribute in attributes_of(read_task(load_folder(folder.name, folder)).attributes).values():
            for view, texts in views.items():
                texts.add(attribute_text(attribute, view))
    return {f"attribute, {view}": sorted(texts) for view, texts in views.items() if texts}


def timed(make: Callable[[], Embedder], entities: Sequence[str], triples: Sequence[str]) -> Rates:
    """Measure an embedder that is loaded and has seen none of the texts."""
    embedder = make()
    embedder.embed(["warm up"] * 2)
    seconds = []
    for texts in (entities, triples):
        began, busy = time.perf_counter(), time.process_time()
        embedder.embed(texts)
        seconds.append((time.perf_counter() - began, time.process_time() - busy))
    (of_entities, _), (of_triples, of_core) = seconds
    return Rates(len(entities) / of_entities, len(triples) / of_triples, len(triples) / of_core)


class Truth:
    """Exact answers of the full model for each kind of question; a question that is a row does not find itself."""

    def __init__(self, corpus: np.ndarray, questions: dict[str, np.ndarray], own: dict[str, np.ndarray]) -> None:
        self._own = own
        self.similarity = {kind: asked @ corpus.T for kind, asked in questions.items()}
        for kind, rows in own.items():
            self.similarity[kind][np.arange(len(rows)), rows] = -2.0
        self._least = {kind: np.partition(one, -K, axis=1)[:, -K] for kind, one in self.similarity.items()}

    def ranked(self, kind: str, asked: np.ndarray, corpus: np.ndarray, depth: int) -> np.ndarray:
        """Return the rows that other vectors put first, best first."""
        similarity = asked @ corpus.T
        if kind in self._own:
            similarity[np.arange(len(asked)), self._own[kind]] = -2.0
        depth = min(depth, similarity.shape[1] - 1)
        best = np.argpartition(-similarity, depth, axis=1)[:, :depth]
        order = np.argsort(-np.take_along_axis(similarity, best, axis=1), axis=1, kind="stable")
        return np.take_along_axis(best, order, axis=1)

    def recall(self, kind: str, ranked: np.ndarray, width: int) -> float:
        """Share of the 10 nearest among the first ``width`` rows; rows as near as the tenth are interchangeable."""
        near = np.take_along_axis(self.similarity[kind], ranked[:, :width], axis=1) >= self._least[kind][:, None] - 1e-5
        return float(np.minimum(near.sum(axis=1), K).mean() / K)


def bytes_per_million(vectors: np.ndarray, scratch: Path) -> float:
    """Measure what a million vectors take in a Parquet file as the lake writes it, in GB."""
    part = vectors[:5000]
    path = scratch / "size.parquet"
    column = pl.Series("vector", part, dtype=pl.Array(pl.Float32, part.shape[1])).arr.to_list()
    pl.DataFrame({"vector": column}).write_parquet(path, compression="zstd")
    return path.stat().st_size / len(part) * 1e6 / 1e9


def generated(labels: Sequence[str], count: int) -> list[str]:
    """Write triples of random labels."""
    drawn = np.random.default_rng(7).integers(0, len(labels), size=(count, 3))
    return [triple_text(*(labels[place] for place in row)) for row in drawn.tolist()]


def machine() -> str:
    """Say what this ran on."""
    return (
        f"{len(os.sched_getaffinity(0))} cores ({platform.machine()}), Python {platform.python_version()}, "
        f"load average at the start {os.getloadavg()[0]:.1f}"
    )


def two_stage_cost(
    full: FullVectors, static: StaticEmbedder, corpus: list[str], vectors: np.ndarray, questions: np.ndarray, wide: int
) -> list[str]:
    """Ask the product's index each question by itself, with nothing remembered, and again."""
    ids = [f"e{place:07d}" for place in range(len(corpus))]
    text = dict(zip(ids, corpus, strict=True))
    options = IndexSettings(exact_below=len(ids) + 1)
    first = update_index(None, ids, ids, vectors, options, model_id=static.model_id).index
    index = TwoStageIndex(first, full, lambda asked: [text[entry] for entry in asked], static.imitates, wide)
    lines = []
    for name in ("nothing remembered", "asked before"):
        before, began, slowest = full.embedded, time.perf_counter(), 0.0
        for question in questions:
            started = time.perf_counter()
            index.search(question[None, :], K)
            slowest = max(slowest, time.perf_counter() - started)
        mean = (time.perf_counter() - began) / len(questions)
        embedded = (full.embedded - before) / len(questions)
        lines.append(f"| {name} | {embedded:.0f} | {mean * 1e3:.0f} | {slowest * 1e3:.0f} |")
    return lines


def main() -> int:  # noqa: PLR0915 - one table, row by row
    """Run and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--graph", type=Path, default=SHARED / "wikidata_arnold", help="folder of KGTK files")
    parser.add_argument("--tasks", type=Path, default=SHARED / "tasks")
    parser.add_argument("--texts", type=int, default=4000, help="entity texts that are searched")
    parser.add_argument("--fit-texts", type=int, default=4000, help="other texts that the static model is fitted to")
    parser.add_argument("--timed", type=int, default=500, help="texts by which the slow models are timed")
    parser.add_argument(
        "--triples", type=int, default=200_000, help="generated triples that static vectors are made of"
    )
    parser.add_argument("--cache", type=Path, default=Path("/tmp/kgrag_bench_embedding"))  # noqa: S108 - a default
    parser.add_argument("--out", type=Path, default=REPOSITORY / "bench" / "results" / "embedding.md")
    options = parser.parse_args()
    if not options.graph.is_dir():
        print(f"{options.graph} does not exist: name a folder of KGTK files by --graph", file=sys.stderr)
        return 1
    facts = machine()
    options.cache.mkdir(parents=True, exist_ok=True)
    entities, triples, labels = read_texts(options.graph, options.cache / "lake")
    corpus = sample_of(entities, options.texts)
    searched = set(corpus)
    rest = [text for text in entities + triples if text not in searched]
    questions = read_questions(options.tasks)
    own = np.random.default_rng(0).choice(len(corpus), min(500, len(corpus)), replace=False)
    print(f"{len(entities)} entity texts, {len(triples)} triple texts", flush=True)

    full = FullVectors(make_embedder(EmbedderSettings()), limit=400_000)
    full.load(options.cache / "full.parquet")
    truth_vectors = full.of(corpus)
    asked = {kind: full.of(texts) for kind, texts in questions.items()}
    asked["entity"] = truth_vectors[own]
    sample = sample_of(rest, options.fit_texts)
    began = time.perf_counter()
    embedded = full.embedded
    full.of(sample)
    sample_s = time.perf_counter() - began
    sampled = full.embedded - embedded
    full.save(options.cache / "full.parquet")
    print(f"full vectors: {full.embedded} made, {len(full)} at hand", flush=True)
    truth = Truth(truth_vectors, asked, {"entity": own})
    kinds = list(asked)

    slow_entities = sample_of(rest[: len(rest) // 3], options.timed)
    slow_triples = sample_of(triples, options.timed)
    lines = [
        "| vectors | entity texts/s | triple texts/s | triple texts/s of one core | hours for Wikidata5M "
        "| GB per million | " + " | ".join(f"recall@10: {kind}" for kind in kinds) + " | mean |",
        "| --- |" + " --- |" * (6 + len(kinds)),
    ]

    def line(name: str, rates: Rates | None, size: float | None, recalls: Sequence[float]) -> None:
        cells = [name]
        if rates is None:
            cells += [""] * 4
        else:
            speeds = (rates.entities, rates.triples, rates.triples_of_a_core)
            cells += [*(f"{speed:,.0f}" for speed in speeds), f"{rates.hours:.2f}"]
        cells.append(f"{size:.2f}" if size is not None else "")
        cells += [f"{value:.3f}" for value in (*recalls, float(np.mean(recalls)))]
        lines.append("| " + " | ".join(cells) + " |")
        print(lines[-1], flush=True)

    print("\n".join(lines), flush=True)
    rates = timed(lambda: make_embedder(EmbedderSettings()), slow_entities, slow_triples)
    line("full, float32", rates, bytes_per_million(truth_vectors, options.cache), [1.0] * len(kinds))
    file = export(MODEL, options.cache)
    slow: list[tuple[str, Callable[[], Embedder]]] = [
        ("full, bfloat16", lambda: make_embedder(EmbedderSettings(precision="bfloat16"))),
        ("full, ONNX int8", lambda: OnnxEmbedder(MODEL, file)),
    ]
    for name, make in slow:
        other, other_asked = _all_vectors(make(), corpus, questions, own, options.cache)
        recalls = [truth.recall(kind, truth.ranked(kind, other_asked[kind], other, K), K) for kind in kinds]
        line(name, timed(make, slow_entities, slow_triples), bytes_per_million(other, options.cache), recalls)

    distilled = StaticEmbedder(MODEL, options.cache / "static")
    distilled.embed(["x"])
    other, other_asked = _all_vectors(distilled, corpus, questions, own, None)
    fast = (rest[: len(rest) // 3], triples)
    ranked = {kind: truth.ranked(kind, other_asked[kind], other, max(WIDTHS)) for kind in kinds}
    size = bytes_per_million(other, options.cache)
    rates = timed(lambda: StaticEmbedder(MODEL, options.cache / "static"), *fast)
    line("static, distilled", rates, size, [truth.recall(kind, ranked[kind], K) for kind in kinds])
    for width in (300, 500):
        line(f"— and {width} re-scored", None, None, [truth.recall(kind, ranked[kind], width) for kind in kinds])

    began = time.perf_counter()
    place = options.cache / "fitted" / str(time.time_ns())
    folder = fit_static(MODEL, _Remembering(full), sample, place, size=options.fit_texts)
    fit_s = time.perf_counter() - began
    fitted = StaticEmbedder(str(folder))
    vectors = fitted.embed(corpus)
    # Questions keep the full model's vectors: the fitted rows lie in its space.
    ranked = {kind: truth.ranked(kind, asked[kind], vectors, max(WIDTHS)) for kind in kinds}
    size = bytes_per_million(vectors, options.cache)
    rates = timed(lambda: StaticEmbedder(str(folder)), *fast)
    line("static, fitted", rates, size, [truth.recall(kind, ranked[kind], K) for kind in kinds])
    for width in WIDTHS:
        line(f"— and {width} re-scored", None, None, [truth.recall(kind, ranked[kind], width) for kind in kinds])

    made = generated(labels, options.triples)
    began = time.perf_counter()
    StaticEmbedder(str(folder)).embed(made)
    seconds = time.perf_counter() - began

    cost_of = next(iter(questions.values()), corpus)[:20]
    fresh = FullVectors(make_embedder(EmbedderSettings()))
    cost = two_stage_cost(fresh, fitted, corpus, vectors, full.of(cost_of), COST_WIDTH)
    of_sample = f" ({sample_s:.0f} s for {sampled:,} of them)" if sampled else " (at hand from an earlier run)"
    about = (
        f"{len(corpus):,} entity texts are searched, none of which the fit saw: its {len(sample):,} texts are others "
        f"of the graph's {len(entities):,} entity and {len(triples):,} triple texts. On {facts}."
    )
    notes = (
        f"Hours: {ENTITIES:,} entities and {TRIPLES:,} triples at these rates, each once. The static models had seen "
        f"no word before. Fitting took {fit_s:.0f} s besides embedding its texts in full{of_sample}."
    )
    parts = ["# Embedding a graph", "", about, "", *lines, "", notes, ""]
    parts += [f"{options.triples:,} generated triples: {seconds:.1f} s, {options.triples / seconds:,.0f} a second.", ""]
    parts += [f"One question by itself over {len(corpus):,} rows, {COST_WIDTH} candidates re-scored in float32:", ""]
    parts += ["| question | texts embedded | ms, mean | ms, slowest |", "| --- | --- | --- | --- |", *cost, ""]
    text = "\n".join(parts)
    shutil.rmtree(place, ignore_errors=True)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(text, encoding="utf-8")
    print("\n" + text)
    return 0


class _Remembering:
    """An embedder over remembered vectors."""

    def __init__(self, full: FullVectors) -> None:
        self._full = full
        self.model_id, self.dimension = full.model_id, full.dimension

    def embed(self, texts: Sequence[str], progress: Callable[[int], None] | None = None) -> np.ndarray:
        found = self._full.of(texts)
        if progress is not None:
            progress(len(texts))
        return found


def _all_vectors(
    embedder: Embedder, corpus: list[str], questions: dict[str, list[str]], own: np.ndarray, cache: Path | None
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Embed what is searched and what is asked, from the cache where it is given."""
    memory = FullVectors(embedder, limit=400_000)
    path = None if cache is None else cache / f"{embedder.model_id.replace('/', '_')}.parquet"
    if path is not None:
        memory.load(path)
    rows = memory.of(corpus)
    asked = {kind: memory.of(texts) for kind, texts in questions.items()}
    asked["entity"] = rows[own]
    if path is not None:
        memory.save(path)
    return rows, asked


if __name__ == "__main__":
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    sys.exit(main())
