"""What ``kgrag export`` writes: the mapping with its evidence, for a reviewer or a script."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

from kgrag_assets.cli.review_rows import ALTERNATIVES, EVIDENCE, MAPPING, METRICS, Sheet
from kgrag_assets.cli.task_view import read_task
from kgrag_assets.cli.workbook_file import workbook_bytes
from kgrag_assets.lake.files import write_whole
from kgrag_assets.lake.lake import Lake
from kgrag_assets.rows.keys import key_of

Format = Literal["csv", "xlsx"]
FORMATS: tuple[Format, ...] = ("csv", "xlsx")
# Most file systems end names at 255 bytes; a temporary name beside the file needs some of them.
_LONGEST_NAME = 150


class ExportError(ValueError):
    """A mapping cannot be exported as asked; the message says what to ask for instead."""


def export_mapping(lake: Lake, task: str, file_format: Format, out: Path | None = None) -> Path:
    """Write a task's mapping to a file, whole or not at all.

    One row per proposed pair, and one per source attribute without a match, in the order of the source
    schema, with two facts beside each and empty columns for a reviewer.

    ``csv`` is for programs: UTF-8 without a byte-order mark, comma, RFC 4180 quotes, a line feed after each row.
    Names come back exactly as given: nothing is put before a leading ``=``, which a spreadsheet that opens
    the file may run as a formula. ``xlsx`` is the safe way into Excel: every cell is a text or a number
    there, never a formula or a link. It has sheets for the ranked alternatives, the facts and the metrics.

    Args:
        lake: where the tables lie.
        task: the task's name.
        file_format: csv or xlsx.
        out: file to write, or a folder to write it into; ``exports`` in the lake where None.

    Returns:
        The file that was written.

    Raises:
        ExportError: the format is unknown, or ``out`` has the ending of another format.
        ShowError: the task does not exist or was not mapped yet.
        LakeError: the disk is full or the place cannot be written; an older file there is untouched.
    """
    if file_format not in FORMATS:
        raise ExportError(f"there is no format {file_format!r}: use one of {', '.join(FORMATS)}")
    path = _destination(lake, task, file_format, out)
    view = read_task(lake, task)
    if file_format == "csv":
        content = _csv_bytes(MAPPING.titles, MAPPING.rows(view))
    else:
        content = workbook_bytes([(sheet, sheet.rows(view)) for sheet in _sheets()])
    write_whole(path, content)
    return path


def _sheets() -> tuple[Sheet, ...]:
    return (MAPPING, ALTERNATIVES, EVIDENCE, METRICS)


def _destination(lake: Lake, task: str, file_format: Format, out: Path | None) -> Path:
    name = f"{safe_file_name(task)}.{file_format}"
    if out is None:
        return lake.paths.exports / name
    if out.is_dir():
        return out / name
    ending = out.suffix.lower().removeprefix(".")
    if ending != file_format and ending in FORMATS:
        raise ExportError(f"{out} ends in .{ending}, but the format is {file_format}: add  --format {ending}")
    return out


def safe_file_name(task: str) -> str:
    """Turn a task's name into a file name without ending: no two names give the same one.

    Letters and digits of any script, spaces, dots, dashes and underscores stay; the rest, and a leading
    dot, is percent-encoded. A very long name is cut and ends in a hash of the whole.
    """
    kept = "".join(letter if letter.isalnum() or letter in " .-_" else quote(letter, safe="") for letter in task)
    if kept.startswith("."):
        kept = "%2E" + kept[1:]
    if len(kept.encode()) <= _LONGEST_NAME:
        return kept
    short = kept.encode()[: _LONGEST_NAME - 20].decode(errors="ignore")
    return f"{short}~{key_of('file name', task)[:16]}"


def _csv_bytes(titles: Sequence[str], rows: Sequence[Sequence[Any]]) -> bytes:
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(titles)
    writer.writerows(rows)
    return buffer.getvalue().encode()
