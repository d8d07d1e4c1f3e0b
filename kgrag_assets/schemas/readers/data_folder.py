"""A folder of data files: each Parquet or CSV file is a table; types and values are profiled with DuckDB."""

from __future__ import annotations

import codecs
import csv
import io
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb

from kgrag_assets.schemas.decoding import encoding_of, what_is
from kgrag_assets.schemas.delimited import sniff_delimiter
from kgrag_assets.schemas.errors import SchemaError
from kgrag_assets.schemas.found import MAX_CONTENT, FoundColumn, FoundSchema, Reject, trimmed
from kgrag_assets.schemas.profiling import MAX_PROFILED_ROWS, ordered_column, profile_duckdb, quoted
from kgrag_assets.schemas.types import type_family

PARQUET = frozenset({".parquet", ".pq"})
DELIMITED = frozenset({".csv", ".tsv", ".txt"})

_MAX_LINE_REJECTS = 20
_BLOCK = 1 << 20
_GLOB = re.compile(r"([*?\[])")

# What a column of text may be declared as, and when: every value that is there must read as that type.
_CASTS = (
    ("BIGINT", r"[+-]?(0|[1-9]\d*)"),
    ("DOUBLE", r"[+-]?(0|[1-9]\d*)?(\.\d*)?([eE][+-]?\d+)?"),
    ("DATE", r"\d{4}-\d{2}-\d{2}"),
    ("TIMESTAMP", r"\d{4}-\d{2}-\d{2}[ T].*"),
    ("TIME", r"\d{2}:\d{2}(:\d{2}(\.\d+)?)?"),
    ("BOOLEAN", r"(?i:true|false)"),
)


def literal_path(path: Path) -> str:
    """Write a path so that DuckDB reads it as one file's name and not as a pattern."""
    return _GLOB.sub(r"[\1]", str(path))


def connect() -> duckdb.DuckDBPyConnection:
    """Open an in-memory DuckDB that keeps to two threads and fetches nothing from elsewhere."""
    return duckdb.connect(
        config={"threads": 2, "autoinstall_known_extensions": False, "autoload_known_extensions": False}
    )


def _explained(path: Path, error: duckdb.Error) -> str:
    # The engine's message names the whole path; a table of rejects needs the name only.
    first = str(error).splitlines()[0].replace(str(path), path.name)
    return f"cannot be read as a table ({first[:200]}): the file may be cut off or damaged; copy it again"


def _read_parquet(con: duckdb.DuckDBPyConnection, path: Path, table: str, shown: str) -> FoundSchema:
    from pyarrow import ArrowException, parquet

    con.read_parquet(literal_path(path)).create_view("file")
    try:
        names = parquet.read_schema(path).names
    except ArrowException as error:
        raise SchemaError(f"{shown}: the Parquet footer cannot be read ({error}): copy the file again") from error
    described = [(str(row[0]), str(row[1])) for row in con.execute("DESCRIBE SELECT * FROM file").fetchall()]
    columns: list[FoundColumn] = []
    # DuckDB renames the second of two columns that differ in case only; the file knows its name.
    for name, (engine_name, data_type) in zip(names, described, strict=True):
        keep = type_family(data_type) != "binary"
        profile = profile_duckdb(
            con, "file", engine_name, ordered=ordered_column(engine_name, data_type), keep_values=keep
        )
        columns.append(
            FoundColumn(
                table=table,
                column=name,
                origin=shown,
                data_type=data_type,
                sample_values=profile.sample_values,
                distinct_count=profile.distinct_count,
                null_share=profile.null_share,
                values=profile.values,
            )
        )
    return FoundSchema(tuple(columns))


def _encoding(path: Path, shown: str) -> str:
    with path.open("rb") as handle:
        marked = encoding_of(handle.read(4))
        if marked:
            return marked
        handle.seek(0)
        decoder = codecs.getincrementaldecoder("utf-8")()
        utf8 = True
        block = b"-"
        while block:
            block = handle.read(_BLOCK)
            if b"\x00" in block:
                raise SchemaError(f"{shown}: has NUL bytes, so it is no plain text file: save it as CSV in UTF-8")
            if utf8:
                try:
                    decoder.decode(block, final=not block)
                except UnicodeDecodeError:
                    utf8 = False
    return "utf-8" if utf8 else "cp1252"


