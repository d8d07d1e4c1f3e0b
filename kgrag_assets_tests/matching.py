"""Small tasks as frames, for the tests of blocking, judging, mapping and evaluation."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from kgrag_assets.judging.protocol import Evidence, JudgePair
from kgrag_assets.rows.attribute_groups import ATTRIBUTE_GROUPS
from kgrag_assets.rows.candidate_pairs import CANDIDATE_PAIRS
from kgrag_assets.rows.embeddings import ATTRIBUTE_EMBEDDINGS
from kgrag_assets.rows.keys import attribute_id_of, key_of, pair_id_of
from kgrag_assets.rows.llm_judgments import LLM_JUDGMENTS
from kgrag_assets.rows.ranked_contexts import RANKED_CONTEXTS
from kgrag_assets.rows.reference_correspondences import REFERENCE_CORRESPONDENCES
from kgrag_assets.rows.schema_attributes import SCHEMA_ATTRIBUTES
from kgrag_assets.rows.table import with_row_key
from kgrag_assets.schemas.attribute import Attribute, attributes_of
from kgrag_assets.schemas.attribute_text import ATTRIBUTE_VIEWS

TASK = "clinic"
SIGNALS = {
    "cosine_full": 0.5,
    "cosine_name": 0.5,
    "name_similarity": 0.5,
    "type_affinity": 1.0,
    "table_similarity": 0.5,
}


def attribute(side: str = "source", table: str = "pat", column: str = "dob", **changes: Any) -> Attribute:
    """Make an attribute."""
    values: dict[str, Any] = {
        "attribute_id": attribute_id_of(side, table, column),
        "side": side,
        "table_name": table,
        "column_name": column,
        "data_type": "date",
        "type_family": "date",
        "table_description": "",
        "column_description": "",
    }
    return Attribute(**{**values, **changes})


def attributes(items: Sequence[Attribute]) -> pl.DataFrame:
    """Write attributes as rows of ``schema_attributes``."""
    rows = [
        {
            **{name: getattr(item, name) for name in Attribute.__dataclass_fields__},
            "sample_values": list(item.sample_values),
            "task": TASK,
            "position": place,
            "nullable": None,
            "origin": "test",
            "row_key": key_of(item.attribute_id),
        }
        for place, item in enumerate(items)
    ]
    return SCHEMA_ATTRIBUTES.frame(rows)


def schema(sources: Sequence[str], targets: Sequence[str]) -> pl.DataFrame:
    """Make ``schema_attributes`` from names written as ``table.column``."""
    sides = [("source", name) for name in sources] + [("target", name) for name in targets]
    return attributes([attribute(side, *name.split(".", 1)) for side, name in sides])


def ids(source: str, target: str) -> tuple[str, str]:
    """Attribute ids of two names written as ``table.column``."""
    return attribute_id_of("source", *source.split(".", 1)), attribute_id_of("target", *target.split(".", 1))


def pair_id(source: str, target: str) -> str:
    """Pair id of two names written as ``table.column``."""
    return pair_id_of(*ids(source, target))


def pair_names(source: str, target: str) -> dict[str, Any]:
    """Values of the columns that every table of pairs begins with."""
    (source_table, source_column), (target_table, target_column) = source.split(".", 1), target.split(".", 1)
    return {
        "task": TASK,
        "pair_id": pair_id(source, target),
        "source_table": source_table,
        "source_column": source_column,
        "target_table": target_table,
        "target_column": target_column,
    }


def embeddings(frame: pl.DataFrame, dimension: int = 8) -> pl.DataFrame:
    """Give each attribute a unit vector per view that its names and descriptions alone decide."""
    rows = []
    for item in attributes_of(frame).values():
        for view in ATTRIBUTE_VIEWS:
            text = f"{item.table_name}\n{item.column_name}"
            text += f"\n{item.column_description}\n{item.table_description}" if view in ("description", "full") else ""
            digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
            vector = np.random.default_rng(int.from_bytes(digest, "little")).normal(size=dimension)
            rows.append(
                {
                    "task": TASK,
                    "attribute_id": item.attribute_id,
                    "view": view,
                    "text": "text",
                    "model_id": "hashes",
                    "vector": (vector / np.linalg.norm(vector)).astype(np.float32).tolist(),
                    "row_key": key_of(item.attribute_id, view),
                }
            )
    return ATTRIBUTE_EMBEDDINGS.frame(rows)


def candidates(blocking_scores: Mapping[tuple[str, str], float], **signals: float) -> pl.DataFrame:
    """Make ``candidate_pairs`` from blocking scores by (source, target), named as ``table.column``."""
    ordered = sorted(blocking_scores.items(), key=lambda entry: (-entry[1], entry[0]))
    rows = []
    for rank, ((source, target), score) in enumerate(ordered, start=1):
        source_id, target_id = ids(source, target)
        rows.append(
            {
                **pair_names(source, target),
                "source_attribute_id": source_id,
                "target_attribute_id": target_id,
                "pairs_covered": 1,
                **dict.fromkeys([name for name in CANDIDATE_PAIRS.names if "_rank_" in name], 1),
                **SIGNALS,
                "bm25": 1.0,
                **signals,
                "blocking_score": score,
                "blocking_rank": rank,
                "row_key": key_of(source_id, target_id, score),
            }
        )
    return CANDIDATE_PAIRS.frame(rows)


def groups(frame: pl.DataFrame, members: Mapping[str, str] | None = None) -> pl.DataFrame:
    """Make ``attribute_groups``: each attribute by itself, but for members by their representative's name.

    Args:
        frame: rows of ``schema_attributes``.
        members: ``table.column`` of a member with that of its representative, within a side.
    """
    by_name = {
        (row["side"], f"{row['table_name']}.{row['column_name']}"): row["attribute_id"]
        for row in frame.iter_rows(named=True)
    }
    stands_for = {
        by_name[side, member]: by_name[side, representative]
        for member, representative in (members or {}).items()
        for side in ("source", "target")
        if (side, member) in by_name and (side, representative) in by_name
    }
    names = ("task", "side", "attribute_id", "table_name", "column_name")
    rows = [dict(zip(names, row, strict=True)) for row in frame.select(names).iter_rows()]
    chosen = [stands_for.get(row["attribute_id"], row["attribute_id"]) for row in rows]
    return ATTRIBUTE_GROUPS.frame(
        [
            {
                **row,
                "representative_id": representative,
                "group_size": chosen.count(representative),
                "reason": "",
                "row_key": key_of("group", row["attribute_id"], representative),
            }
            for row, representative in zip(rows, chosen, strict=True)
        ]
    )


def judgment(
    source: str, target: str, score: float | None, answer: bool | None = None, **changes: Any
) -> dict[str, Any]:
    """Make one row of ``llm_judgments``; without a score it is an unanswered one."""
    return {
        **pair_names(source, target),
        "judge": "openai",
        "model": "m",
        "prompt_version": "1",
        "parse_status": "timeout" if score is None else "parsed",
        "answer": answer if score is None or answer is not None else score >= 0.5,
        "score": score,
        "reason": "because",
        "cited_facts": [],
        "unknown_citations": [],
        "relevance": None,
        "gate": "off",
        "own_answer": None,
        "own_score": None,
        "conflict": None,
        "votes": 0 if score is None else 1,
        "votes_for": 0,
        "second_answer": None,
        "second_score": None,
        "disagreement": None,
        "context_key": "context",
        "request_hash": None,
        "tokens_in": 0,
        "tokens_out": 0,
        "cost_usd": None,
        "row_key": key_of(source, target, score),
        **changes,
    }


def judgments(rows: Sequence[dict[str, Any]]) -> pl.DataFrame:
    """Make ``llm_judgments``."""
    return LLM_JUDGMENTS.frame(rows)


def contexts(facts: Mapping[tuple[str, str], Sequence[tuple[str, str]]]) -> pl.DataFrame:
    """Make ``ranked_contexts`` from (fact id, text) by (source, target)."""
    rows = [
        {
            **pair_names(source, target),
            "status": "context" if found else "no_subgraph",
            "facts": [
                {
                    "fact_id": fact_id,
                    "rank": rank,
                    "method": "entity_paths",
                    "kind": "path",
                    "text": text,
                    "score": 0.8,
                    "nodes": [],
                    "edges": [],
                }
                for rank, (fact_id, text) in enumerate(found, start=1)
            ],
            "facts_considered": len(found),
            "ranking": "frequency",
            "ranked_from": key_of("from", source, target, [list(entry) for entry in found]),
            "row_key": key_of(source, target, [list(entry) for entry in found]),
        }
        for (source, target), found in facts.items()
    ]
    return RANKED_CONTEXTS.frame(rows)


def reference(pairs: Sequence[tuple[str, str]]) -> pl.DataFrame:
    """Make ``reference_correspondences``."""
    names = [name for name in REFERENCE_CORRESPONDENCES.names if name != "row_key"]
    frame = pl.DataFrame([pair_names(*pair) for pair in pairs], schema=dict.fromkeys(names, pl.String))
    return REFERENCE_CORRESPONDENCES.conform(with_row_key(frame))


def judge_pair(
    source: Attribute | None = None,
    target: Attribute | None = None,
    facts: tuple[Evidence, ...] = (),
    context_key: str = "context",
    **signals: float,
) -> JudgePair:
    """Make a pair as judges see it."""
    source = source or attribute()
    target = target or attribute("target", "person", "birth_date")
    return JudgePair(
        task=TASK,
        pair_id=pair_id_of(source.attribute_id, target.attribute_id),
        source=source,
        target=target,
        signals={**SIGNALS, **signals},
        facts=facts,
        context_key=context_key,
    )
