"""The published DuckDB file: written beside its place and moved there in one rename."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import duckdb
import polars as pl

from kgrag_assets.lake.files import LakeError, replace_file
from kgrag_assets.rows.keys import data_version_of
from kgrag_assets.rows.table import Table

INFO_TABLE = "snapshot_info"


def _literal(text: str) -> str:
    # COMMENT ON takes no parameters; the texts are this package's own descriptions.
    return "'" + text.replace("'", "''") + "'"


def _fill(connection: duckdb.DuckDBPyConnection, table: Table, frame: pl.DataFrame) -> None:
    connection.register("incoming", table.conform(frame).to_arrow())
    connection.execute(f'CREATE TABLE "{table.name}" AS SELECT * FROM incoming')  # noqa: S608  (our own table name)
    connection.unregister("incoming")
    connection.execute(f'COMMENT ON TABLE "{table.name}" IS {_literal(table.description)}')
    for column in table.columns:
        connection.execute(f'COMMENT ON COLUMN "{table.name}"."{column.name}" IS {_literal(column.description)}')


def publish(path: Path, tables: Sequence[tuple[Table, pl.DataFrame]], version: str, views: Mapping[str, str]) -> None:
    """Write the snapshot and swap it in; readers keep the file they opened.

    Args:
        path: where readers find it.
        tables: each table with all its rows; empty tables are published too.
        version: data version, kept in ``snapshot_info`` so that an equal snapshot is not written again.
        views: names and queries of convenience views over the tables.

    Raises:
        LakeError: the disk is full or the place cannot be written; the old file is untouched.
    """

    def write(temporary: Path) -> None:
        temporary.unlink()  # DuckDB makes the file itself and refuses an empty one
        try:
            with duckdb.connect(str(temporary)) as connection:
                for table, frame in tables:
                    _fill(connection, table, frame)
                for name, query in views.items():
                    connection.execute(f'CREATE VIEW "{name}" AS {query}')
                connection.execute(f"CREATE TABLE {INFO_TABLE} (data_version VARCHAR)")
                connection.execute(f"INSERT INTO {INFO_TABLE} VALUES (?)", [version])  # noqa: S608  (a constant)
                connection.execute("CHECKPOINT")
        except duckdb.Error as error:
            raise LakeError(
                f"cannot write the snapshot {path} ({error}): check free disk space and permissions; "
                "the old snapshot is untouched"
            ) from error
        finally:
            Path(f"{temporary}.wal").unlink(missing_ok=True)

    replace_file(path, write)


def published_version(path: Path) -> str | None:
    """Return the data version of the snapshot at ``path``, or None where there is none that can be read."""
    if not path.exists():
        return None
    try:
        with duckdb.connect(str(path), read_only=True) as connection:
            row = connection.execute(f"SELECT data_version FROM {INFO_TABLE}").fetchone()  # noqa: S608  (a constant)
    except duckdb.Error:
        return None
    return None if row is None else str(row[0])


def snapshot_version(parts: Mapping[str, str]) -> str:
    """Hash the data versions of everything in a snapshot, by name, into its own."""
    return data_version_of(f"{name}={version}" for name, version in parts.items())
