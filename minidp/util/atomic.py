"""Writing a file so that a reader, or a crash, sees the old content or the new and nothing
between.
"""

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
    """Open a file for writing that takes the place of `path` only once it is complete and on disk.

    The content goes to a temporary file in the same directory, is forced to the disk, and is
    renamed over `path` when the block ends. If the block raises, or the process dies, `path` stays
    as it was; after an exception the temporary file is removed. Text (mode "w") is UTF-8; "wb"
    writes bytes. A symbolic link is written through. Raises OSError where the directory is missing
    or not writable.
    """
    path = Path(os.path.realpath(path))
    binary = "b" in mode
    try:
        descriptor, temporary = tempfile.mkstemp(
            prefix=f".{path.name}.", suffix=".tmp", dir=path.parent
        )
    except OSError as error:  # told of the file that was asked for, not of the temporary one
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
    """Remove what writers of `path` left when they were killed; only where no other process may
    write it.
    """
    for left in path.parent.glob(f".{glob.escape(path.name)}.*.tmp"):
        left.unlink(missing_ok=True)


def _usual_permissions(descriptor, path):
    """mkstemp makes files private to their owner; give those of the file replaced, or of any new
    file.
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