@contextmanager
def _as_utf8(path: Path, shown: str) -> Iterator[Path]:
    """Give a path at which the file's text lies in UTF-8 without a mark: the file itself where it is so."""
    encoding = _encoding(path, shown)
    if encoding == "utf-8":
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="kgrag-") as folder:
        copy = Path(folder) / "copy.csv"
        try:
            with (
                path.open(encoding=encoding, errors="replace" if encoding == "cp1252" else "strict", newline="") as old,
                copy.open("w", encoding="utf-8", newline="") as new,
            ):
                for block in iter(lambda: old.read(_BLOCK), ""):
                    new.write(block)
        except UnicodeError as error:
            raise SchemaError(
                f"{shown}: begins with the mark of {encoding}, but does not go on in it: save it as UTF-8"
            ) from error
        yield copy


def _csv_header(path: Path, shown: str) -> tuple[list[str], str, int]:
    with path.open(encoding="utf-8", newline="") as handle:
        head = handle.read(_BLOCK)
    lines = list(io.StringIO(head, newline=""))
    skipped = 0
    while lines and not lines[0].strip():
        skipped += 1
        lines = lines[1:]
    if not lines:
        raise SchemaError(f"{shown}: the file is empty: put rows into it or remove it")
    delimiter = "\t" if path.suffix.lower() == ".tsv" else sniff_delimiter(lines[0])
    reader = csv.reader(lines, delimiter=delimiter)
    try:
        names = [trimmed(cell) for cell in next(reader)]
    except csv.Error as error:
        raise SchemaError(
            f"{shown}: the header cannot be read ({error}): the first line must name the columns"
        ) from error
    return names, delimiter, skipped + reader.line_num


def _column_type(con: duckdb.DuckDBPyConnection, column: str) -> str:
    value = quoted(column)
    tests = ", ".join(
        f"count_if(NOT regexp_full_match(trim({value}), ?) OR TRY_CAST({value} AS {name}) IS NULL)"
        for name, _ in _CASTS
    )
    query = f"SELECT count(*), {tests} FROM file WHERE {value} IS NOT NULL"  # noqa: S608 - a name of our making
    row = con.execute(query, [pattern for _, pattern in _CASTS]).fetchone()
    if row is None or row[0] == 0:
        return ""
    return next((name for (name, _), misfits in zip(_CASTS, row[1:], strict=True) if misfits == 0), "VARCHAR")


def _line_at(path: Path, position: int) -> int:
    """Count the lines up to a byte, from 1: DuckDB counts records, an editor lines."""
    line = 1
    with path.open("rb") as handle:
        while position > 0 and (block := handle.read(min(_BLOCK, position))):
            line += block.count(b"\n")
            position -= len(block)
    return line


def _line_rejects(con: duckdb.DuckDBPyConnection, text: Path, shown: str) -> list[Reject]:
    rows = con.execute(
        "SELECT line_byte_position, min(error_message), min(csv_line) FROM reject_errors GROUP BY ALL ORDER BY ALL"
    ).fetchall()
    rejects = [
        Reject(
            shown,
            _line_at(text, int(position) - 1),
            f"not read: {str(message).splitlines()[0]}",
            str(line)[:MAX_CONTENT],
        )
        for position, message, line in rows[:_MAX_LINE_REJECTS]
    ]
    if len(rows) > _MAX_LINE_REJECTS:
        rejects.append(Reject(shown, None, f"{len(rows) - _MAX_LINE_REJECTS} more lines are not read for such reasons"))
    return rejects


