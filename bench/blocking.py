"""Measure blocking on labelled tasks: true pairs kept at each budget, beside plain cosine, and why the others are lost.

python bench/blocking.py --tasks ../shared/data/tasks
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import polars as pl

from kgrag_assets.blocking.block import ScoredGroups, score_all_pairs
from kgrag_assets.evaluation.blocking_curve import blocking_curve, lost_reasons
from kgrag_assets.indexing.embedding import wanted_attributes
from kgrag_assets.models.embedders import Embedder, make_embedder
from kgrag_assets.rows.embeddings import ATTRIBUTE_EMBEDDINGS
from kgrag_assets.schemas.reading import read_task
from kgrag_assets.schemas.task_folder import load_folder
from kgrag_assets.settings import BlockingSettings, EmbedderSettings

REPOSITORY = Path(__file__).parents[1]
SHARES = (0.01, 0.02, 0.05, 0.10, 0.20)


def kept_at(curve: pl.DataFrame, method: str) -> list[float]:
    """Return pair completeness at each share."""
    mine = dict(curve.filter(pl.col("method") == method).select("budget_share", "pair_completeness").iter_rows())
    return [mine[share] for share in SHARES]


def causes_of(reasons: Sequence[str]) -> Counter[str]:
    """Count the causes that the reasons name, by kind."""
    kinds = ("has no description", "far from each other", "names share no word", "tables share no word", "rivals")
    return Counter(kind for reason in reasons for kind in kinds if kind in reason)


def measure(folder: Path, embedder: Embedder) -> list[str]:
    """Return the lines about one task."""
    read = read_task(load_folder(folder.name, folder))
    wanted = wanted_attributes(read.attributes, embedder.model_id)
    vectors = embedder.embed(wanted["text"].to_list())
    embeddings = ATTRIBUTE_EMBEDDINGS.conform(
        wanted.with_columns(pl.Series("vector", vectors.tolist(), dtype=ATTRIBUTE_EMBEDDINGS.schema["vector"]))
    )
    began = time.monotonic()
    scored = score_all_pairs(read.attributes, embeddings, BlockingSettings())
    seconds = time.monotonic() - began
    alone = score_all_pairs(read.attributes, embeddings, BlockingSettings(group=False))
    curve, ungrouped = blocking_curve(scored, read.reference), blocking_curve(alone, read.reference)
    sizes = (
        f"{len(scored.sources)} x {len(scored.targets)}",
        f"{len(scored.source_groups.representative)} x {len(scored.target_groups.representative)}",
    )
    rows = [
        (kept_at(curve, "kgrag"), "kgrag, groups judged once"),
        (kept_at(ungrouped, "kgrag"), "kgrag, without groups"),
        (kept_at(curve, "cosine"), "cosine of the full text, without groups"),
    ]
    lines = [
        f"| {folder.name} | {sizes[0]} | {sizes[1]} | {name} | " + " | ".join(f"{value:.2f}" for value in values) + " |"
        for values, name in rows
    ]
    reasons = lost_reasons(scored, read.reference)
    lost = lost_at(scored, read.reference, 0.10)
    causes = ", ".join(f"{kind} {count}" for kind, count in causes_of([reasons[pair] for pair in lost]).most_common())
    print(f"{folder.name}: scored in {seconds:.2f} s; {len(lost)} lost at 10%: {causes or 'none'}", flush=True)
    return [*lines, f"<!-- {folder.name}: {len(lost)} lost at 10%: {causes or 'none'} -->"]


def lost_at(scored: ScoredGroups, reference: pl.DataFrame, share: float) -> list[str]:
    """Return the ids of the true pairs that a budget loses."""
    judged = int(share * scored.attribute_scores.size)
    order = (-scored.scores).argsort(axis=None, kind="stable")[:judged]
    width = scored.scores.shape[1]
    kept = {(int(place) // width, int(place) % width) for place in order}
    places = {
        side: {(item.table_name, item.column_name): int(number) for item, number in zip(items, numbers, strict=True)}
        for side, items, numbers in (
            ("source", scored.sources, scored.source_groups.number),
            ("target", scored.targets, scored.target_groups.number),
        )
    }
    names = ("pair_id", "source_table", "source_column", "target_table", "target_column")
    return [
        row[0]
        for row in reference.select(names).iter_rows()
        if (places["source"][row[1:3]], places["target"][row[3:5]]) not in kept
    ]


def main() -> int:
    """Run and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=Path, default=REPOSITORY.parent / "shared" / "data" / "tasks")
    parser.add_argument("--out", type=Path, default=REPOSITORY / "bench" / "results" / "blocking.md")
    options = parser.parse_args()
    folders = [REPOSITORY / "data_lake" / "input" / "tasks" / "demo_clinic"]
    if options.tasks.is_dir():
        folders += sorted(path for path in options.tasks.iterdir() if path.is_dir())
    embedder = make_embedder(EmbedderSettings())
    head = "| task | attributes | groups | method | " + " | ".join(f"{share:.0%}" for share in SHARES) + " |"
    lines = [
        "Share of the true pairs kept where so many pairs of all pairs of attributes are judged; a group counts once.",
        "",
        head,
        "| --- | --- | --- | --- |" + " --- |" * len(SHARES),
    ]
    notes: list[str] = []
    for folder in folders:
        found = measure(folder, embedder)
        lines += found[:-1]
        notes.append(found[-1].removeprefix("<!-- ").removesuffix(" -->"))
    text = "\n".join([*lines, "", "What the true pairs lost at 10% have in common (a pair counts for each):", "",
                      *(f"- {note}" for note in notes), ""])  # fmt: skip
    print(text)
    options.out.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    sys.exit(main())
