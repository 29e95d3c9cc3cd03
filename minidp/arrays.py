"""Which library an array belongs to; norms, and sums over rows: definitions for all devices.

Each operation that NumPy and CuPy spell differently is a function here. Compiled twins of these
definitions are found through `compiled`.
"""

import sys

import numpy as np

from .compiled import kernel
from .errors import BackendMismatchError

_PLAIN = {np.ndarray}.__contains__
DOUBLE_ROWS = 4096  # rows of a float64 product: the charge of `mechanism.rounding` relies on it


def namespace_of(*arrays):
    """The library the arrays belong to, numpy or cupy.

    An object that gives arrays (data.Examples) names their library in its attribute `xp`. Raises
    BackendMismatchError if two libraries are mixed, or for an object that is not an array.
    """
    # the usual case: a hundred calls per step
    if arrays and all(map(_PLAIN, map(type, arrays))):
        return np
    spaces = {id(space): space for space in map(_namespace, arrays)}
    if len(spaces) != 1:
        kinds = ", ".join(type(a).__module__ + "." + type(a).__name__ for a in arrays)
        raise BackendMismatchError(
            f"expected arrays of one library, got {kinds}; move them with Backend.asarray or "
            "to_host"
        )
    return next(iter(spaces.values()))


def _namespace(array):
    if (own := getattr(array, "xp", None)) is not None:
        return own
    if isinstance(array, (np.ndarray, np.generic)):
        return np
    if (cupy := sys.modules.get("cupy")) is not None and isinstance(array, cupy.ndarray):
        return cupy
    raise BackendMismatchError(
        f"expected a numpy or cupy array, got {type(array).__name__}; convert it with "
        "Backend.asarray"
    )


def to_host(array):
    """A numpy array with the same values; a numpy array is returned as it is."""
    return array.get() if hasattr(array, "get") else np.asarray(array)


def zero_rows_unless(keep, array):
    """The array with the rows b where keep_b is false replaced by zeros: where(keep, array, 0).

    Remove factors that are not finite before a product, because zero times NaN is NaN. A device
    does not wait for `keep`.
    """
    xp = namespace_of(array, keep)
    if xp is np and keep.all():
        return array
    return xp.where(keep.reshape(keep.shape + (1,) * (array.ndim - 1)), array, array.dtype.type(0))


def row_squares(x):
    """Sums of squares along the last axis: einsum("...p,...p->...", x, x)."""
    xp = namespace_of(x)
    # one BLAS dot per row, three times faster; CuPy's einsum takes as long as six kernels
    return np.vecdot(x, x) if xp is np else (x * x).sum(axis=-1)


def row_norms(x):
    """float64 L2 norms along the last axis, sqrt(einsum("...p,...p->...", x, x)): no square
    overflows or vanishes.
    """
    xp = namespace_of(x)
    twin = kernel("row_norms", x)
    if twin:
        norms = xp.empty(x.shape[:-1])
        twin(xp.ascontiguousarray(x).reshape((norms.size, x.shape[-1])), norms.reshape(-1))
        return norms
    if x.dtype != np.float64:  # whose squares float64 holds
        return xp.sqrt(row_squares(x.astype(np.float64)))
    largest = xp.abs(x).max(axis=-1)
    usual = xp.isfinite(largest) & (largest > 0)
    largest = xp.where(usual, largest, 1)
    return xp.sqrt(row_squares(x / largest[..., None])) * largest


def add_weighted(total, w, g):
    """total += w @ g in float64, in place, without the rows of g whose weight is 0; total (P,), w
    (B,), g (B, P).
    """
    twin = kernel("add_weighted", g)
    if twin:
        twin(total, w, g)
    else:
        total += w @ zero_rows_unless(w != 0, g).astype(total.dtype)


def add_products(total, a, d, rows):
    """total += a^T d, with a (B, I) and d (B, O); total is (I, O) float64, or None for a new one.
    Returns total.

    rows: number of rows of one float32 product, whose result is added in float64; 0 for products in
    float64. If a compiled twin starts a new total and there are few such products, the total is
    their float32 sum.
    """
    twin = kernel("add_products", a, d) if rows else None
    if twin:
        return twin(total, a, d, rows)
    if total is None:
        total = namespace_of(a).zeros((a.shape[1], d.shape[1]))
    for at in range(0, len(a), rows or DOUBLE_ROWS):
        left, right = (each[at : at + (rows or DOUBLE_ROWS)] for each in (a, d))
        if not rows:
            left, right = (each.astype(total.dtype, copy=False) for each in (left, right))
        total += left.T @ right
    return total


def synchronise(xp):
    """Wait until the device has finished all its work."""
    if xp is not np:
        xp.cuda.get_current_stream().synchronize()
