"""Places of published files, the cache folder, and verified downloads into it.

A file appears in the cache only after its contents have the published hash: it is written under a
temporary name and renamed. Every mirror gets one attempt, and is given up after 10 s without an
answer.
"""

import gzip
import hashlib
import http.client
import io
import os
import shutil
import tempfile
import urllib.error
import urllib.request
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from minidp.errors import DataError
from minidp.util.atomic import StrPath, atomic_write

TIMEOUT = 10  # seconds


class DataUnavailableError(DataError):
    """No copy of a data set was found, and none could be downloaded."""


@dataclass(frozen=True)
class RemoteFile:
    """A published file: its name on the mirrors, and the hash of its contents (decompressed if
    `gunzip`).
    """

    name: str
    algorithm: str
    digest: str
    gunzip: bool = False

    def contents(self, raw: bytes) -> bytes:
        """The contents of the file, from its bytes. Raises DataError for another hash."""
        if self.gunzip and raw.startswith(b"\x1f\x8b"):
            try:
                raw = gzip.decompress(raw)
            except (OSError, EOFError, zlib.error) as error:
                raise DataError(f"damaged gzip file ({error})") from error
        got = hashlib.new(self.algorithm, raw, usedforsecurity=False).hexdigest()
        if got != self.digest:
            raise DataError(
                f"not the published {self.name}: {self.algorithm} of its contents is {got}, "
                f"expected {self.digest}"
            )
        return raw

    def read(self, path: StrPath) -> bytes:
        """The contents of the file at `path`. Raises DataError unless they are published ones."""
        try:
            return self.contents(read_bytes(path))
        except DataError as error:
            raise DataError(f"{path}: {error}; replace the file, or delete it") from error


def read_bytes(path: StrPath) -> bytes:
    """The bytes of a file. Raises DataError if it cannot be read."""
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror})") from error


def cache_dir() -> Path:
    """The folder for data that the experiments download or make: $MINIDP_CACHE, else the user's
    cache.
    """
    if os.environ.get("MINIDP_CACHE"):
        return Path(os.environ["MINIDP_CACHE"])
    import platformdirs

    return platformdirs.user_cache_path("minidp")


def find(
    name: str,
    locate: Callable[[Path], Any],
    files: list[RemoteFile],
    mirrors: Iterable[str],
    data_dir: StrPath | None = None,
    progress: bool = True,
) -> Any:
    """What `locate` finds in data_dir, else in the first of the folder $MINIDP_DATA, the cache and
    a download into it.

    name names the data set in messages, and its folder in `cache_dir`. locate(folder) returns None
    unless the folder has the data. Raises DataError if data_dir has not, DataUnavailableError if no
    place has.
    """
    names = ", ".join(file.name for file in files)
    advice = (
        f"put {names} (from {' or '.join(mirrors)}) into DIR and pass --data-dir DIR or set "
        "MINIDP_DATA=DIR"
    )
    if data_dir is not None:
        if found := locate(Path(data_dir)):
            return found
        raise DataError(f"{data_dir}: lacks files of {name.upper()}; {advice}")
    folder, named = cache_dir() / name, os.environ.get("MINIDP_DATA")
    if found := named and locate(Path(named)) or locate(folder):
        return found
    given = f"nor in MINIDP_DATA={named}" if named else "and MINIDP_DATA is not set"
    looked = f"{name.upper()} is not in {folder}, {given}"
    try:
        fetch(files, mirrors, folder, advice, progress)
    except DataUnavailableError as error:
        raise DataUnavailableError(f"{looked}, and {error}") from error
    return locate(folder)


def fetch(
    files: Iterable[RemoteFile],
    mirrors: Iterable[str],
    folder: Path,
    advice: str,
    progress: bool = True,
) -> None:
    """Download the RemoteFiles that `folder` lacks, from the first mirrors (URLs ending in /) that
    serve them.

    A mirror that fails once is not asked again. Raises DataUnavailableError, one line that lists
    what failed and ends in `advice`, if files are still missing after the last mirror, or if the
    folder cannot be written. No partial or unverified file stays behind. `progress` shows a bar on
    a terminal.
    """
    failures = []
    if missing := [file for file in files if not (folder / file.name).exists()]:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=folder).close()
        except OSError as error:
            raise DataUnavailableError(
                f"cache folder {folder}: cannot be written ({error.strerror}); set MINIDP_CACHE "
                "to another folder"
            ) from error
    for mirror in mirrors:
        try:
            while missing:
                _download(mirror + missing[0].name, missing[0], folder, progress)
                missing.pop(0)
        except (OSError, http.client.HTTPException, DataError) as error:
            failures.append(f"{mirror}{missing[0].name}: {_reason(error)}")
    if missing:
        raise DataUnavailableError(f"no mirror could be used ({'; '.join(failures)}); {advice}")


def _download(url, file, folder, progress):
    from tqdm import tqdm

    request = urllib.request.Request(url, headers={"User-Agent": "minidp"})
    raw = io.BytesIO()
    with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:
        shown = {"total": answer.length, "desc": file.name, "disable": None if progress else True}
        with tqdm.wrapattr(answer, "read", **shown) as blocks:
            shutil.copyfileobj(blocks, raw)
    file.contents(raw.getvalue())
    with atomic_write(folder / file.name, "wb") as out:
        out.write(raw.getvalue())


def _reason(error):
    if isinstance(error, urllib.error.HTTPError):
        error.close()  # it holds the connection
        return f"HTTP {error.code}"
    reason = getattr(error, "reason", error)
    if isinstance(reason, TimeoutError):
        return f"no answer within {TIMEOUT} s"
    return " ".join(str(reason).split()) or type(reason).__name__
