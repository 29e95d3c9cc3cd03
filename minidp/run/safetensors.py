"""Read the arrays of a .safetensors file, without its library.

The file is a length of 8 bytes, a JSON header {name: dtype, shape, place of the bytes}, and the
bytes (github.com/huggingface/safetensors, "Format").
"""

import json
from math import prod
from pathlib import Path

import numpy as np

from ..errors import DataError
from ..layers.torch_weights import ByName
from ..util.atomic import StrPath
from ..util.files import damage_named

MOST_HEADER = 100_000_000  # bytes, as in the format
DTYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2", "I64": "<i8", "I32": "<i4"}


def load_safetensors(path: StrPath) -> ByName:
    """{name: array} of a .safetensors file, sorted by name; BF16 becomes float32.

    `nn.load_state_dict` then needs names=, because the file does not keep the order of the layers.
    Raises DataError for another file, or a damaged one.
    """
    path = Path(path)
    with damage_named(path, DataError):
        content = path.read_bytes()
        length = int.from_bytes(content[:8], "little")
        if not 0 < length <= min(MOST_HEADER, len(content) - 8):
            raise DataError(f"{path}: expected a .safetensors file, got another or half of one")
        header = json.loads(content[8 : 8 + length])
        header.pop("__metadata__", None)
        data = memoryview(content)[8 + length :]
        return ByName((name, _array(path, name, header[name], data)) for name in sorted(header))


def _array(path, name, entry, data):
    """One array. Raises DataError where its dtype is not known, or its bytes are not there."""
    kind, shape, (start, stop) = entry["dtype"], tuple(entry["shape"]), entry["data_offsets"]
    if kind not in DTYPES:
        raise DataError(f"{path}: {name} has the type {kind}, and {', '.join(DTYPES)} are read")
    size = prod(shape) * np.dtype(DTYPES[kind]).itemsize
    if not (0 <= start <= stop <= len(data) and stop - start == size):
        raise DataError(f"{path}: damaged: {name} has {stop - start} bytes in place of {size}")
    array = np.frombuffer(data[start:stop], DTYPES[kind])
    if kind == "BF16":  # the upper half of a float32
        array = (array.astype(np.uint32) << 16).view(np.float32)
    return array.reshape(shape).copy()
