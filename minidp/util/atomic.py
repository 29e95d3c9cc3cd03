"""Write files atomically: even after a crash a file has its old content or the new one."""

import glob
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

StrPath = str | os.PathLike[str]


@contextmanager
def atomic_write(path: StrPath, mode: str = "w") -> Iterator[IO[Any]]:
    """Open a file for writing that replaces `path` only when it is complete and on disk.

    The content goes to a temporary file in the same directory, is forced to the disk, and is
    renamed over `path` when the block ends. If the block raises, or the process dies, `path` stays
    as it was; after an exception the temporary file is removed. Text (mode "w") is UTF-8; "wb"
    writes bytes. If `path` is a symbolic link, the file that it points to is replaced. Raises
    OSError if the directory is missing or not writable.
    """
    path = Path(os.path.realpath(path))
    binary = "b" in mode
    try:
        descriptor, temporary = tempfile.mkstemp(
            prefix=f".{path.name}.", suffix=".tmp", dir=path.parent
        )
    except OSError as error:  # name the file that the caller asked for, not the temporary one
        raise OSError(error.errno, error.strerror, os.fspath(path)) from error
    try:
        with open(
            descriptor, mode, encoding=None if binary else "utf-8", newline=None if binary else "\n"
        ) as file:
            _usual_permissions(descriptor, path)
            yield file
            file.flush()
            os.fsync(descriptor)
        os.replace(temporary, path)
    except BaseException:  # an interrupt must not leave the temporary file behind either
        os.unlink(temporary)
        raise
    _sync_directory(path.parent)


def remove_leftovers(path: Path) -> None:
    """Remove temporary files that killed writers of `path` left. Call it only if no other process
    may write `path`.
    """
    for left in path.parent.glob(f".{glob.escape(path.name)}.*.tmp"):
        left.unlink(missing_ok=True)


def _usual_permissions(descriptor, path):
    """Set the permissions of the replaced file, or those of a new file, because mkstemp makes files
    private to their owner.
    """
    try:
        permissions = path.stat().st_mode & 0o777
    except FileNotFoundError:
        mask = os.umask(0)
        os.umask(mask)
        permissions = 0o666 & ~mask
    os.fchmod(descriptor, permissions)


def _sync_directory(directory):
    """Make the rename itself survive a power cut."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
