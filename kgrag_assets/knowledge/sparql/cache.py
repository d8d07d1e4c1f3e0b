"""Answers kept on disk: bounded in size and age, each a file written whole or not at all."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

from kgrag_assets.lake.files import explained, write_whole

_SUFFIX = ".json"
# After an eviction there is room for some time.
_FILL_TO = 0.9
_ABANDONED_S = 3600.0
_CLOCKS_DIFFER_S = 5.0


class AnswerCache:
    """Bytes by key in one folder. Several threads may use it; several processes may too, the bound is then loose."""

    def __init__(
        self,
        folder: Path,
        max_bytes: int = 256 << 20,
        max_age_s: float = 24 * 3600.0,
        now: Callable[[], float] = time.time,
    ) -> None:
        """Take the place and the bounds; nothing is read or made yet.

        Args:
            folder: a folder of its own.
            max_bytes: beyond it the oldest answers go; an answer that is larger alone is not kept.
            max_age_s: seconds after which an answer is asked for again.
            now: seconds since the epoch, as files are stamped.
        """
        self._folder = folder
        self._max_bytes = max_bytes
        self._max_age_s = max_age_s
        self._now = now
        self._lock = threading.Lock()
        self._held: int | None = None

    def get(self, key: str) -> bytes | None:
        """Return what was kept under a key (hexadecimal digits), or None where nothing is or it is too old."""
        path = self._path(key)
        try:
            age = self._now() - path.stat().st_mtime
            # A stamp from the future (beyond what clocks differ) says nothing about the age.
            return path.read_bytes() if -_CLOCKS_DIFFER_S <= age <= self._max_age_s else None
        except OSError:
            return None

    def put(self, key: str, content: bytes) -> None:
        """Keep bytes under a key, and let the oldest go where the folder would grow too large.

        Raises:
            LakeError: the folder cannot be written.
        """
        if len(content) > self._max_bytes:
            return
        with self._lock:
            held = self._held if self._held is not None else sum(size for _age, size, _path in self._files())
            if held + len(content) > self._max_bytes:
                held = self._evict(int(self._max_bytes * _FILL_TO) - len(content))
            write_whole(self._path(key), content)
            self._held = held + len(content)

    def forget(self, key: str) -> None:
        """Drop what is kept under a key."""
        path = self._path(key)
        with explained(path):
            path.unlink(missing_ok=True)

    def clear(self) -> None:
        """Drop all that is kept.

        Raises:
            LakeError: the folder cannot be written.
        """
        with self._lock, explained(self._folder):
            for _age, _size, path in self._files():
                path.unlink(missing_ok=True)
            self._held = None

    def _path(self, key: str) -> Path:
        if not key.isalnum():
            raise ValueError(f"not a key: {key[:40]!r}")
        return self._folder / f"{key}{_SUFFIX}"

    def _files(self) -> list[tuple[float, int, Path]]:
        found = []
        for path in self._folder.glob(f"*{_SUFFIX}"):
            try:
                stat = path.stat()
            except OSError:  # another process was faster
                continue
            found.append((stat.st_mtime, stat.st_size, path))
        return sorted(found)

    def _evict(self, room: int) -> int:
        """Delete the oldest files until the rest fits into ``room`` bytes; return the bytes that stay."""
        files = self._files()
        held = sum(size for _age, size, _path in files)
        for _age, size, path in files:
            if held <= max(0, room):
                break
            path.unlink(missing_ok=True)
            held -= size
        for path in self._folder.glob(".*.tmp"):  # of killed writers
            try:
                if self._now() - path.stat().st_mtime > _ABANDONED_S:
                    path.unlink(missing_ok=True)
            except OSError:
                continue
        return held
