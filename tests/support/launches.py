"""What a call makes CuPy do on a device, counted: kernels launched, copies, waits, bytes and
multiplications.

The rules were read in the source of CuPy 14.2. A result that is a view of an argument launches
nothing, and anything else one kernel, but for what `_SEVERAL` says; a fill of memory counts as a
kernel. Matrix products copy factors that cuBLAS cannot read as they lie. Lower bounds are sorts,
FFTs and decompositions, which take several kernels of the libraries behind them.
"""

from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import prod

import numpy as np


@dataclass
class Counts:
    """What a device was asked for.

    launches {name: kernels}; to_device, to_host: bytes of each copy; waits until all before was
    done; read, written: bytes of the device's memory, by kernels; operations {dtype:
    multiplications and additions of matrix products}; memory_asked: calls of memGetInfo; calls
    {name: ways in which it was called, (positional arguments, *keywords)}
    """

    launches: Counter = field(default_factory=Counter)
    to_device: list = field(default_factory=list)
    to_host: list = field(default_factory=list)
    waits: int = 0
    read: int = 0
    written: int = 0
    operations: Counter = field(default_factory=Counter)
    memory_asked: int = 0
    calls: dict = field(default_factory=dict)

    def launch(self, name, read=(), written=(), times=1):
        """A kernel of this name went to the device; what it reads and writes, as bytes or host
        arrays that stand for it.
        """
        self.launches[name] += times
        self.read += sum(map(bytes_of, read))
        self.written += sum(map(bytes_of, written))
        if name == "gram_norms":  # a product of its own, of each pair of positions
            (examples, inputs, positions), outputs = read[0].shape, read[1].shape[1]
            self.operations["float64"] += (
                examples * (inputs + outputs) * positions * (positions + 1)
            )


_counts = [Counts()]


def counts():
    """The Counts of the innermost `counting`."""
    return _counts[-1]


@contextmanager
def counting():
    """Counts of what the block asks for."""
    _counts.append(Counts())
    try:
        yield _counts[-1]
    finally:
        _counts.pop()


def bytes_of(array):
    """Bytes of an array in memory, a number that is repeated along an axis once."""
    if isinstance(array, int):
        return array
    return array.itemsize * prod(
        size for size, stride in zip(array.shape, array.strides) if stride or size == 0
    )


def arrays(value):
    """The arrays in arguments or results, however deep."""
    if isinstance(value, np.ndarray):
        return [value]
    return (
        [array for each in value for array in arrays(each)]
        if isinstance(value, (tuple, list))
        else []
    )


def called(name, arguments, keywords, result):
    """Count what a function, method or operator of this name launched, by the host arrays that it
    took and gave.
    """
    taken, given = (
        arrays([*arguments, *(v for k, v in keywords.items() if k != "out")]),
        arrays(result),
    )
    if (
        name in _NONE
        or keywords.get("out") is None
        and any(np.may_share_memory(a, b) for a in given for b in taken)
    ):
        return
    times = _SEVERAL[name](*arguments) if name in _SEVERAL else 1
    counts().launch(
        name, [*given, *taken[1:]] if name == "take" else taken, given, times
    )  # of its source only what is taken


def _product(a, b):
    """Launches of a matrix product, after copies of factors in the dtype and the layout that cuBLAS
    wants.
    """
    dtype, matrices = np.result_type(a, b), max(a.ndim, b.ndim) <= 2
    rows, columns = a.shape[-2] if a.ndim > 1 else 1, b.shape[-1] if b.ndim > 1 else 1
    batches = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    counts().operations[dtype.name] += 2 * prod(batches) * rows * columns * a.shape[-1]
    if matrices and rows == columns == 1:
        return 2  # a product of each number, and their sum
    for each in (a, b):
        whole = each.flags.c_contiguous or matrices and each.flags.f_contiguous
        copies = (
            (each.dtype != dtype) + (not whole) if matrices else each.dtype != dtype or not whole
        )
        if copies:
            counts().launch("copy for matmul", [each], [each.size * dtype.itemsize], copies)
    return (
        1 if matrices or a.shape[:-2] == b.shape[:-2] else 4
    )  # pointers to each matrix of the three first


def _einsum(subscripts, a, b):
    """Launches of einsum: a product of numbers where nothing is summed; rows times columns, as
    matrices, along last axes.
    """
    inputs, output = subscripts.split("->")
    if {*inputs} <= {*output, ","}:
        return 1
    if subscripts != "...p,...p->...":
        raise NotImplementedError(
            f"einsum {subscripts}: read in cupy/linalg/_einsum.py what it launches, and write it "
            "here"
        )
    return _product(a[..., None, :], b[..., None])


_NONE = {"empty", "empty_like", "result_type"}
_SEVERAL = {
    "matmul": _product,
    "dot": _product,
    "einsum": _einsum,
    "concatenate": lambda arrays, *_: len(arrays),
    "where": lambda condition, *_: 1 + (condition.dtype != bool),
}
