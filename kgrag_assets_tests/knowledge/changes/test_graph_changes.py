"""Rows of the table of changes: one per entity, the later one wins."""

from __future__ import annotations

import polars as pl
import pytest

from kgrag_assets.rows.graph_changes import ACTIONS, KG_CHANGES, change_key_of, with_newer_states
from kgrag_assets.rows.table import TableError


def _row(local_id: str, action: str, revision: int, redirect_to: str | None = None) -> dict[str, object]:
    return {
        "graph": "wd",
        "local_id": local_id,
        "action": action,
        "redirect_to": redirect_to,
        "revision": revision,
        "changed_at": "2026-05-01T12:00:00Z",
        "document": "{}" if action == "edited" else "",
        "row_key": change_key_of("wd", local_id, action, redirect_to, revision),
    }


def test_the_later_state_stands() -> None:
    held = KG_CHANGES.frame([_row("Q2", "edited", 5), _row("Q1", "deleted", 0)])
    newer = KG_CHANGES.frame([_row("Q1", "edited", 3), _row("Q3", "redirected", 7, "Q1")])
    both = with_newer_states(held, newer)
    assert both.select("local_id", "action").rows() == [("Q1", "edited"), ("Q2", "edited"), ("Q3", "redirected")]
    assert with_newer_states(both, newer).equals(both)


def test_the_same_entity_of_two_graphs_is_two_entities() -> None:
    held = KG_CHANGES.frame([_row("Q1", "edited", 5)])
    other = held.with_columns(pl.lit("other").alias("graph"))
    assert len(with_newer_states(held, other)) == 2


def test_an_entity_has_one_row() -> None:
    with pytest.raises(TableError, match="more than one row"):
        KG_CHANGES.frame([_row("Q1", "edited", 5), _row("Q1", "edited", 6)])


def test_keys_differ_in_everything_that_decides() -> None:
    keys = {change_key_of("wd", "Q1", action, None, revision) for action in ACTIONS for revision in (0, 1)}
    keys |= {change_key_of("wd", "Q1", "redirected", target, 0) for target in ("Q2", "Q3")}
    assert len(keys) == 8
