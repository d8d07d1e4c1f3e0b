"""One writer at a time: locks between processes that vanish with the process that held them."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kgrag_assets.lake.files import LakeError, explained


@contextmanager
def locked(path: Path, wait_s: float = 3600.0) -> Iterator[None]:
    """Hold an exclusive lock on ``path`` while the block runs.

    The kernel releases the lock when the process ends, however it ends, so a killed run leaves nothing
    to clean up. The file stays; its content is the holder's process id, for the message to others.

    Args:
        path: lock file; made where missing.
        wait_s: seconds to wait for another holder.

    Raises:
        LakeError: another process still holds it after ``wait_s`` seconds.
    """
    with explained(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        deadline = time.monotonic() + wait_s
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    holder = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip() or "unknown"
                    raise LakeError(
                        f"{path.stem} is being written by another run (process {holder}): wait for it, then run again"
                    ) from None
                time.sleep(0.05)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, str(os.getpid()).encode(), 0)
        yield
    finally:
        os.close(descriptor)
