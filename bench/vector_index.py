"""The vector index beside hnswlib, usearch and exact search, at the same parameters, on embedded texts of Wikidata.

Each index is built, and each is asked, in a process of its own, so that its memory is its own; one thread asks. The
questions are held-out texts. ``python bench/vector_index.py --rows 200000`` takes more texts; ``--vectors FILE.npy``
takes unit vectors from elsewhere.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import multiprocessing
import os
import platform
import resource
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

RESULTS = Path(__file__).parent / "results" / "vector_index.md"
DATA = Path(__file__).parents[2] / "shared" / "data" / "wikidata_arnold"
MODEL = "packaged:all-MiniLM-L6-v2"
OURS = {"ours, full": "full", "ours, fp16": "fp16", "ours, sq8": "sq8", "ours, exact": "exact"}
OTHERS = {"hnswlib": "f32", "usearch, f32": "f32", "usearch, f16": "f16", "usearch, i8": "i8"}
K = 10
CHANGED_SHARE = 0.001


@dataclass(frozen=True)
class Job:
    """What a process is to do: which index, where its files lie, and the parameters."""

    name: str
    folder: Path
    m: int
    ef_construction: int
    ef_search: int
    threads: int

    @property
    def path(self) -> Path:
        """Where this index is saved."""
        return self.folder / self.name.replace(" ", "").replace(",", "-")

    def rows(self) -> np.ndarray:
        """Map the vectors that are indexed."""
        return np.load(self.folder / "rows.npy", mmap_mode="r")

    def queries(self) -> np.ndarray:
        """Read the vectors that are asked for."""
        return np.asarray(np.load(self.folder / "queries.npy"))


@dataclass(frozen=True)
class Built:
    """What building cost; ``peak_mb`` is beyond what the process held before."""

    seconds: float
    size_mb: float
    peak_mb: float


@dataclass(frozen=True)
class Asked:
    """What asking cost and found; ``resident_mb`` is what the index added to the process, files it maps included."""

    open_ms: float
    query_ms: float
    recall: float
    resident_mb: float


def main() -> None:
    """Make the vectors, build and ask every index, write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--vectors", type=Path, help=".npy of unit vectors, float32, instead of embedded texts")
    parser.add_argument("--keep-vectors", type=Path, help="write the embedded texts' vectors here, for --vectors")
    parser.add_argument("--data", type=Path, default=DATA, help="folder of a KGTK extract of Wikidata")
    parser.add_argument("--full-model", action="store_true", help="embed with the full model: 500 texts a second")
    parser.add_argument("--m", type=int, default=32)
    parser.add_argument("--ef-construction", type=int, default=200)
    parser.add_argument("--ef-search", type=int, default=64)
    parser.add_argument("--threads", type=int, default=1, help="for building; asking always has one")
    parser.add_argument("--rounds", type=int, default=3, help="times each index is asked; the fastest counts")
    parser.add_argument("--only", nargs="*", choices=[*OURS, *OTHERS], default=[*OURS, *OTHERS])
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        dimension = in_fresh_process(split_vectors, options, folder)
        built: dict[str, Built] = {}
        asked: dict[str, list[Asked]] = {name: [] for name in options.only}
        jobs = {
            name: Job(name, folder, options.m, options.ef_construction, options.ef_search, options.threads)
            for name in options.only
        }
        for name, job in jobs.items():
            cost = built[name] = in_fresh_process(build, job)
            print(f"{name}: {cost.seconds:.1f} s", flush=True)
        in_fresh_process(write_truth, folder)
        # In turns, so that what else the machine does meets all alike.
        for _ in range(options.rounds):
            for name, job in jobs.items():
                asked[name].append(in_fresh_process(ask, job))
        update = in_fresh_process(small_update, jobs["ours, full"], built["ours, full"]) if "ours, full" in jobs else {}
    text = report(options, dimension, built, asked, update)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(text, encoding="utf-8")
    print(text)


