"""What the values of a column are like: lengths, numbers, years and patterns, rounded, and how they become a row."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import accumulate

MAX_PATTERNS = 5
# Longer runs of one kind of character are written once with a plus.
LONGEST_RUN = 10
LONGEST_WORD = 3
MAX_PATTERN_LENGTH = 24
# Values longer than this are texts: their pattern would be one of its own for each.
LONGEST_PATTERNED = 60
TEXT_PATTERN = "text"

_RUNS = re.compile(r"[^\W\d_]+|\d+|\s+")
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?")
_LEADING_ZERO = re.compile(r"[+-]?0\d")
_YEAR_FIRST = re.compile(r"(\d{4})[-/.]\d{1,2}[-/.]\d{1,2}(?:[ T].*)?")
_YEAR_LAST = re.compile(r"\d{1,2}[-/.]\d{1,2}[-/.](\d{4})(?:[ T].*)?")
# Share of the values that must read as numbers, or as dates, for the column to be told as such.
_MOST = 0.95


@dataclass(frozen=True)
class Pattern:
    """How values are written, such as ``AAA-999``, and the share (0..1) of the values that are."""

    pattern: str
    share: float


@dataclass(frozen=True)
class ValueProfile:
    """What the values of a column are like; None where it does not apply or nothing could be told.

    ``uniqueness`` is the share of values that are distinct, 1 for a key. Lengths are in characters. Numbers stand where
    nearly all values are numbers, years where nearly all are dates. All are rounded (two significant digits, shares to
    tenths): a profile says what kind of values a column holds, and rows that are added must not make it another one.
    Nothing here is a value of the column, but for extremes rounded to two digits.
    """

    uniqueness: float | None = None
    shortest: int | None = None
    mean_length: float | None = None
    longest: int | None = None
    minimum: float | None = None
    quartile_1: float | None = None
    median: float | None = None
    quartile_3: float | None = None
    maximum: float | None = None
    first_year: int | None = None
    last_year: int | None = None
    patterns: tuple[Pattern, ...] = ()

    def row(self) -> dict[str, object]:
        """Return it as the struct of ``schema_attributes``."""
        return {**asdict(self), "patterns": [asdict(pattern) for pattern in self.patterns]}

    @classmethod
    def of_row(cls, row: Mapping[str, object]) -> ValueProfile:
        """Read the struct of ``schema_attributes``."""
        patterns = row.get("patterns")
        found = [Pattern(**one) for one in patterns] if isinstance(patterns, list) else []
        return cls(**{**row, "patterns": tuple(found)})  # type: ignore[arg-type]  # types are held by the table


def pattern_of(value: str) -> str:
    """Return how a value is written: letters become ``A`` or ``a``, digits ``9``, the rest stays.

    Runs of more than three letters or ten digits are written once with a plus, so that words of different lengths are
    written alike: ``ICD-10`` gives ``AAA-99``, ``female`` gives ``a+``, ``Berlin`` ``Aa+``. A value of more than
    ``LONGEST_PATTERNED`` characters is ``text``.
    """
    stripped = value.strip()
    if len(stripped) > LONGEST_PATTERNED:
        return TEXT_PATTERN
    return _RUNS.sub(_run, stripped)[:MAX_PATTERN_LENGTH]


def _run(match: re.Match[str]) -> str:
    run = match.group()
    if run.isspace():
        return " "
    if run[0].isdecimal() or run.isdigit():
        return "9" * len(run) if len(run) <= LONGEST_RUN else "9+"
    kinds = ["A" if character.isupper() else "a" for character in run]
    if len(kinds) <= LONGEST_WORD:
        return "".join(kinds)
    if all(kind == "A" for kind in kinds):
        return "A+"
    return "Aa+" if kinds[0] == "A" else "a+"


def rounded(number: float, digits: int = 2) -> float:
    """Round to significant digits; what is no finite number becomes 0."""
    if not number or not math.isfinite(number):
        return 0.0
    return float(f"{number:.{digits - 1}e}")


def number_of(value: str) -> float | None:
    """Read a value as a number; a code with a leading zero, a blank or anything else is none."""
    text = value.strip()
    if not _NUMBER.fullmatch(text) or _LEADING_ZERO.match(text):
        return None
    number = float(text)
    return number if math.isfinite(number) else None


def year_of(value: str) -> int | None:
    """Return the year of a value that is a full date, with the year first or last, with or without a time."""
    text = value.strip()
    found = _YEAR_FIRST.fullmatch(text) or _YEAR_LAST.fullmatch(text)
    return int(found.group(1)) if found else None


def describe_values(
    values: Iterable[tuple[str, float]],
    *,
    uniqueness: float | None = None,
    lengths: tuple[int, float, int] | None = None,
    extremes: tuple[str, str] | None = None,
) -> ValueProfile | None:
    """Describe a column from a sample of its distinct values.

    Args:
        values: different values, each with its weight: how many rows it stands for.
        uniqueness: distinct values over all values that are there, where that was counted.
        lengths: shortest, mean and longest of all values, where that was counted over all; else of the sample.
        extremes: least and greatest of all values, where the database ordered them as numbers or dates.

    Returns:
        None without a value that is more than blanks.
    """
    weighed = [(value, weight) for value, weight in values if value.strip() and weight > 0]
    if not weighed:
        return None
    total = sum(weight for _, weight in weighed)
    if lengths is None:
        sizes = [len(value) for value, _ in weighed]
        lengths = min(sizes), sum(len(value) * weight for value, weight in weighed) / total, max(sizes)
    numbers = sorted((number, weight) for value, weight in weighed if (number := number_of(value)) is not None)
    years = [(year, weight) for value, weight in weighed if (year := year_of(value)) is not None]
    patterns: dict[str, float] = defaultdict(float)
    for value, weight in weighed:
        patterns[pattern_of(value)] += weight
    shares = sorted(patterns.items(), key=lambda item: (-item[1], item[0]))[:MAX_PATTERNS]
    told = [Pattern(pattern, round(weight / total, 1)) for pattern, weight in shares]
    least, lower, middle, upper, greatest = _numbers(numbers, extremes) if _mostly(numbers, total) else [None] * 5
    first, last = _years(years, extremes) if _mostly(years, total) else (None, None)
    return ValueProfile(
        uniqueness=None if uniqueness is None else round(uniqueness, 1),
        shortest=lengths[0],
        mean_length=rounded(lengths[1]),
        longest=int(rounded(lengths[2])),
        minimum=least,
        quartile_1=lower,
        median=middle,
        quartile_3=upper,
        maximum=greatest,
        first_year=first,
        last_year=last,
        patterns=tuple(pattern for pattern in told if pattern.share > 0),
    )


def _mostly(found: Sequence[tuple[float, float]], total: float) -> bool:
    return bool(found) and sum(weight for _, weight in found) >= _MOST * total


def _numbers(numbers: Sequence[tuple[float, float]], extremes: tuple[str, str] | None) -> list[float]:
    """Return least, quartiles and greatest, rounded."""
    told = [number for extreme in extremes or () if (number := number_of(extreme)) is not None]
    ends = [numbers[0][0], numbers[-1][0], *told]
    lower, middle, upper = (_quantile(numbers, share) for share in (0.25, 0.5, 0.75))
    return [rounded(number) for number in (min(ends), lower, middle, upper, max(ends))]


def _quantile(numbers: Sequence[tuple[float, float]], share: float) -> float:
    """Return the least number up to which a share of the weight lies; numbers are sorted."""
    wanted = share * sum(weight for _, weight in numbers)
    reached = accumulate(weight for _, weight in numbers)
    return next((number for (number, _), sum_ in zip(numbers, reached, strict=True) if sum_ >= wanted), numbers[-1][0])


def _years(years: Sequence[tuple[int, float]], extremes: tuple[str, str] | None) -> tuple[int, int]:
    known = [year for year, _ in years]
    known += [year for extreme in extremes or () if (year := year_of(extreme)) is not None]
    return min(known), max(known)
