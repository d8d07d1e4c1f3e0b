"""A live PostgreSQL database: its tables, keys and comments, and values of its first rows, read-only.

The connection string comes from an environment variable and never leaves this module: an error says what went wrong
in words of our own, because the driver's text repeats host, user, and with a mistyped string even the password.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg import sql

from kgrag_assets.rows.keys import key_of
from kgrag_assets.schemas.errors import SchemaError
from kgrag_assets.schemas.found import FoundColumn, FoundSchema, Reject
from kgrag_assets.schemas.profiling import ORDERED_FAMILIES, Profile, profile_of, profile_query
from kgrag_assets.schemas.types import type_family

# A database in use is not scanned: its first rows are enough to know a column by.
_PROFILED_ROWS = 10_000
_CONNECT_TIMEOUT_S = 10
_STATEMENT_TIMEOUT_MS = 30_000

_COLUMNS = """
SELECT n.nspname, c.relname, a.attname, format_type(a.atttypid, a.atttypmod), NOT a.attnotnull,
       coalesce(obj_description(c.oid, 'pg_class'), ''), coalesce(col_description(c.oid, a.attnum), ''),
       EXISTS (SELECT FROM pg_constraint k WHERE k.conrelid = c.oid AND k.contype = 'p' AND a.attnum = ANY (k.conkey)),
       f.nspname, f.relname, f.attname,
       has_column_privilege(c.oid, a.attnum, 'SELECT') AND has_schema_privilege(n.oid, 'USAGE')
FROM pg_attribute a
JOIN pg_class c ON c.oid = a.attrelid
JOIN pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN LATERAL (
    SELECT fn.nspname, fc.relname, fa.attname
    FROM pg_constraint k
    JOIN pg_class fc ON fc.oid = k.confrelid
    JOIN pg_namespace fn ON fn.oid = fc.relnamespace
    JOIN pg_attribute fa ON fa.attrelid = k.confrelid AND fa.attnum = k.confkey[array_position(k.conkey, a.attnum)]
    WHERE k.conrelid = c.oid AND k.contype = 'f' AND a.attnum = ANY (k.conkey)
    ORDER BY array_length(k.conkey, 1), k.conname
    LIMIT 1
) f ON true
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND NOT c.relispartition AND a.attnum > 0 AND NOT a.attisdropped
  AND CASE WHEN %(schema)s::text IS NULL
           THEN n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
           ELSE n.nspname = %(schema)s::text END