def _read_csv(con: duckdb.DuckDBPyConnection, path: Path, table: str, shown: str) -> FoundSchema:
    with _as_utf8(path, shown) as text:
        names, delimiter, lines = _csv_header(text, shown)
        # DuckDB gets names of our making: the header's own may be blank, repeated or odd.
        places = {f"c{place}": name for place, name in enumerate(names)}
        typed = ", ".join(f"'{place}': 'VARCHAR'" for place in places)
        con.execute(
            "CREATE TEMP TABLE file AS "  # noqa: S608 - the only text put in is of our making: c0, c1, ...
            "SELECT * FROM read_csv(?, header = false, skip = ?, delim = ?, quote = '\"', "
            "escape = '\"', auto_detect = false, strict_mode = true, null_padding = false, nullstr = '', "
            f"columns = {{{typed}}}, store_rejects = true) LIMIT {MAX_PROFILED_ROWS}",
            [literal_path(text), lines, delimiter],
        )
        rejects = _line_rejects(con, text, shown)
    columns: list[FoundColumn] = []
    for place, name in places.items():
        if not name:
            reason = f"column {int(place[1:]) + 1} has no name in the header: name it"
            rejects.append(Reject(shown, 1, reason, delimiter.join(names)[:MAX_CONTENT]))
            continue
        data_type = _column_type(con, place)
        ordered = f"TRY_CAST({quoted(place)} AS {data_type})" if ordered_column(place, data_type) else None
        profile = profile_duckdb(con, "file", place, ordered=ordered)
        columns.append(
            FoundColumn(
                table=table,
                column=name,
                origin=shown,
                data_type=data_type,
                sample_values=profile.sample_values,
                distinct_count=profile.distinct_count,
                null_share=profile.null_share,
                values=profile.values,
                row=1,
            )
        )
    return FoundSchema(tuple(columns), tuple(rejects))


def read_data_file(path: Path, shown: str) -> FoundSchema:
    """Read one data file as the table of its name (without the ending).

    Returns:
        Its columns with type, sample values, number of distinct values and share of nulls. A CSV's types
        are BIGINT, DOUBLE, DATE, TIMESTAMP, TIME or BOOLEAN only where every value reads so and none
        has a leading zero; a column without values has none.

    Raises:
        SchemaError: the file cannot be read; the message names it.
    """
    suffix = path.suffix.lower()
    try:
        if path.stat().st_size == 0:
            raise SchemaError(f"{shown}: the file is empty: put rows into it or remove it")
        kind = what_is(path)
        if suffix in DELIMITED and kind is not None:
            raise SchemaError(f"{shown}: this is {kind}, not a text file: give it the ending that it should have")
        with connect() as con:
            if suffix in PARQUET:
                return _read_parquet(con, path, path.stem, shown)
            return _read_csv(con, path, path.stem, shown)
    except OSError as error:
        raise SchemaError(f"{shown}: cannot be read: {error.strerror or error}") from error
    except duckdb.Error as error:
        raise SchemaError(f"{shown}: {_explained(path, error)}") from error


def read_data_folder(folder: Path, shown: str) -> FoundSchema:
    """Read a folder of data files; a file that cannot be read becomes a reject and the others are kept.

    Raises:
        SchemaError: there is no Parquet or CSV file, or none can be read.
    """
    files = sorted(path for path in folder.iterdir() if path.is_file() and not path.name.startswith("."))
    data = [path for path in files if path.suffix.lower() in PARQUET | DELIMITED]
    if not data:
        found = ", ".join(path.name for path in files[:5]) or "nothing"
        raise SchemaError(f"{shown}: put a .parquet or .csv file per table into this folder; found {found}")
    columns: list[FoundColumn] = []
    rejects = [
        Reject(f"{shown}/{path.name}", None, "not a .parquet or .csv file: not read")
        for path in files
        if path not in data
    ]
    problems: list[str] = []
    for path in data:
        name = f"{shown}/{path.name}"
        try:
            table = read_data_file(path, name)
        except SchemaError as error:
            problems.append(str(error))
            rejects.append(Reject(name, None, str(error).removeprefix(f"{name}: ")))
            continue
        columns.extend(table.columns)
        rejects.extend(table.rejects)
    if not columns:
        raise SchemaError(problems[0] if problems else f"{shown}: no file has a column")
    return FoundSchema(tuple(columns), tuple(rejects))
