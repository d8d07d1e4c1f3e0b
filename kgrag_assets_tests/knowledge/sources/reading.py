"""What the tests of line readers share: read a folder as the program does, and see what came out."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kgrag_assets.knowledge.collector import ALIAS, DESCRIPTION, LABEL, LISTED, RELATION, Collector
from kgrag_assets.knowledge.sources.blocks import BLOCK_BYTES, BlockReader, BlockSource, ReadOptions
from kgrag_assets.knowledge.sources.protocol import Source


@dataclass
class Found:
    """What all units of a source found, without repetitions."""

    labels: dict[str, str] = field(default_factory=dict)
    aliases: dict[str, list[str]] = field(default_factory=dict)
    descriptions: dict[str, str] = field(default_factory=dict)
    listed: set[str] = field(default_factory=set)
    relations: set[str] = field(default_factory=set)
    edges: list[tuple[str, str, str]] = field(default_factory=list)
    literals: list[tuple[str, str, str, str | None]] = field(default_factory=list)
    counts: list[tuple[str, int, int, int]] = field(default_factory=list)
    rejects: list[tuple[str, int | None, str, str]] = field(default_factory=list)

    @property
    def reasons(self) -> list[tuple[int | None, str]]:
        """Row and reason of each reject."""
        return [(row, reason) for _file, row, reason, _content in self.rejects]


def read_source(source: Source) -> Found:
    """Read every unit, each from its pickle as another process would, and put together what they found."""
    collectors = []
    for unit in source.units():
        if isinstance(unit, Collector):
            collectors.append(unit)
            continue
        collector = Collector(file=unit.file, first_row=unit.first_row)
        pickle.loads(pickle.dumps(unit)).read(collector)  # noqa: S301  (what this test has just written)
        # As the program does next: what cannot become rows of a table fails here.
        collector.frames("t", 4)
        collectors.append(collector)
    return put_together(collectors)


def read_files(
    files: Sequence[Path],
    reader_of: Callable[[Path], BlockReader],
    options: ReadOptions,
    *,
    root: Path,
    block_bytes: int = BLOCK_BYTES,
) -> Found:
    """Read files in blocks."""
    return read_source(BlockSource(list(files), root, reader_of, options, block_bytes))


def put_together(collectors: Sequence[Collector]) -> Found:
    """Choose names by their ranks, the first of equals."""
    found = Found()
    names = [row for collector in collectors for row in collector.names]
    for local, what, text, _rank in sorted(names, key=lambda row: row[3]):
        if what == LABEL:
            found.labels.setdefault(local, text)
            found.listed.add(local)
        elif what == ALIAS:
            if text not in found.aliases.setdefault(local, []):
                found.aliases[local].append(text)
        elif what == DESCRIPTION:
            found.descriptions.setdefault(local, text)
        elif what == LISTED:
            found.listed.add(local)
        else:
            assert what == RELATION
            found.relations.add(local)
    edges = dict.fromkeys(row for collector in collectors for row in collector.edges)
    found.edges = [(head, relation, tail) for head, relation, tail, _value, _unit in edges if tail is not None]
    found.literals = [(head, relation, value, unit) for head, relation, _, value, unit in edges if value is not None]
    found.counts = [row for collector in collectors for row in collector.counts]
    found.rejects = [row for collector in collectors for row in collector.rejects]
    return found
