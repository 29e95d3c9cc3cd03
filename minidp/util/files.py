"""Writing a file so that a reader, or a crash, sees the old content or the new and nothing between;
JSON, strictly.
"""

import dataclasses
import enum
import json
import math
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from ..errors import DataError, ParameterError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

StrPath = str | os.PathLike[str]


def check_path(**named: Any) -> None:
    """Raise ParameterError unless each named value is None, or text or a path that the system
    takes.
    """
    for name, value in named.items():
        try:
            fits = value is None or b"\0" not in os.fsencode(Path(value))
        except (TypeError, UnicodeEncodeError):
            fits = False
        if not fits:
            raise ParameterError(
                f"expected {name}={value!r:.80} to be the path of a file or folder"
            )


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


@contextmanager
def waiting_lock(path: StrPath) -> Iterator[None]:
    """Hold the lock of a file, which is made and stays, once no other process does. Raises OSError
    where there are no locks.
    """
    with open(path, "a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX)  # until the file is closed, or the process ends
        except AttributeError:
            raise OSError("this system has no fcntl") from None
        yield


def _usual_permissions(descriptor, path):
    """mkstemp makes files private to their owner; give those of the file replaced, or of any new
    file.
    """
    if hasattr(os, "fchmod"):
        try:
            permissions = path.stat().st_mode & 0o777
        except FileNotFoundError:
            mask = os.umask(0)
            os.umask(mask)
            permissions = 0o666 & ~mask
        os.fchmod(descriptor, permissions)


def _sync_directory(directory):
    """Make the rename itself survive a power cut, where directories can be opened (not on
    Windows).
    """
    if os.name == "posix":
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def jsonable(value: object, where: str = "result") -> Any:
    """The value in the types of JSON: infinity is the string "inf", None is null, arrays are lists.

    Raises ValueError for NaN, which no reader of a result could tell from a mistake, and TypeError
    for what has no such form; both name the place.
    """
    if hasattr(value, "to_json"):
        value = value.to_json()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {str(key): jsonable(item, f"{where}.{key}") for key, item in value.items()}
    if isinstance(value, enum.Enum):
        return jsonable(value.value, where)
    if hasattr(value, "tolist"):  # a NumPy scalar or array
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return [jsonable(item, f"{where}[{i}]") for i, item in enumerate(value)]
    if isinstance(value, float) and not math.isfinite(value):
        if math.isnan(value):
            raise ValueError(f"{where} is NaN")
        return "inf" if value > 0 else "-inf"
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise TypeError(f"{where}: no JSON for {type(value).__name__}")


def write_json(path: StrPath, value: object) -> None:
    """Write the value as JSON, whole or not at all. Raises ValueError for NaN, OSError for a bad
    path.
    """
    text = json_text(value, Path(path).stem)
    with atomic_write(path) as file:
        file.write(text)


def json_text(value: object, where: str = "result") -> str:
    """What `write_json` writes."""
    return json.dumps(jsonable(value, where), indent=2, allow_nan=False) + "\n"


def read_json(path: StrPath, error: type[Exception] = DataError) -> dict[str, Any]:
    """The object in a JSON file. Raises `error`, naming the file, where there is none or it holds
    something else.
    """
    try:
        found = json.loads(Path(path).read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError) as missing:
        raise error(f"{path}: no such file") from missing
    except (OSError, ValueError, RecursionError) as damage:
        raise error(f"{path}: damaged, or not JSON ({damage})") from damage
    if not isinstance(found, dict):
        raise error(f"{path}: damaged: expected an object, got {type(found).__name__}")
    return found
