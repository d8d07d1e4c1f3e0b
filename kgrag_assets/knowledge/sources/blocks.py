"""Line-oriented files in blocks of whole lines: plain, gzip or bzip2, read forward once, in constant memory."""

from __future__ import annotations

import bz2
import gzip
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from io import BufferedIOBase, BufferedReader
from pathlib import Path
from typing import Protocol, cast, runtime_checkable

from kgrag_assets.knowledge.collector import Collector
from kgrag_assets.knowledge.sources.protocol import Unit
from kgrag_assets.rows.keys import key_of

BLOCK_BYTES = 16 << 20
# A line longer than this is no line: the file is something else.
MAX_LINE = 256 << 20
# A file that is one value over many lines is read as one block up to here, and beyond it line by line.
MAX_WHOLE = 64 << 20
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class ReadOptions:
    """What ``kg.yaml`` says about reading; all of it is part of a unit's key.

    ``literals`` names the kinds of literals that are taken; ``filter`` holds what a reader can decide entity by
    entity (see ``knowledge.filters``); ``extra`` what only one format knows, as (name, values) pairs.
    """

    languages: tuple[str, ...] = ("en",)
    literals: tuple[str, ...] = ()
    ranks: str = "not_deprecated"
    lexemes: bool = False
    min_sitelinks: int = 0
    min_statements: int = 0
    relations: tuple[str, ...] = ()
    without_relations: tuple[str, ...] = ()
    # Relations that are read whatever the lists above say: the class filter walks them.
    always_relations: tuple[str, ...] = ()
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def option(self, name: str) -> tuple[str, ...]:
        """Return a format's own option, empty where it was not given."""
        return dict(self.extra).get(name, ())

    def wants_relation(self, relation: str) -> bool:
        """Whether statements with this relation are read."""
        if relation in self.always_relations:
            return True
        return (not self.relations or relation in self.relations) and relation not in self.without_relations


class BlockReader(Protocol):
    """Reads blocks of whole lines of one format. Instances hold nothing and can be pickled."""

    @property
    def version(self) -> str:
        """Changes whenever the same bytes give other rows."""

    def context(self, start: bytes, file: str, into: Collector) -> bytes | None:
        """Look at the first block of a file and return what every block needs, such as the header line.

        None where the file cannot be read; ``into`` then holds the reason.
        """

    def read(self, block: bytes, context: bytes, options: ReadOptions, into: Collector, *, first: bool) -> None:
        """Read whole lines; ``first`` is true for the block that begins the file (with its header, if it has one)."""


@runtime_checkable
class WholeFileReader(Protocol):
    """A reader of a format whose small files may be one value over many lines, such as pretty-printed JSON."""

    def whole(self, start: bytes) -> bool:
        """Whether a file that begins so looks like that: it is handed to ``read`` as one block if it is small."""


@dataclass(frozen=True)
class BlockUnit:
    """One block of a file."""

    key: str
    file: str
    first_row: int
    size: int
    block: bytes
    context: bytes
    reader: BlockReader
    options: ReadOptions
    first: bool

    def read(self, into: Collector) -> None:
        """Read the block."""
        self.reader.read(self.block, self.context, self.options, into, first=self.first)


