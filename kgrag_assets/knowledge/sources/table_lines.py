"""Lines of CSV and TSV files: cells, quotes, and values that run over several lines, which are refused."""

from __future__ import annotations

import csv
from collections.abc import Iterator

from kgrag_assets.knowledge.collector import Collector
from kgrag_assets.knowledge.sources.lines import lines_of

OPEN_QUOTE = "a quote does not close on its line; for values with line breaks write the table as Parquet"
INSIDE_QUOTES = "the line seems to lie inside a quoted value with line breaks; write the table as Parquet"
# A quote that does not close within so many lines is taken for a stray one: the lines behind it stay rows.
MAX_LINES_OF_VALUE = 200


class CellsError(ValueError):
    """A line cannot be split into cells; the message says why, for the reject table."""


def separator_of(header: str) -> str:
    """Tell by the header what separates the cells: a tab, else whichever of ``,`` and ``;`` there is more of."""
    if "\t" in header:
        return "\t"
    return ";" if header.count(";") > header.count(",") else ","


def cells_of(line: str, separator: str) -> list[str]:
    """Split a line; quotes are those of CSV, doubled within a quoted cell.

    Raises:
        CellsError: a quoted cell does not end, or a quote stands where none may.
    """
    if '"' not in line:
        return line.split(separator)
    try:
        cells = next(csv.reader([line], delimiter=separator, strict=True), [])
    except csv.Error as error:
        reason = OPEN_QUOTE if "end of data" in str(error) else f"quotes are not those of CSV ({error})"
        raise CellsError(reason) from error
    if _has_stray_quote(line, separator):
        raise CellsError("a quote stands inside a cell that is not quoted: put the cell in quotes and double it")
    return cells


def rows_of(block: bytes, separator: str, into: Collector, *, first: bool) -> Iterator[tuple[int, str, list[str]]]:
    """Yield row number, line and cells of each row of a block; lines that are no row are rejected, blank ones left out.

    A block may begin, and end, within a quoted value with line breaks. Of such a value every line is rejected:
    those behind an open quote up to the line that closes it, and at the beginning of a block that is not the
    ``first`` those before a line that closes what it did not open.
    """
    lines = lines_of(block, into)
    inside_to = -1 if first or b'"' not in block else _end_of_value_before(lines, separator)
    for place, line in enumerate(lines):
        if place <= inside_to:
            into.reject(place + 1, INSIDE_QUOTES, line)
        elif line and not line.isspace():
            try:
                cells = cells_of(line, separator)
            except CellsError as problem:
                into.reject(place + 1, str(problem), line)
                if str(problem) == OPEN_QUOTE:
                    inside_to = _end_of_value(lines, place, separator)
            else:
                yield place + 1, line, cells


def _end_of_value_before(lines: list[str], separator: str) -> int:
    """Return the place of the line that ends a value of the block before, -1 where none seems to."""
    for place, line in enumerate(lines[: MAX_LINES_OF_VALUE + 1]):
        if '"' in line:
            if not _only_closes(line, separator):
                return -1
            return max(place, _end_of_value(lines, place, separator) if _opens_again(line, separator) else -1)
    return -1


def _end_of_value(lines: list[str], opened: int, separator: str) -> int:
    """Return the place of the line that ends the value which an earlier one opened, -1 where that was a stray quote."""
    end, place = -1, opened + 1
    while place < len(lines) and place - opened <= MAX_LINES_OF_VALUE:
        if '"' in lines[place] and _closes(lines[place], separator):
            end = place
            if not _opens_again(lines[place], separator):
                break
            opened = place
        place += 1
    return end


def _opens_again(line: str, separator: str) -> bool:
    """Whether a line that ends a value also begins one that it does not end."""
    try:
        cells_of(f'"{line}', separator)
    except CellsError as problem:
        return str(problem) == OPEN_QUOTE
    return False


def _closes(line: str, separator: str) -> bool:
    """Whether a line, read on from within a quoted value, ends that value."""
    at = line.find('"')
    while at >= 0:
        if line[at + 1 : at + 2] != '"':
            return at == len(line) - 1 or line[at + 1] == separator
        at = line.find('"', at + 2)  # doubled: part of the value
    return False


def _only_closes(line: str, separator: str) -> bool:
    """Whether a line ends a quoted value of a line before, and cannot be a row of its own."""
    if not _closes(line, separator):
        return False
    try:
        cells_of(line, separator)
    except CellsError:
        return True
    return False


def _has_stray_quote(line: str, separator: str) -> bool:
    """Whether a cell that does not begin with a quote has one; the line is one that CSV's rules let through."""
    at, end = 0, len(line)
    while at < end:
        if line[at] == '"':
            at += 1
            while True:
                at = line.index('"', at) + 1
                if line[at : at + 1] != '"':
                    break
                at += 1
            at += 1  # the separator
        else:
            stop = line.find(separator, at)
            stop = end if stop < 0 else stop
            if '"' in line[at:stop]:
                return True
            at = stop + 1
    return False
