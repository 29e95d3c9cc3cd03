"""Compiled twins of the definitions in `arrays` and `exact.cuts`, for float32 and float64: the same
bits, in fewer passes.
"""

from math import frexp, ldexp

import numpy as np

from .inlined import inlined
from .jit import compiled

LARGEST = {4: 2**31 - 1, 8: 2**63 - 1}  # patterns without their sign, by the bytes of a number


def cut(x, bits, axis, nearest):
    """exact.cuts.cut of a host array: along memory where the axis lies so, else all columns
    side by side.
    """
    along = x.strides[axis] == x.itemsize
    turned = along == (axis == 0)
    matrix = np.ascontiguousarray(x.T if turned else x)
    X, e = np.empty(matrix.shape), np.empty(matrix.shape[0 if along else 1], np.int32)
    patterns = matrix.view(f"i{x.itemsize}")
    (cut_rows if along else cut_columns)(matrix, patterns, LARGEST[x.itemsize], bits, nearest, X, e)
    return X.T if turned else X, e[None] if axis == 0 else e[:, None]


@inlined
def _scales(largest, bits):
    """(e, two factors whose product is 2^(bits - e)) for a largest number below 2^e."""
    if not np.isfinite(largest):
        return 0, np.nan, 1.0
    e = frexp(largest)[1]
    half = (bits - e) // 2
    return e, ldexp(1.0, half), ldexp(1.0, bits - e - half)


@inlined
def _cut(x, first, second, nearest):
    scaled = x * first * second
    return np.rint(scaled) if nearest else np.trunc(scaled)


@compiled
def cut_rows(x, patterns, unsigned, bits, nearest, X, e):
    """exact.cuts.cut of rows: x (B, K) to X (B, K) float64 and e (B,).

    patterns (B, K): the bits of x, `unsigned` all of them but the sign: ordered as |x| is, infinity
    and NaN above all.
    """
    largest = np.zeros(1, patterns.dtype)
    for b in range(x.shape[0]):
        most = patterns.dtype.type(0)
        for k in range(x.shape[1]):
            most = max(most, patterns.dtype.type(patterns[b, k] & unsigned))
        largest[0] = most
        e[b], first, second = _scales(largest.view(x.dtype)[0], bits)
        for k in range(x.shape[1]):
            X[b, k] = _cut(x[b, k], first, second, nearest)


@compiled
def cut_columns(x, patterns, unsigned, bits, nearest, X, e):
    """exact.cuts.cut of columns, in two passes along memory: x, patterns (K, O) as in
    cut_rows to X (K, O), e (O,).
    """
    largest = np.zeros(x.shape[1], patterns.dtype)
    first, second = np.empty(x.shape[1]), np.empty(x.shape[1])
    for k in range(x.shape[0]):
        for o in range(x.shape[1]):
            largest[o] = max(largest[o], patterns.dtype.type(patterns[k, o] & unsigned))
    for o in range(x.shape[1]):
        e[o], first[o], second[o] = _scales(largest.view(x.dtype)[o], bits)
    for k in range(x.shape[0]):
        for o in range(x.shape[1]):
            X[k, o] = _cut(x[k, o], first[o], second[o], nearest)


@compiled
def put_back(S, e, f, y):
    """exact.cuts.put_back: S (B, T, O) float64, e (B,) and f (O,) float64, powers of two,
    to y (B, T, O) float32.

    Both products are exact: exponents of float32 leave float64 room.
    """
    for b in range(S.shape[0]):
        for t in range(S.shape[1]):
            for o in range(S.shape[2]):
                y[b, t, o] = S[b, t, o] * e[b] * f[o]


@compiled
def pairs(x, width, total):
    """arrays.in_pairs of x (B, N width), N at least 1, to total (B, width)."""
    one, w = np.uint64(1), np.uint64(width)  # unsigned: vector loops
    row = np.empty(x.shape[1], x.dtype)
    for b in range(x.shape[0]):
        for j in range(row.size):
            row[j] = x[b, j]
        n = np.uint64(x.shape[1] // width)
        while n > one:
            half = (n + one) // np.uint64(2)
            for j in range((n - half) * w):
                row[j] += row[half * w + j]
            n = half
        for j in range(w):
            total[b, j] = row[j]
