"""One DDL statement into tables, by sqlglot: what is read of CREATE TABLE, ALTER TABLE and comments."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.errors import ErrorLevel, SqlglotError

from kgrag_assets.schemas.readers.ddl_tables import DdlColumn, DdlTable, DdlTables, TableName
from kgrag_assets.schemas.readers.ddl_text import Token, reduced, tokenize, trailing_comments, type_text
from kgrag_assets.schemas.readers.sql_text import Statement, split_again
from kgrag_assets.schemas.types import type_family

# The schema's placeholder in the OMOP CDM's own scripts: @cdmDatabaseSchema.person.
_TEMPLATE = re.compile(r"(\b(?:TABLE|REFERENCES)\s+)(@\w+\.)", re.IGNORECASE)
_PROPERTY = re.compile(r"(?:@(\w+)\s*=\s*)?N?'((?:[^']|'')*)'")
_PROPERTY_NAMES = ("name", "value", "level0type", "level0name", "level1type", "level1name", "level2type", "level2name")


class NotUnderstoodError(ValueError):
    """A statement that should say something about tables cannot be read; the message says where."""


@contextmanager
def _quiet() -> Iterator[None]:
    # sqlglot warns in its log of every statement it passes over; those are reject rows here.
    logger = logging.getLogger("sqlglot")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)


def _parse(sql: str, dialect: str) -> Any:  # noqa: ANN401 - sqlglot's nodes are untyped here
    with _quiet():
        found = sqlglot.parse(sql, read=dialect, error_level=ErrorLevel.IMMEDIATE)
    return found[0] if found else None


def _identifiers(node: Any) -> list[str]:  # noqa: ANN401
    """Names of the columns in a key: identifiers, also below ``a ASC`` and ``a(10)``."""
    return [str(found.this) for found in node.find_all(exp.Identifier)]


def _table_name(table: Any) -> TableName:  # noqa: ANN401
    return str(table.args["db"].this) if table.args.get("db") else "", str(table.this.this)


def _start(node: Any) -> int | None:  # noqa: ANN401
    starts = [found.meta["start"] for found in node.find_all(exp.Identifier) if "start" in found.meta]
    return min(starts) if starts else None


class StatementReader:
    """Reads statements of one dialect into tables."""

    def __init__(self, dialect: str) -> None:
        self.dialect = dialect
        self.tables = DdlTables()

    def read(self, statement: Statement) -> None:
        """Read one CREATE TABLE, ALTER TABLE, COMMENT ON or extended property.

        Raises:
            NotUnderstoodError: it does not parse, or has no column list.
        """
        sql = reading = _TEMPLATE.sub(lambda match: match[1] + " " * len(match[2]), statement.text)
        if "sp_addextendedproperty" in sql.lower():
            self._extended_property(sql)
            return
        try:
            try:
                tree = _parse(sql, self.dialect)
                incomplete = isinstance(tree, exp.Command)
            except SqlglotError:
                incomplete = True
            if incomplete and len(split_again(statement)) > 1:
                raise NotUnderstoodError("the statement does not parse, and another one begins inside it")
            if incomplete:
                reading = reduced(sql, self.dialect)
                tree = _parse(reading, self.dialect)
            if isinstance(tree, exp.Create):
                self._create(tree, sql, statement.line)
            elif isinstance(tree, exp.Alter):
                self._alter(tree, sql, statement.line)
            elif isinstance(tree, exp.Comment):
                self._comment(tree)
            else:
                raise NotUnderstoodError("the statement does not parse")
        except SqlglotError as error:
            where = getattr(error, "errors", None)
            first = where[0] if where else {}
            line = statement.line + int(first.get("line") or 1) - 1
            what = str(first.get("description") or "the statement does not parse").rstrip(".")
            raise NotUnderstoodError(f"line {line}: {what}, near {str(first.get('highlight') or '')!r}") from error

    def _create(self, tree: Any, sql: str, line: int) -> None:  # noqa: ANN401
        schema = tree.this
        definitions = schema.expressions if isinstance(schema, exp.Schema) else []
        if not any(isinstance(definition, (exp.ColumnDef, exp.LikeProperty)) for definition in definitions):
            raise NotUnderstoodError("CREATE TABLE without a list of columns with types: write the columns out")
        name = _table_name(schema.this)
        if name in self.tables.tables:
            raise NotUnderstoodError(f"the table {name[1]} is made twice: the first is kept")
        table = DdlTable(name)
        self._define(table, definitions, sql, line)
        for found in tree.find_all(exp.SchemaCommentProperty):
            table.description = str(found.this.this)
        self.tables.tables[name] = table

    def _define(self, table: DdlTable, definitions: list[Any], sql: str, line: int) -> None:
        tokens = tokenize(sql, self.dialect)
        starts = [_start(definition) for definition in definitions]
        made: list[tuple[int, DdlColumn | None]] = []
        for definition, start in zip(definitions, starts, strict=True):
            column = None
            if isinstance(definition, exp.LikeProperty):
                other = self.tables.find(_table_name(definition.this))
                if other is None:
                    raise NotUnderstoodError("takes its columns from a table that is not made above it")
                table.columns.extend(replace(copied) for copied in other.columns)
            if isinstance(definition, (exp.Identifier, exp.Column)):
                # sqlglot lets a column without a type pass; only SQLite means it.
                if self.dialect != "sqlite":
                    raise NotUnderstoodError(f"the column {definition.name} has no type")
                definition = exp.ColumnDef(this=definition.find(exp.Identifier))  # noqa: PLW2901 - the same column
            if isinstance(definition, exp.ColumnDef) and start is not None:
                data_type = type_text(sql, tokens, start)
                if _no_column(definition, data_type):
                    continue
                column = DdlColumn(str(definition.this.this), data_type, line + sql.count("\n", 0, start))
                table.columns.append(column)
                for constraint in definition.args.get("constraints") or []:
                    self._constrain(column, constraint.args.get("kind"))
            made.append((start if start is not None else -1, column))
        for definition in definitions:
            if not isinstance(definition, exp.ColumnDef):
                self._table_constraint(table, definition)
        self._describe(table, made, sql, tokens)

    @staticmethod
    def _describe(table: DdlTable, made: list[tuple[int, DdlColumn | None]], sql: str, tokens: list[Token]) -> None:
        last = max((token.start for token in tokens if token.text == ")"), default=len(sql))
        for place, text in trailing_comments(sql, tokens):
            before = [column for start, column in made if 0 <= start <= place]
            if not before and not table.description:
                table.description = text
            elif before and before[-1] is not None and place < last and not before[-1].description:
                before[-1].description = text

    @staticmethod
    def _constrain(column: DdlColumn, kind: Any) -> None:  # noqa: ANN401
        if isinstance(kind, exp.NotNullColumnConstraint):
            column.nullable = bool(kind.args.get("allow_null"))
        elif isinstance(kind, exp.PrimaryKeyColumnConstraint):
            column.primary_key, column.nullable = True, False
        elif isinstance(kind, exp.CommentColumnConstraint):
            column.description = str(kind.this.this)
        elif isinstance(kind, exp.Reference):
            column.references = _reference(kind)[0]

    def _table_constraint(self, table: DdlTable, node: Any) -> None:  # noqa: ANN401
        parts = node.expressions if isinstance(node, exp.Constraint) else [node]
        for place, part in enumerate(parts):
            if isinstance(part, exp.PrimaryKey):
                table.set_primary_key([name for column in part.expressions for name in _identifiers(column)])
            elif isinstance(part, exp.PrimaryKeyColumnConstraint):
                # SQL Server writes PRIMARY KEY CLUSTERED (a ASC): the columns stand in the part behind.
                clustered = [p for p in parts[place:] if type(p).__name__.endswith("ClusteredColumnConstraint")]
                table.set_primary_key([n for p in clustered[:1] for c in p.this for n in _identifiers(c)])
            elif isinstance(part, exp.ForeignKey) and part.args.get("reference") is not None:
                names = [str(identifier.this) for identifier in part.expressions]
                targets = _reference(part.args["reference"])
                for index, name in enumerate(names):
                    column = table.column(name)
                    if column is not None:
                        column.references = targets[index] if index < len(targets) else (targets[0][0], None)

    def _alter(self, tree: Any, sql: str, line: int) -> None:  # noqa: ANN401
        table = self.tables.find(_table_name(tree.this))
        if table is None:
            raise NotUnderstoodError(f"changes the table {tree.this.sql()}, which is not made in this file")
        for action in tree.args.get("actions") or []:
            if isinstance(action, exp.AddConstraint):
                for constraint in action.expressions:
                    self._table_constraint(table, constraint)
            elif isinstance(action, exp.ColumnDef):
                self._define(table, [action], sql, line)
            elif isinstance(action, exp.Schema):
                self._define(table, action.expressions, sql, line)

    def _comment(self, tree: Any) -> None:  # noqa: ANN401
        text = str(tree.expression.this) if isinstance(tree.expression, exp.Literal) else ""
        kind = str(tree.args.get("kind") or "").upper()
        if kind == "TABLE":
            self._set_description(_table_name(tree.this), None, text)
        elif kind == "COLUMN":
            node = tree.this
            schema = str(node.args["db"].this) if node.args.get("db") else ""
            owner = str(node.args["table"].this) if node.args.get("table") else ""
            self._set_description((schema, owner), str(node.this.this), text)

    def _extended_property(self, sql: str) -> None:
        values: dict[str, str] = {}
        for place, match in enumerate(_PROPERTY.finditer(sql)):
            name = match.group(1) or (_PROPERTY_NAMES[place] if place < len(_PROPERTY_NAMES) else "")
            values[name.lower()] = match.group(2).replace("''", "'")
        if values.get("name", "").lower() == "ms_description" and values.get("level1type", "").lower() == "table":
            table = values.get("level0name", ""), values.get("level1name", "")
            self._set_description(table, values.get("level2name") or None, values.get("value", ""))

    def _set_description(self, table_name: TableName, column_name: str | None, text: str) -> None:
        table = self.tables.find(table_name)
        column = table.column(column_name) if table is not None and column_name is not None else None
        if table is None or (column_name is not None and column is None):
            shown = ".".join(part for part in (*table_name, column_name) if part)
            raise NotUnderstoodError(f"describes {shown}, which is not made in this file")
        if column is not None:
            column.description = text.strip()
        else:
            table.description = text.strip()


def _no_column(definition: Any, data_type: str) -> bool:  # noqa: ANN401
    """Whether it is an index or period that sqlglot takes for a column of that name."""
    name = definition.this
    return (
        not name.args.get("quoted")
        and str(name.this).upper() in {"INDEX", "KEY", "PERIOD", "SUPPLEMENTAL"}
        and type_family(data_type) == "unknown"
    )


def _reference(node: Any) -> list[tuple[TableName, str | None]]:  # noqa: ANN401
    target = node.this
    if isinstance(target, exp.Schema):
        name = _table_name(target.this)
        return [(name, str(column.this)) for column in target.expressions] or [(name, None)]
    return [(_table_name(target), None)]
