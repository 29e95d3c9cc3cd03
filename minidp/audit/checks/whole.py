"""Checks of gradients as whole numbers, for exact arithmetic, and of the grids of noise."""

from itertools import product

import numpy as np

from ...backend import to_host
from ...exact import integers, laws
from ...exact.arithmetic import Exact
from ...exact.whole import WholeOuter, WholeRows, contributions
from ...mechanism import ClipGroup, clip_weights
from ..equation import Case
from . import by_definition, states


def _integers(bench):
    """(a, d, g): factors of every size, rows of zeros and not finite among them; their outer
    products.
    """
    sizes = 10.0 ** bench.rng.uniform(-9, 9, (2, 9, 1))
    a, d = (bench.rng.standard_normal((9, n)) * size for n, size in zip((7, 5), sizes))
    a[3], d[4], a[5, 2] = 0, 0, np.inf
    return a, d, a[:, :, None] * d[:, None]


def _powers(e):
    """Exponents of two as numbers whose powers are exact."""
    return to_host(e).astype(float)


def _weights(grad):
    """Clip weights in units, as an example's clipping gives them; 0 for one that is not finite."""
    w = to_host(clip_weights(grad.sq_norms(), 0.5)) * (2.0**32 / 0.5)
    w[6] = 2.0**20
    return w


@states("exact.whole.WholeRows", "F1 N1", 0.0)
def rows_in_whole_numbers(bench):
    """Longer than a block of squares, too."""
    g = np.delete(_integers(bench)[2].reshape((9, 35)), 5, axis=0)
    for rows in (g, bench.rng.standard_normal((1, 4100))):
        grad = WholeRows(bench.asarray(rows))
        e = _powers(grad.e) + 20
        yield Case({"g": rows, "G": to_host(grad.G), "e": e, "sq": to_host(grad.sq_norms())})


@states("exact.whole.WholeRows", "P1", 0.0)
def sums_of_rows_in_whole_numbers(bench):
    grad = WholeRows(bench.asarray(_integers(bench)[2].reshape((9, 35))))
    w, start = _weights(grad), bench.rng.integers(-9, 9, 35).astype(float)
    total = bench.asarray(start.copy())
    grad.add_weighted_sum(total, bench.asarray(w))
    given = {"G": to_host(grad.G), "e": _powers(grad.e) + 20, "w": w, "total": start}
    yield Case(given, {"total": to_host(total)})


def _outer(bench, a, d):
    """(gradients, what the equations name of them), of both dtypes, by definition and compiled."""
    for dtype, given in product(("float32", "float64"), (by_definition, np.asarray)):
        grad = WholeOuter(*(bench.asarray(given(x.astype(dtype))) for x in (a, d)))
        found = {"a": grad.a, "d": grad.d, "sq": grad.sq_norms(), "e": grad.e, "f": grad.f}
        found["A"] = contributions(grad.a, grad.e, grad.e * 0.0 + 1)
        found["D"] = contributions(grad.d, grad.f, grad.f * 0.0 + 1)
        yield grad, {name: to_host(x).astype(float) for name, x in found.items()}


@states("exact.whole.WholeOuter", "F1 N1", 1e-14)
def factors_in_whole_numbers(bench):
    a, d, _ = _integers(bench)
    for b in (*range(5), 8):
        yield from (Case(found) for _, found in _outer(bench, a[b : b + 1], d[b : b + 1]))


@states("exact.whole.WholeOuter", "P1", 0.0)
def sums_of_products_in_whole_numbers(bench):
    a, d, _ = _integers(bench)
    a[6], d[6] = np.arange(7) == 2, np.arange(5) == 3  # products that are whole without the margin
    start = bench.rng.integers(-9, 9, (7, 5)).astype(float)
    for grad, found in _outer(bench, a, d):
        w, total = _weights(grad), bench.asarray(start.copy())
        grad.add_weighted_sum(total, bench.asarray(w))
        yield Case({**found, "w": w, "total": start}, {"total": to_host(total)})


@states("exact.arithmetic.Exact", "F1 F2", 0.0)
def sums_and_noise_are_in_units_of_the_grid(bench):
    for C, sigma in ((0.75, 4.0), (3.0, 0.5)):
        law = Exact().noise_of_sum(ClipGroup("all", [("layer", "W")], C, sigma))
        v = Exact().weights(np.float64(0.7), C)
        given = {"w": 0.7, "C": C, "v": v, "sigma": sigma, "units": law.units, "g": law.unit}
        yield Case(given)


@states("exact.laws.noise_grid", "F1", 0.0)
def grids_of_noise(bench):
    for std in (0.0, 1e-300, 1e-30, 0.5, 1 - 2.0**-53, 1.0, 3.7, 4.0, 1e30):
        yield Case({"noise_std": std, "g": laws.noise_grid(std)})


@states("exact.integers.integer_grid", "F1", 0.0)
def grids_of_integers(bench):
    for quantum in (1.0, 2.0**-32):
        for std in (1e-3, 0.5, 1 - 2.0**-53, 1.0, 3.7, 4.0, 1e3, 2.0**33):
            given = {"noise_std": std, "quantum": quantum, "g": integers.integer_grid(std, quantum)}
            yield Case(given)
