"""An SQLite database file, opened read-only with Python's own module."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from kgrag_assets.schemas.errors import SchemaError
from kgrag_assets.schemas.found import FoundColumn, FoundSchema, Reject
from kgrag_assets.schemas.profiling import MAX_PROFILED_ROWS, Profile, profile_of, profile_query, quoted
from kgrag_assets.schemas.types import type_family


def _open(path: Path) -> sqlite3.Connection:
    con = sqlite3.connect(path.resolve().as_uri() + "?mode=ro", uri=True, timeout=5)
    # Values are not always UTF-8 there, whatever the column says.
    con.text_factory = lambda raw: raw.decode("utf-8", "replace")
    # Functions and triggers that somebody's schema defines have nothing to do here.
    con.execute("PRAGMA trusted_schema = OFF")
    con.execute("PRAGMA query_only = ON")
    return con


def _profile(con: sqlite3.Connection, table: str, column: str, data_type: str) -> Profile:
    name = quoted(column)
    # A column takes values of any type there: only numbers among them have an order that means something.
    values = (
        f"SELECT CAST({name} AS TEXT) AS value, "  # noqa: S608 - the names are quoted
        f"CASE WHEN typeof({name}) IN ('integer', 'real') THEN {name} END AS ordered "
        f"FROM (SELECT {name} FROM {quoted(table)} LIMIT {MAX_PROFILED_ROWS})"
    )
    keep = type_family(data_type) != "binary"
    return profile_of(con.execute(profile_query(values, ordered=True)).fetchall(), keep_values=keep)


def _foreign_keys(con: sqlite3.Connection, table: str) -> dict[str, tuple[str, str | None]]:
    found: dict[str, tuple[str, str | None]] = {}
    query = 'SELECT "from", "table", "to" FROM pragma_foreign_key_list(?) ORDER BY id, seq'
    for column, other, other_column in con.execute(query, (table,)).fetchall():
        # Without a column it points to the primary key of the other table.
        key = con.execute("SELECT name FROM pragma_table_info(?) WHERE pk = 1", (other,)).fetchone()
        found[column] = (other, other_column if other_column is not None else key[0] if key else None)
    return found


def _read_table(con: sqlite3.Connection, table: str, shown: str) -> FoundSchema:
    foreign = _foreign_keys(con, table)
    # Hidden 1 is an internal column of a virtual table; 2 and 3 are generated columns.
    query = 'SELECT name, type, "notnull", pk FROM pragma_table_xinfo(?) WHERE hidden <> 1 ORDER BY cid'
    columns: list[FoundColumn] = []
    rejects: list[Reject] = []
    for column, data_type, not_null, key in con.execute(query, (table,)).fetchall():
        profile = Profile()
        if not rejects:
            try:
                profile = _profile(con, table, column, data_type)
            except sqlite3.Error as error:
                rejects.append(
                    Reject(f"{shown}#{table}", None, f"no values can be read ({error}): columns kept without")
                )
        references = foreign.get(column, (None, None))
        columns.append(
            FoundColumn(
                table=table,
                column=column,
                origin=shown,
                data_type=data_type,
                nullable=not (not_null or key),
                is_primary_key=bool(key),
                references_table=references[0],
                references_column=references[1],
                sample_values=profile.sample_values,
                distinct_count=profile.distinct_count,
                null_share=profile.null_share,
                values=profile.values,
            )
        )
    return FoundSchema(tuple(columns), tuple(rejects))


def read_sqlite(path: Path, shown: str) -> FoundSchema:
    """Read all tables and views of an SQLite file, with keys and a profile of each column.

    Raises:
        SchemaError: the file is locked, damaged, or has no table.
    """
    columns: list[FoundColumn] = []
    rejects: list[Reject] = []
    try:
        with closing(_open(path)) as con:
            tables = con.execute(
                "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite\\_%' ESCAPE "
                "'\\' ORDER BY rowid"
            ).fetchall()
            for (table,) in tables:
                try:
                    found = _read_table(con, table, shown)
                except sqlite3.OperationalError as error:
                    # A view over a table that is gone: the other tables are none the worse for it.
                    if "locked" in str(error) or "malformed" in str(error):
                        raise
                    rejects.append(Reject(f"{shown}#{table}", None, f"not read: {error}"))
                    continue
                columns.extend(found.columns)
                rejects.extend(found.rejects)
    except (sqlite3.Error, UnicodeDecodeError) as error:  # a damaged name shows in the error's own text
        hint = (
            "another program is writing it: close it there, or copy the file"
            if "locked" in str(error)
            else "the file may be cut off or damaged: copy it again"
        )
        raise SchemaError(f"{shown}: cannot be read as an SQLite database ({error}): {hint}") from error
    if not columns:
        raise SchemaError(f"{shown}: the database has no table")
    return FoundSchema(tuple(columns), tuple(rejects))
