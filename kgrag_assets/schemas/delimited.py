"""CSV and TSV text into rows of cells: which delimiter, quoting, and rows that are broken."""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from pathlib import Path

from kgrag_assets.schemas.decoding import read_text
from kgrag_assets.schemas.errors import SchemaError
from kgrag_assets.schemas.found import MAX_CONTENT, Reject
from kgrag_assets.schemas.grid import Grid, GridRow, header_name

DELIMITERS = (",", ";", "\t", "|")


def _cells(line: str, delimiter: str) -> list[str]:
    try:
        return next(csv.reader([line], delimiter=delimiter), [])
    except csv.Error:
        return []


def sniff_delimiter(line: str, known: Collection[str] = ()) -> str:
    """Choose the delimiter of a header line: the one that yields most known names, then most cells.

    Args:
        line: the header line.
        known: names that a header of this layout may have, as ``grid.header_name`` gives them.
    """

    def merit(delimiter: str) -> tuple[int, int]:
        cells = _cells(line, delimiter)
        return sum(header_name(cell) in known for cell in cells), len(cells)

    return max(DELIMITERS, key=merit)


def records(lines: Sequence[str], delimiter: str, start: int = 0) -> Iterator[tuple[int, list[str] | str]]:
    """Split lines into records.

    A broken record (a quote that is never closed, or text after a closing quote) costs its first line
    only: reading goes on at the next line, so that one stray quote does not swallow the file.

    Yields:
        The line number from 1, and the cells, or, where the record is broken, the reason as text.
    """
    place = start
    while place < len(lines):
        rest = islice(lines, place, None)
        reader = csv.reader(rest, delimiter=delimiter, strict=True)
        try:
            record = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            yield (
                place + 1,
                f"the quotes of this row do not pair up ({error}): write a quote inside a quoted text twice",
            )
            place += 1
            continue
        yield place + 1, record
        place += reader.line_num


def grid_of_text(text: str, shown: str, known: Collection[str] = ()) -> Grid:
    """Split CSV text into a grid; blank rows are left out, broken ones are in ``rejects``.

    Args:
        text: the whole file; delimiter and line ends may be of any usual kind.
        shown: the file's name for messages.
        known: names that its header may have, to choose the delimiter by.
    """
    lines = list(io.StringIO(text, newline=""))
    start = 0
    first = next((line for line in lines if line.strip()), "")
    declared = first.strip().lower()
    if declared.startswith("sep=") and len(declared) == 5:
        # Excel's own way of naming the delimiter in the first line.
        delimiter = first.strip()[4]
        start = lines.index(first) + 1
    else:
        delimiter = sniff_delimiter(first, known)
    rows: list[GridRow] = []
    rejects: list[Reject] = []
    for number, record in records(lines, delimiter, start):
        if isinstance(record, str):
            rejects.append(Reject(shown, number, record, lines[number - 1].rstrip("\r\n")[:MAX_CONTENT]))
            continue
        row = GridRow(number, tuple(record))
        if not row.blank:
            rows.append(row)
    if not rows:
        raise SchemaError(f"{shown}: has no readable row: the first line must name the columns")
    return Grid(shown, tuple(rows), tuple(rejects))


def read_delimited(path: Path, shown: str, known: Collection[str] = ()) -> Grid:
    """Read a CSV or TSV file into a grid.

    Raises:
        SchemaError: the file cannot be read or decoded, is empty, or has no readable row.
    """
    return grid_of_text(read_text(path, shown), shown, known)
