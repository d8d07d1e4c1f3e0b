"""A small task with every table filled by hand, for tests of what reads a finished mapping."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl

from kgrag_assets.evaluation.publication import VIEWS
from kgrag_assets.lake.lake import Lake
from kgrag_assets.lake.snapshot import publish
from kgrag_assets.rows.attribute_mappings import ATTRIBUTE_MAPPINGS
from kgrag_assets.rows.candidate_pairs import CANDIDATE_PAIRS
from kgrag_assets.rows.catalog import TASK_TABLES
from kgrag_assets.rows.keys import attribute_id_of, key_of, pair_id_of
from kgrag_assets.rows.llm_calls import LLM_CALLS
from kgrag_assets.rows.llm_judgments import LLM_JUDGMENTS
from kgrag_assets.rows.match_metrics import MATCH_METRICS, MATCH_MISSES
from kgrag_assets.rows.ranked_contexts import RANKED_CONTEXTS
from kgrag_assets.rows.reference_correspondences import REFERENCE_CORRESPONDENCES
from kgrag_assets.rows.rejects import SCHEMA_REJECTS
from kgrag_assets.rows.retrieved_subgraphs import RETRIEVED_SUBGRAPHS
from kgrag_assets.rows.schema_attributes import SCHEMA_ATTRIBUTES
from kgrag_assets.rows.table import Table

Name = tuple[str, str]
Row = dict[str, Any]

# table, column, type, family, table description, column description, samples
SOURCE = (
    ("pat_master", "pat_no", "int", "integer", "Patients of the clinic", "Running number of the patient", ["1001"]),
    ("pat_master", "dob", "date", "date", "Patients of the clinic", "Day of birth", ["1961-04-02", "1990-12-30"]),
    ("pat_master", "sex", "char(1)", "text", "Patients of the clinic", "", ["f", "m"]),
    ("pat_master", "parking_permit_no", "varchar(20)", "text", "Patients of the clinic", "Permit of the car park", []),
    ("lab.results", "val.num", "decimal(10,3)", "decimal", "", "Measured value", ["4.1", "007"]),
    ("lab.results", "unit_of_measurement_as_the_analyser_of_the_laboratory_reports_it", "text", "text", "", "", []),
)
TARGET = (
    ("person", "person_id", "integer", "integer", "A person", "Unique identifier of a person", []),
    ("person", "birth_datetime", "timestamp", "timestamp", "A person", "Date and time of birth", []),
    ("person", "gender_concept_id", "integer", "integer", "A person", "Gender as a standard concept", []),
    ("measurement", "value_as_number", "float", "decimal", "Measurements", "The numerical result", []),
    ("measurement", "unit_source_value", "varchar(50)", "text", "Measurements", "Unit as given by the source", []),
)

BIRTH = {"head": "wd:Q5", "relation": "wd:P569", "tail": "wd:Q2000001", "text": "human — date of birth — day of birth"}
UNIT = {
    "head": "wd:Q47574",
    "relation": "wd:P279",
    "tail": "wd:Q309314",
    "text": "unit of measurement — is a — quantity",
}

# source, target, score, decision, judge score, parse status, facts: the ranked lists of the task.
Judged = tuple[Name, Name, float, str, float | None, str, tuple[dict[str, str], ...]]
PAIRS: tuple[Judged, ...] = (
    (SOURCE[0][:2], TARGET[0][:2], 0.91, "proposed", 0.9, "parsed", ()),
    (SOURCE[0][:2], TARGET[2][:2], 0.32, "alternative", 0.2, "parsed", ()),
    (SOURCE[1][:2], TARGET[1][:2], 0.88, "proposed", 0.95, "parsed", (BIRTH, UNIT)),
    (SOURCE[1][:2], TARGET[0][:2], 0.41, "alternative", 0.3, "recovered", (BIRTH,)),
    (SOURCE[2][:2], TARGET[2][:2], 0.55, "proposed", None, "timeout", ()),
    (SOURCE[2][:2], TARGET[0][:2], 0.53, "alternative", 0.5, "parsed", ()),
    (SOURCE[3][:2], TARGET[0][:2], 0.22, "alternative", 0.1, "parsed", ()),
    (SOURCE[4][:2], TARGET[3][:2], 0.79, "proposed", 0.8, "parsed", ()),
    (SOURCE[5][:2], TARGET[4][:2], 0.45, "alternative", 0.4, "parsed", (UNIT,)),
)
NOT_MATCHED: tuple[Name, ...] = (SOURCE[3][:2], SOURCE[5][:2])
TRUE: tuple[tuple[Name, Name], ...] = (
    (SOURCE[0][:2], TARGET[0][:2]),
    (SOURCE[1][:2], TARGET[1][:2]),
    (SOURCE[2][:2], TARGET[2][:2]),
    (SOURCE[5][:2], TARGET[4][:2]),
    (SOURCE[4][:2], TARGET[4][:2]),  # never became a candidate
)


def source_id(name: Name) -> str:
    """Id of a source attribute."""
    return attribute_id_of("source", *name)


def target_id(name: Name) -> str:
    """Id of a target attribute."""
    return attribute_id_of("target", *name)


def pair_id(source: Name, target: Name) -> str:
    """Id of a pair."""
    return pair_id_of(source_id(source), target_id(target))


def attribute_row(task: str, side: str, position: int, column: tuple[Any, ...]) -> Row:
    """One row of ``schema_attributes``."""
    table, name, data_type, family, table_text, column_text, samples = column
    return {
        "task": task,
        "attribute_id": attribute_id_of(side, table, name),
        "side": side,
        "table_name": table,
        "column_name": name,
        "position": position,
        "data_type": data_type,
        "type_family": family,
        "nullable": None,
        "is_primary_key": name == "pat_no" or None,
        "references_table": None,
        "references_column": None,
        "table_description": table_text,
        "column_description": column_text,
        "sample_values": list(samples),
        "distinct_count": 12 if samples else None,
        "null_share": 0.25 if samples else None,
        "profile": None,
        "origin": f"{side}.csv",
        "row_key": key_of("attribute", task, side, *column),
    }


def _pair(task: str, source: Name, target: Name) -> Row:
    return {
        "task": task,
        "pair_id": pair_id(source, target),
        "source_table": source[0],
        "source_column": source[1],
        "target_table": target[0],
        "target_column": target[1],
    }


def _ends(source: Name, target: Name) -> Row:
    return {"source_attribute_id": source_id(source), "target_attribute_id": target_id(target)}


def _facts(facts: tuple[dict[str, str], ...], **more: Any) -> list[Row]:
    return [
        {
            "fact_id": key_of("fact", fact["text"]),
            "kind": "triple",
            "text": fact["text"],
            "score": 0.8 - 0.1 * place,
            "nodes": [fact["head"], fact["tail"]],
            "edges": [
                {
                    **{part: fact[part] for part in ("head", "relation", "tail")},
                    **{f"{part}_label": part for part in ("head", "relation", "tail")},
                }
            ],
            **({"rank": place + 1} if more else {}),
            **more,
        }
        for place, fact in enumerate(facts)
    ]


def _mapping_rows(task: str, pairs: tuple[Judged, ...], not_matched: tuple[Name, ...]) -> list[Row]:
    rows: list[Row] = []
    for source, target, score, decision, judge_score, status, facts in pairs:
        rank = 1 + sum(other[0] == source and other[2] > score for other in pairs)
        rows.append(
            {
                **_pair(task, source, target),
                **_ends(source, target),
                "decision": decision,
                "score": score,
                "judged_pair_id": pair_id(source, target),
                "rank": rank,
                "judge_score": judge_score,
                "blocking_score": score - 0.1,
                "table_coherence": 0.6,
                "parse_status": status,
                "top_fact": facts[0]["text"] if facts else "",
                "reason": "best of its list" if decision == "proposed" else "another target ranks above",
                "row_key": key_of("mapping", task, *source, *target),
            }
        )
    for source in not_matched:
        empty = (
            "target_table",
            "target_column",
            "pair_id",
            "judged_pair_id",
            "target_attribute_id",
            "score",
            "rank",
            "judge_score",
        )
        rows.append(
            {
                "task": task,
                "source_table": source[0],
                "source_column": source[1],
                "source_attribute_id": source_id(source),
                "decision": "no_match",
                **dict.fromkeys((*empty, "blocking_score", "table_coherence", "parse_status")),
                "top_fact": "",
                "reason": "no target scores 0.50 or more; the best has 0.45",
                "row_key": key_of("no_match", task, *source),
            }
        )
    return rows


def _judgment(task: str, judged: Judged, judge: str) -> Row:
    source, target, _score, _decision, judge_score, status, facts = judged
    asked = judge != "offline"
    return {
        **_pair(task, source, target),
        "judge": judge,
        "model": "gpt-4o-mini" if asked else "offline-1",
        "prompt_version": "p1",
        "parse_status": status,
        "answer": None if judge_score is None else judge_score >= 0.5,
        "score": judge_score,
        "reason": "" if judge_score is None else f"{source[1]} and {target[1]} say the same",
        "cited_facts": [key_of("fact", facts[0]["text"])] if facts else [],
        "unknown_citations": [],
        "relevance": None,
        "gate": "off" if facts else "no_facts",
        "own_answer": None,
        "own_score": None,
        "conflict": None,
        "votes": 0 if judge_score is None else 1,
        "votes_for": int((judge_score or 0.0) >= 0.5),
        "second_answer": None,
        "second_score": None,
        "disagreement": None,
        "context_key": key_of("context", pair_id(source, target)),
        "request_hash": key_of("request", pair_id(source, target)) if asked else None,
        "tokens_in": 200 if asked else 0,
        "tokens_out": 20 if asked else 0,
        "cost_usd": 0.0001 if asked else 0.0,
        "row_key": key_of("judgment", task, *source, *target),
    }


def _candidate(task: str, judged: Judged, rank: int) -> Row:
    source, target, score, *_ = judged
    ranks = ("vector_rank_source", "vector_rank_target", "lexical_rank_source", "lexical_rank_target")
    signals = ("cosine_full", "cosine_name", "bm25", "name_similarity", "type_affinity", "table_similarity")
    return {
        **_pair(task, source, target),
        **_ends(source, target),
        "pairs_covered": 1,
        **dict.fromkeys(ranks, 1),
        **dict.fromkeys(signals, 0.5),
        "blocking_score": score - 0.1,
        "blocking_rank": rank,
        "row_key": key_of("candidate", task, *source, *target),
    }


def _metric_rows(task: str) -> list[Row]:
    values = {"reduction_ratio": 0.7, "precision": 0.75, "recall": 0.6, "f1": 2 / 3, "hit@1": 0.8, "mrr": None}
    return [
        {
            "task": task,
            "metric": name,
            "value": value,
            "ci_low": None if value is None else value - 0.1,
            "ci_high": None if value is None else value + 0.1,
            "n": 5,
            "meaning": f"what {name} says",
            "row_key": key_of("metric", task, name),
        }
        for name, value in values.items()
    ]


def _miss_rows(task: str, pairs: tuple[Judged, ...]) -> list[Row]:
    judged = {(pair[0], pair[1]): pair for pair in pairs}
    rows: list[Row] = []
    for source, target in TRUE:
        pair = judged.get((source, target))
        outcome = "blocking" if pair is None else "found" if pair[3] == "proposed" else "not_proposed"
        rows.append(
            {
                **_pair(task, source, target),
                "outcome": outcome,
                "rank": None if pair is None else 1,
                "score": None if pair is None else pair[2],
                "proposed_instead": "measurement.value_as_number" if pair is None else None,
                "reason": "the names share no word" if pair is None else "",
                "row_key": key_of("miss", task, *source, *target),
            }
        )
    return rows


def fill(
    lake: Lake,
    task: str = "clinic",
    *,
    reference: bool = True,
    judge: str = "openai",
    pairs: tuple[Judged, ...] = PAIRS,
    not_matched: tuple[Name, ...] = NOT_MATCHED,
    source: tuple[tuple[Any, ...], ...] = SOURCE,
    target: tuple[tuple[Any, ...], ...] = TARGET,
) -> None:
    """Write all tables of one task, as a finished run leaves them."""
    sides = (("source", source), ("target", target))
    reject = {
        "task": task,
        "file": "source.csv",
        "row": 9,
        "reason": "the column has no name",
        "content": "pat_master,,int",
        "row_key": key_of("reject", task),
    }
    contents: list[tuple[Table, list[Row]]] = [
        (
            SCHEMA_ATTRIBUTES,
            [attribute_row(task, side, at, column) for side, columns in sides for at, column in enumerate(columns)],
        ),
        (SCHEMA_REJECTS, [reject]),
        (
            REFERENCE_CORRESPONDENCES,
            [{**_pair(task, *true), "row_key": key_of("true", task, *true)} for true in TRUE] if reference else [],
        ),
        (CANDIDATE_PAIRS, [_candidate(task, judged, rank) for rank, judged in enumerate(pairs, start=1)]),
        (
            RETRIEVED_SUBGRAPHS,
            [
                {
                    **_pair(task, judged[0], judged[1]),
                    "method": "vector_triples",
                    "status": "found" if judged[6] else "no_seed",
                    "seeds": [],
                    "facts": _facts(judged[6]),
                    "facts_cut": 0,
                    "unverified": [],
                    "notes": "",
                    "request_hashes": [],
                    "row_key": key_of("subgraph", task, *judged[0], *judged[1]),
                }
                for judged in pairs
            ],
        ),
        (
            RANKED_CONTEXTS,
            [
                {
                    **_pair(task, judged[0], judged[1]),
                    "status": "context" if judged[6] else "no_subgraph",
                    "facts": _facts(judged[6], method="vector_triples"),
                    "facts_considered": len(judged[6]),
                    "ranking": "frequency",
                    "ranked_from": key_of("from", *judged[0], *judged[1]),
                    "row_key": key_of("context", task, *judged[0], *judged[1]),
                }
                for judged in pairs
            ],
        ),
        (LLM_JUDGMENTS, [_judgment(task, judged, judge) for judged in pairs]),
        (ATTRIBUTE_MAPPINGS, _mapping_rows(task, pairs, not_matched)),
        (MATCH_METRICS, _metric_rows(task) if reference else []),
        (MATCH_MISSES, _miss_rows(task, pairs) if reference else []),
    ]
    for table, rows in contents:
        lake.write(table, task, table.frame(rows))


def calls(task: str = "clinic") -> pl.DataFrame:
    """Rows of ``llm_calls``: one answered, one that failed and has no price."""
    rows = [
        {
            "call_id": number,
            "task": task,
            "request_hash": key_of("request", number),
            "provider": "openai",
            "model": "gpt-4o-mini",
            "request": "{}",
            "raw_answer": "",
            "status": status,
            "error": "",
            "tokens_in": 200,
            "tokens_out": 20,
            "latency_s": 0.5,
            "cost_usd": cost,
            "asked_at": datetime(2026, 1, 2, 3, 4, number, tzinfo=UTC),
        }
        for number, status, cost in ((1, "answered", 0.0001), (2, "timeout", None))
    ]
    return LLM_CALLS.frame(rows)


def publish_snapshot(lake: Lake, path: Path, ledger: pl.DataFrame | None = None) -> None:
    """Publish what lies in the lake, with the given calls, as the snapshot at ``path``."""
    tables = [(table, lake.read_all(table)) for table in TASK_TABLES]
    publish(path, [*tables, (LLM_CALLS, LLM_CALLS.empty() if ledger is None else ledger)], "v1", VIEWS)
