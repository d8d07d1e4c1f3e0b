"""What a table is: columns with type and meaning, and the check that a frame is what its table says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import polars as pl

from kgrag_assets.rows.keys import Part, key_of

ROW_KEY = "row_key"
_HASH = "^[0-9a-f]{32}$"

# What a polars frame takes as the type of a column.
DType = pl.DataType | type[pl.DataType]


class TableError(ValueError):
    """A frame does not fit its table; the message names the table, the column and the first bad row."""


@dataclass(frozen=True)
class Column:
    """One column: its name, polars type, meaning, and whether it may be empty."""

    name: str
    dtype: DType
    description: str
    nullable: bool = False


@dataclass(frozen=True)
class Table:
    """One stage's table. ``key`` names the columns that together are unique.

    ``deltas`` says that partitions are large and change a little at a time: the lake then writes what changed
    beside the rows it has, instead of all rows again.
    """

    name: str
    description: str
    columns: tuple[Column, ...]
    key: tuple[str, ...] = field(default=(ROW_KEY,))
    deltas: bool = False

    @property
    def schema(self) -> pl.Schema:
        """Column names and polars types, in order."""
        return pl.Schema({column.name: column.dtype for column in self.columns})

    @property
    def names(self) -> list[str]:
        """Column names, in order."""
        return [column.name for column in self.columns]

    def empty(self) -> pl.DataFrame:
        """Return a frame of this table without rows."""
        return pl.DataFrame(schema=self.schema)

    def frame(self, rows: Sequence[dict[str, object]]) -> pl.DataFrame:
        """Build a frame of this table from dictionaries; every column must be present in each.

        Raises:
            TableError: a column is missing, unknown, of the wrong type, or empty where it must not be.
        """
        if not rows:
            return self.empty()
        wanted = set(self.names)
        for position, row in enumerate(rows):
            if set(row) != wanted:
                missing, unknown = sorted(wanted - set(row)), sorted(set(row) - wanted)
                raise TableError(f"{self.name}, row {position}: missing columns {missing}, unknown columns {unknown}")
        try:
            frame = pl.DataFrame(rows, schema=self.schema, strict=True)
        except (TypeError, pl.exceptions.PolarsError) as error:
            raise TableError(f"{self.name}: a value is not of its column's type: {error}") from error
        return self.conform(frame)

    def conform(self, frame: pl.DataFrame, *, unique: bool = True) -> pl.DataFrame:
        """Return the frame with its columns in order, or say what does not fit.

        Args:
            frame: rows to be stored; columns in any order.
            unique: whether to look for keys that stand twice; False for rows that were checked when written.

        Raises:
            TableError: columns or types differ, a required value is null, or the key is not unique.
        """
        missing = [name for name in self.names if name not in frame.columns]
        unknown = [name for name in frame.columns if name not in self.schema]
        if missing or unknown:
            raise TableError(f"{self.name}: missing columns {missing}, unknown columns {unknown}")
        frame = frame.select(self.names)
        for name, dtype in self.schema.items():
            if frame.schema[name] != dtype:
                raise TableError(f"{self.name}.{name}: expected {dtype}, found {frame.schema[name]}")
        for column in self.columns:
            if not column.nullable and frame[column.name].null_count():
                row = frame[column.name].is_null().arg_true()[0]
                raise TableError(f"{self.name}.{column.name}: row {row} is empty, but the column must be filled")
        repeated = frame.select(self.key).is_duplicated() if unique else None
        if repeated is not None and repeated.any():
            row = repeated.arg_true()[0]
            raise TableError(f"{self.name}: the key {frame.select(self.key).row(row)} stands in more than one row")
        return frame


@dataclass(frozen=True)
class KeySum:
    """Row keys as a sum, from which their data version follows: rows that come or go change it without the others.

    The keys are hashes themselves. Their halves are summed as 64-bit numbers (a hash of a multiset), which for
    millions of rows takes no loop in Python and no sorting.
    """

    count: int = 0
    low: int = 0
    high: int = 0

    @classmethod
    def of(cls, keys: pl.Series) -> KeySum:
        """Sum the keys of a column."""
        if not keys.str.contains(_HASH).all():
            # Keys that are no hashes, as people write them in tests.
            keys = pl.Series([key_of(key) for key in keys], dtype=pl.String)
        halves = (
            pl.col(ROW_KEY)
            .str.slice(start, 16)
            .str.decode("hex")
            .bin.reinterpret(dtype=pl.UInt64, endianness="big")
            .alias(str(start))
            for start in (0, 16)
        )
        numbers = keys.alias(ROW_KEY).to_frame().select(halves)
        return cls(len(keys), *(int(half.to_numpy().sum(dtype="uint64")) for half in numbers))

    def __add__(self, other: KeySum) -> KeySum:
        return KeySum(
            self.count + other.count, (self.low + other.low) % (1 << 64), (self.high + other.high) % (1 << 64)
        )

    def __sub__(self, other: KeySum) -> KeySum:
        return KeySum(
            self.count - other.count, (self.low - other.low) % (1 << 64), (self.high - other.high) % (1 << 64)
        )

    @property
    def data_version(self) -> str:
        """32 hexadecimal digits; equal for equal sets of keys."""
        return key_of("rows", self.count, self.low, self.high)


def data_version(rows: pl.DataFrame | pl.Series) -> str:
    """Hash the row keys of a partition into its data version, whatever their order.

    Args:
        rows: a frame with ``row_key``, or that column.

    Returns:
        32 hexadecimal digits; equal for equal sets of rows.
    """
    return KeySum.of(rows[ROW_KEY] if isinstance(rows, pl.DataFrame) else rows).data_version


def with_row_key(frame: pl.DataFrame, *salt: Part) -> pl.DataFrame:
    """Add ``row_key``: a hash of all other columns of each row and of ``salt``.

    For tables whose rows say everything that decides them. Tables of computed rows (an embedding, a
    judgment) hash their inputs instead, so that a key is known before the row is computed.
    """
    rest = [name for name in frame.columns if name != ROW_KEY]
    keys = [key_of(*salt, row) for row in frame.select(rest).iter_rows()]
    return frame.select(rest).with_columns(pl.Series(ROW_KEY, keys, dtype=pl.String))
