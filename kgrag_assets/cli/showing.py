"""What ``kgrag run`` ends with and ``kgrag show`` answers: a mapping, or the decision on one column."""

from __future__ import annotations

from typing import Any

import polars as pl
from rich.console import Console

from kgrag_assets.cli.evidence import (
    attribute_facts,
    candidates_of,
    decision_on,
    print_attribute,
    print_candidates,
    print_decision,
    print_truth,
    true_pairs,
)
from kgrag_assets.cli.finding import find_attribute
from kgrag_assets.cli.plain_text import attribute_name
from kgrag_assets.cli.summary_tables import print_cost, print_mapping, print_place, print_quality
from kgrag_assets.cli.task_view import ShowError, TaskView, cost_of, plain_rows, read_task
from kgrag_assets.lake.lake import Lake
from kgrag_assets.rows.attribute_mappings import ATTRIBUTE_MAPPINGS
from kgrag_assets.rows.schema_attributes import SCHEMA_ATTRIBUTES

__all__ = ["ShowError", "an_attribute_to_look_at", "as_json", "explain", "find_attribute", "summary"]


def summary(console: Console, lake: Lake, task: str) -> None:
    """Print a task's mapping, its metrics where a reference exists, what it cost, and where the database is.

    Raises:
        ShowError: the task does not exist or was not mapped yet.
        LakeError: a file of the lake is damaged.
    """
    view = read_task(lake, task)
    print_mapping(console, view)
    print_quality(console, view)
    print_cost(console, view)
    print_place(console, view)


def explain(console: Console, lake: Lake, task: str, column: str) -> None:
    """Print one attribute, what was decided on it and why, and its candidates with their evidence.

    Args:
        console: where to print.
        lake: where the tables lie.
        task: the task's name.
        column: a column of either schema, as ``find_attribute`` understands it.

    Raises:
        ShowError: the task was not mapped, or the column is not found or not the only one of that name.
        LakeError: a file of the lake is damaged.
    """
    view = read_task(lake, task)
    attribute = find_attribute(view.attributes, column)
    candidates = candidates_of(view, attribute)
    print_attribute(console, attribute)
    print_decision(console, decision_on(view, attribute, candidates), attribute["side"])
    print_candidates(console, candidates, attribute["side"])
    print_truth(console, view, attribute)


def as_json(lake: Lake, task: str, column: str | None) -> dict[str, Any]:
    """Return what ``summary`` or ``explain`` prints, whole, as values that JSON can hold; names exactly as given.

    Args:
        lake: where the tables lie.
        task: the task's name.
        column: one column of either schema, or None for the whole mapping.

    Raises:
        ShowError: as in ``explain``.
        LakeError: a file of the lake is damaged.
    """
    view = read_task(lake, task)
    return _mapping_as_json(view) if column is None else _attribute_as_json(view, column)


def _mapping_as_json(view: TaskView) -> dict[str, Any]:
    decided = view.mappings.filter(pl.col("decision") != "alternative")
    cost = cost_of(view.judgments)
    return {
        "task": view.task,
        "proposed": view.proposed,
        "no_match": view.unmatched,
        "mapping": plain_rows(decided, "source_attribute_id", "target_attribute_id"),
        "metrics": plain_rows(view.metrics),
        "misses": plain_rows(view.misses),
        "cost": {
            "judges": list(cost.judges),
            "pairs": cost.pairs,
            "calls": cost.calls,
            "tokens_in": cost.tokens_in,
            "tokens_out": cost.tokens_out,
            "cost_usd": cost.usd,
            "calls_without_price": cost.unpriced,
            "unanswered": dict(cost.unanswered),
        },
        "rejected_rows": plain_rows(view.rejects),
        "database": str(view.database),
        "database_published": view.database.exists(),
    }


def _attribute_as_json(view: TaskView, column: str) -> dict[str, Any]:
    attribute = find_attribute(view.attributes, column)
    candidates = candidates_of(view, attribute)
    outcomes = dict(view.misses.select("pair_id", "outcome").iter_rows())
    truth = [{**row, "outcome": outcomes.get(row["pair_id"])} for row in plain_rows(true_pairs(view, attribute))]
    return {
        "task": view.task,
        "attribute": attribute_facts(attribute),
        **decision_on(view, attribute, candidates),
        "candidates": candidates,
        "reference": truth if view.reference.height else None,
    }


def an_attribute_to_look_at(lake: Lake, task: str) -> str | None:
    """Name a source column worth a first look, as ``explain`` understands it; None where nothing is proposed.

    The best-scored proposal that a fact speaks for, else the best-scored proposal.
    """
    proposed = lake.read(ATTRIBUTE_MAPPINGS, task).filter(pl.col("decision") == "proposed")
    has_fact = (pl.col("top_fact") != "").alias("has_fact")
    best = proposed.with_columns(has_fact).sort(
        "has_fact", "score", "source_table", "source_column", descending=[True, True, False, False]
    )
    attributes = lake.read(SCHEMA_ATTRIBUTES, task)
    for table, column in best.select("source_table", "source_column").iter_rows():
        name = attribute_name(table, column)
        # A suggestion must work when it is pasted: names that cannot be typed, or mean another column, are passed over.
        if not name.isprintable():
            continue
        try:
            found = find_attribute(attributes, name)
        except ShowError:
            continue
        if (found["table_name"], found["column_name"]) == (table, column):
            return name
    return None
