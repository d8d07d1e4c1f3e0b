"""The folder of a task: which file, folder, built-in target or connection is each side, and what else is there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from kgrag_assets.lake.paths import LakePaths, name_problem
from kgrag_assets.schemas.builtin import builtin_targets
from kgrag_assets.schemas.errors import SchemaError
from kgrag_assets.schemas.task_yaml import SideEntry, TaskEntry, read_task_yaml

Side = Literal["source", "target"]

TASK_YAML = "task.yaml"
# A folder that `kgrag init` is still filling; it gets its name when it is whole.
BUILDING_PREFIX = ".new-task-"

TABLE_ENDINGS = (".csv", ".tsv", ".txt", ".xlsx", ".xlsm")
SIDE_ENDINGS = (
    *TABLE_ENDINGS,
    ".sql",
    ".ddl",
    ".parquet",
    ".pq",
    ".duckdb",
    ".ddb",
    ".db",
    ".sqlite",
    ".sqlite3",
    ".xls",  # is taken so that its error can say what to do
)


@dataclass(frozen=True)
class SchemaInput:
    """Where one side's schema comes from: one of ``path`` (file or folder), ``builtin`` or ``connection_env``.

    ``shown`` is how messages and the column ``origin`` name it. ``table_descriptions`` is the OMOP table-level
    file beside a field-level one.
    """

    side: Side
    shown: str
    path: Path | None = None
    builtin: str | None = None
    connection_env: str | None = None
    schema: str | None = None
    format: str | None = None
    dialect: str | None = None
    tables: tuple[str, ...] | None = None
    table_descriptions: Path | None = None


@dataclass(frozen=True)
class TaskFolder:
    """A task as its folder states it; nothing is read yet.

    ``sheet`` stands for both sides where it is given, ``entity_links`` is the truth about which entities the
    attributes speak of, ``examples`` what a prompt shows as examples.
    """

    name: str
    path: Path
    title: str
    options: dict[str, Any]
    source: SchemaInput | None
    target: SchemaInput | None
    sheet: Path | None
    reference: Path | None
    entity_links: Path | None = None
    examples: Path | None = None


@dataclass(frozen=True)
class ListedTask:
    """A folder below ``input/tasks``; ``problem`` says why it cannot be used, None where it can."""

    name: str
    problem: str | None


def _inside(folder: Path, path: Path) -> Path:
    """Return ``path`` where it, and all that lies below it, is inside the task's folder."""
    root = folder.resolve()
    for found in (path, *(path.rglob("*") if path.is_dir() else ())):
        if not found.resolve().is_relative_to(root):
            raise SchemaError(f"{found}: is a link that leaves the task's folder: copy the file into it")
    return path


def _stated(folder: Path, given: str, where: str) -> Path:
    pure = PurePosixPath(given)
    if pure.is_absolute() or ".." in pure.parts or "\\" in given or "\x00" in given:
        raise SchemaError(f"{folder / TASK_YAML}: {where}: {given!r} must be a path inside the task's folder")
    path = folder / pure
    if not path.exists():
        raise SchemaError(f"{folder / TASK_YAML}: {where}: there is no {given!r} in the task's folder")
    return _inside(folder, path)


def _candidates(folder: Path, stem: str, endings: Sequence[str], *, folders: bool) -> list[Path]:
    found: list[Path] = []
    for path in sorted(folder.iterdir()):
        if path.is_dir():
            if folders and path.name == stem:
                found.append(path)
        elif path.stem.lower() == stem and path.suffix.lower() in endings:
            found.append(path)
    return found


def _only(folder: Path, stem: str, endings: Sequence[str], *, folders: bool = False) -> Path | None:
    found = _candidates(folder, stem, endings, folders=folders)
    if len(found) > 1:
        names = ", ".join(path.name for path in found)
        raise SchemaError(f"{folder}: has {len(found)} inputs for {stem} ({names}): keep one, or name it in task.yaml")
    return _inside(folder, found[0]) if found else None


def _missing(folder: Path, side: Side) -> SchemaError:
    there = sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))
    found = f"found {', '.join(there[:6])}{', ...' if len(there) > 6 else ''}" if there else "the folder is empty"
    return SchemaError(
        f"{folder}: no {side}: put {side}.csv, .xlsx, .sql, .duckdb, .sqlite or a folder {side}/ of data files "
        f"there, or name it in task.yaml; {found}"
    )


