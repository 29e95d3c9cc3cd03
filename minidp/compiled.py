"""One door to compiled kernels: `kernel(name, array)` gives the twin of a definition, or None.

The host's twins are in `host.kernels`, `host.elementwise`, `host.images`, `host.recurrent` and
`host.drawing`, those of a device in `device`. A device's are used once each was compared with its
definition (`train.device_trial`).
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
    **dict.fromkeys(("gather", "add_bias", "patches", "weigh", "add_all"), SINGLE),
    **dict.fromkeys(("fold_image", "pool_gradient_image"), SINGLE),
    "add_normals": ("float32", "float64"),
    "release": DOUBLE,
}
ON_A_DEVICE = (  # the same; noise is added to float64 alone
    *("relu", "relu_gradient", "softmax_cross_entropy", "add_bias", "gather"),
    *("patches", "fold_image", "pool", "pool_gradient_image"),
    *("row_norms", "weigh", "add_weighted", "add_all"),
    *("add_normals", "release"),
)
PLAIN = {np.ndarray, np.memmap}  # of other classes the definitions compute
_DTYPE = attrgetter("dtype")
# names of twins, by array library and number of the device
_allowed: dict[tuple[Any, int], Collection[str]] = {(np, 0): TWINS}


def kernel(name: str, *arrays: Any) -> Any:
    """The twin called `name` for these arrays; None where their definition has to do.

    None for no arrays, arrays of two dtypes or in two places, another dtype, another class, and on
    a device for a kernel that was not found right there.
    """
    dtypes, libraries = {*map(_DTYPE, arrays)}, {np}
    if not PLAIN.issuperset(map(type, arrays)):  # asked a hundred times per step
        libraries = {*map(_library, arrays)}
    if not len(dtypes) == len(libraries) == 1:
        return None
    (xp,) = libraries
    return _twin(name, xp, _number(xp), *dtypes)


@cache
def _twin(name, xp, number, dtype):
    if name not in _allowed.get((xp, number), ()) or dtype not in TWINS[name]:
        return None
    if xp is not np:
        noise_of_single = name == "add_normals" and dtype not in DOUBLE
        return None if noise_of_single else getattr(device, name, None)
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
    y = _library(arrays[0]).empty(arrays[0].shape, np.float32)
    twin(*(each.ravel() for each in arrays), y.ravel())
    return y


def allow(xp: Any, names: Collection[str]) -> None:
    """From now on, use these twins of an array library on its current device, and no others."""
    _allowed[xp, _number(xp)] = names
    _twin.cache_clear()


@contextmanager
def only(xp: Any, names: Collection[str]) -> Iterator[None]:
    """Within it, use these twins of an array library and no others."""
    before = _allowed.get((xp, _number(xp)), ())
    allow(xp, names)
    try:
        yield
    finally:
        allow(xp, before)


def _number(xp):
    """The number of the current device; 0 for the host, and for a library without devices."""
    return 0 if xp is np or xp is None else xp.cuda.runtime.getDevice()


def _library(array):
    """numpy, or the library of a device's array; None for another class of host arrays."""
    if isinstance(array, (np.ndarray, np.generic)):
        return np if type(array) in PLAIN else None
    return getattr(array, "xp", None) or sys.modules.get("cupy")
