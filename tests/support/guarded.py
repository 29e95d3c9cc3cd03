"""Arrays that stand for CuPy on a machine without a GPU: the same rules, computed by NumPy.

What CuPy refuses, `GuardedArray` refuses with `GuardError`: conversion to NumPy that nobody asked for, NumPy
arrays and lists mixed into arithmetic, functions and keywords that CuPy does not have. It is a wrapper and not
a subclass of `numpy.ndarray`, since NumPy takes a subclass for an array in `np.asarray` without asking it.

Three things which CuPy allows are refused too, because each is slow or hides a mistake: waiting for the device
(`float(x)`, `if x:`, `x.item()`; `allow_sync()` permits it for a block), indexing with host arrays (copied at
every use), and NumPy functions other than ufuncs (CuPy answers those it knows and fails on the rest).
The names allowed are those of CuPy 13; a name missing here is added after a look at CuPy's reference.
"""
from contextlib import contextmanager
from operator import attrgetter
from types import ModuleType

import numpy as np

from minidp.backend import Backend


class GuardError(TypeError):
    """Something that would fail, or wait for the device, on a GPU."""


_ARITHMETIC = """absolute add arccos arccosh arcsin arcsinh arctan arctan2 arctanh bitwise_and bitwise_or
    bitwise_xor cbrt ceil conjugate copysign cos cosh divide equal exp exp2 expm1 float_power floor floor_divide
    fmax fmin fmod greater greater_equal hypot invert isfinite isinf isnan ldexp left_shift less less_equal log
    log10 log1p log2 logaddexp logical_and logical_not logical_or logical_xor matmul maximum minimum mod multiply
    negative not_equal positive power reciprocal remainder right_shift rint sign signbit sin sinh sqrt square
    frexp subtract tan tanh true_divide trunc""".split()
_UFUNC_KEYWORDS = {"out", "dtype", "casting"}  # neither `where` nor `order`



def _names_of(keywords):
    """{name: its keywords} from {keywords: the names that share them}."""
    return {name: shared for shared, names in keywords.items() for name in names.split()}


# CuPy's keywords of each function; NumPy has more of most (`where` and `initial` of the reductions, `out` of
# einsum), and a call that uses those fails on a GPU.
_REDUCTIONS = {
    "axis dtype out keepdims": "sum prod mean argmax argmin", "axis dtype out ddof keepdims": "var std",
    "axis out keepdims": "max min any all", "axis dtype out": "cumsum", "axis out": "take",
    "axis": "repeat squeeze argsort sort", "order": "copy reshape ravel", "": "nonzero swapaxes",
}
_FUNCTIONS = {
    **_names_of(_REDUCTIONS),
    **_names_of({"shape dtype order": "zeros ones empty", "dtype order shape": "zeros_like ones_like empty_like",
                 "axis": "flip expand_dims split count_nonzero", "axis out": "concatenate stack",
                 "rtol atol equal_nan": "isclose allclose", "axes": "transpose tensordot", "out dtype casting": "abs",
                 "out": "dot", "": "where moveaxis broadcast_to tile outer inner array_equal copyto shape result_type"}),
    "full": "shape fill_value dtype order", "full_like": "dtype order shape", "eye": "N M k dtype order",
    "arange": "start stop step dtype", "asarray": "dtype order", "array": "dtype copy order ndmin",
    "ascontiguousarray": "dtype", "einsum": "dtype optimize", "clip": "a_min a_max out", "pad": "mode constant_values",
}
_METHODS = {
    **_names_of(_REDUCTIONS), "astype": "dtype order casting copy", "flatten": "order", "transpose": "",
    "view": "dtype", "fill": "", "clip": "min max out", "dot": "out", "round": "decimals out", "conj": "",
}
_SUBMODULES = {
    "linalg": {"norm": "ord axis keepdims", "eigh": "UPLO"},
    "fft": {"fft2": "s axes norm", "ifft2": "s axes norm"},
    "lib.stride_tricks": {"as_strided": "shape strides", "sliding_window_view": "axis"},
}
_SHARED = """bool_ int8 int16 int32 int64 uint8 uint16 uint32 uint64 intp float16 float32 float64 complex64
    complex128 floating integer inexact complexfloating generic dtype finfo iinfo issubdtype promote_types
    can_cast pi e inf nan newaxis""".split()  # the same objects in both libraries
