"""Computing a task's judgments, mapping and metrics again from the kept calls alone, and comparing."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from kgrag_assets.evaluation.metrics import evaluate
from kgrag_assets.judging.choice import make_judge
from kgrag_assets.judging.stage import judge_task
from kgrag_assets.lake.lake import Lake
from kgrag_assets.mapping.assemble import map_task
from kgrag_assets.models.ledger import CallLedger
from kgrag_assets.rows.attribute_groups import ATTRIBUTE_GROUPS
from kgrag_assets.rows.attribute_mappings import ATTRIBUTE_MAPPINGS
from kgrag_assets.rows.candidate_pairs import CANDIDATE_PAIRS
from kgrag_assets.rows.llm_judgments import LLM_JUDGMENTS
from kgrag_assets.rows.match_metrics import MATCH_METRICS
from kgrag_assets.rows.ranked_contexts import RANKED_CONTEXTS
from kgrag_assets.rows.reference_correspondences import REFERENCE_CORRESPONDENCES
from kgrag_assets.rows.schema_attributes import SCHEMA_ATTRIBUTES
from kgrag_assets.rows.table import Table
from kgrag_assets.settings import Settings


@dataclass(frozen=True)
class Compared:
    """How a stage came out: rows stored, rows that are the same, and the key of the first that is not."""

    stage: str
    stored: int
    equal: int
    different: int
    first_difference: str


def replay_task(lake: Lake, settings: Settings, task: str) -> list[Compared]:
    """Judge a task again from the ledger alone, map and measure it, and set that beside what is stored.

    No model is asked, and no key is needed.

    Args:
        lake: the lake; the task must have been judged.
        settings: the task's settings.
        task: the task.

    Returns:
        One for each of ``llm_judgments``, ``attribute_mappings`` and ``match_metrics``.

    Raises:
        ModelUnavailableError: the ledger lacks an answer: prompt, facts or parameters have changed since, or a call
            failed.
        LakeError: the ledger cannot be read.
    """
    attributes = lake.read(SCHEMA_ATTRIBUTES, task)
    groups = lake.read(ATTRIBUTE_GROUPS, task)
    candidates = lake.read(CANDIDATE_PAIRS, task)
    contexts = lake.read(RANKED_CONTEXTS, task)
    with CallLedger(lake.paths.ledger) as ledger:
        judgments = judge_task(
            attributes=attributes,
            groups=groups,
            candidates=candidates,
            contexts=contexts,
            existing=LLM_JUDGMENTS.empty(),
            judge=make_judge(settings, ledger, replay=True),
            values=settings.judging.values,
            start_progress=lambda _total: lambda _done: None,
        ).frame
    mapping = map_task(attributes, groups, candidates, judgments, contexts, settings.mapping)
    reference = lake.read(REFERENCE_CORRESPONDENCES, task)
    metrics = evaluate(mapping, candidates, attributes, reference, settings.evaluation)
    found = ((LLM_JUDGMENTS, judgments), (ATTRIBUTE_MAPPINGS, mapping), (MATCH_METRICS, metrics))
    return [compared(table, lake.read(table, task), frame) for table, frame in found]


def compared(table: Table, stored: pl.DataFrame, again: pl.DataFrame) -> Compared:
    """Compare two frames of a table row by row, whatever their order: by all columns."""
    key = list(table.key)
    left = {tuple(row[name] for name in key): row for row in stored.iter_rows(named=True)}
    right = {tuple(row[name] for name in key): row for row in again.iter_rows(named=True)}
    differing = [
        place
        for place in (*left, *(place for place in right if place not in left))
        if left.get(place) != right.get(place)
    ]
    return Compared(
        stage=table.name,
        stored=len(left),
        equal=sum(row == right.get(place) for place, row in left.items()),
        different=len(differing),
        first_difference=", ".join(str(part) for part in differing[0]) if differing else "",
    )
