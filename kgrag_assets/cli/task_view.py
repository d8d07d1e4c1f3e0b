"""Everything about one mapped task, read from the lake: what the terminal, JSON and exported files are made from."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
from rapidfuzz import process

from kgrag_assets.cli.plain_text import plain
from kgrag_assets.lake.lake import Lake
from kgrag_assets.rows.attribute_mappings import ATTRIBUTE_MAPPINGS
from kgrag_assets.rows.llm_judgments import ANSWERED_STATUSES, LLM_JUDGMENTS
from kgrag_assets.rows.match_metrics import MATCH_METRICS, MATCH_MISSES
from kgrag_assets.rows.ranked_contexts import RANKED_CONTEXTS
from kgrag_assets.rows.reference_correspondences import REFERENCE_CORRESPONDENCES
from kgrag_assets.rows.rejects import SCHEMA_REJECTS
from kgrag_assets.rows.schema_attributes import SCHEMA_ATTRIBUTES

# The metrics a reader looks for first; others follow in the order of the table.
_METRIC_ORDER = (
    "precision",
    "recall",
    "f1",
    "hit@1",
    "hit@3",
    "hit@5",
    "mrr",
    "average_precision",
    "pair_completeness",
    "reduction_ratio",
)
_DECISION_ORDER = {"proposed": 0, "no_match": 1, "alternative": 2}


class ShowError(ValueError):
    """What was asked for cannot be shown; the message says what to ask for instead."""


@dataclass(frozen=True)
class TaskView:
    """A task's tables, each a frame as ``rows/`` describes it. ``mappings`` is in the order of the source schema."""

    task: str
    attributes: pl.DataFrame
    mappings: pl.DataFrame
    contexts: pl.DataFrame
    judgments: pl.DataFrame
    reference: pl.DataFrame
    metrics: pl.DataFrame
    misses: pl.DataFrame
    rejects: pl.DataFrame
    database: Path

    @property
    def proposed(self) -> int:
        """How many pairs are proposed."""
        return int((self.mappings["decision"] == "proposed").sum())

    @property
    def unmatched(self) -> int:
        """For how many source attributes nothing is proposed."""
        return int((self.mappings["decision"] == "no_match").sum())


@dataclass(frozen=True)
class Cost:
    """What the judgments of a mapping took. ``usd`` sums the calls with a known price, ``unpriced`` counts the rest."""

    judges: tuple[str, ...]
    pairs: int
    calls: int
    tokens_in: int
    tokens_out: int
    usd: float
    unpriced: int
    unanswered: Mapping[str, int]


def read_task(lake: Lake, task: str) -> TaskView:
    """Read a mapped task.

    Raises:
        ShowError: the task does not exist, or was not mapped yet.
        LakeError: a file of the lake is damaged.
    """
    if not lake.has(ATTRIBUTE_MAPPINGS, task):
        raise ShowError(_why_not_mapped(lake, task))
    attributes = lake.read(SCHEMA_ATTRIBUTES, task).sort("side", "position")
    places = attributes.select(pl.col("attribute_id").alias("source_attribute_id"), "position")
    mappings = (
        lake.read(ATTRIBUTE_MAPPINGS, task)
        .join(places, on="source_attribute_id", how="left")
        .with_columns(pl.col("decision").replace_strict(_DECISION_ORDER, return_dtype=pl.Int8).alias("order"))
        .sort("position", "source_table", "source_column", "order", "rank", nulls_last=True)
        .drop("position", "order")
    )
    return TaskView(
        task=task,
        attributes=attributes,
        mappings=mappings,
        contexts=lake.read(RANKED_CONTEXTS, task),
        judgments=lake.read(LLM_JUDGMENTS, task),
        reference=lake.read(REFERENCE_CORRESPONDENCES, task),
        metrics=ordered_metrics(lake.read(MATCH_METRICS, task)),
        misses=lake.read(MATCH_MISSES, task),
        rejects=lake.read(SCHEMA_REJECTS, task),
        database=lake.paths.snapshot,
    )


