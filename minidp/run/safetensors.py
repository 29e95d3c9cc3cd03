"""Read the arrays of a .safetensors file, without its library.

The file has the header's length in 8 bytes, a JSON header {name: dtype, shape, place of the bytes},
and the bytes (github.com/huggingface/safetensors, "Format").
"""

import json
from math import prod
from pathlib import Path

import numpy as np

from ..errors import DataError
from ..layers.torch_weights import ByName
from ..util.atomic import StrPath
from ..util.files import damage_named

DTYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2", "I64": "<i8", "I32": "<i4"}


def load_safetensors(path: StrPath) -> ByName:
    """{name: array} of a .safetensors file, sorted by name; BF16 becomes float32.

    `nn.load_state_dict` then needs names=, because the file does not keep the order of the layers.
    Raises DataError for a damaged file, or one of another kind.
    """
    with damage_named(path, DataError):
        content = Path(path).read_bytes()
        begin = 8 + int.from_bytes(content[:8], "little")
        header = json.loads(content[8:begin])
        header.pop("__metadata__", None)
        data = memoryview(content)[begin:]
        return ByName((name, _array(name, header[name], data)) for name in sorted(header))


def _array(name, entry, data):
    """One array. Raises ValueError if its dtype is unknown or its bytes are missing."""
    kind, shape, (start, stop) = entry["dtype"], entry["shape"], entry["data_offsets"]
    if kind not in DTYPES:
        raise ValueError(f"{name} has the type {kind}, and {', '.join(DTYPES)} are read")
    array = np.frombuffer(data[start:stop], DTYPES[kind])
    if kind == "BF16":  # the upper half of a float32
        array = (array.astype(np.uint32) << 16).view(np.float32)
    if array.size != prod(shape):
        raise ValueError(f"{name} has {array.size} numbers in place of {prod(shape)}")
    return array.reshape(shape).copy()
