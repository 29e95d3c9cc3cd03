"""How the CUDA sources of this folder are compiled and launched.

Sources are compiled once per device, when they are first used. What several parameters need is one
launch: a table of `PARTS` rows travels with it by value, so that nothing is copied to the device.
"""

import re
import struct
import sys
from functools import lru_cache
from importlib.resources import files

import numpy as np

from ..host import chacha, series

PARTS, THREADS = 32, 256
FILES = ("elementwise.cu", "loss.cu", "norms.cu", "sums.cu", "images.cu", "noise.cu")
TYPES = {
    "float32": "float",
    "float64": "double",
    "int8": "char",
    "int16": "short",
    "int32": "int",
    "int64": "long long",
}
for _name in ("int8", "int16", "int32", "int64"):
    TYPES[f"u{_name}"] = f"unsigned {TYPES[_name]}"


def source(name: str) -> str:
    """The text of a kernel's file, with that of the files which it includes."""
    return re.sub(
        r'#include "(.*)"\n',
        lambda found: source(found[1]),
        (files(__package__) / name).read_text(),
    )


def options(real: str = "float", target: str = "long long") -> tuple[str, ...]:
    """What the sources are compiled with: the constants of the definitions, and the types of what
    varies.
    """
    defined = {
        "PARTS": PARTS,
        "REAL": real,
        "TARGET": target,
        "ROUNDS": chacha.ROUNDS,
        "SPLIT": f"{series.SPLIT}LL",
    }
    for bits in (32, 63, 64):
        defined[f"CELL_{bits}"] = repr(2.0**-bits)
    for name, value in {**vars(series), "SIN": chacha.SIN, "COS": chacha.COS}.items():
        if isinstance(value, float):
            defined[name] = repr(value)
        elif isinstance(value, tuple):
            defined[name] = ",".join(map(repr, value))
            defined[f"{name}_TERMS"] = len(value)
    return ("--fmad=false", *(f"-D{name}={value}" for name, value in defined.items()))


def library(array):
    """CuPy, or what stands for it in tests."""
    return getattr(array, "xp", None) or sys.modules["cupy"]


@lru_cache(maxsize=None)
def _kernel(xp, file, name, types):
    return xp.RawModule(code=source(file), options=options(*types)).get_function(name)


def launch(xp, file, name, blocks, *arguments, threads=THREADS, types=()):
    """Start a kernel with so many blocks, none for none. Arguments are arrays, tables, integers and
    floats.
    """
    if blocks:
        for each in arguments:
            in_order(each)
        _kernel(xp, file, name, types)((blocks,), (threads,), arguments)


def in_order(array):
    """The argument; an array has to be in C order, since a kernel sees its first number only."""
    if hasattr(array, "flags") and not array.flags.c_contiguous:
        raise ValueError(
            f"a kernel takes arrays in C order, got strides {array.strides} of shape {array.shape}"
        )
    return array


def table(rows, most=PARTS):
    """Rows of arrays, None, integers and floats, of the same kinds in each row, as `Parts` of a
    kernel.
    """
    kinds = "".join("d" if isinstance(each, float) else "q" for each in rows[0])
    numbers = []
    for each in (each for row in rows for each in row):
        if each is None:
            numbers.append(0)
        elif isinstance(each, (int, float)):
            numbers.append(each)
        else:
            numbers.append(in_order(each).data.ptr)
    packed = struct.pack("q" + kinds * len(rows), len(rows), *numbers)
    return as_value(packed.ljust(8 + 8 * most * len(kinds), b"\0"))


def as_value(packed):
    """A host array of size one, which a kernel takes by value."""
    return np.frombuffer(packed, f"V{len(packed)}")


def blocks_for(places):
    return -(-places // THREADS)
