"""Ids and row keys of an index's rows as Arrow columns: a million of them open in no time and need no Python object."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import polars as pl
import pyarrow as pa

from kgrag_assets.rows.keys import key_of

# pyarrow ships no types.
StringArray: TypeAlias = Any
Strings: TypeAlias = "pl.Series | Sequence[str]"


@dataclass(frozen=True)
class IndexRows:
    """Rows sorted by id, each id once. Both columns are ``pyarrow.LargeStringArray``, perhaps mapped from a file."""

    ids: StringArray
    row_keys: StringArray

    @classmethod
    def of(cls, frame: pl.DataFrame) -> IndexRows:
        """Make rows from the columns ``id`` and ``row_key`` of a frame that is sorted by id."""
        return cls(ids=_arrow(frame["id"]), row_keys=_arrow(frame["row_key"]))

    @classmethod
    def none(cls) -> IndexRows:
        """No rows."""
        return cls(ids=pa.array([], pa.large_string()), row_keys=pa.array([], pa.large_string()))

    def __len__(self) -> int:
        return len(self.ids)

    def frame(self) -> pl.DataFrame:
        """Return the columns ``id`` and ``row_key``; the text is not copied."""
        return pl.DataFrame({"id": pl.Series(self.ids), "row_key": pl.Series(self.row_keys)})

    def take(self, rows: np.ndarray) -> IndexRows:
        """Return some of the rows, in the order asked for."""
        return IndexRows(ids=self.ids.take(pa.array(rows)), row_keys=self.row_keys.take(pa.array(rows)))

    def texts(self, rows: list[int]) -> list[str]:
        """Return the ids of a few rows, in a tenth of the time that Arrow's own scalars take."""
        ends, text = self._text
        return [str(text[ends[row] : ends[row + 1]], "utf-8") for row in rows]

    @cached_property
    def _text(self) -> tuple[memoryview, memoryview]:
        offsets, text = _buffers(self.ids)
        return offsets.data, text.data


def frame_of(ids: Strings, row_keys: Strings) -> pl.DataFrame:
    """Sort rows by id: columns ``id``, ``row_key`` and ``place`` (the row's number as given).

    Raises:
        ValueError: lengths differ, a value is missing, or an id stands twice.
    """
    if len(ids) != len(row_keys):
        raise ValueError(f"{len(ids)} ids do not go with {len(row_keys)} keys")
    frame = pl.DataFrame({"id": as_series(ids), "row_key": as_series(row_keys)}).with_row_index("place")
    if frame["id"].null_count() or frame["row_key"].null_count():
        raise ValueError("a row of an index needs an id and a key")
    frame = frame.with_columns(pl.col("place").cast(pl.Int64))
    if not frame["id"].is_sorted():
        frame = frame.sort("id")
    twice = frame["id"].eq(frame["id"].shift(1)).arg_true()
    if len(twice):
        raise ValueError(f"{frame['id'][int(twice[0])]!r} stands twice: an index holds one row for each id")
    return frame


def found_in(rows: pl.DataFrame, among: IndexRows) -> tuple[np.ndarray, np.ndarray]:
    """Return where each row's id stands among others, -1 for nowhere, and whether its key is the same there."""
    if not len(among):
        return np.full(rows.height, -1, dtype=np.int64), np.zeros(rows.height, dtype=bool)
    others = among.frame()
    if others["id"].equals(rows["id"]):
        return np.arange(rows.height), rows["row_key"].eq(others["row_key"]).to_numpy().astype(bool)
    joined = rows.join(others.with_row_index("found"), on="id", how="left", maintain_order="left")
    found = joined["found"].cast(pl.Int64).fill_null(-1).to_numpy()
    return found, joined["row_key"].eq_missing(joined["row_key_right"]).to_numpy().astype(bool)


def as_series(texts: pl.Series | Iterable[str]) -> pl.Series:
    """Return strings as a column."""
    if isinstance(texts, pl.Series):
        return texts.cast(pl.String)
    return pl.Series(list(texts), dtype=pl.String)


def hash_of(*columns: pl.Series) -> str:
    """Hash columns of strings, value by value, without a Python object for each; 32 hexadecimal digits."""
    parts: list[str] = []
    for column in columns:
        offsets, text = _buffers(_arrow(column))
        digest = hashlib.blake2b(np.diff(offsets).astype("<i8").tobytes(), digest_size=16)
        digest.update(text[offsets[0] : offsets[-1]].data)
        parts.append(digest.hexdigest())
    return key_of("columns", *parts)


def _arrow(column: pl.Series) -> StringArray:
    array = column.rechunk().to_arrow(compat_level=pl.CompatLevel.oldest())
    return array.cast(pa.large_string())


def _buffers(array: StringArray) -> tuple[np.ndarray, np.ndarray]:
    """Return where each value begins and ends, int64 of length n + 1, and the bytes of all."""
    _, offsets, text = array.buffers()
    if not len(array):
        return np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.uint8)
    ends = np.frombuffer(offsets, dtype=np.int64)[array.offset : array.offset + len(array) + 1]
    return ends, np.zeros(0, dtype=np.uint8) if text is None else np.frombuffer(text, dtype=np.uint8)
