"""Files in blocks of whole lines: nothing lost, nothing twice, faults named, files of one value whole."""

from __future__ import annotations

import bz2
import gzip
import io
import pickle
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgrag_assets.knowledge.collector import Collector
from kgrag_assets.knowledge.sources import blocks as module
from kgrag_assets.knowledge.sources.blocks import BlockSource, BlockUnit, LineTooLongError, ReadOptions, blocks


@dataclass(frozen=True)
class Lines:
    """Takes each line as a label, so that what is read can be compared with what was written."""

    refuse: bool = False
    version: str = "lines-1"

    def context(self, start: bytes, file: str, into: Collector) -> bytes | None:
        if self.refuse:
            into.reject(1, f"{file} is something else", "")
            return None
        return start.split(b"\n")[0]

    def read(self, block: bytes, context: bytes, options: ReadOptions, into: Collector, *, first: bool) -> None:  # noqa: ARG002  (the reader's port)
        for row, line in enumerate(block.splitlines(), start=1):
            into.label(context.decode(), line.decode())
            into.reject(row, "seen", line.decode())


@dataclass(frozen=True)
class Whole(Lines):
    """Asks for files that begin with a brace as one block."""

    def whole(self, start: bytes) -> bool:
        return start.startswith(b"{")


def source(path: Path, reader: Lines | None = None, block_bytes: int = 64, **options: object) -> BlockSource:
    chosen = reader or Lines()
    return BlockSource([path], path.parent, lambda _path: chosen, ReadOptions(**options), block_bytes)  # type: ignore[arg-type]


def written(folder: Path, content: bytes, name: str = "a.txt") -> Path:
    path = folder / name
    packers = {".gz": gzip.compress, ".bz2": bz2.compress}
    path.write_bytes(packers.get(path.suffix, bytes)(content))
    return path


def units(of: BlockSource) -> list[BlockUnit]:
    found = list(of.units())
    assert all(isinstance(unit, BlockUnit) for unit in found)
    return [unit for unit in found if isinstance(unit, BlockUnit)]


def problem(of: BlockSource) -> tuple[int | None, str]:
    """Return row and reason of the one fault, which comes last."""
    *good, last = of.units()
    assert all(isinstance(unit, BlockUnit) for unit in good)
    assert isinstance(last, Collector)
    ((_file, row, reason, _content),) = last.rejects
    return row, reason


CONTENT = b"".join(b"line %d\n" % number for number in range(300))


@given(st.lists(st.binary(max_size=12)).map(b"\n".join), st.integers(1, 40))
def test_blocks_are_whole_lines_and_all_of_them(content: bytes, size: int) -> None:
    found = list(blocks(io.BytesIO(content), size))
    assert b"".join(found) == content.removeprefix(b"\xef\xbb\xbf")
    assert all(block.endswith(b"\n") for block in found[:-1])
    longest = max(map(len, content.split(b"\n")))
    assert all(len(block) <= 2 * size + longest + 1 for block in found)
    assert all(found)


@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz", "a.txt.bz2"])
def test_each_line_is_read_once_with_its_number(tmp_path: Path, name: str) -> None:
    of = source(written(tmp_path, CONTENT, name))
    labels, rows, done = [], [], 0
    for unit in units(of):
        into = Collector(file=unit.file, first_row=unit.first_row)
        pickle.loads(pickle.dumps(unit)).read(into)  # noqa: S301  (as it goes to another process)
        labels += into.names
        rows += [row for _file, row, _reason, _content in into.rejects]
        done += unit.size
        assert unit.file == name
    assert [text for _local, _what, text, _rank in labels] == CONTENT.decode().splitlines()
    assert {local for local, *_rest in labels} == {"line 0"}
    assert rows == list(range(1, 301))
    assert done == of.size


def test_a_key_is_all_that_decides_what_is_read(tmp_path: Path) -> None:
    path = written(tmp_path, CONTENT)
    keys = [unit.key for unit in units(source(path))]
    assert keys == [unit.key for unit in units(source(path))]
    assert len(set(keys)) == len(keys)
    assert not set(keys) & {unit.key for unit in units(source(path, languages=("de",)))}
    assert not set(keys) & {unit.key for unit in units(source(path, Lines(version="lines-2")))}
    written(tmp_path, CONTENT.replace(b"line 299", b"line 2x9"))
    again = [unit.key for unit in units(source(path))]
    assert (again[:-1], again[-1] != keys[-1]) == (keys[:-1], True)


