"""Tables as a DDL script builds them up, statement by statement: columns, keys, comments."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from kgrag_assets.schemas.found import FoundColumn

TableName = tuple[str, str]  # schema (may be empty) and table


@dataclass
class DdlColumn:
    """One column as far as read."""

    name: str
    data_type: str
    line: int
    nullable: bool = True
    primary_key: bool = False
    references: tuple[TableName, str | None] | None = None
    description: str = ""


@dataclass
class DdlTable:
    """One table as far as read; two columns of one name stay two, so that the second can be rejected by name."""

    name: TableName
    columns: list[DdlColumn] = field(default_factory=list)
    description: str = ""

    def column(self, name: str) -> DdlColumn | None:
        """Find a column: exactly, or else the first that differs in case only, as SQL itself does."""
        exact = (column for column in self.columns if column.name == name)
        folded = (column for column in self.columns if column.name.casefold() == name.casefold())
        return next(exact, None) or next(folded, None)

    def set_primary_key(self, names: list[str]) -> None:
        """Mark the columns of the primary key; its columns are never null."""
        for name in names:
            column = self.column(name)
            if column is not None:
                column.primary_key, column.nullable = True, False


@dataclass
class DdlTables:
    """All tables of a script."""

    tables: dict[TableName, DdlTable] = field(default_factory=dict)

    def find(self, name: TableName) -> DdlTable | None:
        """Find a table: exactly, or else the only one whose name agrees as far as both state a schema."""
        if name in self.tables:
            return self.tables[name]
        schema, table = name[0].casefold(), name[1].casefold()
        near = [
            known
            for known in self.tables.values()
            if known.name[1].casefold() == table and (not schema or known.name[0].casefold() in {"", schema})
        ]
        return near[0] if len(near) == 1 else None

    def _primary_key(self, name: TableName) -> str | None:
        table = self.find(name)
        keys = [column.name for column in table.columns if column.primary_key] if table else []
        return keys[0] if len(keys) == 1 else None

    def found(self, origin: str) -> list[FoundColumn]:
        """Return the columns; a table whose name stands in two schemas is named ``schema.table``."""
        repeated = Counter(name for _, name in self.tables)
        shown = {name: f"{name[0]}.{name[1]}" if name[0] and repeated[name[1]] > 1 else name[1] for name in self.tables}
        columns: list[FoundColumn] = []
        for table in self.tables.values():
            for column in table.columns:
                other, other_column = column.references or (None, None)
                known = self.find(other) if other else None
                columns.append(
                    FoundColumn(
                        table=shown[table.name],
                        column=column.name,
                        origin=origin,
                        data_type=column.data_type,
                        nullable=column.nullable,
                        is_primary_key=column.primary_key,
                        references_table=shown[known.name] if known else other[1] if other else None,
                        references_column=other_column or (self._primary_key(other) if other else None),
                        table_description=table.description,
                        column_description=column.description,
                        row=column.line,
                    )
                )
        return columns
