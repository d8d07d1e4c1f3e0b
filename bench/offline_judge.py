"""Measure what each part of the offline judge is worth: the judge alone, and the mapping made with it.

The tasks are brought up to date in a lake of their own, as ``kgrag run`` does, with the demo's knowledge graph; or the
stages of a lake that is there are read (``--lake``). Then the candidates are judged anew, by the judge with all its
parts and with each left out. A second table shows what values alone can do: columns of tables that scikit-learn ships,
their rows split in two halves and their names taken away.

    python bench/offline_judge.py --tasks ../shared/data/tasks
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from kgrag_assets.cli.place import Place, dagster_home, open_instance
from kgrag_assets.cli.running import bring_up_to_date
from kgrag_assets.evaluation.ranking_metrics import average_precision, best_f1, f1_of, hit_at, mean_reciprocal_rank
from kgrag_assets.judging.graph_evidence import named_by
from kgrag_assets.judging.offline import OFFLINE_VERSION, PARTS, OfflineJudge, judge_pair
from kgrag_assets.judging.protocol import JudgePair
from kgrag_assets.judging.stage import judge_pairs_of, judge_task
from kgrag_assets.lake.lake import Lake
from kgrag_assets.mapping.assemble import map_task
from kgrag_assets.rows.attribute_groups import ATTRIBUTE_GROUPS
from kgrag_assets.rows.candidate_pairs import CANDIDATE_PAIRS
from kgrag_assets.rows.keys import attribute_id_of, pair_id_of
from kgrag_assets.rows.llm_judgments import LLM_JUDGMENTS
from kgrag_assets.rows.ranked_contexts import RANKED_CONTEXTS
from kgrag_assets.rows.reference_correspondences import REFERENCE_CORRESPONDENCES
from kgrag_assets.rows.schema_attributes import SCHEMA_ATTRIBUTES
from kgrag_assets.schemas.attribute import Attribute
from kgrag_assets.schemas.found import FoundColumn
from kgrag_assets.schemas.readers.data_folder import read_data_file
from kgrag_assets.schemas.types import type_family
from kgrag_assets.settings import Settings

REPOSITORY = Path(__file__).parents[1]
DEMO = "demo_clinic"
COLUMNS = ("hit@1", "MRR", "average precision", "best F1", "P / R / F1 of its yes")
# Tables of scikit-learn's own files: nothing is downloaded.
EXPLAINED = (
    "The judge alone ranks the candidates by its own score; its yes are the pairs of 0.5 and above. The mapping ranks "
    "them by all that it knows, and its yes are the pairs that it proposes. Pairs of equal score have the middle of "
    "their ranks. One source attribute is a few hundredths of hit@1: differences of that size are chance."
)
# Facts of a pair by what they say; a shared entity that is named by both sides' words counts as such alone.
FACT_KINDS = ("shared, named by both", "shared, score above 0.55", "shared, other", "triple or path only", "no fact")
SURE_SCORE = 0.55
SPLIT_TABLES = ("wine", "breast_cancer", "iris", "diabetes")

Name = tuple[str, str]
# Score of each pair by the names of its attributes, and the pairs that are said to be true.
Scores = Mapping[tuple[Name, Name], float]


@dataclass(frozen=True)
class Stages:
    """The stored stages of a task that judging and mapping read."""

    task: str
    attributes: pl.DataFrame
    groups: pl.DataFrame
    candidates: pl.DataFrame
    contexts: pl.DataFrame
    judgments: pl.DataFrame
    reference: pl.DataFrame

    @classmethod
    def read(cls, lake: Lake, task: str) -> Stages:
        """Read them; groups may be missing."""
        groups = lake.read(ATTRIBUTE_GROUPS, task) if lake.has(ATTRIBUTE_GROUPS, task) else ATTRIBUTE_GROUPS.empty()
        tables = (SCHEMA_ATTRIBUTES, CANDIDATE_PAIRS, RANKED_CONTEXTS, LLM_JUDGMENTS, REFERENCE_CORRESPONDENCES)
        attributes, candidates, contexts, judgments, reference = (lake.read(table, task) for table in tables)
        return cls(task, attributes, groups, candidates, contexts, judgments, reference)


def measure(scores: Scores, chosen: Collection[tuple[Name, Name]], truth: Collection[tuple[Name, Name]]) -> list[str]:
    """Measure scores against the true pairs.

    A pair's rank is by its score alone; pairs of equal score share the middle of their ranks, so that no order among
    them flatters. A source attribute whose true pairs are all missing counts as a list without a hit.
    """
    by_source: dict[Name, list[tuple[float, bool]]] = {source: [] for source, _ in truth}
    for (source, target), score in scores.items():
        if source in by_source:
            by_source[source].append((score, (source, target) in truth))
    firsts = []
    for entries in by_source.values():
        best = max((score for score, true in entries if true), default=None)
        if best is None:
            firsts.append(np.inf)
            continue
        above = sum(score > best for score, _ in entries)
        beside = sum(score == best and not true for score, true in entries)
        firsts.append(1.0 + above + beside / 2.0)
    ranks = np.array(firsts)
    values = np.array(list(scores.values()))
    true = np.array([pair in truth for pair in scores])
    hits = len(set(chosen) & set(truth))
    said = (hits / len(chosen) if chosen else None, hits / len(truth), f1_of(hits, len(chosen), len(truth)))
    ranked = (
        hit_at(ranks, 1),
        mean_reciprocal_rank(ranks),
        average_precision(values, true, len(truth)),
        best_f1(values, true, len(truth)),
    )
    return [*map(_number, ranked), " / ".join(map(_number, said))]


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _pairs(frame: pl.DataFrame) -> list[tuple[Name, Name]]:
    columns = ("source_table", "source_column", "target_table", "target_column")
    return [((row[0], row[1]), (row[2], row[3])) for row in frame.select(columns).iter_rows()]


def judged_truth(stages: Stages) -> set[tuple[Name, Name]]:
    """Return the true pairs as they are judged: of each group its representative."""
    names = {
        row[0]: (row[1], row[2])
        for row in stages.attributes.select("attribute_id", "table_name", "column_name").iter_rows()
    }
    stands = dict(stages.groups.select("attribute_id", "representative_id").iter_rows())

    def judged(side: str, name: Name) -> Name:
        own = attribute_id_of(side, *name)
        return names[stands.get(own, own)]

    return {(judged("source", source), judged("target", target)) for source, target in _pairs(stages.reference)}


def judge_rows(stages: Stages, parts: Collection[str]) -> pl.DataFrame:
    """Judge the candidates of a task anew."""
    return judge_task(
        attributes=stages.attributes,
        groups=stages.groups,
        candidates=stages.candidates,
        contexts=stages.contexts,
        existing=LLM_JUDGMENTS.empty(),
        judge=OfflineJudge(parts),
        values="shapes",
        start_progress=lambda _total: lambda _done: None,
    ).frame


def of_judgments(stages: Stages, judgments: pl.DataFrame) -> list[str]:
    """Measure a judge's own scores and answers."""
    scores = dict(zip(_pairs(judgments), judgments["score"].fill_null(0.0).to_list(), strict=True))
    chosen = _pairs(judgments.filter(pl.col("answer").fill_null(value=False)))
    return measure(scores, chosen, judged_truth(stages))


