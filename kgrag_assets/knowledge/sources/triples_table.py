"""Reading any graph from tables: triples, and if there are any entities, as CSV, TSV or Parquet.

A table of triples has the columns ``head``, ``relation`` and ``tail`` (or ``subject``, ``predicate``, ``object``);
instead of ``tail`` a row may have ``tail_value``, a literal, which is taken where ``literals`` asks for any kind.
Optional: ``…_label``, ``…_description``, ``…_aliases`` of head, relation and tail; aliases are separated by ``|``.
A table of entities has ``id`` and any of ``label``, ``aliases``, ``description``, ``kind`` (entity or relation).
Which of them a file is, its header says. Columns may stand in any order, others are left aside.

An id may be plain text: white space in it becomes ``_``, and the text is its label where none is given.
CSV is read line by line, so a quoted value with line breaks is rejected, with all its lines; Parquet takes it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from kgrag_assets.knowledge.collector import Collector
from kgrag_assets.knowledge.sources.blocks import BLOCK_BYTES, BlockSource, ReadOptions
from kgrag_assets.knowledge.sources.lines import files_with_suffix
from kgrag_assets.knowledge.sources.protocol import Unit
from kgrag_assets.knowledge.sources.table_lines import CellsError, cells_of, rows_of, separator_of
from kgrag_assets.knowledge.sources.table_parquet import parquet_units
from kgrag_assets.knowledge.sources.table_rows import TableRows, layout_of

PARQUET = ".parquet"


def files_of(folder: Path) -> list[Path]:
    """List the tables of a folder: ``.csv`` and ``.tsv``, plain, gzip or bzip2, and ``.parquet``."""
    if folder.is_file():
        return [folder]
    parquet = [path for path in folder.rglob("*") if path.suffix.lower() == PARQUET and path.is_file()]
    return sorted((*files_with_suffix(folder, (".csv", ".tsv", ".tab")), *parquet))


@dataclass(frozen=True)
class TableReader:
    """Reads CSV and TSV; the header tells the separator (tab, ``,`` or ``;``) and what the table holds."""

    @property
    def version(self) -> str:
        """Name of this way to read."""
        return "triples_table/1"

    def context(self, start: bytes, file: str, into: Collector) -> bytes | None:  # noqa: ARG002  (the port's form)
        """Return the header line."""
        for row, raw in enumerate(start.split(b"\n"), start=1):
            if not raw.strip():
                continue
            try:
                header = raw.decode("utf-8").rstrip("\r")
                if "\r" in header:
                    into.reject(row, "lines end with a carriage return alone: write the table with line feeds", header)
                    return None
                layout = layout_of(cells_of(header, separator_of(header)))
            except UnicodeDecodeError:
                into.reject(row, "the header is not UTF-8", raw.decode("latin-1"))
                return None
            except CellsError as problem:
                into.reject(row, f"the header: {problem}", raw.decode("utf-8"))
                return None
            if isinstance(layout, str):
                into.reject(row, layout, header)
                return None
            return header.encode()
        into.reject(None, "the file is empty", "")
        return None

    def read(self, block: bytes, context: bytes, options: ReadOptions, into: Collector, *, first: bool) -> None:
        """Read rows."""
        header = context.decode()
        separator = separator_of(header)
        names = cells_of(header, separator)
        layout = layout_of(names)
        if isinstance(layout, str):
            raise TypeError(layout)  # context() refused it
        take, width = TableRows(layout, options, into).take, len(names)
        rows = rows_of(block, separator, into, first=first)
        if first:
            next(rows, None)  # the header
        for row, line, cells in rows:
            if len(cells) != width:
                into.reject(row, f"{len(cells)} columns where the header has {width}", line)
                continue
            reason = take((*cells, None))
            if reason is not None:
                into.reject(row, reason, line)


@dataclass(frozen=True)
class TableSource:
    """The tables of a graph: text files in blocks, Parquet files by row group."""

    files: Sequence[Path]
    root: Path
    options: ReadOptions
    block_bytes: int = BLOCK_BYTES

    @property
    def size(self) -> int:
        """Bytes of all files on disk."""
        return sum(path.stat().st_size for path in self.files if path.is_file())

    def units(self) -> Iterator[Unit | Collector]:
        """Yield every file's units, in order."""
        for path in self.files:
            if path.suffix.lower() == PARQUET:
                yield from parquet_units(path, self.root, self.options)
            else:
                yield from BlockSource([path], self.root, _reader_of, self.options, self.block_bytes).units()


def _reader_of(_path: Path) -> TableReader:
    return TableReader()
