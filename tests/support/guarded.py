"""Arrays that stand for CuPy on a machine without a GPU: the same rules, computed by NumPy.

What CuPy refuses, `GuardedArray` refuses with `GuardError`: conversion to NumPy that nobody asked
for, NumPy arrays and lists mixed into arithmetic, functions and keywords that CuPy does not have.
It is a wrapper and not a subclass of `numpy.ndarray`, since NumPy takes a subclass for an array in
`np.asarray` without asking it.

Three things which CuPy allows are refused too, because each is slow or hides a mistake: waiting for
the device (`float(x)`, `if x:`, `x.item()`; `allow_sync()` permits it for a block), indexing with
host arrays (copied at every use), and NumPy functions other than ufuncs (CuPy answers those it
knows and fails on the rest). The names allowed are those of cupy.json, with CuPy's own signatures:
`python -m tests.support.cupy_names NAME` adds one. What a call makes a device do is counted in
`counting`.
"""

import inspect
import json
from contextlib import contextmanager
from operator import attrgetter
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np

from minidp.backend import Backend
from minidp.compiled import offer
from minidp.util.lazy import ring
from tests.support import counting, shim


class GuardError(TypeError):
    """Something that would fail, or wait for the device, on a GPU."""


_TEXTS = json.loads(Path(__file__).with_name("cupy.json").read_text())["signatures"]
SIGNATURES = {
    name: inspect.signature(eval(f"lambda {text}: None")) for name, text in _TEXTS.items()
}
# the same objects in both libraries
SHARED = "bool_ int32 int64 uint8 uint16 float32 float64 pi inf nan newaxis".split()
_FROM_HOST = {"asarray", "ascontiguousarray"}  # the door: takes host arrays and lists
_OF_LISTS = {"concatenate", "zeros", "ones", "empty", "full"}
FREE = 8 * 10**10  # bytes of memory on the device that is not there

_sync_allowed = False


@contextmanager
def allow_sync():
    """Permit `float(x)`, `bool(x)`, `x.item()` and so on for a block, as metrics need them."""
    global _sync_allowed
    before, _sync_allowed = _sync_allowed, True
    try:
        yield
    finally:
        _sync_allowed = before


def _wrap(result):
    """Results as CuPy gives them: arrays always, of no axes where NumPy would give a scalar."""
    if isinstance(result, (np.ndarray, np.generic)):
        return GuardedArray(result)
    if isinstance(result, (tuple, list)) and any(
        isinstance(r, (np.ndarray, np.generic)) for r in result
    ):
        return tuple(map(_wrap, result))
    return result


def _unwrap(value, where):
    if isinstance(value, GuardedArray):
        return value._host
    if isinstance(value, np.ndarray):
        raise GuardError(
            f"{where}: a numpy array among cupy arrays; move it with Backend.asarray first"
        )
    if isinstance(value, (tuple, list)):
        return type(value)(_unwrap(v, where) for v in value)
    return value


def _check(where, arguments, keywords):
    """Raise GuardError unless CuPy's function or method of this name takes such arguments."""
    try:
        SIGNATURES[where].bind(*arguments, **keywords)
    except TypeError as error:
        raise GuardError(f"{where}: {error}; CuPy's is {where}({_TEXTS[where]})") from None


def _call(where, function, arguments, keywords):
    """`function` of NumPy on what the guarded arrays hold."""
    _check(where, arguments[where.startswith("ndarray.") :], keywords)
    out = keywords.get("out")
    if out is not None and not isinstance(out, GuardedArray):
        raise GuardError(f"{where}: out must be a cupy array, got {type(out).__name__}")
    arguments, keywords = (
        [_unwrap(a, where) for a in arguments],
        {k: _unwrap(v, where) for k, v in keywords.items()},
    )
    result = function(*arguments, **keywords)
    counting.called(where.rpartition(".")[2], arguments, keywords, result)
    return out if out is not None else _wrap(result)


def _no_lists(where, arguments):
    for argument in arguments:
        if isinstance(argument, (list, tuple)):
            raise GuardError(
                f"{where}: CuPy takes arrays and scalars here, got a {type(argument).__name__}"
            )


def _waits_for_device(name):
    def method(self, *arguments):
        if not _sync_allowed:
            raise GuardError(
                f"{name} of a cupy array waits for the device; use to_host, or allow_sync() in a "
                "test"
            )
        return getattr(self.get(), name)(*arguments)

    return method


def _refused(name, why):
    def method(self, *arguments, **keywords):
        raise GuardError(f"{name}: {why}")

    return method


def _method(where):
    name = where.removeprefix("ndarray.")

    def method(self, *arguments, **keywords):
        _no_lists(name, arguments[: name == "take"])
        return _call(where, getattr(np.ndarray, name), (self, *arguments), keywords)

    return method


