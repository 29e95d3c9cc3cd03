"""Compiled twins of definitions in `arrays` and `exact`, for float32 and float64: the same bits,
in fewer passes.
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
    patterns = matrix.view("i4" if x.itemsize == 4 else "i8")
    (cut_rows if along else cut_columns)(matrix, patterns, LARGEST[x.itemsize], bits, nearest, X, e)
    return X.T if turned else X, e[None] if axis == 0 else e[:, None]


def cut_squares(x, bits, block):
    """exact.whole.cut_squares of a host array: e (B,), and the sums of squares of blocks of the
    integers, the last one shorter.
    """
    x = np.ascontiguousarray(x)
    e, sums = np.empty(x.shape[0], np.int32), np.empty((x.shape[0], x.shape[1] // block + 1))
    _cut_squares(
        x, x.view("i4" if x.itemsize == 4 else "i8"), LARGEST[x.itemsize], bits, block, e, sums
    )
    return e, sums


@compiled
def _powers(e, bits):
    """Two factors whose product is 2^(bits - e)."""
    half = (bits - e) // 2
    return ldexp(1.0, half), ldexp(1.0, bits - e - half)


@compiled
def _scales(largest, bits):
    """(e, two factors whose product is 2^(bits - e)) for a largest number below 2^e."""
    if not np.isfinite(largest):
        return 0, np.nan, 1.0
    e = frexp(largest)[1]
    first, second = _powers(e, bits)
    return e, first, second


@inlined
def _cut_row(x, patterns, b, unsigned, bits, nearest, pattern, X, at):
    """Row b of cut_rows to row `at` of X; returns e. pattern (1,) is scratch; indices cost less
    than views of short rows.
    """
    pattern[0] = 0
    largest = pattern[0]
    for k in range(x.shape[1]):
        largest = max(largest, patterns.dtype.type(patterns[b, k] & unsigned))
    pattern[0] = largest
    e, first, second = _scales(pattern.view(x.dtype)[0], bits)
    for k in range(x.shape[1]):
        scaled = x[b, k] * first * second
        X[at, k] = np.rint(scaled) if nearest else np.trunc(scaled)
    return e


@compiled
def cut_rows(x, patterns, unsigned, bits, nearest, X, e):
    """exact.cuts.cut of rows: x (B, K) to X (B, K) float64 and e (B,).

    patterns (B, K): the bits of x, `unsigned` all of them but the sign: ordered as |x| is, infinity
    and NaN above all.
    """
    pattern = np.empty(1, patterns.dtype)
    for b in range(x.shape[0]):
        e[b] = _cut_row(x, patterns, b, unsigned, bits, nearest, pattern, X, b)


@compiled
def _cut_squares(x, patterns, unsigned, bits, block, e, sums):
    pattern, row = np.empty(1, patterns.dtype), np.empty((1, x.shape[1]))
    for b in range(x.shape[0]):
        e[b] = _cut_row(x, patterns, b, unsigned, bits, True, pattern, row, 0)
        for j in range(sums.shape[1]):
            part = row[0, j * block : (j + 1) * block]
            sums[b, j] = np.dot(part, part)  # exact, so in any order


@compiled
def contributions(x, e, bits, scale, out):
    """exact.whole.contributions of x (B, K), e, scale (B,) to out (B, K) float64."""
    for b in range(x.shape[0]):
        first, second = _powers(e[b], bits)
        factor = scale[b]
        if factor == 0:
            out[b] = 0
            continue
        for k in range(x.shape[1]):
            out[b, k] = np.trunc(factor * np.rint(x[b, k] * first * second))


@compiled
def cut_columns(x, patterns, unsigned, bits, nearest, X, e):
    """exact.cuts.cut of columns, in two passes along memory: x, patterns (K, O) as in
    cut_rows to X (K, O), e (O,).
    """
    largest, first, second = (
        np.zeros(x.shape[1], patterns.dtype),
        np.empty(x.shape[1]),
        np.empty(x.shape[1]),
    )
    for k in range(x.shape[0]):
        for o in range(x.shape[1]):
            largest[o] = max(largest[o], patterns.dtype.type(patterns[k, o] & unsigned))
    for o in range(x.shape[1]):
        e[o], first[o], second[o] = _scales(largest.view(x.dtype)[o], bits)
    for k in range(x.shape[0]):
        for o in range(x.shape[1]):
            scaled = x[k, o] * first[o] * second[o]
            X[k, o] = np.rint(scaled) if nearest else np.trunc(scaled)


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
