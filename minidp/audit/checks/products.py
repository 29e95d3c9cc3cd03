"""Checks of exact products and of sums in pairs: the definitions and their compiled twins against
fractions.
"""

from fractions import Fraction
from functools import partial
from itertools import product

import numpy as np

from ...backend import to_host
from ...exact import arithmetic, cuts
from . import by_definition, holds, measures, worst


def _integers(numbers, bits, rounded=int):
    """(integers, e) of one row by comparing powers of two; None for a row that is not finite."""
    if not np.isfinite(numbers).all():
        return [None] * len(numbers), 0
    fractions, e = [Fraction(float(each)) for each in numbers], -1100 if np.any(numbers) else 0
    while any(abs(each) >= Fraction(2) ** e for each in fractions):
        e += 1
    return [rounded(each * Fraction(2) ** (bits - e)) for each in fractions], e


def _matrix(rng, dtype, rows, columns):
    """Numbers of all sizes, the smallest and the largest too; a row of zeros and one that is not
    finite.
    """
    lowest, highest = (-149, 128) if dtype == "float32" else (-1074, 1024)
    x = np.ldexp(
        rng.uniform(-1, 1, (rows, columns)), rng.integers(lowest, highest, (rows, 1))
    ).astype(dtype)
    x[0], x[1, -1], x[2] = 0, rng.choice([np.inf, -np.inf, np.nan]), np.ldexp(x[2], -3)
    return x


def _compiled(array):
    return array


def _cuts(bench, given):
    """Rows and columns that `cut` cuts otherwise than by hand, NaN for NaN."""
    for dtype, nearest, last in product(("float32", "float64"), (False, True), (True, False)):
        x = _matrix(bench.rng, dtype, 12, 9)
        turned = bench.asarray(x if last else np.ascontiguousarray(x.T))
        X, e = map(to_host, cuts.cut(given(turned), 23, int(last), nearest))
        X, e = (X, e) if last else (X.T, e.T)
        for row, got, power in zip(x, X, e):
            expected, exponent = _integers(row, 23, round if nearest else int)
            equal = [np.isnan(g) if want is None else g == want for g, want in zip(got, expected)]
            yield (not all(equal)) + (power[0] != exponent)


def _products(bench, given):
    """How many exact products differ from Python's integers. float64 has no twin of put_back."""
    sizes = (5, 9, 4), (4, 1, 3), (3, 65, 3)
    for dtype, (rows, inner, columns) in product(("float32", "float64"), sizes):
        x, W = _matrix(bench.rng, dtype, rows, inner), _matrix(bench.rng, dtype, columns, inner)
        bits = 53 - int(np.ceil(np.log2(inner)))
        with np.errstate(all="ignore"):
            transposed = bench.asarray(np.ascontiguousarray(W.T))
            y = to_host(arithmetic.product(given(bench.asarray(x)), given(transposed), "exact"))
            for b, o in np.ndindex(y.shape):
                (X, e), (V, f) = (
                    _integers(x[b], bits // 2, round),
                    _integers(W[o], bits - bits // 2, round),
                )
                if None in X or None in V:
                    yield holds(np.isnan(y[b, o]))
                    continue
                whole = sum(i * j for i, j in zip(X, V))  # at most 2^53
                expected = np.ldexp(np.float64(whole), e + f - bits).astype(dtype)
                yield float(y[b, o] != expected)


def _pairs(bench, given):
    for shape, axis in (
        ((3, 7), 1),
        ((7, 2), 0),
        ((2, 5, 3), 1),
        ((2, 3, 2, 4), (1, 3)),
        ((2, 1), 1),
    ):
        x = bench.rng.standard_normal(shape).astype("float32")
        axes = axis if isinstance(axis, tuple) else (axis,)
        rest = [n for k, n in enumerate(shape) if k not in axes]
        terms = list(np.moveaxis(x, axes, range(len(axes))).reshape((-1, *rest)))
        while len(terms) > 1:
            half = (len(terms) + 1) // 2
            terms = [a + b for a, b in zip(terms, terms[half:])] + terms[len(terms) - half : half]
        for kept in (False, True):
            expected = np.expand_dims(terms[0], axes) if kept else terms[0]
            yield worst(arithmetic.in_pairs(given(bench.asarray(x)), axis, kept), expected)


def _of_patches(bench, name):
    """Images that are their own patches, in two parts, beside a product of float64."""
    x, W = bench.rng.standard_normal((5, 2, 3)), bench.rng.standard_normal((6, 4))
    images, multiply = arithmetic.ARITHMETIC[name].product_of_patches(*map(bench.asarray, (x, W)))
    out = bench.asarray(np.empty((5, 4)))
    for examples in (slice(0, 2), slice(2, 5)):
        part = images[examples]
        multiply(part.reshape((len(part), 6)), examples, out[examples])
    yield worst(out, x.reshape((5, 6)) @ W)


for _card, _name in (
    ("exact.ordinary.Arithmetic.product_of_patches", "ordinary"),
    ("exact.cuts.product_of_patches", "exact"),
):
    measures(_card, "F1", "a product of float64, in two parts", 1e-6, name=_card)(
        partial(_of_patches, name=_name)
    )


def _register(card, labels, method, measure):
    for kind, given in (("defined", by_definition), ("compiled", _compiled)):
        register = measures(card, " ".join(labels), f"{kind}: {method}", 0.0, name=f"{kind} {card}")
        register(partial(measure, given=given))


_register("exact.cuts.cut", ("F1", "F2"), "fractions; rows, columns that differ", _cuts)
_register("exact.cuts.product", ("F1",), "Python's integers, numbers of all sizes", _products)
_register("exact.cuts.put_back", ("F1",), "Python's integers, numbers of all sizes", _products)
_register("arrays.in_pairs", ("F1",), "loop over terms, the same order of additions", _pairs)
