"""Writing a file so that a reader sees the old one or the new one, never a part."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


class LakeError(RuntimeError):
    """Something in the lake cannot be read or written; the message names the path and what to do."""


def _explained(error: OSError, path: Path) -> LakeError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return LakeError(f"no space left to write {path}: free some disk space and run again; nothing was changed")
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return LakeError(f"not allowed to write {path}: check the folder's owner and permissions")
    return LakeError(f"cannot write {path}: {error.strerror or error}")


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable, where the system can."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_file(path: Path) -> None:
    """Make a file's bytes durable."""
    with path.open("rb") as handle:
        os.fsync(handle.fileno())


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn the operating system's errors while writing ``path`` into a ``LakeError`` that says what to do."""
    try:
        yield
    except OSError as error:
        raise _explained(error, path) from error


def replace_file(path: Path, write: Callable[[Path], None]) -> None:
    """Write ``path`` whole or not at all.

    Args:
        path: the file to be made or replaced; its folder is made where missing.
        write: writes the content to the path it is given, which lies beside ``path``.

    Raises:
        LakeError: the disk is full or the place cannot be written; the old file is untouched.
    """
    with explained(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
        os.close(handle)
        temporary = Path(name)
        try:
            write(temporary)
            sync_file(temporary)
            temporary.chmod(0o644)
            temporary.replace(path)
            sync_folder(path.parent)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


def write_whole(path: Path, content: str | bytes) -> None:
    """Write bytes, or a text as UTF-8, as ``replace_file`` does.

    Raises:
        LakeError: the disk is full or the place cannot be written; the old file is untouched.
    """
    raw = content.encode("utf-8") if isinstance(content, str) else content

    def write(temporary: Path) -> None:
        temporary.write_bytes(raw)

    replace_file(path, write)


def replace_folder(folder: Path, write: Callable[[Path], None]) -> None:
    """Write a folder of files that belong together, and swap it in whole.

    A folder cannot be replaced in one rename while it has files, so the new one gets a name of its own
    and ``folder`` is a symbolic link that is moved over to it in one rename.

    Args:
        folder: the name readers use.
        write: writes the files into the folder it is given.

    Raises:
        LakeError: the disk is full or the place cannot be written; the old folder is untouched.
    """
    with explained(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        fresh = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f"{folder.name}."))
        link = folder.parent / f".{fresh.name}.link"
        try:
            fresh.chmod(0o755)
            write(fresh)
            for path in fresh.iterdir():
                sync_file(path)
            sync_folder(fresh)
            old = folder.resolve() if folder.is_symlink() else None
            link.symlink_to(fresh.name, target_is_directory=True)
            link.replace(folder)
            sync_folder(folder.parent)
        except BaseException:
            link.unlink(missing_ok=True)
            shutil.rmtree(fresh, ignore_errors=True)
            raise
        # Readers that opened the old files keep them: on POSIX an unlinked file lives until closed.
        if old is not None and old != fresh.resolve():
            shutil.rmtree(old, ignore_errors=True)


def sweep(folder: Path) -> None:
    """Remove what killed writers left in a folder: call it only under that folder's lock."""
    if not folder.is_dir():
        return
    for path in folder.glob(".*.tmp"):
        path.unlink(missing_ok=True)
    for path in folder.glob(".*.link"):
        path.unlink(missing_ok=True)
    kept = {path.resolve() for path in folder.iterdir() if path.is_symlink()}
    for link in [path for path in folder.iterdir() if path.is_symlink()]:
        for path in folder.glob(f"{link.name}.*"):
            if path.is_dir() and not path.is_symlink() and path.resolve() not in kept:
                shutil.rmtree(path, ignore_errors=True)