def of_mapping(stages: Stages, judgments: pl.DataFrame, settings: Settings) -> list[str]:
    """Measure the mapping that is made with a judge."""
    mapping = map_task(
        stages.attributes, stages.groups, stages.candidates, judgments, stages.contexts, settings.mapping
    )
    ranked = mapping.filter(pl.col("decision") != "no_match")
    scores = dict(zip(_pairs(ranked), ranked["score"].to_list(), strict=True))
    proposed = _pairs(ranked.filter(pl.col("decision") == "proposed"))
    return measure(scores, proposed, set(_pairs(stages.reference)))


def variants(stages: Stages) -> dict[str, pl.DataFrame]:
    """Return the judgments of each variant of the judge."""
    rows = {"all parts": judge_rows(stages, PARTS)}
    for part in PARTS:
        rows[f"without {part}"] = judge_rows(stages, set(PARTS) - {part})
    # Blocking has compared all texts already: what is new to it is the rest.
    rows["only what blocking does not see"] = judge_rows(stages, set(PARTS) - {"meaning", "words", "tables"})
    if not stages.judgments.is_empty() and stages.judgments["model"][0] != OFFLINE_VERSION:
        rows = {f"as stored ({stages.judgments['model'][0]})": stages.judgments, **rows}
    return rows


