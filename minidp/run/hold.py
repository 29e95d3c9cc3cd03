"""The lock that keeps other processes out of a run's folder."""

import fcntl
import os
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..errors import ParameterError


def hold(path: Path, name: str, owner: Any) -> Callable[[], Any]:
    """Keep other processes out of the folder at `path` until this process ends in any way, `owner`
    is deleted, or the returned function is called.

    name: name of a file in the folder that serves as the lock if the file system has no locks.
    Raises ParameterError if another process holds the folder.
    """
    busy = (
        f"{path}: another process is running in this folder; wait for it, or choose another folder"
    )
    held = os.open(path, os.O_RDONLY)
    unlock = weakref.finalize(owner, os.close, held)
    try:  # the folder itself, because a lock file could be deleted
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return unlock
    except BlockingIOError as error:
        raise ParameterError(busy) from error
    except OSError:  # a file system without such locks
        unlock()
    lock = path / name
    try:
        lock.touch(exist_ok=False)
    except FileExistsError as error:
        raise ParameterError(f"{busy}; if none is (after a crash), delete {lock}") from error
    return weakref.finalize(owner, lock.unlink, missing_ok=True)
