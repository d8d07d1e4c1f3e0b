"""What every reader returns: the columns it found and the rows it did not take, before they become tables."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kgrag_assets.schemas.value_profile import ValueProfile

MAX_CONTENT = 500
MAX_SAMPLES = 10
MAX_SAMPLE_LENGTH = 80


@dataclass(frozen=True)
class FoundColumn:
    """One column as an input states it. ``row`` is its line or row from 1, where the input has lines."""

    table: str
    column: str
    origin: str
    data_type: str = ""
    nullable: bool | None = None
    is_primary_key: bool | None = None
    references_table: str | None = None
    references_column: str | None = None
    table_description: str = ""
    column_description: str = ""
    sample_values: tuple[str, ...] = ()
    distinct_count: int | None = None
    null_share: float | None = None
    values: ValueProfile | None = None
    row: int | None = None


@dataclass(frozen=True)
class Reject:
    """A row (or a whole file, where ``row`` is None) that was not taken, and why."""

    file: str
    row: int | None
    reason: str
    content: str = ""


@dataclass(frozen=True)
class FoundSchema:
    """The columns of one side in the order of the input, and what was not taken."""

    columns: tuple[FoundColumn, ...]
    rejects: tuple[Reject, ...] = ()


@dataclass(frozen=True)
class FoundPair:
    """One correspondence as a reference states it; names are not looked up yet."""

    source_table: str
    source_column: str
    target_table: str
    target_column: str
    file: str
    row: int | None


def shown_row(values: Iterable[str]) -> str:
    """Write a row's cells as one text for a reject row, cut to 500 characters."""
    return " | ".join(values)[:MAX_CONTENT]


def as_samples(values: Iterable[str]) -> tuple[str, ...]:
    """Keep at most 10 different, non-blank values, each cut to 80 characters, in the order given."""
    kept: dict[str, None] = {}
    for value in values:
        if value.strip():
            kept.setdefault(value[:MAX_SAMPLE_LENGTH])
        if len(kept) == MAX_SAMPLES:
            break
    return tuple(kept)


def trimmed(name: str) -> str:
    """Cut white space (non-breaking space, byte-order mark and zero-width space too) from the ends of a name."""
    return name.strip().strip("\ufeff\u200b\u2060").strip()