_FROM_HOST = {"asarray", "array", "ascontiguousarray"}  # the door: takes host arrays and lists
_OF_SEQUENCES = {"concatenate", "stack"}
_OF_SHAPES = {"zeros", "ones", "empty", "full"}

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
    if isinstance(result, (tuple, list)) and any(isinstance(r, (np.ndarray, np.generic)) for r in result):
        return tuple(map(_wrap, result))
    return result


def _unwrap(value, where):
    if isinstance(value, GuardedArray):
        return value._host
    if isinstance(value, np.ndarray):
        raise GuardError(f"{where}: a numpy array among cupy arrays; move it with Backend.asarray first")
    if isinstance(value, (tuple, list)):
        return type(value)(_unwrap(v, where) for v in value)
    return value


def _call(where, function, arguments, keywords, allowed):
    extra = set(keywords) - set(allowed)
    if extra:
        raise GuardError(f"{where}: CuPy does not know the keyword {', '.join(sorted(extra))}")
    out = keywords.get("out")
    if out is not None and not isinstance(out, GuardedArray):
        raise GuardError(f"{where}: out must be a cupy array, got {type(out).__name__}")
    result = function(*(_unwrap(a, where) for a in arguments), **{k: _unwrap(v, where) for k, v in keywords.items()})
    return out if out is not None else _wrap(result)


def _no_lists(where, arguments):
    for argument in arguments:
        if isinstance(argument, (list, tuple)):
            raise GuardError(f"{where}: CuPy takes arrays and scalars here, got a {type(argument).__name__}")


def _waits_for_device(name):
    def method(self, *arguments):
        if not _sync_allowed:
            raise GuardError(f"{name} of a cupy array waits for the device; use to_host, or allow_sync() in a test")
        return getattr(self._host, name)(*arguments)

    return method


def _refused(name, why):
    def method(self, *arguments, **keywords):
        raise GuardError(f"{name}: {why}")

    return method


def _method(name, allowed):
    def method(self, *arguments, **keywords):
        if name in ("dot", "take"):
            _no_lists(name, arguments[:1])
        return _call(name, getattr(self._host, name), arguments, keywords, allowed)

    return method


class GuardedArray(np.lib.mixins.NDArrayOperatorsMixin):
    """A NumPy array behind CuPy's rules; `get()` gives a plain copy of it."""

    __slots__ = ("_host",)
    __hash__ = None

    def __init__(self, host):
        host = np.asarray(host)
        dtype = host.dtype
        if dtype.kind not in "biufc" or dtype.itemsize > (16 if dtype.kind == "c" else 8) or not dtype.isnative:
            raise GuardError(f"CuPy has no arrays of dtype {dtype!r}")
        self._host = host

    def get(self):
        return self._host.copy()

    shape, ndim, size, dtype, itemsize, nbytes, strides, flags = (
        property(attrgetter(f"_host.{name}"))
        for name in ("shape", "ndim", "size", "dtype", "itemsize", "nbytes", "strides", "flags"))
    T = property(lambda self: _wrap(self._host.T))
    real = property(lambda self: _wrap(self._host.real))
    imag = property(lambda self: _wrap(self._host.imag))

    def __len__(self):
        return len(self._host)

    def __repr__(self):
        return f"guarded {self._host!r}"

    def __array_ufunc__(self, ufunc, kind, *inputs, out=(), **keywords):
        if kind != "__call__" or ufunc.__name__ not in _ARITHMETIC:
            raise GuardError(f"numpy.{ufunc.__name__}.{kind} on a cupy array; use what xp offers")
        _no_lists(ufunc.__name__, inputs)
        if out:
            keywords["out"] = out[0]
        return _call(ufunc.__name__, ufunc, inputs, keywords, _UFUNC_KEYWORDS)

    def __array_function__(self, function, types, arguments, keywords):
        raise GuardError(f"numpy.{function.__name__} on a cupy array; take xp = namespace_of(x) and use xp's")

    def __getitem__(self, key):
        return GuardedArray(self._host[_index(key)])

    def __setitem__(self, key, value):
        if not isinstance(value, (GuardedArray, np.generic, bool, int, float, complex)):
            raise GuardError(f"x[...] = {type(value).__name__}: CuPy assigns arrays of its own and scalars only")
        self._host[_index(key)] = _unwrap(value, "x[...] =")

    __array__ = _refused("numpy.asarray", "implicit conversion of a cupy array to numpy; use to_host")
    __iter__ = _refused("iteration", "one transfer for every element; use array operations")
    __index__ = _refused("index", "a cupy array is no integer; keep sizes and positions on the host")
    tolist, item, __float__, __int__, __bool__, __complex__ = map(
        _waits_for_device, ("tolist", "item", "__float__", "__int__", "__bool__", "__complex__"))


