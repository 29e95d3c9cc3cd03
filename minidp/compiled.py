"""Find compiled kernels: `kernel(name, array)` gives the compiled twin of a definition, or None.

The ring `fast` offers the twins: those of the host on first use, those of a device after each was
compared with its definition (`prepare`). Without this ring the definitions compute everything.
"""

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from operator import attrgetter
from typing import Any

import numpy as np

from .util.lazy import ring

# {name: (dtypes of the twin's arrays, a function that returns the twin or None)}
Twins = Mapping[str, tuple[tuple[str, ...], Callable[[], Any]]]
PLAIN = {np.ndarray, np.memmap}  # for arrays of other classes the definitions compute
_DTYPE = attrgetter("dtype")
# by array library and number of the device
_offered: dict[tuple[Any, int], dict[str, tuple[tuple[str, ...], Callable[[], Any]]]] = {}


def kernel(name: str, *arrays: Any) -> Any:
    """The twin called `name` for these arrays; None if the definition must compute.

    It is None for no arrays, for two dtypes or two devices, for a dtype or class without a twin,
    and on a device for a kernel that was not found to be right there.
    """
    dtypes, libraries = {*map(_DTYPE, arrays)}, {np}
    if not PLAIN.issuperset(map(type, arrays)):  # called a hundred times per step
        libraries = {*map(_library, arrays)}
    if not len(dtypes) == len(libraries) == 1:
        return None
    (xp,) = libraries
    return _twin(name, xp, _number(xp), *dtypes)


@cache
def _twin(name, xp, number, dtype):
    if xp is np:
        _host_offers()
    dtypes, twin = _offered.get((xp, number), {}).get(name, ((), None))
    return twin() if dtype in dtypes else None


@cache
def _host_offers():
    """Let the ring offer its twins for the host, once."""
    if twins := ring("twins"):
        offer(np, twins.HOST)


def prepare(xp: Any) -> None:
    """Let the ring try its twins on a device and offer the right ones, once for each device.

    Without this call a device computes by definitions alone.
    """
    if xp is not np and (trial := ring("trial")):
        trial.try_on(xp)


def offer(xp: Any, twins: Twins) -> None:
    """Add these twins for an array library on its current device."""
    _offered.setdefault((xp, _number(xp)), {}).update(twins)
    _twin.cache_clear()


@contextmanager
def only(xp: Any, twins: Twins) -> Iterator[None]:
    """Context in which an array library on its current device has these twins and no others."""
    if xp is np:
        _host_offers()
    place = xp, _number(xp)
    before = _offered.get(place, {})
    _offered[place] = dict(twins)
    _twin.cache_clear()
    try:
        yield
    finally:
        _offered[place] = before
        _twin.cache_clear()


def by_twin(name: str, *arrays: Any) -> Any:
    """The result of an elementwise twin for arrays of the same shape; None if there is no twin."""
    twin = kernel(name, *arrays)
    if twin is None:
        return None
    y = _library(arrays[0]).empty(arrays[0].shape, np.float32)
    twin(*(each.ravel() for each in arrays), y.ravel())
    return y


def _number(xp):
    """The number of the current device; 0 for the host, and for a library without devices."""
    return 0 if xp is np or xp is None else xp.cuda.runtime.getDevice()


def _library(array):
    """numpy, or the library of a device's array; None for another class of host arrays."""
    if isinstance(array, (np.ndarray, np.generic)):
        return np if type(array) in PLAIN else None
    return getattr(array, "xp", None) or sys.modules.get("cupy")
