"""From the stages' tables to judgments: pairs are put together, known judgments kept, the rest asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import polars as pl

from kgrag_assets.judging.instance_evidence import instance_evidence
from kgrag_assets.judging.protocol import Evidence, Judge, JudgePair, Judgment
from kgrag_assets.lake.lake import difference
from kgrag_assets.rows.keys import key_of
from kgrag_assets.rows.llm_judgments import ANSWERED_STATUSES, LLM_JUDGMENTS
from kgrag_assets.rows.pairs import PAIR_NAMES
from kgrag_assets.rows.table import ROW_KEY
from kgrag_assets.schemas.attribute import attributes_of

# Fields of a judgment that are columns of the table.
_AS_THEY_ARE = (
    "relevance",
    "gate",
    "own_answer",
    "own_score",
    "conflict",
    "votes",
    "votes_for",
    "second_answer",
    "second_score",
    "disagreement",
)
LOCAL_SIGNALS = ("cosine_full", "cosine_name", "name_similarity", "type_affinity", "table_similarity")


@dataclass(frozen=True)
class Judged:
    """All judgments of a task, and how many were made now."""

    frame: pl.DataFrame
    kept: int
    computed: int
    removed: int


def judge_pairs_of(
    attributes: pl.DataFrame,
    groups: pl.DataFrame,
    candidates: pl.DataFrame,
    contexts: pl.DataFrame,
    values: str = "shapes",
) -> list[JudgePair]:
    """Put each candidate pair together with its attributes, local signals, ranked facts and what its values say.

    Args:
        attributes: rows of ``schema_attributes`` of one task.
        groups: rows of ``attribute_groups``; an attribute without one stands for itself.
        candidates: rows of ``candidate_pairs``.
        contexts: rows of ``ranked_contexts``; a candidate without one is not judged yet.
        values: what may be told of sample values; see ``value_lines``.
    """
    by_id = attributes_of(attributes)
    tables = _tables_of(groups)
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
        source, target = by_id[row["source_attribute_id"]], by_id[row["target_attribute_id"]]
        pairs.append(
            JudgePair(
                task=row["task"],
                pair_id=row["pair_id"],
                source=source,
                target=target,
                # Rounded: the last bits of a cosine differ between machines, and a key must not.
                signals={name: round(float(row[name]), 6) for name in LOCAL_SIGNALS},
                facts=evidence,
                context_key=context_key,
                values=instance_evidence(source, target, values),
                source_tables=tables.get(source.attribute_id, ()),
                target_tables=tables.get(target.attribute_id, ()),
            )
        )
    return pairs


def judge_task(
    *,
    attributes: pl.DataFrame,
    groups: pl.DataFrame,
    candidates: pl.DataFrame,
    contexts: pl.DataFrame,
    existing: pl.DataFrame,
    judge: Judge,
    values: str,
    start_progress: Callable[[int], Callable[[int], None]],
) -> Judged:
    """Judge what is not judged yet, or was asked without an answer, and keep the rest.

    Args:
        attributes: rows of ``schema_attributes``.
        groups: rows of ``attribute_groups``.
        candidates: rows of ``candidate_pairs``.
        contexts: rows of ``ranked_contexts``.
        existing: the judgments at hand.
        judge: who judges.
        values: what may be told of sample values; see ``value_lines``.
        start_progress: called with the number of pairs to judge; its result with the pairs done since.

    Raises:
        ModelUnavailableError: the judge's model cannot be asked at all.
    """
    pairs = judge_pairs_of(attributes, groups, candidates, contexts, values)
    by_key = dict(zip(judge.keys(pairs), pairs, strict=True))
    wanted = pl.DataFrame({ROW_KEY: list(by_key)}, schema={ROW_KEY: pl.String})
    diff = difference(wanted, existing)
    todo = [by_key[key] for key in diff.missing[ROW_KEY]]
    done = start_progress(len(todo))
    wanted_pairs = {pair.pair_id for pair in todo}
    found = judge.judge(pairs, wanted_pairs, lambda _judgment: done(1)) if todo else []
    judgments = {judgment.pair_id: judgment for judgment in found}
    if set(judgments) != wanted_pairs:
        raise ValueError(
            f"the {judge.name} judge was asked about {len(wanted_pairs)} pairs and answered {len(judgments)}"
        )
    keys = diff.missing[ROW_KEY].to_list()
    rows = [_row(judge, key, by_key[key], judgments[by_key[key].pair_id]) for key in keys]
    frame = pl.concat([diff.kept, LLM_JUDGMENTS.frame(rows)])
    return Judged(frame=frame, kept=diff.kept.height, computed=len(rows), removed=existing.height - diff.kept.height)


def _tables_of(groups: pl.DataFrame) -> dict[str, tuple[str, ...]]:
    """By representative, the other tables in which its group has a member."""
    others = groups.filter(pl.col("attribute_id") != pl.col("representative_id"))
    found = others.group_by("representative_id").agg(pl.col("table_name").unique().sort())
    return {str(representative): tuple(names) for representative, names in found.iter_rows()}


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
        "unknown_citations": list(judgment.unknown_citations),
        **{name: getattr(judgment, name) for name in _AS_THEY_ARE},
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
