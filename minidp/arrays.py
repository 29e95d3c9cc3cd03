"""Which library an array belongs to; norms, and sums over rows: definitions for all devices.

What NumPy and CuPy do not spell alike is a named function here. A compiled twin of a definition,
where there is one, is in `compiled`.
"""

import sys

import numpy as np

from .compiled import kernel
from .errors import BackendMismatchError

_PLAIN = {np.ndarray}.__contains__
DOUBLE_ROWS = 4096  # of a float64 product: what `mechanism.rounding` charges counts on it
# blocks of products, and their numbers, that stay in the cache until they are added
TOGETHER = 4
PARTS = 2**20
BATCHED = 2**26  # numbers of products that a device makes in one kernel


def namespace_of(*arrays):
    """The library the arrays belong to, numpy or cupy.

    What is no array but gives arrays (data.Examples) names their library in its attribute `xp`.
    Raises BackendMismatchError if two libraries are mixed, or if something is no array.
    """
    if arrays and all(
        map(_PLAIN, map(type, arrays))
    ):  # the usual case, asked a hundred times per step
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

    A factor that is not finite has to go before a product: zero times NaN is NaN. A device is not
    made to wait for `keep`.
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
    """total += a^T d; total (I, O) float64, or None for a new one, a (B, I), d (B, O); returns it.

    rows: of one product in float32, added in float64; 0 for float64. A new total of a few such
    products is their float32 sum.
    """
    (examples, inputs), outputs = a.shape, d.shape[1]
    blocks, add_blocks = -(-examples // rows) if rows else 0, kernel("add_blocks", a, d)
    few = total is None and add_blocks is not None and 0 < blocks <= TOGETHER
    if total is None:
        total = (
            np.empty((inputs, outputs), np.float32)
            if few
            else namespace_of(a).zeros((inputs, outputs))
        )
    if not rows:
        for at in range(0, examples, DOUBLE_ROWS):
            here = slice(at, at + DOUBLE_ROWS)
            left, right = (each[here].astype(total.dtype, copy=False) for each in (a, d))
            total += left.T @ right
        return total
    rows = max(-(-examples // max(blocks, 1)), 1)  # the blocks are about as large as each other
    if add_blocks is None or not total.flags.c_contiguous:
        whole, at_once = examples // rows, max(BATCHED // max(inputs * outputs, 1), 1)
        for at in range(0, whole, at_once):
            here = slice(at * rows, min(at + at_once, whole) * rows)
            left, right = (each[here].reshape((-1, rows, each.shape[1])) for each in (a, d))
            total += (left.transpose(0, 2, 1) @ right).sum(axis=0, dtype=np.float64)
        if rest := examples - whole * rows:
            total += a[-rest:].T @ d[-rest:]
        return total
    together = max(min(blocks - few, TOGETHER), 1)
    # rows of the sum, in tiles about as large as each other
    tile = -(-inputs // max(-(-inputs * outputs * together // PARTS), 1))
    parts = np.empty((together, tile, outputs), np.float32)
    for at in range(0, inputs, tile):
        sums, left = total[at : at + tile], a[:, at : at + tile].T
        if few:
            np.matmul(left[:, :rows], d[:rows], out=sums)
        for start in range(few * rows, examples, together * rows):
            places = range(start, min(start + together * rows, examples), rows)
            for part, place in zip(parts, places):
                np.matmul(
                    left[:, place : place + rows], d[place : place + rows], out=part[: len(sums)]
                )
            add_blocks(sums, parts[: len(places), : len(sums)])
    return total


def synchronise(xp):
    """Wait until the device has finished all its work."""
    if xp is not np:
        xp.cuda.get_current_stream().synchronize()
