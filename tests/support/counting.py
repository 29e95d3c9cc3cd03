"""What a block asks of the device that the guarded arrays stand for: kernels, copies, waits."""

from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np

NO_KERNEL = {"empty", "empty_like", "result_type"}


@dataclass
class Counts:
    """Requests to a device.

    launches      kernels, as far as calls tell
    to_device     bytes of each copy to the device
    to_host       bytes of each copy back
    waits         calls that return when all work before them is done
    memory_asked  calls of memGetInfo
    """

    launches: int = 0
    to_device: list = field(default_factory=list)
    to_host: list = field(default_factory=list)
    waits: int = 0
    memory_asked: int = 0


_counts = [Counts()]


def counts():
    """The Counts of the innermost `counting`."""
    return _counts[-1]


@contextmanager
def counting():
    """Give the Counts of what the block asks for."""
    _counts.append(Counts())
    try:
        yield _counts[-1]
    finally:
        _counts.pop()


def called(name, arguments, keywords, result):
    """Count one kernel for a function or operator, unless its result is a view of an argument."""
    taken = arrays([*arguments, *(value for key, value in keywords.items() if key != "out")])
    if name == "matmul" and max(array.ndim for array in taken) > 2:  # CuPy copies a transposed one
        counts().launches += sum(not array.flags.c_contiguous for array in taken)
    view = any(np.may_share_memory(given, array) for given in arrays(result) for array in taken)
    if name not in NO_KERNEL and (keywords.get("out") is not None or not view):
        counts().launches += 1


def arrays(value):
    """The arrays in arguments or results, however deep."""
    if isinstance(value, np.ndarray):
        return [value]
    if isinstance(value, (tuple, list)):
        return [array for each in value for array in arrays(each)]
    return []
