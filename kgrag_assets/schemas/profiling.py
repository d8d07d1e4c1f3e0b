"""Profiles of columns by DuckDB: the most frequent values, how many there are, and the share of nulls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import duckdb

from kgrag_assets.schemas.found import MAX_SAMPLES, as_samples

# Of a larger table the first rows are profiled: enough to know a column by, and no wait for a warehouse.
MAX_PROFILED_ROWS = 1_000_000
_VALUES_READ = MAX_SAMPLES * 3  # more than are kept: blank values and those alike in 80 characters drop out


@dataclass(frozen=True)
class Profile:
    """What is known of a column's values; counts are None where nothing could be counted."""

    sample_values: tuple[str, ...] = ()
    distinct_count: int | None = None
    null_share: float | None = None


Rows = Sequence[tuple[object, ...]]
# Runs a query and returns its rows; the engines differ in how they take one.
Run = Callable[[str], Rows]


def quoted(name: str) -> str:
    """Quote a name as an SQL identifier, the way DuckDB, SQLite and PostgreSQL all read it."""
    return '"' + name.replace('"', '""') + '"'


def profile_query(values: str) -> str:
    """Write the query whose rows ``profile_of`` reads.

    Args:
        values: a query with one column ``value`` of text, its names quoted and its values bound.
    """
    return (
        "SELECT value, n, count(value) OVER () AS kinds, sum(n) OVER () AS total, "  # noqa: S608 - the caller quotes
        "sum(CASE WHEN value IS NULL THEN n ELSE 0 END) OVER () AS nulls "
        f"FROM (SELECT value, count(*) AS n FROM ({values}) AS v GROUP BY value) AS g "
        f"ORDER BY n DESC, value LIMIT {_VALUES_READ}"
    )


def profile_of(rows: Rows, *, keep_values: bool = True) -> Profile:
    """Turn the rows of ``profile_query`` into a profile.

    Args:
        rows: value, its count, number of distinct values, number of rows, number of nulls.
        keep_values: false for values that mean nothing as text, such as pictures.
    """
    if not rows:
        return Profile()
    _, _, kinds, total, nulls = rows[0]
    samples = as_samples(str(row[0]) for row in rows if row[0] is not None) if keep_values else ()
    return Profile(samples, int(str(kinds)), int(str(nulls)) / int(str(total)))


def profile_duckdb(con: duckdb.DuckDBPyConnection, relation: str, column: str, *, keep_values: bool = True) -> Profile:
    """Profile one column in DuckDB.

    Args:
        con: an open connection.
        relation: a table, view or subquery as SQL, its names quoted.
        column: the column's name, not quoted.
        keep_values: whether to return sample values.

    Raises:
        duckdb.Error: the relation cannot be read.
    """
    cast = f"CAST({quoted(column)} AS VARCHAR)"
    part = f"SELECT {quoted(column)} FROM {relation} LIMIT {MAX_PROFILED_ROWS}"  # noqa: S608 - the names are quoted
    values = f"SELECT {cast} AS value FROM ({part}) AS t"  # noqa: S608 - the names are quoted
    return profile_of(con.execute(profile_query(values)).fetchall(), keep_values=keep_values)
