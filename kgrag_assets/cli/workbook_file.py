"""Writing sheets as an Excel workbook in which a cell is a text or a number, and nothing that Excel would run."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

from kgrag_assets.cli.review_rows import Cell, Sheet

# Limits of the format: rows of a sheet (the header is one of them), characters of a cell.
MAX_ROWS = 1_048_576
MAX_TEXT = 32_767
_CUT = "…"
_OPTIONS = {"in_memory": True, "strings_to_formulas": False, "strings_to_urls": False, "strings_to_numbers": False}
_COLOURS = {
    "type": "3_color_scale",
    "min_type": "num",
    "min_value": 0,
    "min_color": "#F8B9A8",
    "mid_type": "num",
    "mid_value": 0.5,
    "mid_color": "#FFF2C2",
    "max_type": "num",
    "max_value": 1,
    "max_color": "#A9DDB1",
}


def workbook_bytes(sheets: Sequence[tuple[Sheet, list[list[Cell]]]]) -> bytes:
    """Return the bytes of a workbook.

    Each sheet has a frozen header with a filter, widths as its fields say, and a colour scale on scores.
    A text longer than a cell can hold is cut and ends in an ellipsis. A sheet longer than Excel's limit
    is cut there, and its last row says how many are missing.

    Args:
        sheets: each sheet with its rows, in the order of its fields.
    """
    import xlsxwriter  # a quarter of a second that only this command needs

    buffer = io.BytesIO()
    with xlsxwriter.Workbook(buffer, _OPTIONS) as workbook:
        formats = {
            "header": workbook.add_format({"bold": True, "bottom": 1, "text_wrap": True, "valign": "top"}),
            "text": workbook.add_format({"text_wrap": True, "valign": "top", "num_format": "@"}),
            "number": workbook.add_format({"valign": "top", "num_format": "General"}),
            "score": workbook.add_format({"valign": "top", "num_format": "0.00"}),
        }
        for sheet, rows in sheets:
            _write_sheet(workbook.add_worksheet(sheet.name), sheet, _within_limit(rows), formats)
    return buffer.getvalue()


def _within_limit(rows: list[list[Cell]]) -> list[list[Cell]]:
    room = MAX_ROWS - 1
    if len(rows) <= room:
        return rows
    kept = rows[: room - 1]
    return [*kept, [f"{len(rows) - len(kept):,} more rows do not fit into a sheet: use kgrag show --json"]]


def _write_sheet(worksheet: Any, sheet: Sheet, rows: list[list[Cell]], formats: dict[str, Any]) -> None:  # noqa: ANN401  (xlsxwriter has no types)
    worksheet.freeze_panes(1, 0)
    for place, field in enumerate(sheet.fields):
        worksheet.set_column(place, place, field.width)
        worksheet.write_string(0, place, field.title, formats["header"])
    for number, row in enumerate(rows, start=1):
        for place, value in enumerate(row):
            if value is None or value == "":
                continue
            if isinstance(value, str):
                # Not write(): it looks at the text and may make something else of it.
                worksheet.write_string(number, place, _fitting(value), formats["text"])
            else:
                kind = "score" if sheet.fields[place].is_score else "number"
                worksheet.write_number(number, place, value, formats[kind])
    last = max(len(rows), 1)
    worksheet.autofilter(0, 0, last, len(sheet.fields) - 1)
    for place, field in enumerate(sheet.fields):
        if field.is_score:
            worksheet.conditional_format(1, place, last, place, _COLOURS)


def _fitting(text: str) -> str:
    return text if len(text) <= MAX_TEXT else text[: MAX_TEXT - len(_CUT)] + _CUT