def test_an_empty_file_is_named(tmp_path: Path) -> None:
    for content in (b"", b"\xef\xbb\xbf"):
        assert problem(source(written(tmp_path, content))) == (None, "the file is empty")


def test_a_file_of_another_kind_is_named_once(tmp_path: Path) -> None:
    assert problem(source(written(tmp_path, CONTENT), Lines(refuse=True))) == (1, "a.txt is something else")


def test_a_file_that_is_gone_is_named(tmp_path: Path) -> None:
    row, reason = problem(source(tmp_path / "gone.txt"))
    assert row == 1
    assert "No such file" in reason


@pytest.mark.parametrize("name", ["a.txt.gz", "a.txt.bz2"])
def test_a_damaged_file_keeps_its_whole_lines(tmp_path: Path, name: str) -> None:
    content = b"".join(b"%d\n" % (number * 7919 % 100_003) for number in range(200_000))
    path = written(tmp_path, content, name)
    packed = path.read_bytes()
    middle = len(packed) // 2
    flipped = packed[:middle] + bytes(byte ^ 0xFF for byte in packed[middle : middle + 300]) + packed[middle + 300 :]
    for broken in (packed[:middle], flipped, b"nothing packed"):
        path.write_bytes(broken)
        *good, last = source(path, block_bytes=10_000).units()
        assert isinstance(last, Collector)
        assert "ends too early or is damaged" in last.rejects[0][2]
        read = b"".join(unit.block for unit in good if isinstance(unit, BlockUnit))
        assert read.endswith(b"\n") or not read
        # gzip's check sum comes last: what was unpacked of flipped bytes before they were noticed may be garbage.
        assert content.startswith(read) or broken is flipped
        assert last.rejects[0][1] == 1 + read.count(b"\n")


def test_a_line_without_end_is_not_held_in_memory(tmp_path: Path) -> None:
    path = written(tmp_path, b"short\n" + b"x" * 5000 + b"\nmore\n")
    with mock.patch.object(module, "MAX_LINE", 1000):
        with pytest.raises(LineTooLongError):
            list(blocks(io.BytesIO(b"x" * 5000), 10))
        row, reason = problem(source(path, block_bytes=6))
    assert row == 2
    assert reason.startswith("a line of more than")


@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz"])
def test_a_file_that_is_one_value_is_one_block(tmp_path: Path, name: str) -> None:
    path = written(tmp_path, b"{\n" + CONTENT, name)
    (unit,) = units(source(path, Whole()))
    assert (unit.block, unit.first, unit.first_row) == (b"{\n" + CONTENT, True, 1)
    assert unit.size == path.stat().st_size
    assert len(units(source(path, Lines()))) > 10
    assert len(units(source(written(tmp_path, CONTENT, name), Whole()))) > 10


def test_a_file_that_is_too_large_to_be_one_value_goes_on_in_blocks(tmp_path: Path) -> None:
    content = b"{\n" + CONTENT
    with mock.patch.object(module, "MAX_WHOLE", 500):
        first, *more = units(source(written(tmp_path, content), Whole()))
    assert 500 < len(first.block) < 1000
    assert first.block + b"".join(unit.block for unit in more) == content
    assert [unit.first for unit in more] == [False] * len(more)
    assert more[0].first_row == 1 + first.block.count(b"\n")


def test_what_was_read_of_a_damaged_value_is_handed_on(tmp_path: Path) -> None:
    path = written(tmp_path, b"{\n" + b"".join(b"%d\n" % (number * 7919 % 100_003) for number in range(99_999)), "a.gz")
    path.write_bytes(path.read_bytes()[:-9000])
    unit, last = source(path, Whole(), block_bytes=10_000).units()
    assert isinstance(unit, BlockUnit)
    assert isinstance(last, Collector)
    assert unit.block.startswith(b"{\n0\n")
    assert unit.block.endswith(b"\n")
    assert last.rejects[0][1] == 1 + unit.block.count(b"\n")
