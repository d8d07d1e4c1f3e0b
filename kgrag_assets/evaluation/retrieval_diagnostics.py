"""``retrieval_diagnostics``: what each retrieval method brings, how much of it is on topic, and what linking finds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from kgrag_assets.rows.retrieval_diagnostics import RETRIEVAL_DIAGNOSTICS
from kgrag_assets.rows.table import ROW_KEY, with_row_key
from kgrag_assets.settings import EvaluationSettings

DIAGNOSTICS_VERSION = "diagnostics-1"

LINK_RANKS = (1, 3, 5)
SIDES = ("source", "target")
# What the judge is shown after ranking, beside the retrieval methods.
SHOWN = "ranked"

_Gold = Mapping[str, frozenset[str]]


@dataclass(frozen=True)
class _Pair:
    """The entities that the two attributes of a pair speak of, by a person's word; empty where nobody said."""

    source: str
    target: str


def diagnose(
    subgraphs: pl.DataFrame,
    contexts: pl.DataFrame,
    candidates: pl.DataFrame,
    links: pl.DataFrame,
    settings: EvaluationSettings,
) -> pl.DataFrame:
    """Measure the retrieval of one task.

    ``coverage`` is the share of candidate pairs with a fact. With entity links: ``on_topic_rate`` is the share of
    facts that name an entity which one of the pair's attributes speaks of (as node or relation), over pairs with such
    links, and ``on_topic_pairs`` the share of those pairs with such a fact. ``hit@k`` and ``recall@k`` measure the
    linking of attributes: whether one, and which share, of an attribute's entities is among its first ``k`` seeds, as
    a mean over its pairs and then over attributes.

    Args:
        subgraphs: rows of ``retrieved_subgraphs`` of one task.
        contexts: rows of ``ranked_contexts``: measured as the method ``ranked``.
        candidates: rows of ``candidate_pairs``.
        links: rows of ``reference_entity_links``; may be empty.
        settings: resamples and seed of the intervals.

    Returns:
        Rows of ``retrieval_diagnostics``; of the metrics that need links, none where there are none.
    """
    if candidates.is_empty():
        return RETRIEVAL_DIAGNOSTICS.empty()
    task = str(candidates["task"][0])
    gold: dict[str, frozenset[str]] = {
        str(attribute): frozenset(entities)
        for attribute, entities in links.group_by("attribute_id").agg("entity_id").iter_rows()
    }
    columns = ("pair_id", "source_attribute_id", "target_attribute_id")
    pairs = {pair_id: _Pair(source, target) for pair_id, source, target in candidates.select(columns).iter_rows()}
    rows: list[dict[str, object]] = []

    def add(method: str, metric: str, values: Sequence[float], meaning: str) -> None:
        low, high = mean_interval(np.array(values, dtype=np.float64), settings)
        value = float(np.mean(values)) if values else None
        measured = {"value": value, "ci_low": low, "ci_high": high, "n": len(values)}
        rows.append({"task": task, "method": method, "metric": metric, **measured, "meaning": meaning})

    for method, mine in sorted(_methods(subgraphs, contexts).items()):
        kept = [row for row in mine if row["pair_id"] in pairs]
        add(method, "coverage", [float(bool(row["facts"])) for row in kept], "Share of candidate pairs with a fact.")
        facts = [float(len(row["facts"])) for row in kept]
        add(method, "facts_per_pair", facts, "Facts of a candidate pair, on average.")
        if method != SHOWN:
            unverified = [float(len(row["unverified"])) for row in kept]
            add(method, "unverified_per_pair", unverified, "What a model named and the graph does not know, per pair.")
        if not gold:
            continue
        topical = [_on_topic(row["facts"], _wanted(pairs[row["pair_id"]], gold)) for row in kept]
        asked = [marks for marks, row in zip(topical, kept, strict=True) if _wanted(pairs[row["pair_id"]], gold)]
        told = [marks for marks in asked if marks]
        add(
            method,
            "on_topic_rate",
            [float(np.mean(marks)) for marks in told],
            "Share of a pair's facts that name an entity its attributes speak of, over pairs with facts and links.",
        )
        add(
            method,
            "on_topic_pairs",
            [float(any(marks)) for marks in asked],
            "Share of the pairs with links that have a fact naming an entity their attributes speak of.",
        )
        if not any(row.get("seeds") for row in kept):
            continue
        seeds = _seed_ranks(kept, pairs, gold)
        for k in LINK_RANKS:
            hits = [np.mean([float(any(r <= k for r in found)) for found in of]) for of in seeds.values()]
            shares = [
                np.mean([sum(r <= k for r in found) / len(gold[attribute]) for found in of])
                for attribute, of in seeds.items()
            ]
            add(method, f"hit@{k}", _floats(hits), f"Share of attributes with one of their entities in the first {k}.")
            add(method, f"recall@{k}", _floats(shares), f"Share of an attribute's entities among the first {k} seeds.")
    schema = {name: dtype for name, dtype in RETRIEVAL_DIAGNOSTICS.schema.items() if name != ROW_KEY}
    return RETRIEVAL_DIAGNOSTICS.conform(with_row_key(pl.DataFrame(rows, schema=schema)))


def mean_interval(values: np.ndarray, settings: EvaluationSettings) -> tuple[float | None, float | None]:
    """Return the 95% bootstrap interval of a mean (percentiles); None where there is nothing to draw from.

    Args:
        values: shape (n,), one per unit.
        settings: resamples and seed.
    """
    if not len(values):
        return None, None
    generator = np.random.default_rng(settings.seed)
    # In blocks: thousands of units times thousands of resamples would not fit in memory at once.
    means = np.concatenate(
        [
            values[
                generator.integers(0, len(values), (min(100, settings.bootstrap_samples - start), len(values)))
            ].mean(axis=1)
            for start in range(0, settings.bootstrap_samples, 100)
        ]
    )
    low, high = np.percentile(means, [2.5, 97.5])
    return float(low), float(high)


def _floats(values: Iterable[Any]) -> list[float]:
    return [float(value) for value in values]


def _methods(subgraphs: pl.DataFrame, contexts: pl.DataFrame) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in subgraphs.select("pair_id", "method", "facts", "seeds", "unverified").iter_rows(named=True):
        found[row["method"]].append(row)
    for row in contexts.select("pair_id", "facts").iter_rows(named=True):
        found[SHOWN].append(row)
    return found


def _wanted(pair: _Pair, gold: _Gold) -> frozenset[str]:
    return gold.get(pair.source, frozenset()) | gold.get(pair.target, frozenset())


def _on_topic(facts: Sequence[Mapping[str, Any]], wanted: frozenset[str]) -> list[bool]:
    return [
        bool(
            wanted & {*fact["nodes"], *(edge[part] for edge in fact["edges"] for part in ("head", "relation", "tail"))}
        )
        for fact in facts
    ]


def _seed_ranks(
    rows: Sequence[Mapping[str, Any]], pairs: Mapping[str, _Pair], gold: _Gold
) -> dict[str, list[list[int]]]:
    """By attribute with links, and for each of its pairs, the ranks at which its entities stand among the seeds."""
    found: dict[str, list[list[int]]] = defaultdict(list)
    for row in rows:
        for side in SIDES:
            attribute = getattr(pairs[row["pair_id"]], side)
            if attribute in gold:
                mine = [seed for seed in row["seeds"] if seed["side"] in (side, "both")]
                found[attribute].append([seed["rank"] for seed in mine if seed["entity_id"] in gold[attribute]])
    return found