def blocking_alone(stages: Stages) -> list[str]:
    """Measure the fused score that blocking ranked by."""
    scores = dict(zip(_pairs(stages.candidates), stages.candidates["blocking_score"].to_list(), strict=True))
    return measure(scores, [], judged_truth(stages))


def facts_told(stages: Stages) -> str:
    """Say how often the candidates that are true, and the others, have a fact of each kind, as a line of a table."""
    truth = judged_truth(stages)
    counts: dict[str, list[int]] = {kind: [0, 0] for kind in FACT_KINDS}
    sizes = [0, 0]
    for pair in judge_pairs_of(stages.attributes, stages.groups, stages.candidates, stages.contexts):
        names = (pair.source.table_name, pair.source.column_name), (pair.target.table_name, pair.target.column_name)
        place = 0 if names in truth else 1
        sizes[place] += 1
        counts[_fact_kind(pair)][place] += 1
    shares = [f"{true / max(sizes[0], 1):.0%} / {other / max(sizes[1], 1):.0%}" for true, other in counts.values()]
    return f"| {stages.task} | {sizes[0]} / {sizes[1]} | {' | '.join(shares)} |"


def _fact_kind(pair: JudgePair) -> str:
    shared = [fact for fact in pair.facts if fact.kind == "shared_entity"]
    if any(named_by(fact, pair.source) and named_by(fact, pair.target) for fact in shared):
        return FACT_KINDS[0]
    if shared:
        return FACT_KINDS[1] if max(fact.score for fact in shared) > SURE_SCORE else FACT_KINDS[2]
    return FACT_KINDS[3] if pair.facts else FACT_KINDS[4]


def filled(lake: Lake, folders: Sequence[Path], settings: Settings) -> None:
    """Bring tasks up to date in an empty lake."""
    shutil.copytree(REPOSITORY / "data_lake" / "input" / "knowledge_graphs", lake.paths.knowledge_graphs)
    for folder in folders:
        shutil.copytree(folder, lake.paths.tasks / folder.name, copy_function=shutil.copyfile)
        # The copies of a read-only folder would be read-only, too, and could not be removed.
        (lake.paths.tasks / folder.name).chmod(0o755)
    with open_instance(dagster_home(settings.lake)) as instance:
        for folder in folders:
            bring_up_to_date(Place(settings, lake, instance, {}), folder.name, lambda _job, _partition: None)


def split_halves(name: str, folder: Path) -> tuple[list[Attribute], list[Attribute]]:
    """Write the two halves of a table's rows, drawn by chance, as Parquet, and read them as two schemas."""
    from sklearn import datasets

    loaded = getattr(datasets, f"load_{name}")()
    table = np.column_stack([loaded.data, loaded.target])
    order = np.random.default_rng(7).permutation(len(table))
    sides = []
    for side, rows in zip(("source", "target"), np.array_split(order, 2), strict=True):
        path = folder / f"{name}_{side}.parquet"
        # Names of no meaning, as many legacy systems have them: what is matched are the values.
        pl.DataFrame(table[rows], schema=[f"{side[0]}{place}" for place in range(table.shape[1])]).write_parquet(path)
        sides.append([_attribute(side, found) for found in read_data_file(path, name).columns])
    return sides[0], sides[1]


def _attribute(side: str, found: FoundColumn) -> Attribute:
    return Attribute(
        attribute_id=attribute_id_of(side, side, found.column),
        side=side,
        table_name=side,
        column_name=found.column,
        data_type=found.data_type,
        type_family=type_family(found.data_type, found.sample_values),
        table_description="",
        column_description="",
        sample_values=found.sample_values,
        distinct_count=found.distinct_count,
        null_share=found.null_share,
        profile=found.values,
    )


