"""What each materialization shows in the UI: counts, column schemas, lineage, tables and histograms."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any

import dagster as dg
import polars as pl

from kgrag_assets.lake.changes import Written
from kgrag_assets.rows.table import Table

BAR_WIDTH = 30


def column_schema(table: Table) -> dg.TableSchema:
    """Describe a table's columns for the UI."""
    return dg.TableSchema(
        columns=[
            dg.TableColumn(
                column.name,
                type=str(column.dtype),
                description=column.description,
                constraints=dg.TableColumnConstraints(nullable=column.nullable, unique=table.key == (column.name,)),
            )
            for column in table.columns
        ]
    )


def table_metadata(table: Table) -> dict[str, Any]:
    """Metadata of an asset's definition: its columns."""
    return {"dagster/column_schema": column_schema(table)}


def lineage(columns: Mapping[str, Sequence[tuple[str, str]]]) -> dg.TableColumnLineage:
    """Column lineage from ``{column: [(upstream asset, upstream column)]}``."""
    return dg.TableColumnLineage(
        {
            column: [dg.TableColumnDep(asset_key=dg.AssetKey(asset), column_name=name) for asset, name in sources]
            for column, sources in columns.items()
        }
    )


def cell(value: object) -> str:
    """Write untrusted text as one Markdown table cell: no line breaks, no table, link, image or HTML of its own."""
    text = "" if value is None else f"{value:.3f}" if isinstance(value, float) else str(value)
    text = " ".join(text.split())
    if len(text) > 120:
        text = text[:119] + "…"
    for mark in "\\`*_[]<>|#!":
        text = text.replace(mark, "\\" + mark)
    return text


def markdown_table(frame: pl.DataFrame, limit: int = 15) -> dg.MarkdownMetadataValue:
    """Write the first rows of a frame as a Markdown table."""
    lines = ["| " + " | ".join(cell(name) for name in frame.columns) + " |", "|" + " --- |" * frame.width]
    lines += ["| " + " | ".join(cell(value) for value in row) + " |" for row in frame.head(limit).iter_rows()]
    if frame.height > limit:
        lines.append(f"\n… and {frame.height - limit:,} more rows")
    if frame.is_empty():
        lines.append("\nno rows")
    return dg.MetadataValue.md("\n".join(lines))


def histogram(values: pl.Series, bins: int = 10, low: float = 0.0, high: float = 1.0) -> dg.MarkdownMetadataValue:
    """Draw how values in ``low..high`` are spread, as bars of text; values outside fall into the end bins."""
    filled = values.drop_nulls().to_list()
    counts = [0] * bins
    for value in filled:
        place = int((float(value) - low) / (high - low) * bins)
        counts[min(max(place, 0), bins - 1)] += 1
    most = max([*counts, 1])
    lines = ["| from | to | count | |", "| --- | --- | --- | --- |"]
    step = (high - low) / bins
    for number, count in enumerate(counts):
        bar = "█" * round(count / most * BAR_WIDTH)
        lines.append(f"| {low + number * step:.2f} | {low + (number + 1) * step:.2f} | {count} | {bar} |")
    if values.null_count():
        lines.append(f"\n{values.null_count()} without a value")
    return dg.MetadataValue.md("\n".join(lines))


def written_metadata(written: Written, *, kept: int, computed: int, removed: int, **more: Any) -> dict[str, Any]:
    """Metadata that every stage's materialization carries.

    Args:
        written: what the write did.
        kept: rows that were there and stay.
        computed: rows computed now.
        removed: rows that were there and are gone (a changed row is one removed and one computed).
        more: further entries by name.
    """
    return {
        "dagster/row_count": written.rows,
        "rows_kept": kept,
        "rows_computed": computed,
        "rows_removed": removed,
        "file_written": written.changed,
        "path": dg.MetadataValue.path(str(written.path)),
        **more,
    }


def picture(png: bytes, alternative: str) -> dg.MarkdownMetadataValue:
    """Show a PNG in the UI; it lies in the metadata itself, so keep it small."""
    words = cell(alternative).replace("(", " ").replace(")", " ")
    return dg.MetadataValue.md(f"![{words}](data:image/png;base64,{base64.b64encode(png).decode()})")
