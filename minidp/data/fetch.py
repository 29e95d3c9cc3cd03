"""Places of published files, the cache folder, and verified downloads into it.

A file appears in the cache only after its contents have the published hash: it is written under a
temporary name and renamed. Every mirror gets one attempt, and is given up after 10 s without an
answer.
"""

import hashlib
import http.client
import os
import tempfile
import threading
import urllib.error
import urllib.request
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import DataError, DataUnavailableError
from ..util.atomic import StrPath, atomic_write

TIMEOUT = 10  # seconds
BLOCK = 1 << 16  # bytes


@dataclass(frozen=True)
class RemoteFile:
    """A published file: its name on the mirrors, and the hash of its contents (decompressed if
    `gunzip`).
    """

    name: str
    algorithm: str
    digest: str
    gunzip: bool = False


def cache_dir() -> Path:
    """The folder for data that minidp downloads or makes: $MINIDP_CACHE if set, else the user's
    cache.
    """
    if os.environ.get("MINIDP_CACHE"):
        return Path(os.environ["MINIDP_CACHE"])
    import platformdirs

    return platformdirs.user_cache_path("minidp")


def find(
    title: str,
    locate: Callable[..., Any],
    files: Iterable[RemoteFile],
    mirrors: Iterable[str],
    cache: str,
    advice: str,
    data_dir: StrPath | None = None,
    download: bool = True,
    progress: bool = True,
) -> Any:
    """What `locate` finds in data_dir, else in the first of the folder $MINIDP_DATA, the cache and
    a download into it.

    locate(folder, partial=False) returns None where the folder has none of the files; of a
    `partial` folder it may be that only some are there, which a download completes. `files` are
    RemoteFiles, `cache` is a folder in `cache_dir`, `advice` ends every message. Raises DataError
    if data_dir has no files, DataUnavailableError if no place has them.
    """
    if data_dir is not None:
        if found := locate(Path(data_dir)):
            return found
        raise DataError(f"{data_dir}: holds no {title} files; {advice}")
    folder, named = cache_dir() / cache, os.environ.get("MINIDP_DATA")
    if found := named and locate(Path(named)) or locate(folder, partial=True):
        return found
    looked = (
        f"{title} is neither in MINIDP_DATA={named} nor in {folder}"
        if named
        else f"{title} is not in {folder}"
    )
    if not download:
        raise DataUnavailableError(f"{looked}; {advice}")
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
        except (OSError, http.client.HTTPException, _BadContents) as error:
            failures.append(f"{mirror}{missing[0].name}: {_reason(error)}")
    if missing:
        raise DataUnavailableError(f"no mirror could be used ({'; '.join(failures)}); {advice}")


class _BadContents(Exception):
    """The file that a mirror sent is not the published one."""


def _download(url, file, folder, progress):
    from tqdm import tqdm

    request = urllib.request.Request(url, headers={"User-Agent": "minidp"})
    with _within(TIMEOUT, lambda: urllib.request.urlopen(request, timeout=TIMEOUT)) as answer:
        announced, check = answer.length, _Check(file)
        bar = tqdm(
            total=announced,
            unit="B",
            unit_scale=True,
            desc=file.name,
            disable=None if progress else True,
        )
        with bar, atomic_write(folder / file.name, "wb") as out:
            while block := answer.read(BLOCK):
                check.update(block)
                out.write(block)
                bar.update(len(block))
            if announced is not None and out.tell() < announced:
                raise _BadContents(f"ended after {out.tell()} of {announced} bytes")
            check.finish()


def _within(seconds, call):
    """The result of `call`, or TimeoutError. A socket's own timeout covers neither the name look-up
    nor the later addresses of a host, so the call runs in a thread, which is abandoned if it hangs.
    """
    outcome = {}

    def work():
        try:
            outcome["result"] = call()
        except BaseException as error:  # handed to the caller below
            outcome["error"] = error

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(seconds)
    if "error" in outcome:
        raise outcome["error"]
    if "result" not in outcome:
        raise TimeoutError()
    return outcome["result"]


class _Check:
    """Hashes a file while it arrives, block by block."""

    def __init__(self, file):
        self.file = file
        self.hash = hashlib.new(file.algorithm, usedforsecurity=False)
        self.inflate = zlib.decompressobj(wbits=31) if file.gunzip else None

    def update(self, block):
        try:
            self.hash.update(self.inflate.decompress(block) if self.inflate else block)
        except zlib.error as error:
            raise _BadContents(f"not an intact gzip file ({error})") from error

    def finish(self):
        if self.inflate and not self.inflate.eof:
            raise _BadContents("the gzip stream ends early")
        if self.hash.hexdigest() != self.file.digest:
            raise _BadContents(
                f"{self.file.algorithm} is {self.hash.hexdigest()}, expected {self.file.digest}"
            )


def _reason(error):
    if isinstance(error, urllib.error.HTTPError):
        error.close()  # it holds the connection
        return f"HTTP {error.code}"
    if isinstance(error, urllib.error.URLError) and isinstance(error.reason, Exception):
        error = error.reason
    if isinstance(error, TimeoutError):
        return f"no answer within {TIMEOUT} s"
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return " ".join(text.split())