class GuardedArray(np.lib.mixins.NDArrayOperatorsMixin):
    """A NumPy array behind CuPy's rules; `get()` gives a plain copy of it."""

    __slots__ = ("_host",)
    __hash__ = None

    def __init__(self, host):
        host = np.asarray(host)
        dtype = host.dtype
        if (
            dtype.kind not in "biufc"
            or dtype.itemsize > (16 if dtype.kind == "c" else 8)
            or not dtype.isnative
        ):
            raise GuardError(f"CuPy has no arrays of dtype {dtype!r}")
        self._host = host

    def get(self):
        counting.counts().waits += 1
        counting.counts().to_host.append(self._host.nbytes)
        return self._host.copy()

    shape, ndim, size, dtype, itemsize, nbytes, strides, flags = (
        property(attrgetter(f"_host.{name}"))
        for name in ("shape", "ndim", "size", "dtype", "itemsize", "nbytes", "strides", "flags")
    )
    T, real, imag = (
        property(lambda self, name=name: _wrap(getattr(self._host, name)))
        for name in ("T", "real", "imag")
    )
    data = property(lambda self: SimpleNamespace(ptr=self._host.ctypes.data))

    def __len__(self):
        return len(self._host)

    def __repr__(self):
        return f"guarded {self._host!r}"

    def __array_ufunc__(self, ufunc, kind, *inputs, out=(), **keywords):
        if kind != "__call__" or ufunc.__name__ not in _TEXTS:
            raise GuardError(f"numpy.{ufunc.__name__}.{kind} on a cupy array; use what xp offers")
        _no_lists(ufunc.__name__, inputs)
        if out:
            keywords["out"] = out[0]
        return _call(ufunc.__name__, ufunc, inputs, keywords)

    def __array_function__(self, function, types, arguments, keywords):
        raise GuardError(
            f"numpy.{function.__name__} on a cupy array; take xp = namespace_of(x) and use xp's"
        )

    def __getitem__(self, key):
        key = _index(key)
        if any(isinstance(part, np.ndarray) and part.dtype == bool for part in key):
            raise GuardError(
                "x[mask] waits for the device to tell how many there are; use where, or move the "
                "mask to the host"
            )
        result = self._host[key]
        counting.called("take", [self._host, *key], {}, result)
        return GuardedArray(result)

    def __setitem__(self, key, value):
        if not isinstance(value, (GuardedArray, np.generic, bool, int, float, complex)):
            raise GuardError(
                f"x[...] = {type(value).__name__}: CuPy assigns arrays of its own and scalars only"
            )
        key, value = _index(key), _unwrap(value, "x[...] =")
        view = self._host[key]
        # of x[i] += y the sum was counted already
        if not (
            isinstance(value, np.ndarray)
            and view.shape == value.shape
            and np.shares_memory(view, value)
        ):
            counting.counts().launches += 1
        self._host[key] = value

    __array__ = _refused(
        "numpy.asarray", "implicit conversion of a cupy array to numpy; use to_host"
    )
    __iter__ = _refused("iteration", "one transfer for every element; use array operations")
    __index__ = _refused(
        "index", "a cupy array is no integer; keep sizes and positions on the host"
    )
    tolist, item, __float__, __int__, __bool__, __complex__ = map(
        _waits_for_device, ("tolist", "item", "__float__", "__int__", "__bool__", "__complex__")
    )


for _where in _TEXTS:
    if _where.startswith("ndarray."):
        setattr(GuardedArray, _where.removeprefix("ndarray."), _method(_where))


def _index(key):
    """The key for the wrapped array, such that the result is a view wherever CuPy gives one, even
    of no axes.
    """
    parts = key if isinstance(key, tuple) else (key,)
    for part in parts:
        if isinstance(part, np.ndarray):
            raise GuardError(
                "index: a numpy array is copied to the device at every use; move it there once"
            )
    parts = tuple(_unwrap(part, "index") for part in parts)
    return parts if any(part is Ellipsis for part in parts) else (*parts, Ellipsis)


def _function(name, function):
    def guarded(*arguments, **keywords):
        if name in _FROM_HOST:
            return _move(name, function, arguments, keywords)
        if name not in _OF_LISTS:
            _no_lists(name, arguments if isinstance(function, np.ufunc) else arguments[:1])
        return _call(name, function, arguments, keywords)

    guarded.__name__ = name
    return guarded


def _move(name, function, arguments, keywords):
    """asarray: host data comes over as a copy, an array that is there already stays."""
    source = arguments[0]
    if isinstance(source, GuardedArray):
        result = _call(name, function, arguments, keywords)
        return source if result._host is source._host else result
    _check(name, arguments, keywords)
    moved = GuardedArray(function(np.array(source), *arguments[1:], **keywords))
    counting.counts().to_device.append(moved.nbytes)
    return moved


def _memory():
    counting.counts().memory_asked += 1
    return FREE, 2 * FREE


def _wait():
    counting.counts().waits += 1


def _guarded_xp():
    xp = ModuleType("guarded_xp")
    for where in _TEXTS:
        *places, name = where.split(".")
        if places != ["ndarray"] and where != "RawModule":
            space = xp
            for place in places:
                if place not in vars(space):
                    setattr(space, place, ModuleType(f"{space.__name__}.{place}"))
                space = getattr(space, place)
            setattr(space, name, _function(where, attrgetter(where)(np)))
    for name in SHARED:
        setattr(xp, name, getattr(np, name))
    xp.ndarray, xp.get_default_memory_pool = (
        GuardedArray,
        lambda: SimpleNamespace(free_bytes=lambda: 0),
    )
    xp.cuda = SimpleNamespace(
        runtime=SimpleNamespace(memGetInfo=_memory, getDevice=lambda: 0),
        get_current_stream=lambda: SimpleNamespace(synchronize=_wait),
    )
    if shim.COMPILER:
        xp.RawModule = shim.RawModule
        if twins := ring("twins"):
            offer(xp, twins.DEVICE)  # until a Trainer tries it
    return xp


guarded_xp = GuardedArray.xp = _guarded_xp()


def guarded_backend():
    """A backend whose arrays behave as CuPy's do."""
    return Backend("guarded", guarded_xp)
