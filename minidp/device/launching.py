"""How the CUDA sources of this folder are compiled and started.

Sources are compiled once per device, when they are first used. What several parameters need is one
start: a table of up to PARTS rows travels with it by value, so that nothing is copied to the
device.
"""

import re
import struct
import sys
from collections.abc import Sequence
from functools import lru_cache
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..host import chacha, series

PARTS, THREADS = 32, 256  # parameters, or clip groups, of one start; threads of a block
FILES = ("noise.cu", "layers.cu", "images.cu", "sums.cu")


def source(name: str) -> str:
    """The text of a file of kernels, with that of the files that it includes."""
    text = (files(__package__) / name).read_text()
    return re.sub(r'#include "(.*)"\n', lambda found: source(found[1]), text)


def options(real: str = "float") -> tuple[str, ...]:
    """Options of the compiler: the constants of the definitions in host.chacha and host.series, and
    the type of released numbers.
    """
    defined: dict[str, Any] = {
        "PARTS": PARTS,
        "GROUPS": PARTS,
        "REAL": real,
        "ROUNDS": chacha.ROUNDS,
        "LANES": chacha.LANES,
        "STRETCH": chacha.STRETCH,
        "SPLIT": f"{series.SPLIT}LL",
        "LN2": repr(series.LN2),
    }
    for bits in (32, 63, 64):
        defined[f"CELL_{bits}"] = repr(2.0**-bits)
    for name, terms in (("LOG", series.LOG), ("SIN", chacha.SIN), ("COS", chacha.COS)):
        defined[name] = ",".join(map(repr, terms))
        defined[f"{name}_TERMS"] = len(terms)
    return ("--fmad=false", *(f"-D{name}={value}" for name, value in defined.items()))


def library(array: Any) -> Any:
    """CuPy, or what stands for it in tests."""
    return getattr(array, "xp", None) or sys.modules["cupy"]


@lru_cache(maxsize=None)
def _kernel(xp, file, name, real, device):
    return xp.RawModule(code=source(file), options=options(real)).get_function(name)


def launch(
    like: Any,
    place: str,
    blocks: int,
    *arguments: Any,
    threads: int = THREADS,
    real: str = "float",
) -> None:
    """Start a kernel with so many blocks, on the device of the array `like`; nothing for none.

    place: "file kernel". arguments: arrays, tables, integers and floats. Raises ValueError for an
    array that is not in C order, because a kernel sees the address of its first number only.
    """
    if blocks:
        for each in arguments:
            in_order(each)
        xp, (file, name) = library(like), place.split()
        kernel = _kernel(xp, file, name, real, xp.cuda.runtime.getDevice())
        kernel((blocks,), (threads,), arguments)


def in_order(array: Any) -> Any:
    """The argument. Raises ValueError for an array that is not in C order."""
    if hasattr(array, "flags") and not array.flags.c_contiguous:
        raise ValueError(
            f"a kernel takes an array in C order, got strides {array.strides} of shape "
            f"{array.shape}"
        )
    return array


def table(rows: Sequence[Sequence[Any]]) -> NDArray:
    """Rows of arrays, None, integers and floats, of the same kinds in each, as `Parts` of a
    kernel.
    """
    kinds = "".join("d" if isinstance(each, float) else "q" for each in rows[0])
    numbers = [_number(each) for row in rows for each in row]
    packed = struct.pack("q" + kinds * len(rows), len(rows), *numbers)
    return as_value(packed.ljust(8 + 8 * PARTS * len(kinds), b"\0"))


def _number(each):
    """An argument as a number: of an array its address, 0 of None."""
    if each is None or isinstance(each, (int, float)):
        return each or 0
    return in_order(each).data.ptr


def as_value(packed: bytes) -> NDArray:
    """A host array of size one, which a kernel takes by value."""
    return np.frombuffer(packed, f"V{len(packed)}")


def blocks_for(places: int) -> int:
    """Blocks with a thread for each place."""
    return -(-places // THREADS)
