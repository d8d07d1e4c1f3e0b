"""What the readers of line formats share: the lines of a block, tests of ids, wanted literals, short descriptions."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from kgrag_assets.knowledge.collector import Collector
from kgrag_assets.knowledge.sources.blocks import ReadOptions
from kgrag_assets.knowledge.sources.wikidata_values import ALL_LITERALS, one_line

# Descriptions are one line beside a name; whole paragraphs would drown the facts that stand around them.
MAX_DESCRIPTION = 300
_SENTENCE_ENDS = (". ", "! ", "? ")
# A sentence shorter than this is more likely an abbreviation ("St.", "Dr. J. Smith").
_SHORT_SENTENCE = 40
_PACKED = ("", ".gz", ".bz2")


def lines_of(block: bytes, into: Collector) -> list[str]:
    """Split a block into its lines, without their ends.

    A line that is not UTF-8 is rejected and stands in the list as an empty one, so that places stay row numbers.
    """
    try:
        lines = block.decode("utf-8").split("\n")
    except UnicodeDecodeError:
        lines = [_decoded(raw, row, into) for row, raw in enumerate(block.split(b"\n"), start=1)]
    if lines and not lines[-1]:
        lines.pop()  # what stands behind the last line end is no line
    if b"\r" in block:
        lines = [line.removesuffix("\r") for line in lines]
    return lines


def _decoded(raw: bytes, row: int, into: Collector) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        into.reject(row, "the line is not UTF-8", raw.decode("latin-1").rstrip("\r"))
        return ""


def is_id(local: str) -> bool:
    """Whether ``collector.id_problem`` finds nothing; faster, because it is asked for every cell."""
    # Of all white space only the space itself is printable.
    return local.isprintable() and " " not in local and 0 < len(local) <= 200


def wants_literal(kind: str, options: ReadOptions) -> bool:
    """Whether literals of a kind are taken."""
    return kind in options.literals or ALL_LITERALS in options.literals


def shortened(text: str) -> str:
    """Cut a description to its first sentence or two, at most ``MAX_DESCRIPTION`` characters, at a word's end.

    White space is collapsed. A text that is short enough stays as it is.
    """
    text = one_line(text)
    if len(text) <= MAX_DESCRIPTION:
        return text
    head = text[: MAX_DESCRIPTION + 1]
    end = max(head.rfind(mark) for mark in _SENTENCE_ENDS)
    if end + 1 >= _SHORT_SENTENCE:
        return head[: end + 1]
    head = text[:MAX_DESCRIPTION]
    cut = head.rfind(" ")
    return f"{head[:cut] if cut > 0 else head[:-1]}…"


def files_with_suffix(folder: Path, suffixes: Iterable[str]) -> list[Path]:
    """List a folder's files, at any depth, whose names end so, packed ones too, sorted; or a file that is given."""
    if folder.is_file():
        return [folder]
    endings = tuple(suffix + packed for suffix in suffixes for packed in _PACKED)
    return sorted(path for path in folder.rglob("*") if path.name.lower().endswith(endings) and path.is_file())
