"""Bytes of a text file into text: byte-order marks, UTF-8, UTF-16 and the Windows and Latin-1 fallback."""

from __future__ import annotations

import codecs
import zipfile
from pathlib import Path

from kgrag_assets.schemas.errors import SchemaError

MAX_TEXT_BYTES = 256 * 1024 * 1024

_MAGIC: tuple[tuple[bytes, str], ...] = (
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old Excel workbook (.xls) or a password-protected workbook"),
    (b"PAR1", "a Parquet file"),
    (b"SQLite format 3\x00", "an SQLite database"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"%PDF", "a PDF document"),
    (b"\x89PNG", "a picture"),
    (b"7z\xbc\xaf", "a 7z archive"),
)

# The longest first: UTF-32's little-endian mark begins with UTF-16's.
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


def what_is(path: Path) -> str | None:
    """Name the kind of a binary file by its first bytes, or return None where it may be text.

    Raises:
        OSError: the file cannot be read.
    """
    with path.open("rb") as handle:
        head = handle.read(16)
    if head[8:12] == b"DUCK":
        return "a DuckDB database"
    if head.startswith(b"PK\x03\x04"):
        return _what_zip(path)
    return next((name for magic, name in _MAGIC if head.startswith(magic)), None)


def _what_zip(path: Path) -> str:
    try:
        with zipfile.ZipFile(path) as archive:
            names = set(archive.namelist())
    except (zipfile.BadZipFile, NotImplementedError, ValueError, OSError):
        return "a damaged zip archive"
    if "xl/workbook.xml" in names:
        return "an Excel workbook (.xlsx)"
    if "word/document.xml" in names:
        return "a Word document"
    return "a zip archive"


def encoding_of(head: bytes) -> str | None:
    """Name the encoding that a byte-order mark at the beginning states, or None without a mark."""
    return next((name for mark, name in _MARKS if head.startswith(mark)), None)


def decode(raw: bytes, shown: str) -> str:
    """Turn the bytes of a text file into text.

    A byte-order mark decides; without one UTF-8 is tried, then Windows-1252, then Latin-1, which takes
    every byte. Line ends are kept as they are.

    Args:
        raw: the whole file.
        shown: the file's name for the error message.

    Raises:
        SchemaError: the file is empty, has NUL bytes, or is not what its byte-order mark says.
    """
    encoding = encoding_of(raw)
    if encoding is None and b"\x00" in raw:
        raise SchemaError(
            f"{shown}: byte {raw.index(0) + 1} is NUL, so this is no plain text file (or UTF-16 without a byte-order "
            "mark): save it as CSV in UTF-8"
        )
    for attempt in (encoding,) if encoding else ("utf-8", "cp1252", "latin-1"):
        try:
            text = raw.decode(attempt)
            break
        except UnicodeDecodeError as error:
            if encoding:
                raise SchemaError(
                    f"{shown}: begins with the mark of {encoding}, but byte {error.start + 1} does not fit: save it "
                    "again as UTF-8"
                ) from error
    if "\x00" in text:
        raise SchemaError(f"{shown}: has NUL characters: save it again as plain text in UTF-8")
    if not text.strip():
        raise SchemaError(f"{shown}: the file is empty: put the rows into it or remove it")
    return text


def read_text(path: Path, shown: str) -> str:
    """Read and decode a text file.

    Raises:
        SchemaError: it cannot be read, is binary, empty, too large, or cannot be decoded.
    """
    try:
        size = path.stat().st_size
        if size > MAX_TEXT_BYTES:
            raise SchemaError(
                f"{shown}: {size:,} bytes are too many for a description of a schema: put data files into a folder "
                "named source or target instead"
            )
        kind = what_is(path)
        if kind is not None:
            raise SchemaError(f"{shown}: this is {kind}, not a text file: give it the ending that it should have")
        raw = path.read_bytes()
    except OSError as error:
        raise SchemaError(f"{shown}: cannot be read: {error.strerror or error}") from error
    return decode(raw, shown)
