"""The commands of ``kgrag`` and their options; what they do lies in the modules beside this one."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.table import Table
from rich.text import Text

from kgrag_assets import __version__
from kgrag_assets.cli import measuring
from kgrag_assets.cli.plain_text import plain
from kgrag_assets.cli.terminal import EXIT_STALE, AsJson, TaskName, console, errors, explained, print_json

app = typer.Typer(
    name="kgrag",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    help="From two schemas to a mapping with its evidence.\n\n"
    "Exit codes: 0 done, 1 a step failed, 2 wrong input or usage, 3 something is stale (status --exit-code) "
    "or came out otherwise (replay), "
    "130 interrupted.",
)


@app.callback(invoke_without_command=True)
def root(version: Annotated[bool, typer.Option("--version", help="Print the version and end.")] = False) -> None:
    """Hold the options that belong to no command."""
    if version:
        console.print(__version__)
        raise typer.Exit


@app.command(epilog="Example: kgrag tasks --json")
def tasks(as_json: AsJson = False) -> None:
    """List the tasks: the folders below input/tasks, the unusable ones with the reason."""
    from kgrag_assets.cli.listing import listed_tasks
    from kgrag_assets.cli.place import read_settings
    from kgrag_assets.lake.lake import Lake

    with explained():
        rows = listed_tasks(Lake.at(read_settings().lake))
    if as_json:
        print_json(rows)
        return
    table = Table("task", "title", "mapped", "no match", "note")
    for row in rows:
        mapped, without = ("", "") if row["proposed"] is None else (str(row["proposed"]), str(row["no_match"]))
        table.add_row(*(Text(str(cell)) for cell in (row["task"], row["title"], mapped, without, row["note"])))
    console.print(table)
    if not rows:
        console.print("No task yet. Make one: kgrag init NAME --source FILE --target omop-5.4")


@app.command(
    epilog="Examples: kgrag init north --source schema.sql --target omop-5.4 · "
    "kgrag init crm --source pg:CRM_URL --target target.xlsx"
)
def init(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the new task.")],
    source: Annotated[str, typer.Option(help="Source schema: a file, a folder, or pg:VARIABLE.")],
    target: Annotated[str, typer.Option(help="Target schema: a file, a folder, pg:VARIABLE, or omop-5.4.")],
) -> None:
    """Make a task folder from two schemas, after checking that both can be read."""
    from kgrag_assets.cli.place import read_settings
    from kgrag_assets.lake.paths import LakePaths
    from kgrag_assets.schemas.scaffold import make_task

    with explained():
        folder = make_task(LakePaths(read_settings().lake), name, source, target)
    console.print(Text(f"made {folder}"))
    console.print(Text(f"next: kgrag run {_quoted(name)}"))


@app.command(epilog="Examples: kgrag run demo_clinic · KGRAG_JUDGING__JUDGE=openai kgrag run demo_clinic")
def run(task: TaskName, as_json: AsJson = False) -> None:
    """Bring everything for a task up to date: what is stale runs, the rest stays."""
    from kgrag_assets.cli.place import opened
    from kgrag_assets.cli.progress import RichProgress
    from kgrag_assets.cli.running import bring_up_to_date
    from kgrag_assets.cli.showing import as_json as task_as_json
    from kgrag_assets.cli.showing import summary

    began = time.monotonic()
    with explained():
        with RichProgress(errors if as_json else console) as progress, opened({"progress": progress}) as place:
            report = bring_up_to_date(place, task, progress.job)
        lake = place.lake
        if as_json:
            print_json(
                {
                    **task_as_json(lake, task, None),
                    "steps": [vars(step) for step in report.steps],
                    "warnings": report.warnings,
                    "seconds": round(time.monotonic() - began, 1),
                }
            )
            return
        summary(console, lake, task)
    computed = sum(step.computed for step in report.steps)
    kept = sum(step.kept for step in report.steps)
    removed = sum(step.removed for step in report.steps)
    if report.steps:
        done = f"{len(report.steps)} steps: {computed:,} rows computed, {kept:,} kept, {removed:,} removed"
    else:
        done = "everything was up to date: nothing ran"
    console.print(Text(f"\n{done}, {time.monotonic() - began:.1f} s"))
    for warning in report.warnings:
        console.print(Text(f"warning: {warning}", style="yellow"))
    _next_commands(lake.paths.root, task)


def _next_commands(root_folder: Path, task: str) -> None:
    from kgrag_assets.cli.showing import an_attribute_to_look_at
    from kgrag_assets.lake.lake import Lake

    name = _quoted(task)
    column = an_attribute_to_look_at(Lake.at(root_folder), task)
    kgrag = "kgrag" if _on_path() else ".venv/bin/kgrag"
    console.print("\nnext:")
    if column is not None:
        console.print(Text(f"  {kgrag} show {name} {_quoted(column)}    why this column was mapped so"))
    console.print(Text(f"  {kgrag} export {name} --format xlsx    the mapping with its evidence"))
    console.print(Text("  make ui    the assets in the browser"))


def _on_path() -> bool:
    import shutil

    return shutil.which("kgrag") is not None


def _quoted(text: str) -> str:
    import shlex

    return shlex.quote(text)


@app.command(epilog="Examples: kgrag status · kgrag status demo_clinic --exit-code")
def status(
    task: Annotated[str | None, typer.Argument(metavar="[TASK]", help="One task; all where not given.")] = None,
    as_json: AsJson = False,
    exit_code: Annotated[bool, typer.Option("--exit-code", help="End with 3 where something is stale.")] = False,
) -> None:
    """Say what is stale and why."""
    from kgrag_assets.cli.listing import stale_rows
    from kgrag_assets.cli.place import opened

    with explained(), opened() as place:
        rows = stale_rows(place, task)
    if as_json:
        print_json(rows)
    elif not rows:
        console.print("everything is up to date")
    else:
        table = Table("asset", "partition", "state", "why")
        for row in rows:
            table.add_row(*(Text(row[name]) for name in ("asset", "partition", "state", "why")))
        console.print(table)
        console.print("What follows a stale asset is recomputed only where its content changes. Run: kgrag run TASK")
    if rows and exit_code:
        raise typer.Exit(EXIT_STALE)


@app.command(epilog="Example: kgrag graphs --json")
def graphs(as_json: AsJson = False) -> None:
    """List the knowledge graphs: what the lake holds of each, and how fresh it is."""
    from kgrag_assets.cli.graphs import listed_graphs
    from kgrag_assets.cli.place import read_settings
    from kgrag_assets.lake.lake import Lake

    with explained():
        rows = listed_graphs(Lake.at(read_settings().lake))
    if as_json:
        print_json(rows)
        return
    table = Table("graph", "format", "entities", "triples", "rejected", "last change taken")
    for row in rows:
        numbers = [f"{row[name]:,}" for name in ("entities", "triples", "rejected_lines")]
        table.add_row(*(Text(plain(cell)) for cell in (row["graph"], row["format"], *numbers, _freshness(row))))
    console.print(table)
    for row in rows:
        if row["problem"]:
            console.print(Text(f"{plain(row['graph'])}: {plain(row['problem'])}", style="yellow"))
    if not rows:
        console.print("No knowledge graph yet: make a folder below input/knowledge_graphs with a kg.yaml")


@app.command(epilog="Examples: kgrag entity 'date of birth' · kgrag entity wd:P569")
def entity(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A name, or the id of an entity.")],
    graph: Annotated[str | None, typer.Option(help="Look in this knowledge graph alone.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=500, help="Candidates and statements listed.")] = 15,
    as_json: AsJson = False,
) -> None:
    """Say what a name may mean in the knowledge graphs, and what they state of the best candidate."""
    from kgrag_assets.cli.entities import looked_up
    from kgrag_assets.cli.place import read_settings
    from kgrag_assets.lake.lake import Lake

    with explained():
        found = looked_up(Lake.at(read_settings().lake), name, graph, limit, limit)
    if as_json:
        print_json(found)
        return
    if found["candidates"]:
        table = Table("entity", "label", "score", "matched as")
        for one in found["candidates"]:
            cells = (one["entity_id"], one["label"], f"{one['score']:.2f}", f"{one['kind']}: {one['matched']}")
            table.add_row(*(Text(plain(cell)) for cell in cells))
        console.print(table)
    info = found["entity"]
    if info is None:
        console.print("nothing of that name: `kgrag graphs` says what the lake holds")
        return
    others = f" ({', '.join(info['aliases'][:5])})" if info["aliases"] else ""
    console.print(
        Text(plain(f"{info['entity_id']}  {info['label']}{others}: {info['description'] or 'no description'}"))
    )
    for one in found["statements"]:
        console.print(Text(plain(f"  {one['head_label']} —{one['relation_label']}→ {one['tail_label']}")))


def _freshness(row: dict[str, Any]) -> str:
    if not row["followed"]:
        return "not followed"
    if row["behind_s"] is None:
        return "no look yet"
    return f"{_ago(row['behind_s'])} ago, {row['changes']:,} held"


def _ago(seconds: float) -> str:
    for unit, size in (("d", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(0.0, seconds):.0f} s"


@app.command(epilog="Examples: kgrag refresh · kgrag refresh wikidata --only-take")
def refresh(
    graph: Annotated[
        str | None, typer.Argument(metavar="[GRAPH]", help="One graph; all followed where not given.")
    ] = None,
    only_take: Annotated[
        bool, typer.Option("--only-take", help="Take the changes and let another run apply them.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Take what changed at the source of a knowledge graph, and bring the graph up to date."""
    from kgrag_assets.cli.graphs import take_changes
    from kgrag_assets.cli.place import opened
    from kgrag_assets.cli.progress import RichProgress
    from kgrag_assets.cli.running import RunReport, bring_graph_up_to_date

    began = time.monotonic()
    report = RunReport("knowledge graphs")
    with (
        explained(),
        RichProgress(errors if as_json else console) as progress,
        opened({"progress": progress}) as place,
    ):
        looks = take_changes(place, graph)
        if not only_take:
            report = bring_graph_up_to_date(place, progress.job)
    if as_json:
        print_json(
            {
                "looks": [{"graph": look.graph, **look.summary()} for look in looks],
                "steps": [vars(step) for step in report.steps],
                "seconds": round(time.monotonic() - began, 1),
            }
        )
        return
    for look in looks:
        said = look.summary()
        counts = ", ".join(f"{said[name]:,} {name}" for name in ("edited", "deleted", "redirected") if name in said)
        console.print(Text(f"{look.graph}: {counts or 'nothing taken'}"))
        if said.get("problem"):
            console.print(Text(f"  {plain(str(said['problem']))}", style="yellow"))
    computed = sum(step.computed for step in report.steps)
    removed = sum(step.removed for step in report.steps)
    console.print(
        Text(
            f"{len(report.steps)} steps: {computed:,} rows computed, {removed:,} removed, "
            f"{time.monotonic() - began:.1f} s"
        )
    )


