"""Measure the graph in memory: building, opening, memory, and all short paths between five seeds, beside two others.

A graph with Wikidata5M's shape is generated (``graph_shape.py``) and built. Fresh processes open it and answer
questions: all paths of at most three edges between every two of five seeds of one community, decoded to labels.
The same questions, fewer of them, go to DuckDB joins over the same edges and to a breadth-first search in plain
Python over dictionaries; their answers are compared. A refresh of a thousandth of the heads is built and measured, too.

    python bench/graph_search.py --scale 0.1
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from itertools import combinations
from pathlib import Path

import numpy as np

REPOSITORY = Path(__file__).parents[1]
HUB_CAP, MAX_HOPS, SEEDS = 200, 3, 5
# An edge as (head, relation, tail); a walk as its nodes and its edges.
Edge = tuple[int, int, int]
Walk = tuple[tuple[int, ...], tuple[Edge, ...]]


def memory() -> dict[str, float]:
    """Return this process's resident memory in MB: all, its own, pages of files, and the most it ever had."""
    fields = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    own, files = (int(fields[name].split()[0]) * 1024 / 1e6 for name in ("RssAnon", "RssFile"))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6
    return {"resident": own + files, "own": own, "files": files, "peak": peak}


def step_build(work: Path) -> dict[str, float]:
    """Build the adjacency from the buckets."""
    import polars as pl

    from kgrag_assets.knowledge.adjacency_build import build_adjacency

    folders = sorted((work / "rows").iterdir())
    buckets = [(pl.scan_parquet(f / "entities.parquet"), pl.scan_parquet(f / "triples.parquet")) for f in folders]
    place = work / "graph"
    place.mkdir()
    began = time.perf_counter()
    report = build_adjacency(buckets, place, "bench")
    seconds = time.perf_counter() - began
    size = sum(path.stat().st_size for path in place.iterdir()) / 1e6
    counts = {"nodes": report.nodes, "edges": report.edges, "relations": report.relations}
    return {"seconds": seconds, "mb": size, "buckets": len(buckets), **counts, **memory()}


def step_questions(work: Path, count: int) -> dict[str, float]:
    """Choose the seeds: of one community, none a hub; and the same with a hub in the place of one."""
    from kgrag_assets.knowledge.adjacency import Adjacency

    graph = Adjacency.open(work / "graph")
    random = np.random.default_rng(11)
    degrees = np.diff(graph.view.out_starts) + np.diff(graph.view.in_starts)
    hubs = np.argsort(degrees)[-20:]
    plain: list[list[str]] = []
    while len(plain) < 2 * count:
        start = int(random.integers(graph.node_count))
        near = {start}
        # Seeds that belong together, as those linked to two attributes do: what two steps reach, away from hubs.
        for _ in range(2):
            for node in list(near)[:50]:
                if degrees[node] <= HUB_CAP:
                    near.update(graph.out(node)[0].tolist()[:20], graph.into(node)[0].tolist()[:20])
        members = sorted(node for node in near if degrees[node] <= HUB_CAP)
        if len(members) >= 4 * SEEDS:
            plain.append([graph.entity_id(int(node)) for node in random.choice(members, SEEDS, replace=False)])
    with_hub = [[*seeds[1:], graph.entity_id(int(random.choice(hubs)))] for seeds in plain[count:]]
    (work / "questions.json").write_text(json.dumps({"plain": plain[:count], "hub": with_hub}))
    return {"questions": count}


