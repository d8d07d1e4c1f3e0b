"""Many strings as two memory-mapped arrays: opening them costs nothing, whatever their number."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import polars as pl


class TextArray:
    """Strings in one array of bytes, found by offset."""

    def __init__(self, offsets: np.ndarray, content: np.ndarray) -> None:
        """Take offsets of shape (n + 1), uint32 or int64, and uint8 content."""
        # Plain arrays and a memory view: reading a text from them takes a third of the time it takes from a memmap.
        self._offsets = np.asarray(offsets)
        self._content: memoryview = np.asarray(content).data

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def __getitem__(self, place: int) -> str:
        return str(self._content[self._offsets[place] : self._offsets[place + 1]], "utf-8")

    def insertion(self, text: str) -> tuple[int, bool]:
        """Return where a text is or would be in an array sorted by bytes, and whether it is there."""
        wanted = text.encode("utf-8")
        offsets, content = self._offsets, self._content
        low, high = 0, len(self)
        while low < high:
            middle = (low + high) // 2
            here = bytes(content[offsets[middle] : offsets[middle + 1]])
            if here == wanted:
                return middle, True
            if here < wanted:
                low = middle + 1
            else:
                high = middle
        return low, False

    def find(self, text: str) -> int | None:
        """Return the place of a text in an array sorted by bytes, or None."""
        place, found = self.insertion(text)
        return place if found else None


def write_texts(folder: Path, name: str, texts: pl.Series) -> None:
    """Write ``name.offsets.npy`` and ``name.content.npy`` from a column of strings without nulls."""
    import polars as pl

    array = texts.rechunk().to_arrow(compat_level=pl.CompatLevel.oldest())
    _valid, places, content = array.buffers()
    if len(array) and places is not None:
        offsets = np.frombuffer(places, dtype=np.int64)[array.offset : array.offset + len(array) + 1]
        start, end = int(offsets[0]), int(offsets[-1])
        letters = np.frombuffer(content, dtype=np.uint8)[start:end] if end > start else np.empty(0, dtype=np.uint8)
        offsets = offsets - start
    else:
        offsets, letters = np.zeros(1, dtype=np.int64), np.empty(0, dtype=np.uint8)
    if len(letters) <= np.iinfo(np.uint32).max:
        offsets = offsets.astype(np.uint32)
    np.save(folder / f"{name}.offsets.npy", offsets, allow_pickle=False)
    np.save(folder / f"{name}.content.npy", letters, allow_pickle=False)