@app.command(epilog="Examples: kgrag show demo_clinic · kgrag show demo_clinic pat_master.dob")
def show(
    task: TaskName,
    column: Annotated[str | None, typer.Argument(metavar="[TABLE.COLUMN]", help="One column of either schema.")] = None,
    as_json: AsJson = False,
) -> None:
    """Explain a mapping, or the decision on one column with its evidence."""
    from kgrag_assets.cli.place import read_settings
    from kgrag_assets.cli.showing import as_json as task_as_json
    from kgrag_assets.cli.showing import explain, summary
    from kgrag_assets.lake.lake import Lake

    with explained():
        lake = Lake.at(read_settings().lake)
        if as_json:
            print_json(task_as_json(lake, task, column))
        elif column is None:
            summary(console, lake, task)
        else:
            explain(console, lake, task, column)


@app.command(epilog="Examples: kgrag export demo_clinic --format xlsx · kgrag export demo_clinic --out mapping.csv")
def export(
    task: TaskName,
    file_format: Annotated[Literal["csv", "xlsx"], typer.Option("--format", help="Format of the file.")] = "csv",
    out: Annotated[Path | None, typer.Option(help="File to write; below exports/ in the lake where not given.")] = None,
) -> None:
    """Write the mapping with the evidence beside it."""
    from kgrag_assets.cli.exporting import export_mapping
    from kgrag_assets.cli.place import read_settings
    from kgrag_assets.lake.lake import Lake

    with explained():
        path = export_mapping(Lake.at(read_settings().lake), task, file_format, out)
    console.print(Text(str(path)))


app.add_typer(measuring.app)


def main() -> None:
    """Run the command line."""
    # torch's threads spin while they wait, which starves a second process on a small machine.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    try:
        app()
    except KeyboardInterrupt:
        errors.print("interrupted: what was finished is kept; run again to go on")
        sys.exit(130)
