"""The commands that say what the method costs and what it is worth: ``plan``, ``replay`` and ``ablate``."""

from __future__ import annotations

import typer
from rich.table import Table
from rich.text import Text

from kgrag_assets.cli.plain_text import plain
from kgrag_assets.cli.terminal import EXIT_STALE, AsJson, TaskName, console, errors, explained, print_json

app = typer.Typer()


@app.command(epilog="Example: KGRAG_JUDGING__JUDGE=openai kgrag plan demo_clinic")
def plan(task: TaskName, as_json: AsJson = False) -> None:
    """Say what judging a task would take, in calls, tokens, money and time; no model is asked."""
    from dataclasses import asdict

    from kgrag_assets.cli.place import opened
    from kgrag_assets.cli.planning import planned
    from kgrag_assets.cli.progress import RichProgress

    with (
        explained(),
        RichProgress(errors if as_json else console) as progress,
        opened({"progress": progress}) as place,
    ):
        found = planned(place, task, progress.job)
    if as_json:
        print_json(asdict(found))
        return
    table = Table("judge", "pairs", "calls", "answered before", "tokens in", "tokens out", "US dollars", "minutes")
    for part in found.judges:
        cost = "no price known" if part.cost_usd is None else f"{part.cost_usd:.4f}"
        numbers = (
            f"{number:,}" for number in (found.pairs, part.calls, part.calls_kept, part.tokens_in, part.tokens_out)
        )
        table.add_row(
            *(Text(plain_text) for plain_text in (plain(part.model), *numbers, cost, f"{part.seconds / 60:.1f}"))
        )
    if found.judges:
        console.print(table)
        if not all(part.measured for part in found.judges):
            console.print("length and time of answers are assumed: the ledger has no call of this model yet")
    else:
        console.print(Text(f"{found.pairs:,} pairs for the offline judge: no call, no cost"))


@app.command(epilog="Example: kgrag replay demo_clinic")
def replay(task: TaskName, as_json: AsJson = False) -> None:
    """Judge, map and measure a task again from the kept calls alone, without a model, and compare."""
    from dataclasses import asdict

    from kgrag_assets.cli.place import read_settings
    from kgrag_assets.evaluation.replay import replay_task
    from kgrag_assets.lake.lake import Lake
    from kgrag_assets.schemas.options import task_settings

    with explained():
        settings = read_settings()
        lake = Lake.at(settings.lake)
        stages = replay_task(lake, task_settings(lake, settings, task), task)
    if as_json:
        print_json([asdict(stage) for stage in stages])
    else:
        table = Table("stage", "rows stored", "the same", "different", "first difference")
        for stage in stages:
            numbers = (f"{number:,}" for number in (stage.stored, stage.equal, stage.different))
            table.add_row(*(Text(cell) for cell in (stage.stage, *numbers, plain(stage.first_difference))))
        console.print(table)
    if any(stage.different for stage in stages):
        raise typer.Exit(EXIT_STALE)


@app.command(epilog="Example: KGRAG_ABLATION__TOP_N='[1,2]' kgrag ablate demo_clinic")
def ablate(task: TaskName, as_json: AsJson = False) -> None:
    """Measure on a labelled task what each part of the method is worth; cells that stand are kept."""
    from kgrag_assets.cli import running
    from kgrag_assets.cli.place import opened
    from kgrag_assets.cli.progress import RichProgress
    from kgrag_assets.evaluation.ablation_run import metrics_table
    from kgrag_assets.rows.ablation_report import ABLATION_REPORT

    with (
        explained(),
        RichProgress(errors if as_json else console) as progress,
        opened({"progress": progress}) as place,
    ):
        running.ablate(place, task, progress.job)
        report = place.lake.read(ABLATION_REPORT, task)
    if as_json:
        print_json(report.drop("row_key").to_dicts())
        return
    shown = ("hit@1", "best_f1", "average_precision", "f1")
    rows = metrics_table(report, shown).sort("study", "hit@1", descending=[False, True], maintain_order=True)
    table = Table("study", "cell", "with facts", "calls", "tokens in", *shown)
    for row in rows.iter_rows(named=True):
        numbers = (f"{row[name]:,}" for name in ("pairs_with_facts", "calls", "tokens_in"))
        values = ("" if row[name] is None else f"{row[name]:.2f}" for name in shown)
        table.add_row(*(Text(plain(cell)) for cell in (row["study"], row["cell"], *numbers, *values)))
    console.print(table)
    console.print("all metrics with their intervals: ablation_report in the DuckDB file")