def _side(folder: Path, side: Side, entry: SideEntry) -> SchemaInput:
    if entry.connection_env is not None:
        return SchemaInput(
            side, entry.connection_env, connection_env=entry.connection_env, schema=entry.schema, tables=entry.tables
        )
    if entry.builtin is not None:
        known = builtin_targets()
        if entry.builtin not in known:
            raise SchemaError(
                f"{folder / TASK_YAML}: {side}.builtin: there is no {entry.builtin!r}: use one of "
                f"{', '.join(known) or 'none: this installation has none'}"
            )
        return SchemaInput(side, f"builtin:{entry.builtin}", builtin=entry.builtin, tables=entry.tables)
    if entry.path is not None:
        path: Path | None = _stated(folder, entry.path, f"{side}.path")
    else:
        path = _only(folder, side, SIDE_ENDINGS, folders=True)
    if path is None:
        raise _missing(folder, side)
    return SchemaInput(
        side,
        path.relative_to(folder).as_posix(),
        path=path,
        format=entry.format,
        dialect=entry.dialect,
        tables=entry.tables,
        table_descriptions=_only(folder, f"{side}_tables", (".csv",)),
    )


def _sheet(folder: Path, entry: TaskEntry) -> Path | None:
    if entry.sheet is not None:
        return _stated(folder, entry.sheet, "sheet")
    return _only(folder, "sheet", TABLE_ENDINGS)


def load_folder(name: str, folder: Path) -> TaskFolder:
    """Find the inputs in a folder, wherever it lies; ``load_task`` is for those in the lake.

    Raises:
        SchemaError: as for ``load_task``.
        OSError: the folder cannot be read.
    """
    entry = read_task_yaml(_inside(folder, folder / TASK_YAML))
    sheet = _sheet(folder, entry)
    source = target = None
    if sheet is not None:
        both = ("source", "target")
        others = [path.name for side in both for path in _candidates(folder, side, SIDE_ENDINGS, folders=True)]
        others += [f"{side}: in task.yaml" for side in both if getattr(entry, side) != SideEntry()]
        if others:
            raise SchemaError(f"{folder}: {sheet.name} gives both sides, but there is also {others[0]}: keep one")
    else:
        source, target = _side(folder, "source", entry.source), _side(folder, "target", entry.target)
    if entry.reference is not None:
        reference: Path | None = _stated(folder, entry.reference, "reference")
    else:
        reference = _only(folder, "reference", TABLE_ENDINGS)
    if sheet is not None and reference is not None:
        raise SchemaError(f"{folder}: {sheet.name} gives the reference, but there is also {reference.name}: keep one")
    return TaskFolder(
        name=name,
        path=folder,
        title=entry.title or name,
        options=entry.options,
        source=source,
        target=target,
        sheet=sheet,
        reference=reference,
        entity_links=_only(folder, "entity_links", TABLE_ENDINGS),
        examples=_only(folder, "examples", (".yaml", ".yml")),
    )


def load_task(paths: LakePaths, name: str) -> TaskFolder:
    """Look at a task's folder and find its inputs; none is read.

    Raises:
        SchemaError: the name cannot be one, there is no such folder, a side is missing or there twice,
            ``task.yaml`` is wrong, or a path or link leaves the folder.
    """
    problem = name_problem(name)
    if problem is not None:
        raise SchemaError(f"{name!r} cannot be a task: {problem}")
    folder = paths.tasks / name
    try:
        if not folder.is_dir():
            raise SchemaError(f"there is no task {name!r}: make the folder {folder}")
        return load_folder(name, folder)
    except OSError as error:
        raise SchemaError(f"{folder}: cannot be read: {error.strerror or error}") from error


def list_tasks(paths: LakePaths) -> list[ListedTask]:
    """List the folders below ``input/tasks`` by name, each with the reason where it cannot be used."""
    if not paths.tasks.is_dir():
        return []
    listed: list[ListedTask] = []
    for folder in sorted(paths.tasks.iterdir()):
        if not folder.is_dir() or folder.name.startswith(BUILDING_PREFIX):
            continue
        try:
            load_task(paths, folder.name)
        except SchemaError as error:
            listed.append(ListedTask(folder.name, str(error)))
        else:
            listed.append(ListedTask(folder.name, None))
    return listed
