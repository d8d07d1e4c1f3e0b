"""The values of search programs: plain ones, lists and records, all immutable and of bounded size."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kgrag_assets.models.prompt_text import shown
from kgrag_assets.retrieval.search_code.errors import ProgramError

# Characters of one text; longer ones out of the graph are cut.
MAX_TEXT = 500
# Plain values in one value, all levels together, and its levels: comparing two values must stay cheap.
MAX_SIZE = 10_000
MAX_LEVELS = 8
# Items of one list, and so the rounds of one loop.
MAX_ITEMS = 1000
MAX_NUMBER = 10**9

Plain = str | int | float | bool | None


@dataclass(frozen=True)
class Listing:
    """A list; a tuple of the program's text is one, too."""

    items: tuple[Value, ...]
    size: int
    levels: int

    def __bool__(self) -> bool:
        return bool(self.items)


@dataclass(frozen=True)
class Record:
    """Named fields: a result of a question, or a dictionary of the program's text. ``found`` is its truth."""

    what: str
    fields: tuple[tuple[str, Value], ...]
    found: bool
    size: int
    levels: int

    def __bool__(self) -> bool:
        return self.found

    def get(self, name: str) -> Value:
        """Return a field.

        Raises:
            KeyError: there is none of this name.
        """
        for known, value in self.fields:
            if known == name:
                return value
        raise KeyError(name)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its fields."""
        return tuple(name for name, _value in self.fields)


Value = Plain | Listing | Record


def size_of(value: Value) -> int:
    """Return how many plain values a value has."""
    return value.size if isinstance(value, Listing | Record) else 1


def listing(items: Iterable[Value], line: int = 0) -> Listing:
    """Make a list.

    Raises:
        ProgramError: it is too long, too large or nested too deep.
    """
    kept = tuple(items)
    if len(kept) > MAX_ITEMS:
        raise ProgramError(line, f"a list of {len(kept)} items is too long: at most {MAX_ITEMS}")
    return Listing(kept, *_measured(kept, line))


def record(what: str, fields: Mapping[str, Value], *, found: bool, line: int = 0) -> Record:
    """Make a record.

    Raises:
        ProgramError: it is too large or nested too deep.
    """
    return Record(what, tuple(fields.items()), found, *_measured(tuple(fields.values()), line))


def text(words: str) -> str:
    """Return a text as programs hold it: one line, without invisible characters, cut visibly where it is too long."""
    return shown(words, MAX_TEXT)


def _measured(parts: tuple[Value, ...], line: int) -> tuple[int, int]:
    size = 1 + sum(size_of(part) for part in parts)
    levels = 1 + max((part.levels for part in parts if isinstance(part, Listing | Record)), default=0)
    if size > MAX_SIZE:
        raise ProgramError(line, f"a value of {size} parts is too large: at most {MAX_SIZE}")
    if levels > MAX_LEVELS:
        raise ProgramError(line, f"values are nested {levels} deep: at most {MAX_LEVELS}")
    return size, levels