for _name, _allowed in _METHODS.items():
    setattr(GuardedArray, _name, _method(_name, _allowed.split()))


def _index(key):
    """The key for the wrapped array, such that the result is a view wherever CuPy gives one, even of no axes."""
    parts = key if isinstance(key, tuple) else (key,)
    for part in parts:
        if isinstance(part, np.ndarray):
            raise GuardError("index: a numpy array is copied to the device at every use; move it there once")
    parts = tuple(_unwrap(part, "index") for part in parts)
    return parts if any(part is Ellipsis for part in parts) else (*parts, Ellipsis)


def _function(name, function, allowed):
    def guarded(*arguments, **keywords):
        if name in _FROM_HOST:
            return _move(name, function, arguments, keywords, allowed)
        if name not in _OF_SEQUENCES | _OF_SHAPES:
            _no_lists(name, arguments if isinstance(function, np.ufunc) else arguments[:1])
        return _call(name, function, arguments, keywords, allowed)

    guarded.__name__ = name
    return guarded


def _move(name, function, arguments, keywords, allowed):
    """asarray and array: host data comes over as a copy, an array that is there already stays."""
    source, rest = arguments[0], arguments[1:]
    if isinstance(source, GuardedArray):
        result = _call(name, function, arguments, keywords, allowed)
        return source if result._host is source._host else result
    return _call(name, lambda *rest, **named: function(np.array(source), *rest, **named), rest, keywords, allowed)


class _Namespace(ModuleType):
    def __getattr__(self, name):
        raise AttributeError(f"{self.__name__}.{name} is not among the names of tests/support/guarded.py")


def _namespace(name, source, functions):
    space = _Namespace(name)
    for function, allowed in functions.items():
        setattr(space, function, _function(function, getattr(source, function), allowed.split()))
    return space


def _guarded_xp():
    xp = _namespace("guarded_xp", np, _FUNCTIONS)
    for name in _ARITHMETIC:
        setattr(xp, name, _function(name, getattr(np, name), _UFUNC_KEYWORDS))
    for name in _SHARED:
        setattr(xp, name, getattr(np, name))
    xp.ndarray = GuardedArray
    xp.linalg = _namespace("guarded_xp.linalg", np.linalg, _SUBMODULES["linalg"])
    xp.fft = _namespace("guarded_xp.fft", np.fft, _SUBMODULES["fft"])
    xp.lib = _Namespace("guarded_xp.lib")
    tricks = "lib.stride_tricks"
    xp.lib.stride_tricks = _namespace(f"guarded_xp.{tricks}", np.lib.stride_tricks, _SUBMODULES[tricks])
    return xp


guarded_xp = GuardedArray.xp = _guarded_xp()


def guarded_backend():
    """A backend whose arrays behave as CuPy's do."""
    return Backend("guarded", guarded_xp)
