"""Making a task's folder from two inputs: what ``kgrag init`` does."""

from __future__ import annotations

import re
import shutil
import tempfile
from pathlib import Path

import yaml

from kgrag_assets.lake.files import explained
from kgrag_assets.lake.paths import LakePaths, name_problem
from kgrag_assets.schemas.builtin import builtin_targets
from kgrag_assets.schemas.decoding import read_text, what_is
from kgrag_assets.schemas.errors import SchemaError
from kgrag_assets.schemas.reading import read_side
from kgrag_assets.schemas.task_folder import BUILDING_PREFIX, SIDE_ENDINGS, TASK_YAML, Side, load_folder

_CONNECTION_PREFIX = "pg:"
_ENDINGS = {
    "an Excel workbook (.xlsx)": ".xlsx",
    "an SQLite database": ".sqlite",
    "a DuckDB database": ".duckdb",
    "a Parquet file": ".parquet",
}
_PARQUET = frozenset({".parquet", ".pq"})
_SQL = re.compile(r"^\s*CREATE\s[^;]*?\bTABLE\b", re.IGNORECASE | re.MULTILINE)
_FIELD_LEVEL = re.compile(r"Field_Level(?=\.csv$)", re.IGNORECASE)


def _ending(path: Path) -> str:
    """Choose the ending that says the file's format: its own, or else by what the file begins with."""
    suffix = path.suffix.lower()
    if suffix in SIDE_ENDINGS:
        return suffix
    kind = what_is(path)
    if kind is None:
        return ".sql" if _SQL.search(read_text(path, str(path))) else ".csv"
    if kind not in _ENDINGS:
        raise SchemaError(f"{path}: this is {kind}, which holds no schema: give a table, a DDL file or a database")
    return _ENDINGS[kind]


def _copy(path: Path, folder: Path, side: Side) -> None:
    if path.is_dir():
        # Links are copied as what they point to: the task's folder stands on its own.
        shutil.copytree(path, folder / side, symlinks=False)
        return
    ending = _ending(path)
    if ending in _PARQUET:
        # A data file is the table of its name, so it keeps the name.
        (folder / side).mkdir()
        shutil.copyfile(path, folder / side / f"{path.stem}{ending}")
        return
    shutil.copyfile(path, folder / f"{side}{ending}")
    for log in (".wal", "-wal"):
        beside = path.with_name(path.name + log)
        if beside.is_file():
            shutil.copyfile(beside, folder / f"{side}{ending}{log}")
    table_level = path.with_name(_FIELD_LEVEL.sub("Table_Level", path.name))
    if table_level != path and table_level.is_file():
        shutil.copyfile(table_level, folder / f"{side}_tables.csv")


def _entry(given: str) -> dict[str, str] | None:
    """Return what task.yaml must say of an input that is no file; None for a file or folder."""
    if given.startswith(_CONNECTION_PREFIX):
        return {"connection_env": given.removeprefix(_CONNECTION_PREFIX)}
    if Path(given).expanduser().exists():
        return None
    known = builtin_targets()
    if given in known:
        return {"builtin": given}
    raise SchemaError(
        "there is no such file or folder, and no built-in schema of that name "
        f"({', '.join(known) or 'there is none'}); for a live PostgreSQL write pg: and the name of the environment "
        "variable that holds its connection string"
    )


def _fill(folder: Path, name: str, inputs: dict[Side, str]) -> None:
    entries: dict[str, dict[str, str]] = {}
    for side, given in inputs.items():
        try:
            entry = _entry(given)
            if entry is None:
                _copy(Path(given).expanduser(), folder, side)
            else:
                entries[side] = entry
        except SchemaError as error:
            raise SchemaError(f"--{side} {given}: {error}") from error
    if entries:
        (folder / TASK_YAML).write_text(yaml.safe_dump(entries, sort_keys=False, allow_unicode=True), encoding="utf-8")
    task = load_folder(name, folder)
    for read in (task.source, task.target):
        if read is not None:
            try:
                read_side(read)
            except SchemaError as error:
                raise SchemaError(f"--{read.side} {inputs[read.side]}: {error}") from error


def make_task(paths: LakePaths, name: str, source: str, target: str) -> Path:
    """Make a task's folder from two inputs.

    The folder is filled beside its place and gets its name only when both sides can be read, so a
    failure leaves nothing.

    Args:
        paths: the lake.
        name: the task's name.
        source: a file or folder, which is copied; the name of a built-in schema; or ``pg:VARIABLE``, the
            environment variable with the connection string of a live PostgreSQL.
        target: likewise.

    Returns:
        The new folder.

    Raises:
        SchemaError: the name cannot be one or is taken, or a side cannot be read.
        LakeError: the folder cannot be written.
    """
    problem = name_problem(name)
    if problem is not None:
        raise SchemaError(f"{name!r} cannot be a task: {problem}")
    place = paths.tasks / name
    if place.exists():
        raise SchemaError(f"there is a task {name!r} already: choose another name, or remove {place}")
    with explained(place):
        paths.tasks.mkdir(parents=True, exist_ok=True)
        building = Path(tempfile.mkdtemp(prefix=BUILDING_PREFIX, dir=paths.tasks))
        try:
            building.chmod(0o755)
            _fill(building, name, {"source": source, "target": target})
            building.rename(place)
        except SchemaError as error:
            raise SchemaError(str(error).replace(str(building), str(place))) from error
        finally:
            shutil.rmtree(building, ignore_errors=True)
    return place