def in_fresh_process(work: Callable[..., Any], *arguments: object) -> Any:  # noqa: ANN401 - whatever the work returns
    """Run a function in a process of its own."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(work, *arguments).result()


def split_vectors(options: argparse.Namespace, folder: Path) -> int:
    """Write the rows to be indexed and the queries; return the vectors' length."""
    wanted = options.rows + options.queries
    if options.vectors is not None:
        vectors = np.load(options.vectors, mmap_mode="r")
    else:
        vectors = embedded(sorted(set(texts(options.data))), wanted, full=options.full_model)
    if len(vectors) < wanted:
        raise SystemExit(
            f"{len(vectors):,} vectors are too few for {options.rows:,} rows and {options.queries:,} queries"
        )
    order = np.random.default_rng(1).permutation(len(vectors))[:wanted]
    np.save(folder / "rows.npy", np.ascontiguousarray(vectors[np.sort(order[: options.rows])], dtype=np.float32))
    np.save(folder / "queries.npy", np.ascontiguousarray(vectors[order[options.rows :]], dtype=np.float32))
    if options.keep_vectors is not None:
        np.save(options.keep_vectors, vectors)
    return int(vectors.shape[1])


def texts(data: Path) -> Iterator[str]:
    """Read names with descriptions, statements "instance of", and aliases."""
    labels = dict(cells(data / "labels.en.tsv.gz"))
    descriptions = dict(cells(data / "descriptions.en.tsv.gz"))
    for entity, label in labels.items():
        yield f"{label}: {descriptions[entity]}" if entity in descriptions else label
    for head, tail in cells(data / "derived.P31.tsv.gz"):
        if head in labels and tail in labels:
            yield f"{labels[head]} instance of {labels[tail]}"
    for entity, alias in cells(data / "aliases.en.tsv.gz"):
        yield f"{alias}: {descriptions[entity]}" if entity in descriptions else alias


def cells(path: Path) -> Iterator[tuple[str, str]]:
    """Read ``node1`` and ``node2`` of a KGTK file; texts without their quotes and language."""
    with gzip.open(path, "rt", encoding="utf-8") as handle:
        head = next(handle).rstrip("\n").split("\t")
        first, second = head.index("node1"), head.index("node2")
        for line in handle:
            parts = line.rstrip("\n").split("\t")
            yield parts[first], parts[second].removesuffix("@en").strip("'")


def embedded(distinct: list[str], wanted: int, *, full: bool) -> np.ndarray:
    """Embed texts with the product's default model, or with the static model distilled from it."""
    from kgrag_assets.models.sentence_transformers_embedder import SentenceTransformersEmbedder
    from kgrag_assets.models.static_embedder import StaticEmbedder

    if len(distinct) > wanted:
        chosen = np.sort(np.random.default_rng(0).permutation(len(distinct))[:wanted])
        distinct = [distinct[place] for place in chosen]
    embedder = SentenceTransformersEmbedder(MODEL) if full else StaticEmbedder(MODEL)
    return embedder.embed(distinct)


