"""Reading KGTK's tab-separated edge files: labels, aliases, descriptions and statements.

The format: https://kgtk.readthedocs.io (a header with ``node1``, ``label``, ``node2``; strings as ``'text'@en``).
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, cast

from kgrag_assets.knowledge.statements import ENTITY_ID, Statements

_LANGUAGE_STRING = re.compile(r"'((?:[^'\\]|\\.)*)'@([a-zA-Z0-9-]+)\Z", re.DOTALL)
# Several ids in one cell, which KGTK allows in other columns only.
_LIST = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*(\|[A-Za-z][A-Za-z0-9_.-]*)+\Z")
_ESCAPE = re.compile(r"\\(.)")
_ESCAPED = {"n": " ", "t": " ", "r": " "}
# KGTK writes a statement without a known or an existing value so; it says nothing about an object.
_NO_VALUE = frozenset(("novalue", "somevalue"))
_COLUMNS = ("node1", "label", "node2")


def read_kgtk(files: Sequence[Path], languages: Sequence[str], *, literals: bool) -> Statements:
    """Read KGTK files, plain or gzip, in any order and any number.

    Args:
        files: the files; which of them holds labels and which edges is told by each line's ``label``.
        languages: languages of names, in order of preference.
        literals: whether statements with a literal as tail are taken too.

    Returns:
        the statements, and every line that could not be taken.
    """
    found = Statements()
    ranks = {language: rank for rank, language in enumerate(languages)}
    for path in files:
        try:
            with _opened(path) as handle:
                _read_file(path, handle, ranks, found, literals=literals)
        except (OSError, EOFError, zlib.error) as error:
            found.reject(path.name, None, f"the file ends too early or is damaged ({error}): fetch it again", "")
    return found


def _opened(path: Path) -> IO[bytes]:
    return cast("IO[bytes]", gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb"))


def _lines(path: Path, handle: IO[bytes], found: Statements) -> Iterator[tuple[int, list[str]]]:
    for number, raw in enumerate(handle, start=1):
        try:
            text = raw.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
        except UnicodeDecodeError:
            found.reject(path.name, number, "the line is not UTF-8", raw.decode("latin-1").rstrip("\r\n"))
            continue
        # The format has comments and blank lines.
        if text.strip() and not text.startswith("#"):
            yield number, text.split("\t")


def _read_file(path: Path, handle: IO[bytes], ranks: dict[str, int], found: Statements, *, literals: bool) -> None:
    lines = _lines(path, handle, found)
    first = next(lines, None)
    if first is None:
        found.reject(path.name, None, "the file is empty", "")
        return
    header = first[1]
    missing = [name for name in _COLUMNS if name not in header]
    if missing:
        found.reject(path.name, 1, f"the header lacks {', '.join(missing)}: it must name them", "\t".join(header))
        return
    places = [header.index(name) for name in _COLUMNS]
    for number, cells in lines:
        if len(cells) != len(header):
            found.reject(
                path.name, number, f"{len(cells)} columns where the header has {len(header)}", "\t".join(cells)
            )
            continue
        node1, label, node2 = (cells[place] for place in places)
        reason = _take(node1, label, node2, ranks, found, literals=literals)
        if reason is not None:
            found.reject(path.name, number, reason, "\t".join(cells))


def _take(  # noqa: PLR0911  (one way out a fault)
    node1: str, label: str, node2: str, ranks: dict[str, int], found: Statements, *, literals: bool
) -> str | None:
    """Take one edge, or say why not."""
    if not ENTITY_ID.match(node1):
        return f"node1 is not an id: {node1[:60]!r}"
    if label in ("label", "alias", "description"):
        return _take_name(node1, label, node2, ranks, found)
    if not ENTITY_ID.match(label):
        return f"label is not a relation's id: {label[:60]!r}"
    if node2 in _NO_VALUE:
        return None
    if ENTITY_ID.match(node2):
        found.edges[node1, label, node2] = None
        found.of(node1).listed = True
    elif node2 == "":
        return "node2 is empty where an object is expected"
    elif _LIST.match(node2):
        return "node2 is a list: KGTK has one edge for each value"
    elif literals:
        found.literals[node1, label, _plain(node2)] = None
        found.of(node1).listed = True
    return None


def _take_name(node1: str, kind: str, node2: str, ranks: dict[str, int], found: Statements) -> str | None:
    match = _LANGUAGE_STRING.match(node2)
    if match is not None:
        rank = ranks.get(match.group(2))
        if rank is None:
            return None  # another language: not wanted, not wrong
        text = _unescaped(match.group(1))
    elif len(node2) > 1 and node2[0] == node2[-1] == '"':
        # A string of no language comes after those of a language that was asked for.
        rank, text = len(ranks), _unescaped(node2[1:-1])
    else:
        return f"a {kind} must be written as 'text'@language or \"text\""
    if not text:
        return f"the {kind} is empty"
    if kind == "label":
        found.label(node1, text, rank)
    elif kind == "description":
        found.describe(node1, text, rank)
    else:
        found.of(node1).aliases[text] = None
    return None


def _unescaped(text: str) -> str:
    # KGTK escapes | and quotes with a backslash; the files at hand also carry \" inside single quotes.
    return " ".join(_ESCAPE.sub(lambda match: _ESCAPED.get(match.group(1), match.group(1)), text).split())


def _plain(value: str) -> str:
    """Write a KGTK literal as readable text: a string without quotes, a date without its mark and precision."""
    match = _LANGUAGE_STRING.match(value)
    if match is not None:
        return _unescaped(match.group(1))
    if len(value) > 1 and value[0] == value[-1] == '"':
        return _unescaped(value[1:-1])
    if value.startswith("^"):
        return value[1:].split("/", maxsplit=1)[0]
    return value
