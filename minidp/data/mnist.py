"""MNIST: 60,000 + 10,000 handwritten digits of 28 x 28 pixels (LeCun, Cortes, Burges), verified by
hash; and one call for digits, MNIST or synthetic ones if it is not available.
"""

import gzip
import hashlib
import math
import os
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError, DataUnavailableError
from ..util import validate
from ..util.atomic import StrPath
from .arrays import Dataset
from .fetch import RemoteFile, find
from .strokes import SIZES, load_strokes

MIRRORS = (
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
)
# sha256 of the decompressed published files, in the order in which Dataset.sha256 concatenates them
FILES = {
    "train-images-idx3-ubyte": "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
    "train-labels-idx1-ubyte": "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
    "t10k-images-idx3-ubyte": "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
    "t10k-labels-idx1-ubyte": "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
}
NOMINAL_SIZE = 60_000


def load(
    dataset: str = "auto",
    data_dir: StrPath | None = None,
    on_notice: Callable[[str], object] = print,
    sizes: Sequence[int] | None = None,
    progress: bool = True,
) -> Dataset:
    """A Dataset of 28 x 28 digits.

    dataset    "mnist" (load_mnist, never anything else), "strokes" (synthetic digits), or "auto":
               MNIST, and synthetic digits only if no place has it. A damaged file is an error.
    data_dir   a folder with the MNIST files, or None
    on_notice  called with each line that the user must see
    sizes      None for everything, or the public numbers (training, test) of examples to take from
               the front; the first becomes nominal_size
    progress   whether downloading and drawing show a bar on a terminal

    Raises DataError, one line; ParameterError for another name or sizes that the data set does not
    have.

    >>> digits = load("strokes", sizes=(100, 20), on_notice=lambda line: None, progress=False)
    >>> digits.x_train.shape, digits.y_test.shape, digits.nominal_size
    ((100, 28, 28), (20,), 100)
    """
    validate.one_of(("auto", "mnist", "strokes"), dataset=dataset)
    sizes = SIZES if sizes is None else tuple(sizes)
    validate.in_range(1, SIZES[0], train_size=sizes[0])
    validate.in_range(1, SIZES[1], test_size=sizes[1])
    if dataset != "strokes":
        try:
            return load_mnist(data_dir, progress=progress).first(*sizes)
        except DataUnavailableError as error:
            if dataset == "mnist":
                raise
            on_notice(
                "MNIST is not available: using the synthetic digits instead. Why, and what to do:"
            )
            for line in str(error).split("; "):
                on_notice(f"  {line}")
    found = load_strokes(sizes, on_notice=on_notice, progress=progress)
    on_notice(found.notice)
    return found


def load_mnist(
    data_dir: StrPath | None = None, download: bool = True, progress: bool = True
) -> Dataset:
    """MNIST as a Dataset, from the first place that has it.

    In order: data_dir, the folder $MINIDP_DATA, the cache, a download (unless download is False)
    into the cache. A folder holds mnist/train-images-idx3-ubyte.gz and so on, or those files
    themselves, gzipped or not.

    Raises DataError, one line, if data_dir lacks a file, if $MINIDP_DATA holds some of the files
    and not all, or if a file is damaged or has not the published contents; DataUnavailableError if
    no place has the files.
    """
    if data_dir is not None and not Path(data_dir).is_dir():
        raise DataError(f"{data_dir}: is no folder; {_advice()}")
    remote = [
        RemoteFile(f"{name}.gz", "sha256", digest, gunzip=True) for name, digest in FILES.items()
    ]
    return _read(
        find("MNIST", _locate, remote, MIRRORS, "mnist", _advice(), data_dir, download, progress)
    )


def _advice():
    names = ", ".join(f"{name}.gz" for name in FILES)
    return (
        f"put {names} (from {' or '.join(MIRRORS)}), gzipped or not, into DIR or DIR/mnist "
        "and pass --data-dir DIR or set MINIDP_DATA=DIR"
    )


def _locate(folder, partial=False):
    """The paths of the four files in folder/mnist or folder; None if neither has one of them.

    Some of them and not all are an error, unless a `partial` set may be completed.
    """
    for place in (folder / "mnist", folder):
        found = {}
        for name in FILES:
            for path in (place / name, place / f"{name}.gz"):
                if os.path.isfile(path):
                    found.setdefault(name, path)
        missing = [name for name in FILES if name not in found]
        if found and missing and not partial:
            raise DataError(
                f"{place}: expected all four MNIST files, {', '.join(missing)} missing; {_advice()}"
            )
        if not missing:
            return found
    return None


def _read(paths):
    whole, arrays = hashlib.sha256(), []
    for name, expected in FILES.items():
        raw = read_bytes(paths[name])
        arrays.append(parse_idx(raw, paths[name], ndim=3 if "images" in name else 1))
        if (got := hashlib.sha256(raw).hexdigest()) != expected:
            raise DataError(
                f"{paths[name]}: not the published MNIST file: sha256 of its decompressed contents "
                f"is {got}, expected {expected}; replace the file, or delete it"
            )
        whole.update(raw)
    x_train, y_train, x_test, y_test = arrays
    return Dataset(
        "mnist",
        x_train,
        y_train.astype(np.int64),
        x_test,
        y_test.astype(np.int64),
        classes=10,
        nominal_size=NOMINAL_SIZE,
        sha256=whole.hexdigest(),
        published=True,
    )


def read_bytes(path: StrPath) -> bytes:
    """The contents of a file, decompressed if it is gzipped. Raises DataError if it cannot be
    read.
    """
    try:
        with open(path, "rb") as file:
            raw = file.read()
    except OSError as error:
        raise DataError(
            f"{path}: cannot be read ({error.strerror}); expected an IDX file"
        ) from error
    if not raw.startswith(b"\x1f\x8b"):
        return raw
    try:
        return gzip.decompress(raw)
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(
            f"{path}: damaged gzip file ({error}); expected an intact one, fetch the published "
            "file again"
        ) from error


def parse_idx(raw: bytes, where: StrPath, ndim: int) -> NDArray[np.uint8]:
    """The array, uint8, read-only, in the bytes of an IDX file: a magic number, the sizes of `ndim`
    axes, raw bytes.

    Raises DataError, one line naming `where`, for another magic number, or fewer or more bytes than
    the header says. Source: the format's description on the MNIST page of LeCun, Cortes and Burges.
    Only unsigned bytes are read.
    """
    if len(raw) < 4:
        raise DataError(f"{where}: expected an IDX file of at least 4 bytes, got {len(raw)}")
    if raw[:4] != bytes((0, 0, 8, ndim)):
        raise DataError(
            f"{where}: expected the IDX magic number 000008{ndim:02x}, got {raw[:4].hex()}"
        )
    start = 4 + 4 * ndim
    if len(raw) < start:
        raise DataError(
            f"{where}: truncated: expected a header of {start} bytes, got {len(raw)} bytes in all"
        )
    shape = tuple(int(size) for size in np.frombuffer(raw, ">u4", ndim, 4))
    expected, got = math.prod(shape), len(raw) - start
    if got != expected:
        fault = "truncated" if got < expected else "trailing bytes"
        sizes = " x ".join(map(str, shape))
        raise DataError(
            f"{where}: {fault}: expected {sizes} = {expected} bytes after the header, got {got}"
        )
    return np.frombuffer(raw, np.uint8, expected, start).reshape(shape)