def write_truth(folder: Path) -> None:
    """Write the similarity of the k-th nearest row of each query: whatever is as near counts as found."""
    rows, queries = np.load(folder / "rows.npy"), np.load(folder / "queries.npy")
    least = [
        np.partition(block @ rows.T, -K, axis=1)[:, -K] for block in np.array_split(queries, 1 + len(queries) // 50)
    ]
    np.save(folder / "least.npy", np.concatenate(least))


def table(rows: int, changed: int = 0) -> tuple[list[str], list[str]]:
    """Make ids, which sort like the rows' numbers, and row keys; of the first ``changed`` rows the keys are others."""
    keys = [
        hashlib.blake2b(f"{row}{'!' * (row < changed)}".encode(), digest_size=16).hexdigest() for row in range(rows)
    ]
    return [f"wd:Q{row:09d}" for row in range(rows)], keys


def index_settings(job: Job) -> Any:  # noqa: ANN401 - the package is imported in the job's process only
    """Make the product's settings for a job."""
    from kgrag_assets.settings import IndexSettings

    exact = OURS[job.name] == "exact"
    return IndexSettings(
        hnsw_m=job.m,
        ef_construction=job.ef_construction,
        ef_search=job.ef_search,
        storage="full" if exact else OURS[job.name],
        exact_below=2**31 if exact else 0,
    )


def build(job: Job) -> Built:
    """Build and save one index."""
    warm_imports(job)
    rows = job.rows()
    if job.name in OURS:
        from kgrag_assets.indexing.update import update_index
        from kgrag_assets.lake.files import replace_folder

        ids, keys = table(len(rows))
        before, started = peak_mb(), time.perf_counter()
        index = update_index(
            None, ids, keys, lambda of: rows[of], index_settings(job), model_id="bench", threads=job.threads
        ).index
        replace_folder(job.path, index.save)
    elif job.name == "hnswlib":
        import hnswlib

        before, started = peak_mb(), time.perf_counter()
        graph = hnswlib.Index("ip", rows.shape[1])
        graph.init_index(len(rows), ef_construction=job.ef_construction, M=job.m)
        graph.add_items(rows, num_threads=job.threads)
        graph.save_index(str(job.path))
    else:
        from usearch.index import Index

        before, started = peak_mb(), time.perf_counter()
        metric = "cos" if OTHERS[job.name] == "i8" else "ip"
        graph = Index(
            ndim=rows.shape[1],
            metric=metric,
            dtype=OTHERS[job.name],
            connectivity=job.m,
            expansion_add=job.ef_construction,
            expansion_search=job.ef_search,
        )
        graph.add(np.arange(len(rows)), np.asarray(rows), threads=job.threads)
        graph.save(str(job.path))
    seconds = time.perf_counter() - started
    files = job.path.iterdir() if job.path.is_dir() else [job.path]
    return Built(seconds, sum(path.stat().st_size for path in files) / 1e6, peak_mb() - before)


def opened(job: Job) -> Callable[[np.ndarray], list[int]]:
    """Open a saved index; the result takes one query of shape (1, d) and returns the nearest rows' numbers."""
    if job.name in OURS:
        from kgrag_assets.indexing.hnsw import HnswIndex

        index = HnswIndex.open(job.path)
        return lambda query: [int(entry[4:]) for entry in index.search(query, K).ids[0]]
    if job.name == "hnswlib":
        import hnswlib

        rows = job.rows()
        graph = hnswlib.Index("ip", rows.shape[1])
        graph.load_index(str(job.path), max_elements=len(rows))
        graph.set_ef(job.ef_search)
        return lambda query: graph.knn_query(query, K, num_threads=1)[0][0].tolist()
    from usearch.index import Index

    viewed = Index.restore(str(job.path), view=True)
    viewed.expansion_search = job.ef_search
    return lambda query: viewed.search(query[0], K, threads=1).keys.tolist()


def ask(job: Job) -> Asked:
    """Open an index and ask it every query, one by one."""
    limit_threads()
    queries, least = job.queries(), np.load(job.folder / "least.npy")
    warm_imports(job)
    before, started = resident_mb(), time.perf_counter()
    search = opened(job)
    open_ms = 1e3 * (time.perf_counter() - started)
    found, seconds = [], []
    for query in queries[:100]:
        search(query[None, :])
    for query in queries:
        asked = query[None, :]
        started = time.perf_counter()
        answer = search(asked)
        seconds.append(time.perf_counter() - started)
        found.append(answer)
    used = resident_mb() - before
    rows = job.rows()
    good = [
        float((rows[np.array(of, dtype=np.int64)] @ query >= bound - 1e-5).sum()) / K
        for of, query, bound in zip(found, queries, least, strict=True)
    ]
    return Asked(open_ms, 1e3 * statistics.median(seconds), statistics.fmean(good), used)


def small_update(job: Job, built: Built) -> dict[str, float]:
    """Change a thousandth of the rows of a saved index, save it, and compare its answers with a scan of all."""
    limit_threads()
    from kgrag_assets.indexing.recall import recall_at_k
    from kgrag_assets.indexing.update import open_previous, update_index
    from kgrag_assets.lake.files import replace_folder

    warm_imports(job)
    rows, queries = job.rows(), job.queries()
    changed = max(1, round(CHANGED_SHARE * len(rows)))

    def vectors_of(of: np.ndarray) -> np.ndarray:
        # A changed row has the vector of a query: it has to be found by it.
        vectors = np.array(rows[of])
        vectors[of < changed] = queries[of[of < changed] % len(queries)]
        return vectors

    ids, keys = table(len(rows), changed)
    started = time.perf_counter()
    updated = update_index(open_previous(job.path), ids, keys, vectors_of, index_settings(job), model_id="bench")
    replace_folder(job.path, updated.index.save)
    seconds = time.perf_counter() - started
    started = time.perf_counter()
    again = update_index(open_previous(job.path), ids, keys, vectors_of, index_settings(job), model_id="bench")
    unchanged = time.perf_counter() - started
    assert updated.report.changed == changed
    assert not updated.report.rebuilt
    assert not again.changed
    return {
        "changed": changed,
        "seconds": seconds,
        "share": seconds / built.seconds,
        "unchanged_seconds": unchanged,
        "recall": recall_at_k(again.index, vectors_of, ids, queries),
    }


def warm_imports(job: Job) -> None:
    """Import what a job needs, so that opening is opening."""
    if job.name in OURS:
        import faiss  # noqa: F401

        import kgrag_assets.indexing.update  # noqa: F401
    elif job.name == "hnswlib":
        import hnswlib  # noqa: F401
    else:
        import usearch.index  # noqa: F401


def limit_threads() -> None:
    """Keep this process to one thread."""
    import faiss
    from threadpoolctl import threadpool_limits

    faiss.omp_set_num_threads(1)
    threadpool_limits(1)


def peak_mb() -> float:
    """Return the most memory this process has held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def resident_mb() -> float:
    """Return the memory this process holds, mapped files included."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    return float("nan")


def report(
    options: argparse.Namespace,
    dimension: int,
    built: dict[str, Built],
    asked: dict[str, list[Asked]],
    update: dict[str, float],
) -> str:
    """Write the Markdown."""
    what = options.vectors.name if options.vectors else ("full model" if options.full_model else "static model")
    told = (
        f"{options.rows:,} rows of {dimension} numbers ({what}), {options.queries:,} held-out queries asked one by one "
        f"in one thread, M {options.m}, efConstruction {options.ef_construction}, efSearch {options.ef_search}, built "
        f"with {options.threads} thread(s). Ours returns ids (strings) through the port, the others row numbers. Query "
        f"time: median, the fastest of {options.rounds} rounds in turns. Opening: from the page cache. Memory: beyond "
        f"what the process held with everything imported."
    )
    lines = [
        "# Vector index",
        "",
        told,
        "",
        "| index | build s | size MB | build peak MB | open ms | recall@10 | query ms | resident after asking MB |",
        "|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for name, cost in built.items():
        best = min(asked[name], key=lambda one: one.query_ms)
        lines.append(
            f"| {name} | {cost.seconds:.1f} | {cost.size_mb:.0f} | {cost.peak_mb:.0f} | "
            f"{min(one.open_ms for one in asked[name]):.1f} | {best.recall:.4f} | {best.query_ms:.3f} | "
            f"{best.resident_mb:.0f} |"
        )
    if update:
        told = (
            f"{update['changed']:,.0f} changed rows ({CHANGED_SHARE:.1%}): opened, compared, updated and saved in "
            f"{update['seconds']:.2f} s, {update['share']:.2%} of the full build; the base file is linked, not copied. "
            f"Opened and compared again with nothing changed: {update['unchanged_seconds']:.2f} s. "
            f"Recall@10 after the change, by the new vectors: {update['recall']:.4f}."
        )
        lines += ["", told]
    versions = ", ".join(f"{name} {version(name)}" for name in ("faiss-cpu", "hnswlib", "usearch", "numpy"))
    lines += [
        "",
        f"{platform.machine()}, {processor()}, {os.cpu_count()} cores, Python {platform.python_version()}, {versions}.",
        "",
    ]
    return "\n".join(lines)


def processor() -> str:
    """Name the processor."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor()


if __name__ == "__main__":
    main()
