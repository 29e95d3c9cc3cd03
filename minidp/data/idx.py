"""IDX files, the format in which MNIST is published: a magic number, the sizes of the axes, raw bytes.

Source: the format's description on the MNIST page of LeCun, Cortes and Burges. Only unsigned bytes are read.
"""
import gzip
import math
import zlib

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError
from ..files import StrPath

UNSIGNED_BYTE = 0x08


def read_idx(path: StrPath, ndim: int | None = None) -> NDArray[np.uint8]:
    """The array in an IDX file, gzipped or not: uint8, read-only, with the axes the file names.

    ndim: number of axes to insist on, or None. Raises DataError, one line naming the file, if it cannot be
    read, is no intact gzip file, has another magic number, or is shorter or longer than its header says.
    """
    return parse_idx(read_bytes(path), path, ndim)


def read_bytes(path: StrPath) -> bytes:
    """The contents of a file, decompressed if it is gzipped. Raises DataError if it cannot be read."""
    try:
        with open(path, "rb") as file:
            raw = file.read()
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}); expected an IDX file") from error
    if not raw.startswith(b"\x1f\x8b"):
        return raw
    try:
        return gzip.decompress(raw)
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path}: damaged gzip file ({error}); expected an intact one, fetch the published file "
                        "again") from error


def parse_idx(raw: bytes, where: StrPath, ndim: int | None = None) -> NDArray[np.uint8]:
    """As read_idx, from bytes already read; `where` names them in errors."""
    if len(raw) < 4:
        raise DataError(f"{where}: expected an IDX file of at least 4 bytes, got {len(raw)}")
    if raw[:3] != bytes((0, 0, UNSIGNED_BYTE)) or raw[3] == 0 or (ndim is not None and raw[3] != ndim):
        axes = "nn, nn the number of axes" if ndim is None else f"{ndim:02x}"
        raise DataError(f"{where}: expected the IDX magic number 000008{axes}, got {raw[:4].hex()}")
    start = 4 + 4 * raw[3]
    if len(raw) < start:
        raise DataError(f"{where}: truncated: expected a header of {start} bytes, got {len(raw)} bytes in all")
    shape = tuple(int(size) for size in np.frombuffer(raw, ">u4", raw[3], 4))
    expected, got = math.prod(shape), len(raw) - start
    if got != expected:
        fault = "truncated" if got < expected else "trailing bytes"
        sizes = " x ".join(map(str, shape))
        raise DataError(f"{where}: {fault}: expected {sizes} = {expected} bytes after the header, got {got}")
    return np.frombuffer(raw, np.uint8, expected, start).reshape(shape)
