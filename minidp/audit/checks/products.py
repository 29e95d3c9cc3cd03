"""Checks of exact products and of sums in pairs: the definitions and their compiled twins against fractions."""
from fractions import Fraction
from itertools import product
from unittest import mock

import numpy as np

from ... import arithmetic
from ...backend import to_host
from ...host import cutting
from . import measures, worst


def _integers(numbers, bits, rounded=int):
    """(integers, e) of one row by comparing powers of two; None for a row that is not finite."""
    if not np.isfinite(numbers).all():
        return [None] * len(numbers), 0
    fractions, e = [Fraction(float(each)) for each in numbers], -1100 if np.any(numbers) else 0
    while any(abs(each) >= Fraction(2) ** e for each in fractions):
        e += 1
    return [rounded(each * Fraction(2) ** (bits - e)) for each in fractions], e


def _matrix(rng, dtype, rows, columns):
    """Numbers of all sizes, the smallest and the largest too; a row of zeros and one that is not finite."""
    lowest, highest = (-149, 128) if dtype == "float32" else (-1074, 1024)
    x = np.ldexp(rng.uniform(-1, 1, (rows, columns)), rng.integers(lowest, highest, (rows, 1))).astype(dtype)
    x[0], x[1, -1], x[2] = 0, rng.choice([np.inf, -np.inf, np.nan]), np.ldexp(x[2], -3)
    return x


def _cuts(bench, along):
    """The largest difference of `cut` along an axis from the definition, NaN for NaN."""
    wrong = 0.0
    for dtype, nearest in product(("float32", "float64"), (False, True)):
        x = _matrix(bench.rng, dtype, 12, 9)
        given = bench.asarray(x if along else np.ascontiguousarray(x.T))
        X, e = map(to_host, arithmetic.cut(given, 23, -1 if along else 0, nearest))
        X, e = (X, e) if along else (X.T, e.T)
        for row, got, power in zip(x, X, e):
            expected, exponent = _integers(row, 23, round if nearest else int)
            equal = [np.isnan(g) if want is None else g == want for g, want in zip(got, expected)]
            wrong += (not all(equal)) + (power[0] != exponent)
    return wrong


@measures("arithmetic.cut", "F1", "F2", method="fractions; rows and columns that differ", tolerance=0.0)
def cutting_equals_the_definition(bench):
    with mock.patch.object(arithmetic, "_twinned", lambda array: False):
        return _cuts(bench, True) + _cuts(bench, False)


@measures("host.cutting.cut_rows", "F1", method="fractions; rows that differ", tolerance=0.0)
def compiled_cut_of_rows(bench):
    return _cuts(bench, True)


@measures("host.cutting.cut_columns", "F1", method="fractions; columns that differ", tolerance=0.0)
def compiled_cut_of_columns(bench):
    return _cuts(bench, False)


def _products(bench):
    """The largest difference of exact products from Python's integers, in the last place."""
    largest = 0.0
    for dtype, (rows, inner, columns) in (("float32", (5, 9, 4)), ("float64", (4, 1, 3)), ("float32", (4, 65, 4))):
        x, W = _matrix(bench.rng, dtype, rows, inner), _matrix(bench.rng, dtype, columns, inner)
        bits = 53 - int(np.ceil(np.log2(inner)))
        with np.errstate(all="ignore"):
            y = to_host(arithmetic.product(bench.asarray(x), bench.asarray(np.ascontiguousarray(W.T)), "exact"))
            for b, o in np.ndindex(y.shape):
                (X, e), (V, f) = _integers(x[b], bits // 2, round), _integers(W[o], bits - bits // 2, round)
                if None in X or None in V:
                    largest = max(largest, 0.0 if np.isnan(y[b, o]) else np.inf)
                    continue
                whole = sum(i * j for i, j in zip(X, V))  # at most 2^53
                expected = np.ldexp(np.float64(whole), e + f - bits).astype(dtype)
                largest = max(largest, float(y[b, o] != expected))
    return largest


@measures("arithmetic.product", "F1", method="Python's integers, numbers of all sizes", tolerance=0.0)
@measures("arithmetic.put_back", "F1", method="Python's integers, numbers of all sizes", tolerance=0.0)
def exact_products_equal_integers(bench):
    with mock.patch.object(arithmetic, "_twinned", lambda array: False):
        return _products(bench)


@measures("host.cutting.put_back", "F1", method="Python's integers, numbers of all sizes", tolerance=0.0)
def compiled_powers_of_two(bench):
    return _products(bench)


def _pairs(bench):
    largest = 0.0
    for shape, axis in (((3, 7), 1), ((7, 2), 0), ((2, 5, 3), 1), ((2, 3, 2, 4), (1, 3)), ((2, 1), 1)):
        x = bench.rng.standard_normal(shape).astype("float32")
        axes = axis if isinstance(axis, tuple) else (axis,)
        rest = [n for k, n in enumerate(shape) if k not in axes]
        terms = list(np.moveaxis(x, axes, range(len(axes))).reshape((-1, *rest)))
        while len(terms) > 1:
            half = (len(terms) + 1) // 2
            terms = [a + b for a, b in zip(terms, terms[half:])] + terms[len(terms) - half : half]
        for kept in (False, True):
            expected = np.expand_dims(terms[0], axes) if kept else terms[0]
            largest = max(largest, worst(arithmetic.in_pairs(bench.asarray(x), axis, kept), expected))
    return largest


@measures("arithmetic.in_pairs", "F1", method="loop over terms, the same order of additions", tolerance=0.0)
def sums_in_pairs_equal_a_loop(bench):
    with mock.patch.object(arithmetic, "_twinned", lambda array: False):
        return _pairs(bench)


@measures("host.cutting.pairs", "F1", method="loop over terms, the same order of additions", tolerance=0.0)
def compiled_sums_in_pairs(bench):
    return _pairs(bench)
