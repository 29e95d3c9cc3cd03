"""Paths, locks and strict JSON. Files are written by `atomic.atomic_write`."""

import dataclasses
import enum
import fcntl
import json
import math
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import get_ident
from typing import IO, Any

from ..errors import DataError, ParameterError
from .atomic import StrPath, atomic_write

_left: dict[int, IO[str]] = {}  # {thread: the file that it locked last}


def check_path(**named: Any) -> None:
    """Raise ParameterError unless each named value is None, or a text or path that the system
    accepts.
    """
    for name, value in named.items():
        try:
            text = "x" if value is None else os.fspath(value)
            fits = text != "" and b"\0" not in os.fsencode(Path(text))
        except (TypeError, UnicodeEncodeError):
            fits = False
        if not fits:
            # an array may hold private values
            plain = isinstance(value, (str, bytes, int, float))
            given = f"={value!r:.80}" if plain else f"= a {type(value).__name__}"
            raise ParameterError(f"expected {name}{given} to be the path of a file or folder")


@contextmanager
def waiting_lock(path: StrPath) -> Iterator[Callable[[], bool]]:
    """Wait for the lock of a file, and hold it; the file is created and stays. Yields a function
    that returns whether the lock still counts: it does not if the file was deleted, because others
    then lock a new one. Raises OSError if the file system has no locks.

    A lock that an earlier call of this thread left behind is given up first. An interrupt just
    before the release of a lock leaves one, because the traceback keeps its file open.
    """
    if left := _left.pop(get_ident(), None):
        left.close()
    with open(path, "a") as file:
        _left[get_ident()] = file
        fcntl.flock(file, fcntl.LOCK_EX)  # until the file is closed, or the process ends
        mine = os.fstat(file.fileno())
        yield (
            lambda: (
                not file.closed and os.path.exists(path) and os.path.samestat(mine, os.stat(path))
            )
        )


@contextmanager
def damage_named(path: StrPath, error: type[Exception]) -> Iterator[None]:
    """Turn exceptions from reading a file into `error`, with one line that names the file; an
    exception that is an `error` already is not changed.
    """
    try:
        yield
    except error:
        raise
    except FileNotFoundError as missing:
        raise error(f"{path}: no such file") from missing
    except IsADirectoryError as folder:
        raise error(f"{path}: a folder; name the file in it") from folder
    except Exception as damage:  # zipfile, NumPy and json raise a dozen kinds of errors
        why = " ".join(str(damage).split())[:200]
        raise error(f"{path}: damaged, or a file of another kind ({why})") from damage


def jsonable(value: object, where: str = "result") -> Any:
    """Convert the value for JSON: infinity becomes the string "inf", None null, arrays lists.

    Raises ValueError for NaN, which looks like a mistake in a result, and TypeError for other
    types; both name the place.
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
    """The text that `write_json` writes."""
    return json.dumps(jsonable(value, where), indent=2, allow_nan=False) + "\n"


def unique_fields(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object, for `json.loads`. Raises DataError if two fields have the same name, because
    readers differ in which one they take.
    """
    if len(dict(pairs)) < len(pairs):
        raise DataError("a field stands twice")
    return dict(pairs)


def read_json(path: StrPath, error: type[Exception] = DataError) -> dict[str, Any]:
    """The object in a JSON file. Raises `error`, with the file's name, if the file is missing or
    holds anything else.
    """
    with damage_named(path, error):
        found = json.loads(Path(path).read_text(encoding="utf-8"), object_pairs_hook=unique_fields)
    if not isinstance(found, dict):
        raise error(f"{path}: damaged: expected an object, got {type(found).__name__}")
    return found