@dataclass(frozen=True)
class BlockSource:
    """The line-oriented files of a graph, each read by the reader that ``reader_of`` names."""

    files: Sequence[Path]
    root: Path
    reader_of: Callable[[Path], BlockReader]
    options: ReadOptions
    block_bytes: int = BLOCK_BYTES

    @property
    def size(self) -> int:
        """Bytes of all files on disk."""
        return sum(path.stat().st_size for path in self.files if path.is_file())

    def units(self) -> Iterator[Unit | Collector]:
        """Yield every file's blocks, in order."""
        for path in self.files:
            yield from self._of_file(path)

    def _of_file(self, path: Path) -> Iterator[Unit | Collector]:
        name = str(path.relative_to(self.root)) if path.is_relative_to(self.root) else path.name
        reader = self.reader_of(path)
        context: bytes | None = None
        row, done, first = 1, 0, True
        problems = Collector(file=name)
        try:
            with path.open("rb") as raw, decompressed(path, raw) as handle:
                for block in _whole_first(blocks(handle, self.block_bytes), reader):
                    if first:
                        context = reader.context(block, name, problems)
                        if context is None:
                            break
                    here = raw.tell()
                    key = key_of("block", reader.version, repr(self.options), context, first, block)
                    yield BlockUnit(
                        key, name, row, here - done, block, context or b"", reader, self.options, first=first
                    )
                    row, done, first = row + block.count(b"\n"), here, False
                else:
                    if first:
                        problems.reject(None, "the file is empty", "")
        except LineTooLongError:
            problems.reject(row, f"a line of more than {MAX_LINE >> 20} MB: is this file of another format?", "")
        except (OSError, EOFError, zlib.error) as error:
            problems.reject(row, f"the file ends too early or is damaged here ({error}): fetch it again", "")
        if problems.rejects:
            yield problems


def _whole_first(pieces: Iterator[bytes], reader: BlockReader) -> Iterator[bytes]:
    """Yield blocks, the first of which is the whole file where the reader asks for it and it is small enough."""
    first = next(pieces, None)
    if first is None:
        return
    if isinstance(reader, WholeFileReader) and reader.whole(first):
        held = [first]
        size = len(first)
        try:
            while size <= MAX_WHOLE and (piece := next(pieces, None)) is not None:
                held.append(piece)
                size += len(piece)
        except (OSError, EOFError, zlib.error, LineTooLongError):
            # What was read of a damaged file is handed on before its fault.
            yield b"".join(held)
            raise
        first = b"".join(held)
    yield first
    yield from pieces


class LineTooLongError(ValueError):
    """A line does not end where any line would."""


def decompressed(path: Path, raw: BufferedReader) -> BufferedReader:
    """Read a file's content, whatever its name says it is packed with; ``raw`` tells how far the reading is."""
    if path.suffix == ".gz":
        return cast("BufferedReader", gzip.GzipFile(fileobj=raw, mode="rb"))
    if path.suffix == ".bz2":
        return cast("BufferedReader", bz2.BZ2File(raw, "rb"))
    return raw


def blocks(handle: BufferedIOBase, size: int = BLOCK_BYTES) -> Iterator[bytes]:
    """Yield blocks of whole lines of about ``size`` bytes; the last one may lack its line end.

    Raises:
        LineTooLongError: a line goes on for more than ``MAX_LINE`` bytes.
        OSError: the file cannot be read on; what was read before was yielded.
    """
    rest = b""
    start = True
    failure: BaseException | None = None
    while failure is None:
        pieces: list[bytes] = [rest] if rest else []
        held, ends = len(rest), False
        while held < size or not ends:
            try:
                # Not read(): it drops what it had unpacked before the place where a packed file is damaged.
                piece = handle.read1(min(size, 1 << 20))
            except (OSError, EOFError, zlib.error) as error:
                failure = error
                break
            if not piece:
                break
            pieces.append(piece)
            held += len(piece)
            ends = ends or b"\n" in piece
            if held > MAX_LINE and not ends:
                raise LineTooLongError
        else:
            # The last line end is in the piece read last, or in what was held before it: only that one is cut.
            cut = next(place for place in range(len(pieces) - 1, -1, -1) if b"\n" in pieces[place])
            end = pieces[cut].rindex(b"\n") + 1
            rest = b"".join((pieces[cut][end:], *pieces[cut + 1 :]))
            piece = b"".join((*pieces[:cut], pieces[cut][:end]))
            if start:
                piece, start = piece.removeprefix(_BOM), False
            yield piece
            continue
        last = b"".join(pieces)
        if start:
            last = last.removeprefix(_BOM)
        if failure is not None:
            # Only whole lines of a file that breaks off: its last line is half a line.
            last = last[: last.rfind(b"\n") + 1]
        if last:
            yield last
        break
    if failure is not None:
        raise failure