def _why_not_mapped(lake: Lake, task: str) -> str:
    folders = [path.name for path in lake.paths.tasks.iterdir() if path.is_dir()] if lake.paths.tasks.is_dir() else []
    shown = plain(task, 80)
    if task in folders:
        return f"{shown} was not mapped yet: run  kgrag run {shlex.quote(shown)}"
    known = sorted({*folders, *lake.partitions(ATTRIBUTE_MAPPINGS)})
    if not known:
        return f"there is no task {shown}: make one with  kgrag init NAME --source FILE --target FILE"
    nearest = [plain(name, 80) for name, _score, _place in process.extract(task, known, limit=3)]
    return f"there is no task {shown}; the nearest names are {', '.join(nearest)}; see  kgrag tasks"


def ordered_metrics(metrics: pl.DataFrame) -> pl.DataFrame:
    """Sort rows of ``match_metrics``: the ones that a reader looks for first, then the others as they stand."""
    places = [_METRIC_ORDER.index(name) if name in _METRIC_ORDER else len(_METRIC_ORDER) for name in metrics["metric"]]
    order = pl.Series("order", places, dtype=pl.Int32)
    return metrics.with_columns(order).sort("order", maintain_order=True).drop("order")


def cost_of(judgments: pl.DataFrame) -> Cost:
    """Add up what the judgments at hand took; a call that answered for several pairs counts once."""
    judges = judgments.select("judge", "model").unique().sort("judge", "model").rows()
    calls = judgments.filter(pl.col("request_hash").is_not_null()).unique("request_hash", keep="first")
    silent = judgments.filter(~pl.col("parse_status").is_in(ANSWERED_STATUSES))
    unanswered = silent.group_by("parse_status").len().sort("len", "parse_status", descending=[True, False])
    return Cost(
        judges=tuple(f"{judge} ({model})" for judge, model in judges),
        pairs=judgments.height,
        calls=calls.height,
        tokens_in=int(calls["tokens_in"].sum()),
        tokens_out=int(calls["tokens_out"].sum()),
        usd=float(calls["cost_usd"].sum()),
        unpriced=calls["cost_usd"].null_count(),
        unanswered={str(status): int(count) for status, count in unanswered.rows()},
    )


def wikidata_id(entity_id: str) -> str:
    """Write an id of the lake (``wd:Q42``) as Wikidata does (``Q42``); ids of other graphs keep their namespace."""
    return entity_id.removeprefix("wd:")


def ids_of(fact: Mapping[str, Any]) -> list[str]:
    """List the ids in a fact in reading order, each once: head, relation and tail of its edges, or its nodes."""
    parts = [edge[part] for edge in fact["edges"] for part in ("head", "relation", "tail")] or fact["nodes"]
    return list(dict.fromkeys(wikidata_id(part) for part in parts if part))


def facts_by_pair(view: TaskView) -> dict[str, list[dict[str, Any]]]:
    """Collect each pair's facts, best first: text, kind, method, score, ids, and whether the judge cited it."""
    cited = {pair: set(ids) for pair, ids in view.judgments.select("pair_id", "cited_facts").iter_rows()}
    found: dict[str, list[dict[str, Any]]] = {}
    for pair, facts in view.contexts.select("pair_id", "facts").iter_rows():
        found[pair] = [
            {
                "fact_id": fact["fact_id"],
                "rank": fact["rank"],
                "text": fact["text"],
                "kind": fact["kind"],
                "method": fact["method"],
                "score": finite(fact["score"]),
                "ids": ids_of(fact),
                "cited": fact["fact_id"] in cited.get(pair, ()),
            }
            for fact in sorted(facts, key=lambda fact: fact["rank"])
        ]
    return found


def judge_reasons(view: TaskView) -> dict[str, str]:
    """Return the judge's reason of each pair; empty text where it gave none."""
    return dict(view.judgments.select("pair_id", "reason").iter_rows())


def finite(value: Any) -> Any:  # noqa: ANN401  (a cell of a frame)
    """Return a cell as it is, and None for a number that is not one: JSON and spreadsheets have no NaN."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def plain_rows(frame: pl.DataFrame, *dropped: str) -> list[dict[str, Any]]:
    """Turn a frame into dictionaries for JSON, without ``row_key``, ``task`` and the named columns."""
    kept = frame.drop([name for name in ("task", "row_key", *dropped) if name in frame.columns])
    return [{name: finite(value) for name, value in row.items()} for row in kept.iter_rows(named=True)]
