"""One door to compiled kernels: `kernel(name, array)` gives the twin of a definition, or None.

The host's twins are in `host.kernels`, `host.elementwise`, `host.images`, `host.recurrent` and
`host.drawing`. A device has one, which draws noise (`device`). It is used once its bits were
compared with the host's (`train.noise_trial`).
"""

import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from functools import cache
from operator import attrgetter
from typing import Any

import numpy as np

from . import device

SINGLE, DOUBLE = ("float32",), ("float64",)
TWINS = {  # dtypes of the arrays that each twin takes
    **dict.fromkeys(("relu", "relu_gradient"), SINGLE),
    **dict.fromkeys(("row_norms", "gram_norms", "add_weighted"), SINGLE),
    **dict.fromkeys(("short_runs", "fold", "pool", "pool_gradient"), SINGLE),
    **dict.fromkeys(("lstm_state", "lstm_gradient"), SINGLE),
    **dict.fromkeys(("softmax_cross_entropy", "add_blocks"), SINGLE),
    **dict.fromkeys(("words", "choose"), ("uint64",)),
    "add_normals": ("float32", "float64"),
}
ON_A_DEVICE = ("add_normals",)  # the same, and float64 alone
PLAIN = {np.ndarray, np.memmap}  # of other classes the definitions compute
_DTYPE = attrgetter("dtype")
_allowed: dict[Any, Collection[str]] = {np: TWINS}  # names of twins, by array library


def kernel(name: str, *arrays: Any) -> Any:
    """The twin called `name` for these arrays; None where their definition has to do.

    None for no arrays, arrays of two dtypes or in two places, another dtype, another class, and on
    a device before the noise kernel was found right.
    """
    dtypes, libraries = {*map(_DTYPE, arrays)}, {np}
    if not PLAIN.issuperset(map(type, arrays)):  # asked a hundred times per step
        libraries = {*map(_library, arrays)}
    return _twin(name, *libraries, *dtypes) if len(dtypes) == len(libraries) == 1 else None


@cache
def _twin(name, xp, dtype):
    if name not in _allowed.get(xp, ()) or dtype not in TWINS[name]:
        return None
    if xp is not np:
        return device.add_normals if name in ON_A_DEVICE and dtype in DOUBLE else None
    from .host import jit  # loads Numba

    if jit.OFF:
        return None
    from .host import drawing, elementwise, images, kernels, recurrent

    modules = elementwise, kernels, images, recurrent, drawing
    return next((vars(m)[name] for m in modules if name in vars(m)), None)


def by_twin(name: str, *arrays: Any) -> Any:
    """What a twin makes of arrays of one shape, coordinate by coordinate; None without a twin."""
    twin = kernel(name, *arrays)
    if twin is None:
        return None
    y = np.empty(arrays[0].shape, np.float32)
    twin(*(each.ravel() for each in arrays), y.ravel())
    return y


def allow(xp: Any, names: Collection[str]) -> None:
    """From now on, use these twins of an array library and no others."""
    _allowed[xp] = names
    _twin.cache_clear()


@contextmanager
def only(xp: Any, names: Collection[str]) -> Iterator[None]:
    """Within it, use these twins of an array library and no others."""
    before = _allowed.get(xp, ())
    allow(xp, names)
    try:
        yield
    finally:
        allow(xp, before)


def _library(array):
    """numpy, or the library of a device's array; None for another class of host arrays."""
    if isinstance(array, (np.ndarray, np.generic)):
        return np if type(array) in PLAIN else None
    return getattr(array, "xp", None) or sys.modules.get("cupy")
