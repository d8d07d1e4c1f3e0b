"""One attribute, its decision and its ranked candidates with their evidence: as values, and on a terminal."""

from __future__ import annotations

from typing import Any

import polars as pl
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from kgrag_assets.cli.finding import spelling
from kgrag_assets.cli.plain_text import attribute_name, counted, number, plain
from kgrag_assets.cli.summary_tables import WIDE, grid
from kgrag_assets.cli.task_view import TaskView, facts_by_pair, finite, judge_reasons, plain_rows

_LISTED = 10
_WITH_FACTS = 3
_SAMPLES = 8

Row = dict[str, Any]


def candidates_of(view: TaskView, attribute: Row) -> list[Row]:
    """List the judged pairs of an attribute with their evidence.

    Args:
        view: the task.
        attribute: a row of ``schema_attributes``. For one of the target, the pairs are the sources judged
            against it: proposed ones first, then by score.

    Returns:
        One dictionary per pair: names, decision, scores, parse status, the judge's reason, the facts, and
        ``is_true`` (None where no reference speaks of the attribute).
    """
    side = attribute["side"]
    mine = view.mappings.filter(
        (pl.col(f"{side}_attribute_id") == attribute["attribute_id"]) & pl.col("pair_id").is_not_null()
    )
    if side == "source":
        mine = mine.sort("rank")
    else:
        chosen = (pl.col("decision") == "proposed").alias("chosen")
        mine = mine.with_columns(chosen).sort("chosen", "score", descending=True).drop("chosen")
    facts, reasons = facts_by_pair(view), judge_reasons(view)
    truth = set(true_pairs(view, attribute)["pair_id"])
    rows: list[Row] = []
    for row in plain_rows(mine, "source_attribute_id", "target_attribute_id"):
        pair = row["judged_pair_id"]
        rows.append(
            {
                **row,
                "judge_reason": reasons.get(pair, ""),
                "is_true": row["pair_id"] in truth if truth else None,
                "facts": facts.get(pair, []),
            }
        )
    return rows


def true_pairs(view: TaskView, attribute: Row) -> pl.DataFrame:
    """Rows of the reference that speak of an attribute."""
    side = attribute["side"]
    return view.reference.filter(
        (pl.col(f"{side}_table") == attribute["table_name"]) & (pl.col(f"{side}_column") == attribute["column_name"])
    )


def decision_on(view: TaskView, attribute: Row, candidates: list[Row]) -> Row:
    """Say what was decided on an attribute and why: ``decision``, ``mapped_to`` (names) and ``reason``.

    A source attribute is proposed or no_match. A target attribute is proposed or not_used.
    """
    other = "target" if attribute["side"] == "source" else "source"
    proposed = [row for row in candidates if row["decision"] == "proposed"]
    if proposed:
        names = [attribute_name(row[f"{other}_table"], row[f"{other}_column"]) for row in proposed]
        return {"decision": "proposed", "mapped_to": names, "reason": proposed[0]["reason"]}
    if other == "source":
        judged = f"{counted(len(candidates), 'source column')} judged against it, none proposed"
        return {"decision": "not_used", "mapped_to": [], "reason": judged if candidates else "no pair of it was judged"}
    explicit = view.mappings.filter(
        (pl.col("source_attribute_id") == attribute["attribute_id"]) & (pl.col("decision") == "no_match")
    )
    reason = explicit["reason"][0] if explicit.height else "the mapping does not speak of it: run the task again"
    return {"decision": "no_match", "mapped_to": [], "reason": reason}


def attribute_facts(attribute: Row) -> Row:
    """Return what is known about an attribute, for JSON."""
    hidden = ("task", "row_key", "attribute_id", "position")
    return {name: finite(value) for name, value in attribute.items() if name not in hidden}


def print_attribute(console: Console, attribute: Row) -> None:
    """Print name, type, keys, descriptions and samples of an attribute."""
    console.print(Text.assemble((plain(spelling(attribute)), "bold"), f"  ({attribute['side']})"))
    table = attribute["references_table"]
    column = attribute["references_column"]
    points_to = f"references {attribute_name(table, column) if column else table}" if table else ""
    kind = [
        attribute["data_type"] or "type not given",
        "primary key" if attribute["is_primary_key"] else "",
        points_to,
        f"{attribute['distinct_count']:,} distinct values" if attribute["distinct_count"] is not None else "",
        f"{attribute['null_share']:.0%} null" if attribute["null_share"] is not None else "",
    ]
    lines = {
        "type": ", ".join(part for part in kind if part),
        "column": attribute["column_description"] or "no description",
        "table": attribute["table_description"] or "no description",
        "samples": " | ".join(plain(value, 60) for value in attribute["sample_values"][:_SAMPLES]) or "none",
    }
    details = grid("", "")
    details.show_header = False
    for name, text in lines.items():
        details.add_row(Text(name, style="dim"), Text(plain(text)))
    console.print(Padding(details, (0, 0, 0, 2)))


