"""From the stages' tables to judgments: pairs are put together, known judgments kept, the rest asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import polars as pl

from kgrag_assets.judging.protocol import Evidence, Judge, JudgePair, Judgment
from kgrag_assets.lake.lake import difference
from kgrag_assets.rows.keys import key_of
from kgrag_assets.rows.llm_judgments import ANSWERED_STATUSES, LLM_JUDGMENTS
from kgrag_assets.rows.pairs import PAIR_NAMES
from kgrag_assets.rows.table import ROW_KEY
from kgrag_assets.schemas.attribute import attributes_of

LOCAL_SIGNALS = ("cosine_full", "cosine_name", "name_similarity", "type_affinity", "table_similarity")


@dataclass(frozen=True)
class Judged:
    """All judgments of a task, and how many were made now."""

    frame: pl.DataFrame
    kept: int
    computed: int
    removed: int


def judge_pairs_of(attributes: pl.DataFrame, candidates: pl.DataFrame, contexts: pl.DataFrame) -> list[JudgePair]:
    """Put each candidate pair together with its attributes, local signals and ranked facts.

    Args:
        attributes: rows of ``schema_attributes`` of one task.
        candidates: rows of ``candidate_pairs``.
        contexts: rows of ``ranked_contexts``; a candidate without one is not judged yet.
    """
    by_id = attributes_of(attributes)
    facts = {
        row["pair_id"]: (
            row[ROW_KEY],
            tuple(
                Evidence(fact["fact_id"], fact["text"], fact["kind"], fact["method"], float(fact["score"]))
                for fact in row["facts"]
            ),
        )
        for row in contexts.select("pair_id", ROW_KEY, "facts").iter_rows(named=True)
    }
    pairs = []
    for row in candidates.sort("blocking_rank").iter_rows(named=True):
        if row["pair_id"] not in facts:
            continue
        context_key, evidence = facts[row["pair_id"]]
        pairs.append(
            JudgePair(
                task=row["task"],
                pair_id=row["pair_id"],
                source=by_id[row["source_attribute_id"]],
                target=by_id[row["target_attribute_id"]],
                # Rounded: the last bits of a cosine differ between machines, and a key must not.
                signals={name: round(float(row[name]), 6) for name in LOCAL_SIGNALS},
                facts=evidence,
                context_key=context_key,
            )
        )
    return pairs


def judge_task(
    *,
    attributes: pl.DataFrame,
    candidates: pl.DataFrame,
    contexts: pl.DataFrame,
    existing: pl.DataFrame,
    judge: Judge,
    start_progress: Callable[[int], Callable[[int], None]],
) -> Judged:
    """Judge what is not judged yet, or was asked without an answer, and keep the rest.

    Args:
        attributes: rows of ``schema_attributes``.
        candidates: rows of ``candidate_pairs``.
        contexts: rows of ``ranked_contexts``.
        existing: the judgments at hand.
        judge: who judges.
        start_progress: called with the number of pairs to judge; its result with the pairs done since.

    Raises:
        ModelUnavailableError: the judge's model cannot be asked at all.
    """
    pairs = judge_pairs_of(attributes, candidates, contexts)
    by_key = {judge.key(pair): pair for pair in pairs}
    wanted = pl.DataFrame({ROW_KEY: list(by_key)}, schema={ROW_KEY: pl.String})
    diff = difference(wanted, existing)
    todo = [by_key[key] for key in diff.missing[ROW_KEY]]
    done = start_progress(len(todo))
    judgments = judge.judge(todo, lambda _judgment: done(1)) if todo else []
    keys = diff.missing[ROW_KEY].to_list()
    rows = [_row(judge, key, by_key[key], judgment) for key, judgment in zip(keys, judgments, strict=True)]
    frame = pl.concat([diff.kept, LLM_JUDGMENTS.frame(rows)])
    return Judged(frame=frame, kept=diff.kept.height, computed=len(rows), removed=existing.height - diff.kept.height)


def _row(judge: Judge, key: str, pair: JudgePair, judgment: Judgment) -> dict[str, object]:
    names = (
        pair.task,
        pair.pair_id,
        pair.source.table_name,
        pair.source.column_name,
        pair.target.table_name,
        pair.target.column_name,
    )
    return {
        **dict(zip(PAIR_NAMES, names, strict=True)),
        "judge": judge.name,
        "model": judge.model,
        "prompt_version": judge.prompt_version,
        "parse_status": judgment.parse_status,
        "answer": judgment.answer,
        "score": judgment.score,
        "reason": judgment.reason,
        "cited_facts": list(judgment.cited_facts),
        "context_key": pair.context_key,
        "request_hash": judgment.request_hash,
        "tokens_in": judgment.tokens_in,
        "tokens_out": judgment.tokens_out,
        "cost_usd": judgment.cost_usd,
        # Without an answer the row is not the judgment that was wanted: under a key of its own it is asked for
        # again, and an answer, once it comes, changes the data version.
        ROW_KEY: key
        if judgment.parse_status in ANSWERED_STATUSES
        else key_of("unanswered", key, judgment.parse_status),
    }
