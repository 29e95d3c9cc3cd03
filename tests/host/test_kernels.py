"""Each compiled kernel gives what its definition gives: of random numbers, infinities and NaN, of
ties, of no rows, and of axes that are not in order.
"""

import math

import numpy as np
import pytest

from minidp.arrays import row_norms, to_host
from minidp.audit.checks import bench_for, holds, worst
from minidp.compiled import only
from minidp.grads.forms import Explicit, Outer, OuterSum
from minidp.grads.sums import add_weighted_sums
from minidp.nn import LSTM, ReLU, SoftmaxCrossEntropy
from minidp.nn.window import Window
from minidp.streams import Streams

FOUND = []  # (function of a bench that yields errors, the largest that passes)
SPECIAL = np.array(
    [0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 709.7, 710, -708, -745, 1e-45, 3e-39, 88.7, -103.9]
)


def within(tolerance):
    """Add the decorated function to FOUND."""

    def add(function):
        FOUND.append(pytest.param(function, tolerance, id=function.__name__))
        return function

    return add


def _numbers(rng, *shape):
    """float32: of the usual size, of any size, and SPECIAL."""
    usual, others = rng.standard_normal((2, 999))
    x = np.concatenate([usual, others * np.exp2(rng.uniform(-40, 8, 999)), SPECIAL])
    return rng.choice(x.astype(np.float32), shape)


def _integers(rng, *shape):
    """float32 integers, whose sums and products are exact in any order."""
    return rng.integers(-9, 10, shape).astype(np.float32)


def _apart(bench, compute, *arrays):
    """How far the results of kernels are from those of definitions; 0 where all bits are equal,
    NaN like NaN.
    """
    given = [bench.asarray(x) if isinstance(x, np.ndarray) else x for x in arrays]
    found = [to_host(each) for each in compute(*given)]
    with only(np, ()):
        expected = compute(*arrays)
    for got, wanted in zip(found, expected, strict=True):
        alike = (got == wanted) & (np.signbit(got) == np.signbit(wanted))
        alike |= np.isnan(got) & np.isnan(wanted)
        finite = np.isfinite(wanted)
        same = alike.all() and got.dtype == wanted.dtype
        yield holds(alike[~finite].all())
        yield 0.0 if same else worst(got[finite], wanted[finite])


@within(0.0)
def rectified(bench):
    def compute(x, dy):
        y, cache = ReLU().forward(x)
        return y, ReLU().backward(dy, cache)

    return _apart(bench, compute, _numbers(bench.rng, 75, 40).T, _numbers(bench.rng, 40, 75))


@within(1e-6)
def losses_of_logits(bench):
    rng, loss = bench.rng, SoftmaxCrossEntropy()
    for examples, classes in ((0, 3), (140, 1), (160, 10), (110, 33)):
        z, target = _numbers(rng, examples, classes), rng.integers(-1, classes + 1, examples)
        yield from _apart(bench, loss, z, target)
        usual = rng.normal(0, 5, (99, classes)).astype(np.float32)
        yield from _apart(bench, loss, usual, rng.integers(0, classes, 99))


def _factors(rng):
    """(a, d): more and fewer than a product in float32 takes, longer than a run of a blocked sum,
    tall and wide, no example, axes not in order.
    """
    for b, i, o in ((0, 3, 2), (3, 5, 127), (150, 70, 9), (2, 3, 399), (3, 129, 2), (1, 7, 128)):
        yield _integers(rng, i, b).T, _integers(rng, o, b).T


@within(0.0)
def weighted_sums(bench):
    """Rows without weight may hold anything."""

    def compute(w, a, d, a_t, d_t, rows):
        grads = {"a": Outer(a, d), "b": Explicit(d), "c": OuterSum(a_t, d_t), "d": Outer(d, a)}
        total = {}
        add_weighted_sums(grads, w, total, rows)
        return [total[key].astype("float64") for key in grads]

    for a, d in _factors(bench.rng):
        w = bench.rng.choice([0, 0.5, 1], len(a))
        a[w == 0] = np.nan
        for rows in (0, 32):
            a_t, d_t = (_integers(bench.rng, len(a), 3, n) for n in (4, 5))
            yield from _apart(bench, compute, w, a, d, a_t, d_t, rows)


