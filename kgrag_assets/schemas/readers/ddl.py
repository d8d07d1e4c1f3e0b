"""A DDL script: its statements read in the dialect that is stated, or in the one that understands the most."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from kgrag_assets.schemas.errors import SchemaError
from kgrag_assets.schemas.found import MAX_CONTENT, FoundSchema, Reject
from kgrag_assets.schemas.readers.ddl_parsing import NotUnderstoodError, StatementReader
from kgrag_assets.schemas.readers.sql_text import Statement, split_again, statements

# By the name that task.yaml may use; the first that understands as much as any other is taken.
DIALECTS: dict[str, str] = {
    "postgresql": "postgres",
    "postgres": "postgres",
    "mysql": "mysql",
    "mariadb": "mysql",
    "sqlserver": "tsql",
    "tsql": "tsql",
    "oracle": "oracle",
    "duckdb": "duckdb",
    "sqlite": "sqlite",
}
_GUESSED = ("postgres", "mysql", "tsql", "oracle", "duckdb")

_ABOUT_TABLES = re.compile(
    r"CREATE\s+(OR\s+REPLACE\s+)?((GLOBAL|LOCAL|PRIVATE|TEMP|TEMPORARY|UNLOGGED|FOREIGN|EXTERNAL)\s+)*TABLE\b"
    r"|ALTER\s+(FOREIGN\s+)?TABLE\b|COMMENT\s+ON\s+(TABLE|COLUMN)\b|(EXEC|EXECUTE)\s+(sys\s*\.\s*)?sp_addextendedproperty\b",
    re.IGNORECASE,
)
_CREATE_TABLE = re.compile(r"CREATE\b[^(]*\bTABLE\b", re.IGNORECASE)
# Of a changed table only these say something about the schema.
_ALTER = re.compile(r"ALTER\s+(FOREIGN\s+)?TABLE\b", re.IGNORECASE)
_ALTER_SAYS = re.compile(r"\b(PRIMARY|FOREIGN)\s+KEY\b|\bADD\s+COLUMN\b|\bADD\s*\(", re.IGNORECASE)
# Statements of a script that say nothing about tables' columns.
_OTHER = re.compile(
    r"(INSERT|UPDATE|DELETE|MERGE|REPLACE|SELECT|WITH|SET|USE|GRANT|REVOKE|DENY|DROP|TRUNCATE|BEGIN|START|COMMIT|END"
    r"|ROLLBACK|DECLARE|DO|EXEC|EXECUTE|CALL|PRINT|LOCK|UNLOCK|COPY|ANALYZE|ANALYSE|VACUUM|PRAGMA|IF|ELSE|RETURN"
    r"|SHOW|LOAD|INSTALL|ATTACH|DETACH|CHECKPOINT|REINDEX|CLUSTER|REFRESH|SECURITY|PURGE|RENAME|WHENEVER|SPOOL|EXIT"
    r"|QUIT|DELIMITER|PREPARE|DEALLOCATE|RAISERROR|THROW|WAITFOR|COMMENT\s+ON|ALTER"
    r"|CREATE\s+(OR\s+(REPLACE|ALTER)\s+)?((UNIQUE|CLUSTERED|NONCLUSTERED|COLUMNSTORE|FULLTEXT|SPATIAL|BITMAP|"
    r"MATERIALIZED|FORCE|NOFORCE|EDITIONABLE|NONEDITIONABLE|EDITIONING|TEMP|TEMPORARY|PUBLIC|TRUSTED|EVENT|CONSTRAINT|"
    r"AGGREGATE|RECURSIVE|SECRET|DEFINER\s*=\s*\S+|SQL\s+SECURITY\s+\w+|ALGORITHM\s*=\s*\w+)\s+)*"
    r"(INDEX|VIEW|SEQUENCE|FUNCTION|PROCEDURE|PROC|TRIGGER|TYPE|DOMAIN|SCHEMA|DATABASE|EXTENSION|ROLE|USER|LOGIN|"
    r"SYNONYM|PACKAGE|POLICY|RULE|PUBLICATION|SUBSCRIPTION|SERVER|TABLESPACE|COLLATION|CAST|OPERATOR|STATISTICS|"
    r"MACRO|LANGUAGE|DIRECTORY|PROFILE|CLUSTER|EVENT|TRIGGER|DEFAULT|SECRET|LINK))\b",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class _Reading:
    reader: StatementReader
    understood: int
    rejects: tuple[Reject, ...]


def _reject(statement: Statement, reason: str, shown: str) -> Reject:
    return Reject(shown, statement.line, f"{reason}: not read", statement.text[:MAX_CONTENT])


def _read_one(reader: StatementReader, statement: Statement, shown: str) -> tuple[int, list[Reject]]:
    """Read one statement; where it does not parse and another seems to begin inside it, read the parts."""
    if not _ABOUT_TABLES.match(statement.text):
        if _OTHER.match(statement.text):
            return 0, []
        return _read_parts(reader, statement, "no statement that is known here", shown)
    try:
        reader.read(statement)
    except NotUnderstoodError as error:
        if _ALTER.match(statement.text) and not _ALTER_SAYS.search(statement.text):
            return 0, []
        return _read_parts(reader, statement, str(error), shown)
    return 1, []


def _read_parts(reader: StatementReader, statement: Statement, reason: str, shown: str) -> tuple[int, list[Reject]]:
    parts = split_again(statement)
    if len(parts) == 1:
        return 0, [_reject(statement, reason, shown)]
    understood, rejects = 0, list[Reject]()
    for part in parts:
        more, problems = _read_one(reader, part, shown)
        understood += more
        rejects.extend(problems)
    return understood, rejects


def _read(found: Sequence[Statement], dialect: str, shown: str) -> _Reading:
    reader = StatementReader(dialect)
    understood, rejects = 0, list[Reject]()
    # Comments and keys may stand before the table that they speak of.
    tables_first = sorted(found, key=lambda statement: _CREATE_TABLE.match(statement.text) is None)
    for statement in tables_first:
        more, problems = _read_one(reader, statement, shown)
        understood += more
        rejects.extend(problems)
    rejects.sort(key=lambda reject: reject.row or 0)
    return _Reading(reader, understood, tuple(rejects))


def read_ddl(sql: str, shown: str, dialect: str | None = None) -> FoundSchema:
    """Read the tables of a DDL script.

    Descriptions come from COMMENT ON, from MySQL's COMMENT, from SQL Server's MS_Description, and from a
    comment at the end of a column's line. A statement that does not parse is a reject with its line.

    Args:
        sql: the script.
        shown: the file's name for messages.
        dialect: one of ``DIALECTS``; None tries PostgreSQL, MySQL, SQL Server, Oracle and DuckDB, and keeps the one
            that understands the most statements.

    Raises:
        SchemaError: the dialect is unknown, or no table can be read.
    """
    if dialect is not None and dialect.lower() not in DIALECTS:
        raise SchemaError(f"{shown}: the dialect {dialect!r} is not known: use one of {', '.join(sorted(DIALECTS))}")
    names = (DIALECTS[dialect.lower()],) if dialect is not None else _GUESSED
    cut: dict[bool, list[Statement]] = {}
    best: _Reading | None = None
    for name in names:
        backslashes = name == "mysql"
        if backslashes not in cut:
            cut[backslashes] = statements(sql, backslashes=backslashes)
        reading = _read(cut[backslashes], name, shown)
        if best is None or (reading.understood, -len(reading.rejects)) > (best.understood, -len(best.rejects)):
            best = reading
        if not reading.rejects and reading.understood:
            break
    columns = best.reader.tables.found(shown) if best is not None else []
    if best is None or not columns:
        first = best.rejects[0] if best is not None and best.rejects else None
        why = f" (line {first.row}: {first.reason})" if first else ""
        raise SchemaError(
            f"{shown}: no CREATE TABLE statement can be read{why}; name the dialect in task.yaml if needed"
        )
    return FoundSchema(tuple(columns), best.rejects)
