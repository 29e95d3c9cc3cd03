"""Compiled twins of the definitions in `arithmetic`, for float32 and float64: the same bits, in fewer passes."""
from math import frexp, ldexp, prod

import numpy as np
from numba import njit

_options = {"cache": True, "nogil": True, "error_model": "numpy"}  # no fastmath: nothing contracted or reordered


def cut(x, bits, axis, nearest):
    """arithmetic.cut of a host array: along memory where the axis lies so, else all columns side by side."""
    place, kernel = (-1, cut_rows) if x.strides[axis] == x.itemsize else (0, cut_columns)
    moved = np.ascontiguousarray(np.moveaxis(x, axis, place))
    n, others = moved.shape[place], np.delete(moved.shape, place)
    matrix = moved.reshape((prod(others), n) if place else (n, prod(others)))
    X, e = np.empty(matrix.shape), np.empty(prod(others), np.int32)
    patterns = matrix.view(f"i{x.itemsize}")
    kernel(matrix, patterns, np.iinfo(patterns.dtype).max, bits, nearest, X, e)
    return np.moveaxis(X.reshape(moved.shape), place, axis), np.expand_dims(e.reshape(others), axis)


@njit(**_options)
def _scales(largest, bits):
    """(e, two factors whose product is 2^(bits - e)) for a largest number below 2^e."""
    if not np.isfinite(largest):
        return 0, np.nan, 1.0
    e = frexp(largest)[1]
    half = (bits - e) // 2
    return e, ldexp(1.0, half), ldexp(1.0, bits - e - half)


@njit(**_options)
def cut_rows(x, patterns, unsigned, bits, nearest, X, e):
    r"""Cut each row to integers.

    Shapes
        x (B, K)   patterns (B, K) the bits of x, `unsigned` all of them but the sign: ordered as |x| is, infinity and
        NaN above all   X (B, K) float64 and e (B,) are written

    Forward
        [F1]  X_bk = trunc(x_bk 2^(bits - e_b)), or the nearest integer, |x_bk| < 2^e_b

    Source
        [F1]  the definition of arithmetic.cut [F1]
    """
    pattern = np.empty(1, patterns.dtype)
    for b in range(x.shape[0]):
        pattern[0] = 0
        largest = pattern[0]
        for k in range(x.shape[1]):
            largest = max(largest, patterns.dtype.type(patterns[b, k] & unsigned))
        pattern[0] = largest
        e[b], first, second = _scales(pattern.view(x.dtype)[0], bits)
        for k in range(x.shape[1]):
            scaled = x[b, k] * first * second
            X[b, k] = np.rint(scaled) if nearest else np.trunc(scaled)  # [F1]


@njit(**_options)
def cut_columns(x, patterns, unsigned, bits, nearest, X, e):
    r"""Cut each column to integers, in two passes along memory.

    Shapes
        x (K, O)   patterns (K, O), `unsigned` as in cut_rows   X (K, O) float64 and e (O,) are written

    Forward
        [F1]  X_ko = trunc(x_ko 2^(bits - e_o)), or the nearest integer, |x_ko| < 2^e_o

    Source
        [F1]  the definition of arithmetic.cut [F1]
    """
    largest, first, second = np.zeros(x.shape[1], patterns.dtype), np.empty(x.shape[1]), np.empty(x.shape[1])
    for k in range(x.shape[0]):
        for o in range(x.shape[1]):
            largest[o] = max(largest[o], patterns.dtype.type(patterns[k, o] & unsigned))
    for o in range(x.shape[1]):
        e[o], first[o], second[o] = _scales(largest.view(x.dtype)[o], bits)
    for k in range(x.shape[0]):
        for o in range(x.shape[1]):
            scaled = x[k, o] * first[o] * second[o]
            X[k, o] = np.rint(scaled) if nearest else np.trunc(scaled)  # [F1]


@njit(**_options)
def put_back(S, e, f, y):
    r"""Put powers of two back and round to float32.

    Shapes
        S (B, T, O) float64   e (B,) and f (O,) float64, powers of two   y (B, T, O) float32 is written

    Forward
        [F1]  y_bto = S_bto e_b f_o, both products exact: exponents of float32 leave float64 room

    Source
        [F1]  the definition of arithmetic.put_back [F1]
    """
    for b in range(S.shape[0]):
        for t in range(S.shape[1]):
            for o in range(S.shape[2]):
                y[b, t, o] = S[b, t, o] * e[b] * f[o]  # [F1]


@njit(**_options)
def pairs(x, width, total):
    r"""Sum in pairs, with room for half the terms.

    Shapes
        x (B, N width), N at least 1   total (B, width) is written

    Forward
        [F1]  the second half of the terms onto the first, of N, (N + 1) // 2, ... until one is left

    Source
        [F1]  the definition of arithmetic.in_pairs [F1]
    """
    one, w, terms = np.uint64(1), np.uint64(width), np.uint64(x.shape[1] // width)  # unsigned: vector loops
    room = np.empty((terms + one) // np.uint64(2) * w, x.dtype)
    for b in range(x.shape[0]):
        half = (terms + one) // np.uint64(2)
        for j in range((terms - half) * w):
            room[j] = x[b, j] + x[b, half * w + j]  # [F1]
        for j in range((terms - half) * w, half * w):
            room[j] = x[b, j]
        while half > one:
            n = half
            half = (n + one) // np.uint64(2)
            for j in range((n - half) * w):
                room[j] += room[half * w + j]  # [F1]
        for j in range(w):
            total[b, j] = room[j]
