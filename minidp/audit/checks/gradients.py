"""Checks of the three representations of per-example gradients."""

from fractions import Fraction
from functools import partial

import numpy as np

from ...arrays import row_norms, to_host
from ...grads.forms import Explicit, Outer, OuterSum
from ...host.memory import RUN
from . import measures, worst

EXACT = 1e-12


def _forms(bench, cls, spoilt=False):
    """(gradient object of a class, its gradients by einsum): wide, tall, of one number, longer than
    a run of a blocked sum; in all, more positions than one product takes; and of no example.

    spoilt: the object holds NaN in its second example.
    """
    for i, o, positions in ((4, 3, 4), (2, 5, 4), (1, 1, 200), (1300, 1, 1)):
        for examples in (3, 0):
            count = 1 if cls is Outer else positions
            a, d = (bench.rng.uniform(-1, 1, (examples, count, n)) for n in (i, o))
            g = np.einsum("bti,bto->bio", a, d)
            if spoilt:
                a[1:2] = np.nan
            factors = {Explicit: [a[:, 0]], Outer: [a[:, 0], d[:, 0]], OuterSum: [a, d]}[cls]
            yield cls(*map(bench.asarray, factors)), factors[0] if cls is Explicit else g


def _squares(g):
    """sum v^2 of each example, in the arithmetic of its numbers."""
    return [sum(v * v for v in one.ravel().tolist()) for one in g]


def _materialised(bench, cls):
    return max(worst(grad.materialise(), g) for grad, g in _forms(bench, cls))


def _squared_norms(bench, cls):
    return max(worst(grad.sq_norms(), _squares(g)) for grad, g in _forms(bench, cls))


def _weighted_sums(bench, cls):
    for grad, g in _forms(bench, cls, spoilt=True):
        w = bench.rng.uniform(0, 1, 3)[: len(g)] * [1, 0, 1][: len(g)]
        yield worst(grad.weighted_sum(bench.asarray(w)), np.tensordot(w, np.nan_to_num(g), 1))


def _views(bench, cls):
    for grad, g in _forms(bench, cls):
        for views in (3, 1):
            got, merged = grad.sum_over_views(views), sum(g[view::views] for view in range(views))
            yield worst(got.materialise(), merged)
            yield worst(got.sq_norms(), _squares(merged))


for _cls in (Explicit, Outer, OuterSum):
    for _label, _method, _measure in (
        ("F1", "loop over numbers", _materialised),
        ("N1", "loop over numbers", _squared_norms),
        ("P1", "sum over examples, of which one weighs 0 and is not finite", _weighted_sums),
        ("V1", "loop over an example's rows", _views),
    ):
        if _cls is not Explicit or _label != "F1":
            _register = measures(
                f"grads.forms.{_cls.__name__}", _label, _method, EXACT, _measure.__name__[1:]
            )
            _register(partial(_measure, cls=_cls))


def fractions(g):
    """An array of the same numbers as fractions."""
    return np.vectorize(lambda v: Fraction(float(v)), otypes=[object])(g)


@measures("grads.forms.Explicit", "N2", "exact fractions, float32, also factored; shortfall", 0.0)
def norms_round_up(bench):
    """Infinity if one is far above the truth."""
    # beside one large term: a plain float32 sum may lose them all
    vanishing = np.full((1, 4096), 2.0**-13)
    vanishing[0, 0] = 1
    rows = [vanishing, *(bench.rng.uniform(-1, 1, (30, size)) for size in (3, 40, 600))]
    found = [(Explicit, [g.astype("float32")]) for g in rows]
    found.append((Outer, [bench.rng.uniform(-1, 1, (40, n)).astype("float32") for n in (17, 9)]))
    for cls, factors in found:
        truths = np.prod([_squares(fractions(factor)) for factor in factors], axis=0)
        uppers = to_host(cls(*map(bench.asarray, factors)).sq_norms_upper())
        for upper, truth in zip(uppers, truths):
            above = Fraction(float(upper)) / truth - 1
            yield np.inf if above > Fraction(1, 50) else max(0.0, -float(above))