def print_decision(console: Console, decision: Row, side: str) -> None:
    """Print what was decided and why."""
    console.print()
    names = ", ".join(plain(name) for name in decision["mapped_to"])
    if decision["decision"] == "proposed":
        verb = "mapped to" if side == "source" else "mapped from"
        console.print(Text.assemble(f"{verb} ", (names, "bold cyan")))
    else:
        console.print(
            Text("no match" if decision["decision"] == "no_match" else "not used by the mapping", style="bold")
        )
    if decision["reason"]:
        console.print(Padding(Text.assemble("because: ", plain(decision["reason"])), (0, 0, 0, 2)))


def print_candidates(console: Console, candidates: list[Row], side: str) -> None:
    """Print the ranked list, and for the best three the judge's reason and the facts."""
    other = "target" if side == "source" else "source"
    if not candidates:
        return
    console.print()
    with_truth = any(row["is_true"] is not None for row in candidates)
    wide = console.width >= WIDE
    scores = ("score", "judge", "blocking", "tables") if wide else ("score", "judge", "block", "tables")
    titles = ("#", other, *scores, "answer", *(["true"] if with_truth else []))
    table = grid(*titles, right=frozenset({0, 2, 3, 4, 5}), gap=2 if wide else 1)
    for place, row in enumerate(candidates[:_LISTED], start=1):
        proposed = row["decision"] == "proposed"
        numbers = (row["score"], row["judge_score"], row["blocking_score"], row["table_coherence"])
        table.add_row(
            # The rank of a pair is its place in the source's list: a target's list counts anew.
            Text(str(row["rank"] if side == "source" else place)),
            Text(_other_name(row, other) + (" *" if proposed else ""), style="bold cyan" if proposed else ""),
            *(Text(number(value)) for value in numbers),
            Text(plain(row["parse_status"] or "-").replace("_", " ")),
            *([Text("yes" if row["is_true"] else "")] if with_truth else []),
        )
    console.print(table)
    notes = ["* proposed", "tables: how well the two tables fit as a whole"]
    if len(candidates) > _LISTED:
        notes.insert(0, f"and {len(candidates) - _LISTED:,} more (all of them: --json)")
    console.print(Text("; ".join(notes), style="dim"))
    for place, row in enumerate(candidates[:_WITH_FACTS], start=1):
        _print_evidence(console, place, row, other)


def _other_name(row: Row, other: str) -> str:
    return plain(attribute_name(row[f"{other}_table"], row[f"{other}_column"]))


def _print_evidence(console: Console, place: int, row: Row, other: str) -> None:
    console.print()
    console.print(Text.assemble(f"{place}  ", (_other_name(row, other), "bold")))
    reason = plain(row["judge_reason"]) or "no reason given"
    lines = [Text.assemble(("judge: ", "dim"), reason)]
    # The decision's reason often repeats the judge's at its end.
    decided = row["reason"].removesuffix(row["judge_reason"]).rstrip(" ;:")
    if decided:
        lines.append(Text.assemble(("decision: ", "dim"), plain(decided)))
    for line in lines:
        console.print(Padding(line, (0, 0, 0, 3)))
    if not row["facts"]:
        console.print(Padding(Text("no fact in the knowledge graph was near enough", style="dim"), (0, 0, 0, 3)))
    for fact in row["facts"]:
        how = f"{fact['kind']} by {fact['method']}".replace("_", " ")
        details = [how, number(fact["score"]), " ".join(fact["ids"]), "cited by the judge" if fact["cited"] else ""]
        shown = Table.grid(padding=(0, 1, 0, 0))
        shown.add_row(Text("-"), Text(plain(fact["text"])))
        shown.add_row(Text(), Text(plain(" · ".join(filter(None, details))), style="dim"))
        console.print(Padding(shown, (0, 0, 0, 3)))


def print_truth(console: Console, view: TaskView, attribute: Row) -> None:
    """Print what the reference says of an attribute, and at which stage a lost pair was lost."""
    if view.reference.is_empty():
        return
    console.print()
    truth = true_pairs(view, attribute)
    if truth.is_empty():
        console.print(Text("reference: it maps this column to nothing"))
        return
    outcomes = dict(view.misses.select("pair_id", "outcome").iter_rows())
    other = "target" if attribute["side"] == "source" else "source"
    words = {
        "found": "proposed",
        "not_proposed": "judged, not proposed",
        "unanswered": "judged, but no answer could be read",
        "blocking": "never became a candidate",
    }
    for row in truth.to_dicts():
        outcome = outcomes.get(row["pair_id"], "")
        said = f" ({words[outcome]})" if outcome in words else ""
        console.print(Text(f"reference: {_other_name(row, other)}{said}"))
