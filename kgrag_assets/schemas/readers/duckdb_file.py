"""A DuckDB database file, opened read-only and without reach to other files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import duckdb

from kgrag_assets.schemas.errors import SchemaError
from kgrag_assets.schemas.found import FoundColumn, FoundSchema, Reject
from kgrag_assets.schemas.profiling import Profile, ordered_column, profile_duckdb, quoted
from kgrag_assets.schemas.types import type_family

# A view in somebody's database may name any file or address; reading it must not open them.
_CLOSED: dict[str, str | bool | int | float | list[str]] = {"enable_external_access": False, "threads": 2}

_COLUMNS = """
SELECT c.schema_name, c.table_name, c.column_name, c.data_type, c.is_nullable, coalesce(c.comment, ''),
       coalesce(t.comment, v.comment, '')
FROM duckdb_columns() AS c
LEFT JOIN duckdb_tables() AS t USING (database_oid, table_oid)
LEFT JOIN duckdb_views() AS v ON v.database_oid = c.database_oid AND v.view_oid = c.table_oid
WHERE NOT c.internal AND c.database_name = current_database()
ORDER BY c.schema_name, c.table_name, c.column_index
"""
_KEYS = """
SELECT schema_name, table_name, constraint_type, constraint_column_names, referenced_table, referenced_column_names
FROM duckdb_constraints()
WHERE constraint_type IN ('PRIMARY KEY', 'FOREIGN KEY') AND database_name = current_database()
"""


@dataclass(frozen=True)
class _Keys:
    primary: set[tuple[str, str, str]]
    foreign: dict[tuple[str, str, str], tuple[str, str]]


def _shown(schema: str, table: str) -> str:
    return table if schema == "main" else f"{schema}.{table}"


def _keys(con: duckdb.DuckDBPyConnection) -> _Keys:
    keys = _Keys(set(), {})
    for schema, table, kind, names, other, others in con.execute(_KEYS).fetchall():
        if kind == "PRIMARY KEY":
            keys.primary.update((schema, table, name) for name in names)
        else:
            for name, other_name in zip(names, others, strict=False):
                # DuckDB has foreign keys within one schema only.
                keys.foreign[schema, table, name] = (_shown(schema, other), other_name)
    return keys


def _open(path: Path, shown: str) -> duckdb.DuckDBPyConnection:
    try:
        return duckdb.connect(str(path), read_only=True, config=_CLOSED)
    except duckdb.Error as error:
        text = str(error)
        if "lock" in text.lower() or "existing connections" in text:
            raise SchemaError(
                f"{shown}: somebody has this DuckDB file open for writing: close it there, or copy the file"
            ) from error
        raise SchemaError(
            f"{shown}: cannot be opened as a DuckDB database ({text.splitlines()[0][:200]}): it may be cut off, or "
            "written by another version; copy it again or export it to Parquet"
        ) from error


def read_duckdb(path: Path, shown: str) -> FoundSchema:
    """Read all tables and views of a DuckDB file, with comments, keys and a profile of each column.

    A table of another schema than ``main`` is named ``schema.table``. A view that needs a file outside
    the database cannot be profiled: its columns are kept and a reject row says so.

    Raises:
        SchemaError: the file is open elsewhere, damaged, or has no table.
    """
    with _open(path, shown) as con:
        rows = con.execute(_COLUMNS).fetchall()
        if not rows:
            raise SchemaError(f"{shown}: the database has no table")
        keys = _keys(con)
        columns: list[FoundColumn] = []
        rejects: dict[str, Reject] = {}
        for schema, table, column, data_type, nullable, comment, table_comment in rows:
            name = _shown(schema, table)
            profile = Profile()
            if name not in rejects:
                relation = f"{quoted(schema)}.{quoted(table)}"
                try:
                    keep = type_family(data_type) != "binary"
                    profile = profile_duckdb(
                        con, relation, column, ordered=ordered_column(column, data_type), keep_values=keep
                    )
                except duckdb.Error as error:
                    reason = f"no values can be read ({str(error).splitlines()[0][:200]}): columns kept without"
                    rejects[name] = Reject(f"{shown}#{name}", None, reason)
            references = keys.foreign.get((schema, table, column), (None, None))
            columns.append(
                FoundColumn(
                    table=name,
                    column=column,
                    origin=shown,
                    data_type=data_type,
                    nullable=bool(nullable),
                    is_primary_key=(schema, table, column) in keys.primary,
                    references_table=references[0],
                    references_column=references[1],
                    table_description=table_comment,
                    column_description=comment,
                    sample_values=profile.sample_values,
                    distinct_count=profile.distinct_count,
                    null_share=profile.null_share,
                    values=profile.values,
                )
            )
    return FoundSchema(tuple(columns), tuple(rejects.values()))
