"""The sheets of an exported mapping: their columns, and their rows made from a task's tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from kgrag_assets.cli.task_view import TaskView, facts_by_pair, finite, judge_reasons

FACTS_BESIDE = 2

Cell = str | float | int | None
Row = dict[str, Any]


@dataclass(frozen=True)
class Field:
    """One column of a sheet: its title, the width it gets in a spreadsheet (characters), whether it is a 0..1 score."""

    title: str
    width: int = 16
    is_score: bool = False


@dataclass(frozen=True)
class Sheet:
    """One sheet. ``rows`` makes its rows in order; each has one cell per field: text, number, or None for empty."""

    name: str
    fields: tuple[Field, ...]
    rows: Callable[[TaskView], list[list[Cell]]]

    @property
    def titles(self) -> list[str]:
        """Titles of the columns, in order."""
        return [field.title for field in self.fields]


_NAMES = (
    Field("source_table", 20),
    Field("source_column", 24),
    Field("target_table", 20),
    Field("target_column", 24),
)
_FACT_FIELDS = tuple(
    field
    for place in range(1, FACTS_BESIDE + 1)
    for field in (Field(f"fact_{place}", 44), Field(f"fact_{place}_ids", 24))
)
_MAPPING_FIELDS = (
    *_NAMES,
    Field("source_data_type"),
    Field("target_data_type"),
    Field("source_description", 36),
    Field("target_description", 36),
    Field("decision", 12),
    Field("score", 9, is_score=True),
    Field("judge_score", 12, is_score=True),
    Field("reason", 44),
    *_FACT_FIELDS,
    Field("reviewed", 12),
    Field("comment", 30),
)
_ALTERNATIVE_FIELDS = (
    *_NAMES,
    Field("rank", 7),
    Field("decision", 12),
    Field("score", 9, is_score=True),
    Field("judge_score", 12, is_score=True),
    Field("blocking_score", 14, is_score=True),
    Field("table_coherence", 15, is_score=True),
    Field("parse_status", 13),
    Field("judge_reason", 44),
    Field("decision_reason", 44),
    Field("in_reference", 12),
)
_EVIDENCE_FIELDS = (
    *_NAMES,
    Field("decision", 12),
    Field("fact_rank", 10),
    Field("fact", 60),
    Field("kind", 14),
    Field("method", 16),
    Field("fact_score", 11, is_score=True),
    Field("ids", 30),
    Field("cited", 8),
)
_METRIC_FIELDS = (
    Field("metric", 22),
    Field("value", 10),
    Field("ci_low", 10),
    Field("ci_high", 10),
    Field("n", 8),
    Field("meaning", 70),
)


def _cells(row: Mapping[str, Any], fields: Iterable[Field]) -> list[Cell]:
    return [finite(row[field.title]) for field in fields]


def _mapping_rows(view: TaskView) -> list[list[Cell]]:
    attributes: dict[str, Row] = {row["attribute_id"]: row for row in view.attributes.to_dicts()}
    facts = facts_by_pair(view)
    rows: list[list[Cell]] = []
    for row in view.mappings.filter(pl.col("decision") != "alternative").to_dicts():
        filled = {**row, "reviewed": None, "comment": None}
        for side in ("source", "target"):
            known = attributes.get(row[f"{side}_attribute_id"], {})
            filled[f"{side}_data_type"] = known.get("data_type")
            filled[f"{side}_description"] = known.get("column_description")
        best: Sequence[Row] = facts.get(row["judged_pair_id"], ())
        for place in range(FACTS_BESIDE):
            fact = best[place] if place < len(best) else None
            filled[f"fact_{place + 1}"] = fact["text"] if fact else None
            filled[f"fact_{place + 1}_ids"] = " ".join(fact["ids"]) if fact else None
        rows.append(_cells(filled, _MAPPING_FIELDS))
    return rows


def _judged(view: TaskView) -> pl.DataFrame:
    # view.mappings puts a column's proposals before its other candidates; here rank alone counts.
    judged = view.mappings.filter(pl.col("pair_id").is_not_null()).with_row_index("place")
    first = pl.col("place").min().over("source_attribute_id")
    return judged.sort(first, "rank", maintain_order=True).drop("place")


def _alternative_rows(view: TaskView) -> list[list[Cell]]:
    reasons = judge_reasons(view)
    truth = set(view.reference["pair_id"])
    rows: list[list[Cell]] = []
    for row in _judged(view).to_dicts():
        is_true = None if not truth else "yes" if row["pair_id"] in truth else "no"
        filled = {**row, "judge_reason": reasons.get(row["judged_pair_id"], ""), "decision_reason": row["reason"]}
        rows.append(_cells({**filled, "in_reference": is_true}, _ALTERNATIVE_FIELDS))
    return rows


def _evidence_rows(view: TaskView) -> list[list[Cell]]:
    facts = facts_by_pair(view)
    rows: list[list[Cell]] = []
    for row in _judged(view).to_dicts():
        for fact in facts.get(row["judged_pair_id"], ()):
            filled = {
                **row,
                "fact_rank": fact["rank"],
                "fact": fact["text"],
                "kind": fact["kind"],
                "method": fact["method"],
                "fact_score": fact["score"],
                "ids": " ".join(fact["ids"]),
                "cited": "yes" if fact["cited"] else "no",
            }
            rows.append(_cells(filled, _EVIDENCE_FIELDS))
    return rows


def _metric_rows(view: TaskView) -> list[list[Cell]]:
    if view.metrics.is_empty():
        return [["no reference", None, None, None, None, "Add reference.csv to the task's folder to measure it."]]
    return [_cells(row, _METRIC_FIELDS) for row in view.metrics.to_dicts()]


MAPPING = Sheet("mapping", _MAPPING_FIELDS, _mapping_rows)
ALTERNATIVES = Sheet("alternatives", _ALTERNATIVE_FIELDS, _alternative_rows)
EVIDENCE = Sheet("evidence", _EVIDENCE_FIELDS, _evidence_rows)
METRICS = Sheet("metrics", _METRIC_FIELDS, _metric_rows)
