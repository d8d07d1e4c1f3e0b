"""Coverage, on-topic rate and recall of linking, counted by hand on a few pairs."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings

from kgrag_assets.evaluation.retrieval_diagnostics import diagnose, mean_interval
from kgrag_assets.rows.ranked_contexts import RANKED_CONTEXTS
from kgrag_assets.rows.reference_entity_links import REFERENCE_ENTITY_LINKS
from kgrag_assets.rows.retrieved_subgraphs import RETRIEVED_SUBGRAPHS
from kgrag_assets.settings import EvaluationSettings
from kgrag_assets_tests.retrieval.small_world import TASK, attributes, candidates

SCHEMA = attributes({("source", "a.x"): "", ("target", "b.y"): "", ("target", "b.z"): ""})
PAIRS = candidates(SCHEMA)
IDS = {row["column_name"]: row["attribute_id"] for row in SCHEMA.iter_rows(named=True)}
PAIR = {row["target_column"]: row for row in PAIRS.iter_rows(named=True)}
NAMES = ("pair_id", "source_table", "source_column", "target_table", "target_column")


def fact(*nodes: str, relation: str = "r") -> dict[str, object]:
    edges = [
        {
            "head": nodes[0],
            "relation": relation,
            "tail": nodes[-1],
            "head_label": "",
            "relation_label": "",
            "tail_label": "",
        }
    ]
    return {"fact_id": "".join(nodes), "kind": "path", "text": "", "score": 0.5, "nodes": list(nodes), "edges": edges}


def seed(entity: str, side: str, rank: int) -> dict[str, object]:
    return {"entity_id": entity, "label": "", "side": side, "rank": rank, "score": 0.5}


def subgraph(column: str, facts: list[dict[str, object]], seeds: list[dict[str, object]]) -> dict[str, object]:
    return {
        "task": TASK,
        **{name: PAIR[column][name] for name in NAMES},
        "method": "entity_paths",
        "status": "found",
        "seeds": seeds,
        "facts": facts,
        "facts_cut": 0,
        "unverified": ["made up"] if column == "y" else [],
        "notes": "",
        "request_hashes": [],
        "row_key": column,
    }


SUBGRAPHS = RETRIEVED_SUBGRAPHS.frame(
    [
        subgraph("y", [fact("g1", "n"), fact("n", "m")], [seed("n", "source", 1), seed("g1", "source", 2)]),
        subgraph("z", [], [seed("g1", "source", 1), seed("g2", "target", 4)]),
    ]
)


def links(*stated: tuple[str, str]) -> pl.DataFrame:
    return REFERENCE_ENTITY_LINKS.frame(
        [
            {
                "task": TASK,
                "side": "source",
                "attribute_id": IDS[column],
                "table_name": "t",
                "column_name": column,
                "entity_id": entity,
                "label": "",
                "row_key": column + entity,
            }
            for column, entity in stated
        ]
    )


def measured(*stated: tuple[str, str]) -> dict[str, tuple[float, int]]:
    frame = diagnose(SUBGRAPHS, RANKED_CONTEXTS.empty(), PAIRS, links(*stated), EvaluationSettings())
    return {row["metric"]: (row["value"], row["n"]) for row in frame.iter_rows(named=True)}


def test_without_links_only_what_needs_none() -> None:
    assert measured() == {"coverage": (0.5, 2), "facts_per_pair": (1.0, 2), "unverified_per_pair": (0.5, 2)}


def test_against_links_counted_by_hand() -> None:
    found = measured(("x", "g1"), ("x", "g3"), ("z", "g2"))
    # One of y's two facts names g1; z's pair has links and no fact.
    assert found["on_topic_rate"] == (0.5, 1)
    assert found["on_topic_pairs"] == (0.5, 2)
    # x finds g1 first in one of its two pairs, and second in the other; z finds g2 fourth.
    assert found["hit@1"] == (pytest.approx(0.25), 2)
    assert found["hit@3"] == (pytest.approx(0.5), 2)
    assert found["hit@5"] == (pytest.approx(1.0), 2)
    assert found["recall@5"] == (pytest.approx(0.75), 2)


def test_a_relation_counts_as_named() -> None:
    rows = SUBGRAPHS.with_columns(
        pl.Series("facts", [[fact("n", "m", relation="g1")], []], dtype=SUBGRAPHS.schema["facts"])
    )
    frame = diagnose(rows, RANKED_CONTEXTS.empty(), PAIRS, links(("x", "g1")), EvaluationSettings())
    assert frame.filter(pl.col("metric") == "on_topic_rate")["value"].item() == 1.0


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_the_interval_lies_within_the_values_and_holds_for_constants(values: list[float]) -> None:
    low, high = mean_interval(np.array(values), EvaluationSettings(bootstrap_samples=100))
    assert low is not None
    assert high is not None
    assert min(values) - 1e-9 <= low <= high <= max(values) + 1e-9
