"""The one CUDA kernel, which draws normal noise on a GPU; CuPy's array code computes the rest.

The kernel exists because ChaCha in array code would take a thousand launches.
"""

import sys
from functools import lru_cache
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..host import chacha, series

THREADS = 64  # of a block


def add_normals(state: NDArray[np.uint32], begin: int, std: float, grid: float, out: Any) -> None:
    """The twin of host.drawing.add_normals for a float64 array on a device.

    CuPy compiles the kernel at its first use on a device. Raises ValueError unless `out` is in C
    order, because the kernel sees the address of its first number only.
    """
    if not out.flags.c_contiguous:
        raise ValueError(
            f"add_normals: expected an array in C order, got strides {out.strides} of shape "
            f"{out.shape}"
        )
    if out.size == 0:
        return
    first, end = begin // chacha.STRETCH, -(-(begin + out.size) // chacha.STRETCH)
    blocks = (end - first) * chacha.LANES
    packed = np.frombuffer(state.astype("<u4").tobytes(), "V64")  # passed by value
    arguments = packed, int(begin), float(std), float(grid), out, out.size, blocks
    _kernel(library(out))((-(-blocks // THREADS),), (THREADS,), arguments)


def source() -> str:
    """The text of noise.cu."""
    return (files(__package__) / "noise.cu").read_text()


def options() -> tuple[str, ...]:
    """Options of the compiler: the constants of the definitions in host.chacha and host.series."""
    defined: dict[str, Any] = {
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
def _kernel(xp):
    return xp.RawModule(code=source(), options=options()).get_function("add_normals")