ORDER BY n.nspname, c.relname, a.attnum
"""

_REASONS = (
    (r"password authentication failed|no password supplied", "the password is refused"),
    (r"no pg_hba.conf entry|role \".*\" does not exist|role \".*\" is not permitted", "the user is not let in"),
    (r"database \".*\" does not exist", "there is no such database"),
    (r"could not translate host name|name or service not known|resolve host", "the host is not known"),
    (r"connection refused|no such file", "nothing listens at that address"),
    (r"timeout|timed out", "the server does not answer"),
    (r"\bssl\b|certificate", "the server and the string disagree about SSL"),
)


def _reason(error: psycopg.Error) -> str:
    text = str(error)
    for pattern, reason in _REASONS:
        if re.search(pattern, text, re.IGNORECASE):
            return reason
    return "the server cannot be reached or refuses"


@contextmanager
def _connected(variable: str) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    """Open a read-only session; every error is told without a word of the connection string."""
    string = os.environ.get(variable)
    if not string:
        raise SchemaError(f"the environment variable {variable} is not set: put the PostgreSQL connection string in it")
    try:
        con = psycopg.connect(string, connect_timeout=_CONNECT_TIMEOUT_S, client_encoding="utf8")
    except psycopg.ProgrammingError:
        raise SchemaError(
            f"the environment variable {variable} does not hold a PostgreSQL connection string: write it as "
            "postgresql://user:password@host:5432/database"
        ) from None
    except psycopg.Error as error:
        reason = _reason(error)
        raise SchemaError(f"cannot connect by {variable}: {reason}") from None
    except UnicodeError:
        raise SchemaError(f"cannot connect by {variable}: it holds characters that do not fit") from None
    try:
        con.read_only = True
        # Each run should see the same first rows, also of a large table that somebody else is scanning.
        con.execute("SET synchronize_seqscans = off")
        con.execute(sql.SQL("SET statement_timeout = {}").format(sql.Literal(_STATEMENT_TIMEOUT_MS)))
        con.execute("SET DateStyle = 'ISO'")
        yield con
    except psycopg.Error as error:
        # The server's own words about a statement are about tables, not about the connection.
        words = error.diag.message_primary or "the connection was lost"
        raise SchemaError(f"reading by {variable} failed: {words}") from None
    except UnicodeDecodeError:
        raise SchemaError(
            f"reading by {variable} failed: the database holds text that is not in its encoding"
        ) from None
    finally:
        con.close()


def _described(con: psycopg.Connection[tuple[object, ...]], schema: str | None) -> list[tuple[object, ...]]:
    return con.execute(_COLUMNS, {"schema": schema}).fetchall()


def _profile(
    con: psycopg.Connection[tuple[object, ...]], schema: str, table: str, column: str, data_type: str
) -> Profile:
    ordered = type_family(data_type) in ORDERED_FAMILIES
    second = ", {column} AS ordered" if ordered else ""
    values = sql.SQL(
        "SELECT CAST({column} AS text) AS value"  # noqa: S608 - names and limit are put in below, quoted
        + second
        + " FROM (SELECT {column} FROM {table} LIMIT {limit}) AS t"
    )
    query = sql.SQL("{}").format(
        values.format(
            column=sql.Identifier(column), table=sql.Identifier(schema, table), limit=sql.Literal(_PROFILED_ROWS)
        )
    )
    with con.transaction():
        rows = con.execute(profile_query(query.as_string(con), ordered=ordered).encode()).fetchall()
    return profile_of(rows, keep_values=type_family(data_type) != "binary")


def _shown(namespace: str, relation: str, schema: str | None) -> str:
    return relation if namespace == (schema or "public") else f"{namespace}.{relation}"


def read_postgres(variable: str, schema: str | None, tables: frozenset[str] | None = None) -> FoundSchema:
    """Read tables, partitioned tables, views and foreign tables of a live database.

    Args:
        variable: name of the environment variable with the connection string.
        schema: read this schema only; None reads all but the system's, and then names a table of another
            schema than ``public`` as ``schema.table``.
        tables: profile only these tables, by the name they get here; None profiles all.

    Returns:
        Columns with types, comments, keys, and sample values, number of distinct values and share of
        nulls of the first 10,000 rows. What the user may not select from is kept without values.

    Raises:
        SchemaError: no connection, or no table; never with any part of the connection string.
    """
    columns: list[FoundColumn] = []
    rejects: dict[str, Reject] = {}
    with _connected(variable) as con:
        rows = _described(con, schema)
        for row in rows:
            namespace, relation, column, data_type = (str(value) for value in row[:4])
            table = _shown(namespace, relation, schema)
            profile = Profile()
            if (tables is None or table in tables) and table not in rejects:
                try:
                    if not row[11]:
                        rejects[table] = Reject(
                            f"{variable}#{table}", None, "not allowed to read values: columns kept without"
                        )
                    else:
                        profile = _profile(con, namespace, relation, column, data_type)
                except psycopg.errors.QueryCanceled:
                    reason = "reading values took too long: columns kept without"
                    rejects[table] = Reject(f"{variable}#{table}", None, reason)
                except (psycopg.errors.InsufficientPrivilege, psycopg.DataError, psycopg.ProgrammingError) as error:
                    reason = f"no values can be read ({error.diag.message_primary}): columns kept without"
                    rejects[table] = Reject(f"{variable}#{table}", None, reason)
            columns.append(
                FoundColumn(
                    table=table,
                    column=column,
                    origin=variable,
                    data_type=data_type,
                    nullable=bool(row[4]),
                    is_primary_key=bool(row[7]),
                    references_table=None if row[9] is None else _shown(str(row[8]), str(row[9]), schema),
                    references_column=None if row[10] is None else str(row[10]),
                    table_description=str(row[5]),
                    column_description=str(row[6]),
                    sample_values=profile.sample_values,
                    distinct_count=profile.distinct_count,
                    null_share=profile.null_share,
                    values=profile.values,
                )
            )
    if not columns:
        where = f"the schema {schema!r}" if schema else "the database"
        raise SchemaError(f"{variable}: {where} has no table that this user can see")
    return FoundSchema(tuple(columns), tuple(rejects.values()))


def postgres_fingerprint(variable: str, schema: str | None) -> str:
    """Hash what the database says about its tables, columns, keys and comments; values are not read.

    Raises:
        SchemaError: no connection.
    """
    with _connected(variable) as con:
        rows = _described(con, schema)
    return key_of([[None if value is None else str(value) for value in row] for row in rows])