def values_alone(folder: Path) -> list[str]:
    """Measure types and values on halves of tables, as lines of a Markdown table."""
    lines = [
        "| table | columns | by chance | hit@1, types | hit@1, types and values |",
        "| --- | --- | --- | --- | --- |",
    ]
    for name in SPLIT_TABLES:
        sources, targets = split_halves(name, folder)
        told = []
        for parts in ({"types"}, {"types", "values"}):
            scores = {}
            for source in sources:
                for target in targets:
                    pair = JudgePair(
                        name, pair_id_of(source.attribute_id, target.attribute_id), source, target, {}, (), ""
                    )
                    names = (source.table_name, source.column_name), (target.table_name, target.column_name)
                    scores[names] = judge_pair(pair, parts).score or 0.0
            truth = {
                (("source", mine.column_name), ("target", other.column_name))
                for mine, other in zip(sources, targets, strict=True)
            }
            told.append(measure(scores, [], truth)[0])
        lines.append(f"| {name} | {len(sources)} | {1 / len(sources):.2f} | {told[0]} | {told[1]} |")
    return lines


def main() -> int:
    """Run and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=Path, default=REPOSITORY.parent / "shared" / "data" / "tasks")
    parser.add_argument("--lake", type=Path, default=None, help="read the stages of this lake instead of making them")
    parser.add_argument("--out", type=Path, default=REPOSITORY / "bench" / "results" / "offline_judge.md")
    options = parser.parse_args()
    folders = [REPOSITORY / "data_lake" / "input" / "tasks" / DEMO]
    if options.tasks.is_dir():
        folders += sorted(path for path in options.tasks.iterdir() if path.is_dir())
    else:
        print(f"{options.tasks} does not exist: only the demo task is measured", file=sys.stderr)
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as scratch:
        root = options.lake if options.lake is not None else Path(scratch) / "lake"
        settings = Settings(_env_file=None, lake=root)  # type: ignore[call-arg]
        lake = Lake.at(root)
        if options.lake is None:
            filled(lake, folders, settings)
        machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
        lines = [
            "# What each part of the offline judge is worth",
            "",
            f"`python bench/offline_judge.py`, judge {OFFLINE_VERSION}. {machine}; took {{seconds:.0f}} s. {EXPLAINED}",
        ]
        told = [f"| task | true / other candidates | {' | '.join(FACT_KINDS)} |", "| --- |" + " --- |" * 6]
        for folder in folders:
            stages = Stages.read(lake, folder.name)
            sources = len({source for source, _ in judged_truth(stages)})
            valued = [
                stages.attributes.filter((pl.col("side") == side) & (pl.col("sample_values").list.len() > 0)).height
                for side in ("source", "target")
            ]
            counted = f"{stages.candidates.height} candidates, {sources} source attributes with a true pair, "
            counted += f"{valued[0]} source and {valued[1]} target attributes with values."
            lines += [
                "",
                f"## {folder.name}",
                "",
                counted,
                "",
                "| judge | "
                + " | ".join([*(f"alone: {name}" for name in COLUMNS), *(f"mapping: {n}" for n in COLUMNS)])
                + " |",
                "| --- |" + " --- |" * (2 * len(COLUMNS)),
                f"| none: blocking's score | {' | '.join(blocking_alone(stages))} |" + " |" * len(COLUMNS),
            ]
            for name, judgments in variants(stages).items():
                cells = [*of_judgments(stages, judgments), *of_mapping(stages, judgments, settings)]
                lines.append(f"| {name} | {' | '.join(cells)} |")
            told.append(facts_told(stages))
            print("\n".join(lines[-4 - len(PARTS) :]), flush=True)
        lines += ["", "## Facts: share of the true / of the other candidates that have one", "", *told]
        lines += ["", "## Values alone", "", *values_alone(Path(scratch)), ""]
    text = "\n".join(lines).replace("{seconds:.0f}", f"{time.monotonic() - began:.0f}")
    print("\n".join(lines[-len(SPLIT_TABLES) - 3 :]))
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    sys.exit(main())
