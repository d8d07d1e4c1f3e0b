"""SQL scripts cut into statements: quotes, comments, batch separators, and recovery after a stray quote."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise

# What is no SQL in a script: lines of psql, data after COPY ... FROM stdin, separators of batches.
_COPY_DATA = re.compile(r"(?ms)^(COPY\b[^;]*\bFROM\s+stdin[^;]*;[^\n]*\n)(.*?)(^\\\.\s*$|\Z)", re.IGNORECASE)
_CLIENT_LINE = re.compile(r"(?m)^(\\.*|\s*(GO(\s+\d+)?|/|DELIMITER\s+\S+|(SET\s+)?PROMPT\b.*)[ \t\r]*)$", re.IGNORECASE)
_DOLLAR = re.compile(r"\$([A-Za-z_]\w*)?\$")
_STATEMENT_START = re.compile(r"(?im)^[ \t]*(CREATE|ALTER|COMMENT[ \t]+ON|INSERT|DROP)\b")
# What may end a statement, or begin something in which a semicolon does not.
_SIGN = re.compile(r"[;'\"`$]|--|/\*")
_SPACE_OR_COMMENT = re.compile(r"\s+|--[^\n]*(?:\n|\Z)|/\*.*?\*/|#[^\n]*(?:\n|\Z)", re.DOTALL)


@dataclass(frozen=True)
class Statement:
    """One statement without its semicolon, beginning at its first word, and the line it begins at, from 1."""

    text: str
    line: int


def _blank(match: re.Match[str]) -> str:
    return ";" + "\n" * match.group().count("\n") if "\n" not in match.group() else "\n" * match.group().count("\n")


def _without_client_lines(sql: str) -> str:
    # Newlines stay, so that line numbers are the file's.
    sql = _COPY_DATA.sub(lambda match: match.group(1) + "\n" * (match.group(2) + match.group(3)).count("\n"), sql)
    return _CLIENT_LINE.sub(_blank, sql)


def _skip(sql: str, place: int, *, backslashes: bool) -> int | None:
    """Return the end of the quoted text or comment that begins at ``place``; None where it never ends."""
    letter = sql[place]
    if letter in "'\"`":
        escape = r"\\.|" if backslashes and letter != "`" else ""
        match = re.compile(rf"(?:{escape}{letter}{letter}|[^{letter}])*+{letter}", re.DOTALL).match(sql, place + 1)
        return None if match is None else match.end()
    if sql.startswith("--", place):
        end = sql.find("\n", place)
        return len(sql) if end < 0 else end
    if sql.startswith("/*", place):
        end = sql.find("*/", place + 2)
        return None if end < 0 else end + 2
    if letter == "$" and (tag := _DOLLAR.match(sql, place)):
        end = sql.find(tag.group(), tag.end())
        return None if end < 0 else end + len(tag.group())
    return place + 1


def _pieces(sql: str, *, backslashes: bool) -> list[tuple[int, int]]:
    pieces: list[tuple[int, int]] = []
    start = place = 0
    while (sign := _SIGN.search(sql, place)) is not None:
        place = sign.start()
        if sql[place] == ";":
            pieces.append((start, place))
            start = place = place + 1
            continue
        end = _skip(sql, place, backslashes=backslashes)
        if end is None:
            # A quote that nothing closes: the statement ends where a line ends in a semicolon.
            stop = re.compile(r";[ \t\r]*$", re.MULTILINE).search(sql, place)
            end = len(sql) if stop is None else stop.start()
        place = end
    pieces.append((start, len(sql)))
    return pieces


def _trimmed(sql: str, start: int, end: int) -> int:
    """Move ``start`` past white space and comments."""
    while start < end and (gap := _SPACE_OR_COMMENT.match(sql, start, end)):
        start = gap.end()
    return start


def statements(sql: str, *, backslashes: bool = False) -> list[Statement]:
    """Cut a script into its statements.

    Args:
        sql: the script.
        backslashes: whether a backslash escapes a quote in a text, as in MySQL.

    Returns:
        The statements that are not empty. Lines of the client (``GO``, ``/``, backslash commands) and the
        data after ``COPY ... FROM stdin`` are left out.
    """
    sql = _without_client_lines(sql)
    found: list[Statement] = []
    line, counted = 1, 0
    for start, end in _pieces(sql, backslashes=backslashes):
        begin = _trimmed(sql, start, end)
        if begin >= end:
            continue
        line += sql.count("\n", counted, begin)
        counted = begin
        found.append(Statement(sql[begin:end].rstrip(), line))
    return found


def split_again(statement: Statement) -> list[Statement]:
    """Cut a statement that does not parse where another one seems to begin: a semicolon may be missing."""
    text = statement.text
    starts = [match.start() for match in _STATEMENT_START.finditer(text) if match.start() > 0]
    if not starts:
        return [statement]
    cuts = [0, *starts, len(text)]
    return [
        Statement(text[a:b].strip(), statement.line + text.count("\n", 0, a + len(text[a:b]) - len(text[a:b].lstrip())))
        for a, b in pairwise(cuts)
        if text[a:b].strip()
    ]