def step_search(work: Path, kind: str) -> dict[str, float | list[int]]:
    """Open and answer in a fresh process; the first answers also bring the files' pages into memory."""
    questions: list[list[str]] = json.loads((work / "questions.json").read_text())[kind]
    began = time.perf_counter()
    from kgrag_assets.knowledge.adjacency import Adjacency
    from kgrag_assets.knowledge.search import paths_among

    imported = time.perf_counter()
    graph = Adjacency.open(work / "graph")
    opened = time.perf_counter()
    paths_among(graph, questions[0], MAX_HOPS, HUB_CAP)
    first = time.perf_counter()
    seconds, sizes = [], []
    exhausted = 0
    for seeds in questions:
        start = time.perf_counter()
        result = paths_among(graph, seeds, MAX_HOPS, HUB_CAP)
        texts = [path.text(result.labels) for path in result.paths]
        seconds.append(time.perf_counter() - start)
        sizes.append(len(texts))
        exhausted += result.exhausted
    times = 1000 * np.array(seconds)
    return {
        "import_s": imported - began,
        "open_ms": 1000 * (opened - imported),
        "first_ms": 1000 * (first - opened),
        "median": float(np.median(times)),
        "p95": float(np.percentile(times, 95)),
        "worst": float(times.max()),
        "paths": float(np.median(sizes)),
        "most": float(max(sizes)),
        "exhausted": float(exhausted),
        "polars": float("polars" in sys.modules),
        **memory(),
    }


