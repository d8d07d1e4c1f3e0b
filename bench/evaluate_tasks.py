"""Measure the mapping on labelled tasks beside plain cosine, in one run, and write the tables of docs/evaluation.md.

Each task is mapped by what ``kgrag run`` does, in a lake of its own, with the demo's knowledge graph. The baseline
ranks all pairs by the cosine of "table column. column description" and is measured by the same functions.

    python bench/evaluate_tasks.py --tasks ../shared/data/tasks --out evaluation.md
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

from kgrag_assets.cli.place import Place, dagster_home, open_instance
from kgrag_assets.cli.running import bring_up_to_date
from kgrag_assets.evaluation.baseline import plain_cosine
from kgrag_assets.evaluation.metrics import pair_names, rank_metrics
from kgrag_assets.lake.lake import Lake
from kgrag_assets.models.embedders import make_embedder
from kgrag_assets.rows.match_metrics import MATCH_METRICS, MATCH_MISSES
from kgrag_assets.rows.reference_correspondences import REFERENCE_CORRESPONDENCES
from kgrag_assets.rows.schema_attributes import SCHEMA_ATTRIBUTES
from kgrag_assets.settings import Settings

REPOSITORY = Path(__file__).parents[1]
COLUMNS = ("hit@1", "hit@3", "hit@5", "mrr", "best_f1", "average_precision", "pair_completeness")


def baseline(lake: Lake, task: str, settings: Settings) -> dict[str, float | None]:
    """Measure plain cosine on a task that the lake has read."""
    attributes = lake.read(SCHEMA_ATTRIBUTES, task)
    reference = lake.read(REFERENCE_CORRESPONDENCES, task)
    pairs = plain_cosine(attributes, make_embedder(settings.embedder))
    truth = pair_names(reference)
    sources = list(dict.fromkeys(pair.source for pair in pairs))
    measured = {metric.name: metric.value for metric in rank_metrics(pairs, truth, sources, settings.evaluation)}
    best = sorted(pairs, key=lambda pair: -pair.score)[: round(0.1 * len(pairs))]
    kept = {(pair.source, pair.target) for pair in best}
    return {**measured, "pair_completeness": len(truth & kept) / len(truth)}


def main() -> int:
    """Run and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=Path, default=REPOSITORY.parent / "shared" / "data" / "tasks")
    parser.add_argument("--out", type=Path, default=None)
    options = parser.parse_args()
    folders = [REPOSITORY / "data_lake" / "input" / "tasks" / "demo_clinic"]
    if options.tasks.is_dir():
        folders += sorted(path for path in options.tasks.iterdir() if path.is_dir())
    else:
        print(f"{options.tasks} does not exist: only the demo task is measured", file=sys.stderr)
    lines = [
        "| task | method | " + " | ".join(COLUMNS) + " | proposed P / R / F1 | seconds |",
        "| --- | --- |" + " --- |" * (len(COLUMNS) + 2),
    ]
    outcomes = ["| task | true pairs | found | not proposed | lost by blocking |", "| --- | --- | --- | --- | --- |"]
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch)
        settings = Settings(_env_file=None, lake=root / "lake")  # type: ignore[call-arg]
        lake = Lake.at(settings.lake)
        shutil.copytree(REPOSITORY / "data_lake" / "input" / "knowledge_graphs", lake.paths.knowledge_graphs)
        for folder in folders:
            shutil.copytree(folder, lake.paths.tasks / folder.name, copy_function=shutil.copyfile)
            # The copies of a read-only folder would be read-only, too, and could not be removed.
            (lake.paths.tasks / folder.name).chmod(0o755)
        with open_instance(dagster_home(settings.lake)) as instance:
            for folder in folders:
                began = time.monotonic()
                bring_up_to_date(Place(settings, lake, instance, {}), folder.name, lambda _job, _partition: None)
                seconds = time.monotonic() - began
                found = dict(lake.read(MATCH_METRICS, folder.name).select("metric", "value").iter_rows())
                plain = baseline(lake, folder.name, settings)
                chosen = " / ".join(_number(found[name]) for name in ("precision", "recall", "f1"))
                lines.append(_line(folder.name, "plain cosine", plain, "", ""))
                lines.append(_line(folder.name, "kgrag, offline judge", found, chosen, f"{seconds:.0f}"))
                misses = lake.read(MATCH_MISSES, folder.name)["outcome"].to_list()
                counts = [misses.count(name) for name in ("found", "not_proposed", "blocking")]
                outcomes.append(f"| {folder.name} | {len(misses)} | " + " | ".join(map(str, counts)) + " |")
                print("\n".join(lines[-2:]), flush=True)
    text = "\n".join([*lines, "", *outcomes, ""])
    print(text)
    if options.out is not None:
        options.out.write_text(text, encoding="utf-8")
    return 0


def _line(task: str, method: str, values: dict[str, float | None], chosen: str, seconds: str) -> str:
    cells = [task, method, *(_number(values[name]) for name in COLUMNS), chosen, seconds]
    return "| " + " | ".join(cells) + " |"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


if __name__ == "__main__":
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    sys.exit(main())
