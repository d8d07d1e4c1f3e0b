"""The port of a graph's format: a source hands out units of reading, each of which fills a collector."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from kgrag_assets.knowledge.collector import Collector


class Unit(Protocol):
    """A piece of a graph that is read by itself, in this process or another: it can be pickled.

    What a killed load had read stays: a unit whose ``key`` was read before is not read again.
    """

    @property
    def key(self) -> str:
        """Hash of all that decides what ``read`` finds: content, settings, version of the reader."""

    @property
    def file(self) -> str:
        """File (relative to the graph's folder) or endpoint, for people."""

    @property
    def first_row(self) -> int:
        """Number of the unit's first line within its file, from 1."""

    @property
    def size(self) -> int:
        """How far this unit brings the reading forward, in the measure of ``Source.size``."""

    def read(self, into: Collector) -> None:
        """Fill a collector. What cannot be taken is rejected there; only a fault of this program raises."""


class Source(Protocol):
    """A graph to be read."""

    @property
    def size(self) -> int:
        """Bytes of all files, or steps, for progress."""

    def units(self) -> Iterator[Unit | Collector]:
        """Yield the units in order. A collector holds rejects of a file that cannot be opened or ends too early."""