@measures(
    "grads.forms.OuterSum",
    "N3",
    "by loops: the slack, and the least value where positions cancel",
    1e-3,
)
def slack_of_sums_of_outer_products(bench):
    a, d = (bench.rng.uniform(-1, 1, (3, 4, n)) for n in (6, 5))

    def grad_and_sizes():
        sizes = np.linalg.norm(a, axis=2) * np.linalg.norm(d, axis=2)
        return OuterSum(bench.asarray(a), bench.asarray(d)), sizes.sum(axis=1)

    grad, sizes = grad_and_sizes()
    allowed = sizes**2 * (6 + 5 + 4 + 32) * 2.0**-52
    slack = to_host(grad.sq_norms_upper() - grad.sq_norms()) / allowed
    yield float(np.abs(slack - 1).max()) - 0.1  # which a rounding of the difference may take
    d[:, 1::2], a[:, 1::2] = -d[:, ::2], a[:, ::2]
    grad, sizes = grad_and_sizes()
    yield worst(grad.sq_norms_upper(), (sizes / 64) ** 2)


def _single(bench):
    """(a, d) in float32 of many shapes: short and longer than a run, tall and wide, no example,
    axes not in order.
    """
    shapes = (
        (0, 3, 2),
        (4, 1, 1),
        (3, 5, RUN - 1),
        (2, 3, 3 * RUN + 5),
        (3, RUN + 1, 2),
        (1, 7, RUN),
    )
    for b, i, o in shapes:
        yield tuple(bench.rng.standard_normal((n, b)).astype("float32").T for n in (i, o))


@measures(
    "grads.forms.Outer", "F1 N1", "compiled: numbers exactly, norms as in double precision", 0.0
)
def compiled_outer_products(bench):
    for a, d in _single(bench):
        grad = Outer(a, d).form("explicit")
        yield worst(grad.materialise(), Outer(a, d).materialise())
        double = Outer(a.astype(float), d.astype(float))
        yield max(0.0, worst(grad.sq_norms(), double.sq_norms()) - 1e-5)


@measures("grads.forms.Explicit", "P1", "compiled, against float64 of the same numbers", 1e-12)
def compiled_weighted_sums(bench):
    for a, d in _single(bench):
        w = np.where(bench.rng.random(len(a)) < 0.3, 0, bench.rng.random(len(a)))
        total = bench.rng.standard_normal((a.shape[1], d.shape[1]))
        expected = total + Explicit(Outer(a, d).materialise().astype(float)).weighted_sum(w)
        a[w == 0] = np.nan
        Outer(a, d).form("explicit").add_weighted_sum(total, w)
        yield worst(total, expected)


@measures("grads.forms.Outer", "P1", "compiled blocks, of integers that float32 adds exactly", 0.0)
def compiled_blocks_of_products(bench):
    for b, i, o, rows in ((150, 70, 9, 32), (64, 65, 3, 40), (5, 2, 2, 2)):
        a, d = (bench.rng.integers(-9, 10, (b, n)).astype("float32") for n in (i, o))
        start = bench.rng.integers(-9, 10, (i, o)).astype(float)
        total, ones = bench.asarray(start.copy()), bench.asarray(np.ones(b))
        grad, expected = Outer(bench.asarray(a), bench.asarray(d)), a.astype(float).T @ d
        grad.add_weighted_sum(total, ones, rows)
        yield worst(total, start + expected)
        yield worst(grad.weighted_sum(ones, rows), expected)


@measures(
    "grads.forms.OuterSum", "N3", "compiled norms, against float64 of the same numbers", 1e-15
)
def compiled_row_norms(bench):
    sizes = 10.0 ** bench.rng.uniform(-44, 37, (40, 3, 1))
    x = (bench.rng.standard_normal((40, 3, 17)) * sizes).astype("float32")
    return worst(row_norms(x) / row_norms(x.astype(float)), np.ones((40, 3)))
