"""Checks of gradients as whole numbers, for exact arithmetic."""

import math
from fractions import Fraction

import numpy as np

from ...backend import to_host
from ...exact.arithmetic import Exact
from ...exact.whole import WholeOuter, WholeRows, contributions, cut_squares
from ...mechanism import ClipGroup, clip_weights
from . import by_definition, holds, measures, worst


def _integers(bench):
    """(a, d, g): factors of every size, rows of zeros and not finite among them; their outer
    products.
    """
    sizes = 10.0 ** bench.rng.uniform(-9, 9, (2, 9, 1))
    a, d = (bench.rng.standard_normal((9, n)) * size for n, size in zip((7, 5), sizes))
    a[3], d[4], a[5, 2] = 0, 0, np.inf
    return a, d, a[:, :, None] * d[:, None]


@measures("exact.whole.WholeRows", "F1 N1", "Python's integers and fractions", 1e-15)
def rows_in_whole_numbers(bench):
    """Longer than a block of squares, too; relative."""
    _, _, g = _integers(bench)
    for rows in (g.reshape((9, 35)), bench.rng.standard_normal((2, 9000))):
        grad = WholeRows(bench.asarray(rows))
        for row, G, e, sq in zip(rows, *map(to_host, (grad.G, grad.e, grad.sq_norms()))):
            if not np.isfinite(row).all():
                yield holds(np.isnan(sq))
                continue
            power = max(math.frexp(v)[1] for v in row) if row.any() else 0
            whole = [round(Fraction(v) * Fraction(2) ** (20 - power)) for v in row]
            true = Fraction(2) ** (2 * power - 40) * sum(v * v for v in whole)
            yield worst(G, whole)
            yield abs(e + 20 - power)
            yield abs(Fraction(sq) / true - 1) if true else sq


@measures("exact.whole.WholeRows", "P1", "Python's integers, in another order", 0.0)
def sums_of_rows_in_whole_numbers(bench):
    _, _, g = _integers(bench)
    grad = WholeRows(bench.asarray(g))
    w, e = to_host(clip_weights(grad.sq_norms(), 0.5)) * (2.0**32 / 0.5), to_host(grad.e)
    expected = [
        sum(math.trunc(math.ldexp(w[b], int(e[b])) * v) for b, v in enumerate(column) if w[b])
        for column in to_host(grad.G).T
    ]
    return worst(grad.weighted_sum(bench.asarray(w)).reshape((35,)), expected)


@measures(
    "exact.whole.WholeOuter", "F1 N1", "explicit gradients of the same numbers: relative", 1e-5
)
def squared_norms_in_whole_numbers(bench):
    a, d, g = map(bench.asarray, _integers(bench))
    outer, rows = (to_host(each.sq_norms()) for each in (WholeOuter(a, d), WholeRows(g)))
    kept = [b for b in range(9) if b not in (3, 4, 5)]
    return worst(outer[kept] / rows[kept], np.ones(6))


@measures(
    "exact.whole.WholeOuter",
    "P1",
    "whole numbers within 1e-3 of the weighted product, never longer; in another order",
    1e-3,
)
def sums_of_factors_in_whole_numbers(bench):
    a, d, g = _integers(bench)
    w = clip_weights(WholeOuter(a, d).sq_norms(), 0.5) * (2.0**32 / 0.5)
    got = to_host(WholeOuter(bench.asarray(a), bench.asarray(d)).weighted_sum(bench.asarray(w)))
    alone = [WholeOuter(a[b : b + 1], d[b : b + 1]).weighted_sum(w[b : b + 1]) for b in range(9)]
    longest = max(float(np.linalg.norm(each)) for each in alone)
    whole = (got == np.rint(got)).all() and (got == sum(alone[::-1])).all()
    yield holds(whole and longest <= 2.0**32)
    yield from (np.abs(alone[b] - w[b] * g[b]).max() / 2.0**32 for b in range(9) if b != 5)


@measures(
    "exact.whole.WholeOuter", "P1", "compiled: integers, their squares and their truncation", 0.0
)
def compiled_truncation(bench):
    for rows in (_integers(bench)[0], bench.rng.standard_normal((2, 9000))):
        for x in (rows, rows.astype("float32")):
            defined = by_definition(x)
            (e, squares), (expected_e, expected) = cut_squares(x), cut_squares(defined)
            scale = np.where(np.isfinite(squares), bench.rng.uniform(0, 1, len(x)), 0)
            yield worst(e, expected_e)
            yield worst(np.nan_to_num(squares), np.nan_to_num(expected))
            yield worst(contributions(x, e, scale), contributions(defined, e, scale))


@measures(
    "exact.arithmetic.Exact", "F1 F2", "clip norm and noise by hand, in units of the grid", 0.0
)
def sums_and_noise_are_in_units_of_the_grid(bench):
    for clip_norm, sigma in ((0.75, 4.0), (3.0, 0.5)):
        group = ClipGroup("all", [("layer", "W")], clip_norm, sigma)
        law = Exact().noise_of_sum(group)
        yield abs(law.units - sigma * 2**32)
        yield abs(law.unit - clip_norm / 2**32)
        yield abs(float(Exact().weights(np.float64(0.5), clip_norm)) - 2**31 / clip_norm)