@within(1e-15)
def norms_of_rows(bench):
    sizes = 10.0 ** bench.rng.uniform(-44, 37, (40, 3, 1))
    x = (bench.rng.standard_normal((40, 3, 17)) * sizes).astype("float32")
    return _apart(bench, lambda rows: [row_norms(rows)], x)


@within(3e-15)
def norms_over_positions(bench):
    def compute(a, d):
        return [OuterSum(a, d).sq_norms_upper()]

    for b, t, i, o in ((0, 2, 1, 3), (3, 1, 2, 9), (4, 5, 70, 3)):
        a, d = _integers(bench.rng, b, t, i), _integers(bench.rng, b, t, o)
        yield from _apart(bench, compute, a, d)
        cancelling = np.concatenate([a, -a], 1), np.concatenate([d, d], 1)
        yield from _apart(bench, compute, *cancelling)


@within(1e-5)
def gates(bench):
    """Finite numbers: near a tanh of 1, rounding decides whether infinity meets 0."""

    def compute(x, W, b, dy):
        layer = LSTM(x.shape[2], len(b) // 4)
        layer.params |= {"W": W, "b": b}
        y, cache = layer.forward(x)
        return y, layer.param_grads(dy, cache)["W"].d

    for b, t, i, h in ((0, 2, 1, 3), (3, 1, 2, 1), (9, 5, 3, 40)):
        for size in (1.0, 30.0):
            shapes = (b, t, i), (i + h, 4 * h), (4 * h,), (b, t, h)
            arrays = [size * bench.rng.standard_normal(shape) for shape in shapes]
            yield from _apart(bench, compute, *(each.astype("float32") for each in arrays))


@within(0.0)
def words_and_noise(bench):
    def compute(size, start, grid):
        """Words, and the part from `start` on of a release's noise."""
        draws, place = Streams(7).noise(2), (20, start)
        out = [draws.words(size), *(np.ones(size, dtype) for dtype in ("f4", "f8"))]
        for normal in out[1:]:
            draws.add_normals(normal, 4.0, grid, place=place)
        parts = [np.linspace(-9, 9, size) / n for n in (3, 7, 11)]
        for kinds in ("f4", "f8"), ("f4", "f4", "f4"), ("f8",):  # dtypes of the parts
            sums = [part.astype(kind) for part, kind in zip(parts, kinds)]
            out.append(np.empty(size, "f4"))
            draws.add_normals(out[-1], 4.0, grid, place, sums, 1 / 600)
        return out

    for start, size in ((0, 1), (0, 8192), (511, 2), (700, 3000), (8191, 1), (40, 0)):
        for grid in (0.0, 2.0**-18):
            yield from _apart(bench, compute, size, start, grid)


def pooled(x, dy, window):
    """The maxima that windows see, their places, and what goes back through them."""
    padded = window.pad(x, -math.inf)
    y, place = window.maxima(padded, dy.shape[1:3])
    return y, place, window.spread(dy, place, x.shape)


@within(0.0)
def maxima_with_ties(bench):
    for window in (Window((2, 3), (1, 2), "valid"), Window((3, 3), (2, 2), "same")):
        x = bench.rng.integers(0, 4, (2, 6, 7, 3)).astype(np.float32)
        dy = _integers(bench.rng, 2, *window.output("images", x.shape[1:]), 3)
        yield from _apart(bench, pooled, x, dy, window)


def cut_and_folded(x, y, window):
    """What windows see, and the adjoint of that."""
    return window.patches(x).cut(slice(None)), window.fold(y, x.shape)


@within(0.0)
def patches(bench):
    """Runs below, of, and above eight numbers, and longer than a kernel copies."""
    for channels, wide in ((1, 3), (2, 4), (3, 5), (16, 4), (40, 2)):
        window = Window((2, wide), (1, 2), "same")
        x = _integers(bench.rng, 2, 5, 6, channels)
        counts = window.output("images", x.shape[1:])
        y = _integers(bench.rng, 2, *counts, 2, wide, channels)
        yield from _apart(bench, cut_and_folded, x, y, window)


@pytest.mark.parametrize("errors, most", FOUND)
def test_kernels_give_what_definitions_give(errors, most):
    with np.errstate(all="ignore"):
        found = list(errors(bench_for(errors.__name__)))
    assert found and max(found) <= most
