"""Checks of exact products and of sums in pairs: the definitions and their compiled twins in
fractions.
"""

import math
from fractions import Fraction
from itertools import product

import numpy as np

from ...backend import to_host
from ...exact import arithmetic, cuts
from ..equation import Case
from . import by_definition, in_words, measures, states, worst


def _compiled(array):
    return array


GIVENS = (by_definition, _compiled)


def _fractions(array):
    """The same numbers, whose sums, products and powers of two are exact."""
    return np.array([Fraction(float(each)) for each in array.ravel()]).reshape(array.shape)


def _rounding(dtype):
    return lambda exact: np.dtype(dtype).type(float(exact))


def _matrix(rng, dtype, rows, columns, factors=1):
    """Numbers of all sizes that a product of so many factors has room for, the smallest and the
    largest too; a row of zeros and one that is not finite.
    """
    lowest, highest = (-149, 128) if dtype == "float32" else (-1074, 1024)
    sizes = rng.integers(lowest, highest // factors - 8 * (factors - 1), (rows, 1))
    x = np.ldexp(rng.uniform(-1, 1, (rows, columns)), sizes).astype(dtype)
    x[0], x[1, -1], x[2] = 0, rng.choice([np.inf, -np.inf, np.nan]), np.ldexp(x[2], -3)
    return x


def _cuts(bench):
    """(x, X, e, whether to the nearest) of rows and of columns, by definition and compiled."""
    for dtype, nearest, last in product(("float32", "float64"), (False, True), (True, False)):
        x = _matrix(bench.rng, dtype, 12, 9)
        for given in GIVENS:
            turned = bench.asarray(x if last else np.ascontiguousarray(x.T))
            X, e = map(to_host, cuts.cut(given(turned), 23, int(last), nearest))
            yield (x, X, e[:, 0], nearest) if last else (x, X.T, e[0], nearest)


@states("exact.cuts.cut", "F1", 0.0)
def cuts_of_numbers_of_all_sizes(bench):
    for *arrays, nearest in _cuts(bench):
        x, X, e = (_fractions(np.delete(each, 1, axis=0)) for each in arrays)
        functions = {"round": round if nearest else int, "log2": math.log2}
        yield Case({"x": x, "X": X, "e": e, "bits": 23, **functions})


@states("exact.cuts.cut", "F2", 0.0)
def cuts_of_what_is_not_finite(bench):
    yield from (Case({"x": x, "X": X, "e": e, "NaN": np.isnan}) for x, X, e, _ in _cuts(bench))


@states("exact.cuts.product", "F1", 0.0)
def products_of_numbers_of_all_sizes(bench):
    sizes = (6, 9, 5), (5, 1, 4), (4, 65, 3)
    for dtype, (rows, inner, columns), given in product(("float32", "float64"), sizes, GIVENS):
        x, W = (_matrix(bench.rng, dtype, n, inner, factors=2) for n in (rows, columns))
        turned, (p, q) = np.ascontiguousarray(W.T), cuts.precision(inner)
        with np.errstate(all="ignore"):
            y = arithmetic.product(given(bench.asarray(x)), given(bench.asarray(turned)), "exact")
        y = to_host(y)
        y = y[~np.isnan(y).all(axis=1)][:, ~np.isnan(y).all(axis=0)]  # without what is not finite
        x, W = np.delete(x, 1, axis=0), np.delete(W.T, 1, axis=1)
        (X, e), (V, f) = cuts.cut(x, p, 1, True), cuts.cut(W, q, 0, True)
        arrays = {"x": x, "W": W, "X": X, "V": V, "e": e[:, 0], "f": f[0]}
        exact = {name: _fractions(array) for name, array in arrays.items()}
        functions = {"rint": round, "round": _rounding(dtype)}
        yield Case({**exact, "y": y, "p": p, "q": q, "K": inner, **functions})


@states("exact.cuts.put_back", "F1", 0.0)
def sums_that_are_put_back(bench):
    for dtype, given in product(("float32", "float64"), GIVENS):
        S = bench.rng.integers(-(2**53), 2**53, (3, 2, 4)).astype(float)
        e, f = (bench.rng.integers(-30, 30, shape).astype("i4") for shape in ((3, 1), (1, 4)))
        parts = (bench.asarray(each) for each in (S.reshape((6, 4)), e, f))
        out = given(bench.asarray(np.empty((6, 4), dtype)))
        put = to_host(cuts.put_back(*parts, 51, out=out)).reshape(S.shape)
        exact = {name: _fractions(x) for name, x in (("S", S), ("e", e[:, 0]), ("f", f[0]))}
        yield Case({**exact, "out": put, "bits": 51, "round": _rounding(dtype)})


def _pairs(bench):
    for shape, axes in (((3, 7), (1,)), ((7, 2), (0,)), ((2, 3, 2, 4), (1, 3)), ((2, 1), (1,))):
        x = bench.rng.standard_normal(shape).astype("float32")
        rest = [n for k, n in enumerate(shape) if k not in axes]
        terms = list(np.moveaxis(x, axes, range(len(axes))).reshape((-1, *rest)))
        while len(terms) > 1:
            half = (len(terms) + 1) // 2
            terms = [a + b for a, b in zip(terms, terms[half:])] + terms[len(terms) - half : half]
        for kept in (False, True):
            expected = np.expand_dims(terms[0], axes) if kept else terms[0]
            yield worst(arithmetic.in_pairs(by_definition(bench.asarray(x)), axes, kept), expected)


measures("arrays.in_pairs", "F1", "loop over terms, the same order of additions", 0.0)(_pairs)
in_words("arrays.in_pairs", "F1", "an order of additions")


def _of_patches(bench, name):
    """(x, W, products) of images that are their own patches, in two parts."""
    x, W = bench.rng.standard_normal((5, 2, 3)), bench.rng.standard_normal((6, 4))
    images, multiply = arithmetic.ARITHMETIC[name].product_of_patches(*map(bench.asarray, (x, W)))
    out = bench.asarray(np.empty((5, 4)))
    for examples in (slice(0, 2), slice(2, 5)):
        part = images[examples]
        multiply(part.reshape((len(part), 6)), examples, out[examples])
    return x.reshape((5, 6)), W, to_host(out)[:, None]


@states("exact.ordinary.Arithmetic.product_of_patches", "F1")
def ordinary_products_of_patches(bench):
    x, W, out = _of_patches(bench, "ordinary")
    yield Case({"P": x[:, None], "W": W, "out": out})


@states("exact.cuts.product_of_patches", "F1")
def exact_products_of_patches(bench):
    x, W, out = _of_patches(bench, "exact")
    p, q = cuts.precision(6)
    (X, e), (V, f) = cuts.cut(x, p, 1, True), cuts.cut(W, q, 0, True)
    integers = {"P": X[:, None], "V": V, "e": e[:, 0].astype(float), "f": f[0].astype(float)}
    yield Case({**integers, "p": p, "q": q, "out": out})