def edges_of(work: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return all edges as numbers."""
    from kgrag_assets.knowledge.adjacency import Adjacency

    view = Adjacency.open(work / "graph").view
    heads = np.repeat(np.arange(len(view.out_starts) - 1, dtype=np.int32), np.diff(view.out_starts))
    return heads, view.out_relations.astype(np.int32), view.out_nodes


def numbers_of(work: Path, kind: str, count: int) -> list[list[int]]:
    """Return the seeds of the first questions as numbers."""
    from kgrag_assets.knowledge.adjacency import Adjacency

    graph = Adjacency.open(work / "graph")
    questions = json.loads((work / "questions.json").read_text())[kind][:count]
    return [[node for seed in seeds if (node := graph.node(seed)) is not None] for seeds in questions]


def answers_of(work: Path, kind: str, count: int) -> list[set[Walk]]:
    """Answer the first questions by the search that is measured, as numbers."""
    from kgrag_assets.knowledge.adjacency import Adjacency
    from kgrag_assets.knowledge.search import paths_among

    graph = Adjacency.open(work / "graph")
    found: list[set[Walk]] = []
    for seeds in json.loads((work / "questions.json").read_text())[kind][:count]:
        result = paths_among(graph, seeds, MAX_HOPS, HUB_CAP, budget=10**9, max_paths=None)
        walks: set[Walk] = set()
        for path in result.paths:
            nodes = tuple(graph.node(node) or 0 for node in path.nodes)
            edges = tuple(
                (graph.node(edge.head) or 0, graph.relation(edge.relation) or 0, graph.node(edge.tail) or 0)
                for edge in path.edges
            )
            walks.add((nodes, edges))
        found.append(walks)
    return found


def step_python(work: Path, count: int) -> dict[str, float]:
    """Answer by a breadth-first search over dictionaries, which holds the same hub rule."""
    heads, relations, tails = (column.tolist() for column in edges_of(work))
    around: dict[int, list[tuple[int, Edge]]] = defaultdict(list)
    began = time.perf_counter()
    for edge in zip(heads, relations, tails, strict=True):
        around[edge[0]].append((edge[2], edge))
        around[edge[2]].append((edge[0], edge))
    built = time.perf_counter() - began
    del heads, relations, tails
    seconds, answers = [], []
    for seeds in numbers_of(work, "plain", count):
        start = time.perf_counter()
        found: set[Walk] = set()
        for source, target in combinations(seeds, 2):
            layer: list[Walk] = [((source,), ())]
            for hop in range(MAX_HOPS):
                further: list[Walk] = []
                for nodes, edges in layer:
                    here = nodes[-1]
                    steps = around[here]
                    if hop and len(steps) > HUB_CAP:
                        # Through a hub leads a path of two edges, never one of three; look from the target's side.
                        steps = [(target, edge) for other, edge in around[target] if other == here and hop == 1]
                    for other, edge in steps:
                        if other == target:
                            found.add(((*nodes, other), (*edges, edge)))
                        elif other not in nodes and hop < MAX_HOPS - 1:
                            further.append(((*nodes, other), (*edges, edge)))
                layer = further
        seconds.append(time.perf_counter() - start)
        answers.append(found)
    same = answers == answers_of(work, "plain", count)
    times = 1000 * np.array(seconds)
    return {
        "build_s": built,
        "median": float(np.median(times)),
        "p95": float(np.percentile(times, 95)),
        "same": float(same),
        "questions": float(count),
        **memory(),
    }


PAIR_SQL = {
    1: "SELECT a.n0, a.n1, NULL, NULL, a.e, NULL, NULL FROM near a WHERE a.n0 = $s AND a.n1 = $t",
    2: """SELECT a.n0, a.n1, b.n1, NULL, a.e, b.e, NULL
          FROM (SELECT * FROM near WHERE n0 = $s) a
          JOIN (SELECT n1 AS n0, n0 AS n1, e FROM near WHERE n0 = $t) b ON a.n1 = b.n0
          WHERE a.n1 NOT IN ($s, $t)""",
    3: """SELECT a.n0, a.n1, m.n1, c.n1, a.e, m.e, c.e
          FROM (SELECT * FROM near WHERE n0 = $s) a
          JOIN near m ON m.n0 = a.n1
          JOIN (SELECT n1 AS n0, n0 AS n1, e FROM near WHERE n0 = $t) c ON m.n1 = c.n0
          WHERE a.n1 NOT IN ($s, $t) AND m.n1 NOT IN ($s, $t, a.n1)
          AND a.n1 IN (SELECT n FROM small) AND m.n1 IN (SELECT n FROM small)""",
}


def step_duckdb(work: Path, count: int) -> dict[str, float]:
    """Answer by DuckDB joins over a table of the edges in both directions, sorted by node."""
    import duckdb

    heads, relations, tails = edges_of(work)
    base = {"h": heads, "r": relations, "t": tails}
    with duckdb.connect(str(work / "edges.duckdb")) as connection:
        connection.execute("SET threads = 2")
        connection.register("base", base)
        began = time.perf_counter()
        connection.execute("CREATE TABLE edge AS SELECT row_number() OVER () - 1 AS e, h, r, t FROM base")
        connection.execute(
            "CREATE TABLE near AS SELECT n0, n1, e FROM ("
            "SELECT h AS n0, t AS n1, e FROM edge UNION ALL SELECT t, h, e FROM edge WHERE h <> t) ORDER BY n0, n1"
        )
        connection.execute("CREATE TABLE small AS SELECT n0 AS n FROM near GROUP BY n0 HAVING count(*) <= ?", [HUB_CAP])
        built = time.perf_counter() - began
        seconds, answers = [], []
        for seeds in numbers_of(work, "plain", count):
            start = time.perf_counter()
            found: set[Walk] = set()
            for source, target in combinations(seeds, 2):
                for sql in PAIR_SQL.values():
                    for row in connection.execute(sql, {"s": source, "t": target}).fetchall():
                        nodes = tuple(node for node in row[:4] if node is not None)
                        edges = [edge for edge in row[4:] if edge is not None]
                        found.add((nodes, tuple((int(heads[e]), int(relations[e]), int(tails[e])) for e in edges)))
            seconds.append(time.perf_counter() - start)
            answers.append(found)
    same = answers == answers_of(work, "plain", count)
    times = 1000 * np.array(seconds)
    size = (work / "edges.duckdb").stat().st_size / 1e6
    (work / "edges.duckdb").unlink()
    return {
        "build_s": built,
        "mb": size,
        "median": float(np.median(times)),
        "p95": float(np.percentile(times, 95)),
        "same": float(same),
        "questions": float(count),
        **memory(),
    }


def step_refresh(work: Path) -> dict[str, float]:
    """Change a thousandth of the heads, one edge each, build the overlay, and search on it."""
    import polars as pl

    from kgrag_assets.knowledge.adjacency import Adjacency
    from kgrag_assets.knowledge.overlay_build import build_overlay
    from kgrag_assets.knowledge.search import paths_among

    graph = Adjacency.open(work / "graph")
    random = np.random.default_rng(5)
    heads = random.choice(graph.node_count, graph.node_count // 1000, replace=False)
    names = [graph.entity_id(int(head)) for head in heads]
    folders = sorted((work / "rows").iterdir())
    rows = pl.concat(
        [
            pl.scan_parquet(f / "triples.parquet").filter(pl.col("head").is_in(pl.Series(names).implode())).collect()
            for f in folders
        ]
    )
    # The first statement of each head is gone, and its second points elsewhere.
    first = pl.int_range(pl.len()).over("head")
    rows = rows.filter(first > 0).with_columns(
        tail=pl.when(first == 1).then(pl.lit(names[0])).otherwise(pl.col("tail"))
    )
    place = work / "overlay"
    place.mkdir()
    began = time.perf_counter()
    report = build_overlay(graph, names, rows, pl.DataFrame(schema=_entities()), place, "bench-2")
    built = time.perf_counter() - began
    began = time.perf_counter()
    now = Adjacency.open(work / "graph", place)
    opened = time.perf_counter() - began
    questions = json.loads((work / "questions.json").read_text())["plain"]
    seconds = []
    for seeds in [questions[0], *questions]:
        start = time.perf_counter()
        result = paths_among(now, seeds, MAX_HOPS, HUB_CAP)
        _texts = [path.text(result.labels) for path in result.paths]
        seconds.append(time.perf_counter() - start)
    times = 1000 * np.array(seconds[1:])
    return {
        "heads": report.changed,
        "edges": report.edges,
        "seconds": built,
        "open_ms": 1000 * opened,
        "share": now.overlay_share,
        "median": float(np.median(times)),
        "p95": float(np.percentile(times, 95)),
        "mb": sum(path.stat().st_size for path in place.iterdir()) / 1e6,
    }


def _entities() -> dict[str, object]:
    from kgrag_assets.rows.knowledge_graph import KG_ENTITIES

    return dict(KG_ENTITIES.schema)


STEPS = {
    "build": lambda options: step_build(options.work),
    "questions": lambda options: step_questions(options.work, options.questions),
    "plain": lambda options: step_search(options.work, "plain"),
    "hub": lambda options: step_search(options.work, "hub"),
    "refresh": lambda options: step_refresh(options.work),
    "python": lambda options: step_python(options.work, options.python_questions),
    "duckdb": lambda options: step_duckdb(options.work, options.duckdb_questions),
}


def machine() -> str:
    """Say what the figures were measured on."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    model = next(
        (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "unknown processor"
    )
    memory_gb = int(Path("/proc/meminfo").read_text().split()[1]) / 1024**2
    return f"{model}, {os.cpu_count()} cores, {memory_gb:.0f} GB, Python {platform.python_version()}"


def table(scale: float, seed: int, found: dict[str, dict[str, float]]) -> str:
    """Write the figures as Markdown."""
    build, plain, hub, refresh = found["build"], found["plain"], found["hub"], found["refresh"]
    lines = [
        "# The graph in memory",
        "",
        (
            f"`python bench/graph_search.py --scale {scale:g} --seed {seed}`: {build['nodes']:,} nodes, "
            f"{build['edges']:,} edges, {build['relations']} relations, as generated by `bench/graph_shape.py`. "
            f"{machine()}; load at the end: {os.getloadavg()[0]:.1f}."
        ),
        "",
        "| | |",
        "| --- | --- |",
        f"| built from {build['buckets']} buckets | {build['seconds']:.1f} s, peak {build['peak']:.0f} MB |",
        f"| files | {build['mb']:.0f} MB |",
        (
            f"| opened | {plain['open_ms']:.1f} ms (importing the search {plain['import_s']:.2f} s; "
            f"first question {plain['first_ms']:.0f} ms) |"
        ),
        (
            f"| resident after opening and all questions | {plain['resident']:.0f} MB: {plain['own']:.0f} MB of its "
            f"own, {plain['files']:.0f} MB pages of files |"
        ),
        (
            f"| overlay for {refresh['heads']:,.0f} changed heads | {refresh['seconds']:.2f} s, "
            f"{100 * refresh['seconds'] / build['seconds']:.1f}% of the full build; {refresh['mb']:.1f} MB, opened in "
            f"{refresh['open_ms']:.1f} ms |"
        ),
        "",
        (
            f"All paths of at most {MAX_HOPS} edges between every two of {SEEDS} seeds, decoded to labels; a node with "
            f"more than {HUB_CAP} edges is a hub."
        ),
        "",
        "| search | questions | median ms | 95% ms | paths, median (most) | setup s | resident MB | same answers |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name, row in (("adjacency", plain), ("adjacency, a hub among the seeds", hub)):
        lines.append(
            f"| {name} | {found['questions']['questions']:.0f} | {row['median']:.2f} | {row['p95']:.2f} "
            f"| {row['paths']:.0f} ({row['most']:.0f}) | {row['open_ms'] / 1000:.3f} | {row['resident']:.0f} | |"
        )
    lines.append(
        f"| adjacency with overlay | {found['questions']['questions']:.0f} | {refresh['median']:.2f} "
        f"| {refresh['p95']:.2f} | | {refresh['open_ms'] / 1000:.3f} | | |"
    )
    for name, key in (("DuckDB joins", "duckdb"), ("plain Python breadth first", "python")):
        if key in found:
            row = found[key]
            same = "yes" if row["same"] else "NO"
            lines.append(
                f"| {name} | {row['questions']:.0f} | {row['median']:.1f} | {row['p95']:.1f} | "
                f"| {row['build_s']:.1f} | {row['peak']:.0f} | {same} |"
            )
    return "\n".join(lines) + "\n"


def run(step: str, options: argparse.Namespace) -> dict[str, float]:
    """Run one step in a process of its own, so that its memory is its own."""
    command = [sys.executable, __file__, "--step", step, "--work", str(options.work)]
    for name in ("questions", "python_questions", "duckdb_questions"):
        command += [f"--{name.replace('_', '-')}", str(getattr(options, name))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603  this script itself
    if done.returncode:
        sys.exit(f"{step} failed:\n{done.stderr[-2000:]}")
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    print(f"{step}: {figures}", file=sys.stderr)
    return figures


def main() -> int:
    """Generate, measure, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=0.1, help="share of Wikidata5M's size (default: 0.1)")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--questions", type=int, default=300)
    parser.add_argument("--python-questions", type=int, default=20, help="0 leaves the comparison out")
    parser.add_argument("--duckdb-questions", type=int, default=5, help="0 leaves the comparison out")
    parser.add_argument(
        "--rows", type=Path, default=None, help="folder that graph_shape.py wrote, instead of a new one"
    )
    parser.add_argument("--out", type=Path, default=REPOSITORY / "bench" / "results" / "graph_search.md")
    parser.add_argument("--step", choices=sorted(STEPS), default=None, help=argparse.SUPPRESS)
    parser.add_argument("--work", type=Path, default=None, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.step is not None:
        print(json.dumps(STEPS[options.step](options)))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        options.work = Path(folder)
        rows = options.work / "rows"
        if options.rows is None:
            shape = REPOSITORY / "bench" / "graph_shape.py"
            command = [
                sys.executable,
                str(shape),
                str(rows),
                "--scale",
                str(options.scale),
                "--seed",
                str(options.seed),
            ]
            subprocess.run(command, check=True)  # noqa: S603  the generator beside this script
        else:
            rows.symlink_to(options.rows.resolve(), target_is_directory=True)
        steps = ["build", "questions", "plain", "hub", "refresh"]
        steps += ["duckdb"] if options.duckdb_questions else []
        steps += ["python"] if options.python_questions else []
        text = table(options.scale, options.seed, {step: run(step, options) for step in steps})
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(text, encoding="utf-8")
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
