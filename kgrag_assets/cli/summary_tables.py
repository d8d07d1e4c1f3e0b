"""How a finished mapping looks on a terminal: the table of proposals, the metrics, the cost."""

from __future__ import annotations

from typing import Any

import polars as pl
from rich.console import Console
from rich.table import Table
from rich.text import Text

from kgrag_assets.cli.plain_text import counted, number, plain
from kgrag_assets.cli.task_view import Cost, TaskView, cost_of

# From this width on the fact has a column of its own; below, it stands under the target.
WIDE = 110
_SCORE_WIDTH = 5
_INDENT = 2
_OUTCOMES = {
    "not_proposed": "judged, but another (or none) proposed",
    "unanswered": "no answer that could be read",
    "blocking": "never became a candidate",
}
# Numbers of rows, not shares: the line on lost pairs and the cost say them in words.
_COUNTS = frozenset({"true_pairs", "lost_by_blocking", "lost_by_judging", "unanswered_pairs"})

Row = dict[str, Any]


def grid(*titles: str, right: frozenset[int] = frozenset(), gap: int = 2) -> Table:
    """Make a table without lines, its titles underlined; columns in ``right`` hold numbers."""
    table = Table(box=None, padding=(0, gap, 0, 0), header_style="underline", pad_edge=False)
    for place, title in enumerate(titles):
        table.add_column(title, justify="right" if place in right else "left", overflow="fold")
    return table


def print_mapping(console: Console, view: TaskView) -> None:
    """Print what is proposed for each source attribute, grouped by source table, in the order of the schema."""
    console.print(
        Text.assemble(
            (plain(view.task), "bold"),
            f": {view.proposed:,} proposed, {counted(view.unmatched, 'source column')} without a match",
        )
    )
    decided: list[Row] = view.mappings.filter(pl.col("decision") != "alternative").to_dicts()
    if not decided:
        console.print(Text("The source schema has no columns."))
        return
    widths = _widths(console.width, decided)
    tables = list(dict.fromkeys(row["source_table"] for row in decided))
    for place, source_table in enumerate(tables):
        console.print()
        if place == 0:
            console.print(_group_table(widths, [], titles=True))
        console.print(Text(plain(source_table), style="bold"))
        rows = [row for row in decided if row["source_table"] == source_table]
        console.print(_group_table(widths, rows))


def _widths(total: int, rows: list[Row]) -> tuple[int, ...]:
    """Share the width out among source column, target, and (on a wide terminal) the fact."""
    # Every column but the last is followed by two spaces.
    wide = total >= WIDE
    longest_source = max(_cells(row["source_column"]) for row in rows)
    longest_target = max(_cells(_target(row)) for row in rows)
    source = max(min(longest_source, total // (5 if wide else 3)), len("source column"))
    free = total - _INDENT - source - _SCORE_WIDTH - 2 * (3 if wide else 2)
    if not wide:
        return source, free
    target = max(min(longest_target, free // 2), len("proposed target"))
    return source, target, free - target


def _cells(text: str) -> int:
    return Text(plain(text)).cell_len


def _target(row: Row) -> str:
    if row["decision"] == "no_match":
        return "no match"
    return f"{row['target_table']}.{row['target_column']}"


def _group_table(widths: tuple[int, ...], rows: list[Row], titles: bool = False) -> Table:
    source, target, *fact = widths
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, show_header=titles, header_style="underline")
    table.add_column("", width=0, min_width=0)
    table.add_column("source column", width=source, overflow="fold")
    table.add_column("proposed target", width=target, overflow="fold")
    table.add_column("score", width=_SCORE_WIDTH, justify="right")
    if fact:
        table.add_column("the fact that spoke for it", width=fact[0], overflow="fold")
    before = None
    for row in rows:
        unmatched = row["decision"] == "no_match"
        style = "dim" if unmatched else ""
        # One column may be proposed for several targets: its name stands once.
        name = "" if row["source_column"] == before else plain(row["source_column"])
        before = row["source_column"]
        # About two lines of it: all facts, whole, are what `kgrag show` is for.
        why = plain(row["reason"] if unmatched else row["top_fact"], 9 * (fact[0] if fact else target) // 5)
        target_text = Text(plain(_target(row)), style=style if unmatched else "cyan")
        score = Text("" if unmatched else number(row["score"]), style=style)
        cells = [Text(), Text(name, style=style), target_text, score]
        if fact:
            cells.append(Text(why, style=style))
        elif why:
            target_text.append("\n" + why, style="dim")
        table.add_row(*cells)
    return table


def print_quality(console: Console, view: TaskView) -> None:
    """Print the metrics with their intervals, and where true pairs were lost; or that there is no reference."""
    console.print()
    if view.metrics.is_empty():
        console.print(
            Text("No reference, so no metrics: add reference.csv to the task's folder to measure the mapping.")
        )
        return
    shown = view.metrics.filter(~pl.col("metric").is_in(_COUNTS))
    wide = console.width >= WIDE
    table = grid("metric", "value", "95% interval", "of", *(["meaning"] if wide else []), right=frozenset({1, 3}))
    for row in shown.to_dicts():
        low, high = row["ci_low"], row["ci_high"]
        interval = "" if low is None or high is None else f"{number(low)} to {number(high)}"
        cells = [row["metric"].replace("_", " "), number(row["value"], 3), interval, f"{row['n']:,}"]
        table.add_row(*(Text(plain(cell)) for cell in (*cells, *([row["meaning"]] if wide else []))))
    console.print(table)
    counts = dict(view.misses.group_by("outcome").len().rows())
    lost = [f"{counts[outcome]:,} {text}" for outcome, text in _OUTCOMES.items() if outcome in counts]
    found = f"{counts.get('found', 0):,} of {view.misses.height:,} true pairs found"
    console.print(Text(f"{found}; lost: {', '.join(lost)}" if lost else found))


def print_cost(console: Console, view: TaskView) -> None:
    """Print who judged, how many answers could not be read, and tokens and cost where a model was called."""
    cost = cost_of(view.judgments)
    console.print()
    if not cost.pairs:
        console.print(Text("No pair was judged."))
        return
    judged = f"{counted(cost.pairs, 'pair')} judged by {', '.join(map(plain, cost.judges))}"
    if cost.calls:
        judged += f": {cost.tokens_in:,} tokens in, {cost.tokens_out:,} out, {price(cost)}"
    console.print(Text(judged))
    if cost.unanswered:
        kinds = ", ".join(f"{count:,} {status.replace('_', ' ')}" for status, count in cost.unanswered.items())
        console.print(Text(f"{sum(cost.unanswered.values()):,} without an answer that could be read: {kinds}"))


def price(cost: Cost) -> str:
    """Say what the calls cost; calls of a model without a known price are counted, never taken as free."""
    if cost.unpriced == cost.calls:
        return "price of the model not known"
    known = f"{cost.usd:.4f} USD"
    return f"{known} and {counted(cost.unpriced, 'call')} without a known price" if cost.unpriced else known


def print_place(console: Console, view: TaskView) -> None:
    """Print what was not taken from the input, and where the published DuckDB file is."""
    if not view.rejects.is_empty():
        first = view.rejects.row(0, named=True)
        where = f"{first['file']}, row {first['row']}" if first["row"] is not None else first["file"]
        rejected = f"{counted(view.rejects.height, 'input row')} not taken; the first:"
        console.print(Text(f"{rejected} {plain(where)}: {plain(first['reason'])}"))
    if view.database.exists():
        console.print(Text(f"database: {view.database}"), soft_wrap=True)
    else:
        console.print(Text(f"database: {view.database} is not published yet"), soft_wrap=True)
