"""Profiles of columns by SQL: frequent values, counts, and a sample of the others to describe them by."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import duckdb

from kgrag_assets.schemas.found import MAX_SAMPLES, as_samples
from kgrag_assets.schemas.types import type_family
from kgrag_assets.schemas.value_profile import ValueProfile, describe_values

# Of a larger table the first rows are profiled: enough to know a column by, and no wait for a warehouse.
MAX_PROFILED_ROWS = 1_000_000
_VALUES_READ = MAX_SAMPLES * 3  # more than are kept: blank values and those alike in 80 characters drop out
# Of the other distinct values so many are read, spread evenly over their order: the same ones each time. A prime, for
# a round number keeps in step with numbers ordered as text and misses all of some length.
_SPREAD = 997
# Values are read up to here: nothing that a profile tells needs more of a text.
_VALUE_LENGTH = 200
# Families whose least and greatest value the database itself can tell.
ORDERED_FAMILIES = frozenset({"integer", "decimal", "date", "timestamp"})


@dataclass(frozen=True)
class Profile:
    """What is known of a column's values; counts are None where nothing could be counted."""

    sample_values: tuple[str, ...] = ()
    distinct_count: int | None = None
    null_share: float | None = None
    values: ValueProfile | None = None


Rows = Sequence[tuple[object, ...]]
# Runs a query and returns its rows; the engines differ in how they take one.
Run = Callable[[str], Rows]


def quoted(name: str) -> str:
    """Quote a name as an SQL identifier, the way DuckDB, SQLite and PostgreSQL all read it."""
    return '"' + name.replace('"', '""') + '"'


def ordered_column(column: str, data_type: str) -> str | None:
    """Return a column as SQL where values of its type have an order that the database knows, else None."""
    return quoted(column) if type_family(data_type) in ORDERED_FAMILIES else None


def profile_query(values: str, *, ordered: bool = False) -> str:
    """Write the query whose rows ``profile_of`` reads.

    Everything is counted in the database. Read are the most frequent values and, of the others, every so manieth in
    their order: few rows, the same each time, whatever the size of the table.

    Args:
        values: a query with one column ``value`` of text, its names quoted and its values bound.
        ordered: it has a second column ``ordered``, whose least and greatest value are to be told as text.
    """
    least, greatest = (
        (f"CAST({function}({function}_ordered) OVER () AS VARCHAR(100))" for function in ("min", "max"))
        if ordered
        else ("NULL", "NULL")
    )
    inner = ", min(ordered) AS min_ordered, max(ordered) AS max_ordered" if ordered else ""
    outer = ", min_ordered, max_ordered" if ordered else ""
    groups = f"SELECT value, count(*) AS n{inner} FROM ({values}) AS v GROUP BY value"  # noqa: S608 - the caller quotes
    # Cut before anything is put in order: a text of megabytes is not carried along.
    cut = f"SELECT substr(value, 1, {_VALUE_LENGTH}) AS value, length(value) AS size, n{outer} FROM ({groups}) AS g"  # noqa: S608
    return (
        "SELECT value, n, kinds, total, nulls, shortest, longest, characters, least, greatest, "  # noqa: S608
        f"CASE WHEN place <= {_VALUES_READ} THEN 1 ELSE 0 END AS frequent FROM ("
        "SELECT value, size, n, count(value) OVER () AS kinds, count(*) OVER () AS groups, sum(n) OVER () AS total, "
        "sum(CASE WHEN value IS NULL THEN n ELSE 0 END) OVER () AS nulls, "
        "min(size) OVER () AS shortest, max(size) OVER () AS longest, sum(n * size) OVER () AS characters, "
        f"{least} AS least, {greatest} AS greatest, "
        "row_number() OVER (ORDER BY n DESC, value, size) AS place, row_number() OVER (ORDER BY value, size) AS spot "
        f"FROM ({cut}) AS c) AS p "
        f"WHERE place <= {_VALUES_READ} OR (spot * {_SPREAD}) % groups < {_SPREAD} "
        "ORDER BY n DESC, value, size"
    )


def profile_of(rows: Rows, *, keep_values: bool = True) -> Profile:
    """Turn the rows of ``profile_query`` into a profile.

    Args:
        rows: value, its count, number of distinct values, of rows, of nulls, shortest and longest length, all
            characters, least and greatest value, and whether the value is among the most frequent.
        keep_values: false for values that mean nothing as text, such as pictures.
    """
    if not rows:
        return Profile()
    kinds, total, nulls = (int(str(number)) for number in rows[0][2:5])
    found = Profile((), kinds, nulls / total)
    if not keep_values or not kinds:
        return found
    frequent = [(str(row[0]), int(str(row[1]))) for row in rows if row[0] is not None and row[10]]
    spread = [(str(row[0]), int(str(row[1]))) for row in rows if row[0] is not None and not row[10]]
    # Those that were left out are stood for by those that were read.
    unread = (total - nulls) - sum(n for _, n in frequent)
    scale = unread / sum(n for _, n in spread) if spread else 0.0
    _, _, _, _, _, shortest, longest, characters, least, greatest, _ = rows[0]
    return Profile(
        as_samples(value for value, _ in frequent),
        kinds,
        nulls / total,
        describe_values(
            [*((value, float(n)) for value, n in frequent), *((value, n * scale) for value, n in spread)],
            uniqueness=kinds / (total - nulls),
            lengths=(int(str(shortest)), float(str(characters)) / (total - nulls), int(str(longest))),
            extremes=None if least is None or greatest is None else (str(least), str(greatest)),
        ),
    )


def profile_duckdb(
    con: duckdb.DuckDBPyConnection, relation: str, column: str, *, ordered: str | None = None, keep_values: bool = True
) -> Profile:
    """Profile one column in DuckDB.

    Args:
        con: an open connection.
        relation: a table, view or subquery as SQL, its names quoted.
        column: the column's name, not quoted.
        ordered: an SQL expression of the column as a number or date, where its least and greatest are to be told.
        keep_values: whether to return sample values.

    Raises:
        duckdb.Error: the relation cannot be read.
    """
    name = quoted(column)
    part = f"SELECT {name} FROM {relation} LIMIT {MAX_PROFILED_ROWS}"  # noqa: S608 - the names are quoted
    second = f", {ordered} AS ordered" if ordered else ""
    values = f"SELECT CAST({name} AS VARCHAR) AS value{second} FROM ({part}) AS t"  # noqa: S608 - the names are quoted
    return profile_of(con.execute(profile_query(values, ordered=bool(ordered))).fetchall(), keep_values=keep_values)
