"""From a side's input to its columns: which reader takes it, by what it is and what ``task.yaml`` says."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from kgrag_assets.schemas.builtin import builtin_targets
from kgrag_assets.schemas.decoding import read_text, what_is
from kgrag_assets.schemas.delimited import read_delimited
from kgrag_assets.schemas.errors import SchemaError
from kgrag_assets.schemas.found import FoundSchema
from kgrag_assets.schemas.grid import Grid
from kgrag_assets.schemas.readers.data_folder import read_data_file, read_data_folder
from kgrag_assets.schemas.readers.ddl import read_ddl
from kgrag_assets.schemas.readers.duckdb_file import read_duckdb
from kgrag_assets.schemas.readers.omap import ALIASES as OMAP_NAMES
from kgrag_assets.schemas.readers.omop_cdm import FIELD_NAMES, is_omop_cdm, read_omop_cdm
from kgrag_assets.schemas.readers.postgres import read_postgres
from kgrag_assets.schemas.readers.reference import ALIASES as REFERENCE_NAMES
from kgrag_assets.schemas.readers.schema_table import ALIASES, read_schema_table
from kgrag_assets.schemas.readers.sqlite_file import read_sqlite
from kgrag_assets.schemas.readers.white_rabbit import overview_of, read_white_rabbit
from kgrag_assets.schemas.task_folder import SchemaInput
from kgrag_assets.schemas.workbook import read_workbook

_KNOWN = frozenset({*ALIASES, *FIELD_NAMES, *OMAP_NAMES, *REFERENCE_NAMES})
_WORKBOOKS = frozenset({".xlsx", ".xlsm", ".xls"})
_BY_ENDING = {
    ".sql": "ddl",
    ".ddl": "ddl",
    ".parquet": "data",
    ".pq": "data",
    ".duckdb": "duckdb",
    ".ddb": "duckdb",
    ".sqlite": "sqlite",
    ".sqlite3": "sqlite",
}


def read_grids(path: Path, shown: str) -> list[Grid]:
    """Read a text file or the sheets of a workbook into rows of cells.

    Raises:
        SchemaError: the file cannot be read.
    """
    if path.suffix.lower() in _WORKBOOKS:
        return read_workbook(path, shown)
    return [read_delimited(path, shown, _KNOWN)]


def _read_table(given: SchemaInput, path: Path) -> FoundSchema:
    grids = read_grids(path, given.shown)
    stated = given.format
    if stated == "whiterabbit" or (stated is None and overview_of(grids) is not None):
        return read_white_rabbit(grids, given.shown)
    if stated == "omop-cdm" or (stated is None and is_omop_cdm(grids[0])):
        beside = given.table_descriptions
        return read_omop_cdm(grids[0], read_grids(beside, beside.name)[0] if beside is not None else None)
    return read_schema_table(grids)


def format_of(path: Path) -> str:
    """Tell the format of a file or folder by its ending, or, for ``.db``, by its first bytes.

    Raises:
        OSError: the file cannot be read.
    """
    if path.is_dir():
        return "folder"
    if path.suffix.lower() == ".db":
        return "sqlite" if what_is(path) == "an SQLite database" else "duckdb"
    return _BY_ENDING.get(path.suffix.lower(), "table")


def _read_path(given: SchemaInput, path: Path) -> FoundSchema:
    stated = given.format if given.format not in {"schema", "omop-cdm", "whiterabbit"} else "table"
    name = stated or format_of(path)
    if path.is_dir() != (name == "folder"):
        what = "a folder" if path.is_dir() else "a file"
        raise SchemaError(f"{given.shown}: is {what}, which cannot be read as {given.format}")
    readers: dict[str, Callable[[], FoundSchema]] = {
        "table": lambda: _read_table(given, path),
        "folder": lambda: read_data_folder(path, given.shown),
        "data": lambda: read_data_file(path, given.shown),
        "ddl": lambda: read_ddl(read_text(path, given.shown), given.shown, given.dialect),
        "duckdb": lambda: read_duckdb(path, given.shown),
        "sqlite": lambda: read_sqlite(path, given.shown),
    }
    return readers[name]()


def read_input(given: SchemaInput) -> FoundSchema:
    """Read one side: all its columns, before the filter on tables.

    Raises:
        SchemaError: the input cannot be read or has no column; the message names it.
    """
    if given.connection_env is not None:
        tables = frozenset(given.tables) if given.tables is not None else None
        return read_postgres(given.connection_env, given.schema, tables)
    if given.builtin is not None:
        path = builtin_targets().get(given.builtin)
        if path is None:
            raise SchemaError(f"there is no built-in target {given.builtin!r}")
        return read_schema_table(read_grids(path, given.shown))
    if given.path is None:
        raise SchemaError(f"the {given.side} has no input")
    try:
        if given.path.is_file() and given.path.stat().st_size == 0:
            raise SchemaError(f"{given.shown}: the file is empty: put the schema into it")
        return _read_path(given, given.path)
    except OSError as error:
        raise SchemaError(f"{given.shown}: cannot be read: {error.strerror or error}") from error
