"""Checks of the three representations of per-example gradients."""

from fractions import Fraction
from functools import partial

import numpy as np

from ...arrays import row_norms, to_host
from ...grads.forms import Explicit, Outer, OuterSum
from ...host.memory import RUN
from ..equation import Case
from . import measures, states, worst

EXACT = 1e-12


def _cases(bench, cls, views, shapes):
    """Gradients of three examples, which have some views or are known by their rows alone (0)."""
    for i, o, positions in shapes:
        rows = (3, views) if views else (3,)
        inside = (positions,) if cls is OuterSum else ()
        factors = [bench.rng.uniform(-1, 1, (*rows, *inside, n)) for n in (i, o)]
        factors = factors[:1] if cls is Explicit else factors
        given = dict(zip("g" if cls is Explicit else "ad", factors))
        flat = [array.reshape((-1, *array.shape[len(rows) :])) for array in factors]
        grad = cls(*map(bench.asarray, flat))
        if views:
            merged = grad.sum_over_views(views)
            given |= {"merged": to_host(merged.materialise())}
        else:
            w = bench.rng.uniform(0, 1, 3) * [1, 0, 1]
            spoilt = cls(*(bench.asarray(np.where(w, array.T, np.nan).T) for array in flat))
            total = to_host(spoilt.weighted_sum(bench.asarray(w)))
            given |= {"sq": to_host(grad.sq_norms()), "w": w, "total": total}
        yield Case({"g": to_host(grad.materialise()), **given})


# wide and long enough for several runs of a blocked sum; more positions than one product takes
SHAPES, LONG = [(4, 3, 5), (2, 5, 4), (1300, 1, 1)], [(1, 1, 200)]

for _cls in (Explicit, Outer, OuterSum):
    _card, _each = f"grads.forms.{_cls.__name__}", "N1" if _cls is Explicit else "F1 N1"
    for _labels, _views, _shapes in (
        (f"{_each} P1", 0, SHAPES),
        ("V1", 2, SHAPES[:2]),
        ("P1", 0, LONG),
    ):
        states(_card, _labels, EXACT, f"gradients of {_cls.__name__}")(
            partial(_cases, cls=_cls, views=_views, shapes=_shapes)
        )


@states("grads.forms.Explicit", "N2")
def norms_that_are_rounded_up(bench):
    """Also squares from compiled float32, which lose enough to be seen."""
    g = bench.asarray(bench.rng.uniform(-1, 1, (3, 5)))
    for grad, n, eps in (
        (Explicit(g), 5 + 32, 2.0**-52),
        (Explicit(g, Explicit(g).sq_norms()), RUN + 8, 2.0**-23),
    ):
        given = {"sq": to_host(grad.sq_norms()), "upper": to_host(grad.sq_norms_upper())}
        yield Case({**given, "n": n, "eps": eps})


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
        truths = np.prod([(fractions(factor) ** 2).sum(axis=1) for factor in factors], axis=0)
        uppers = to_host(cls(*map(bench.asarray, factors)).sq_norms_upper())
        for upper, truth in zip(uppers, truths):
            above = Fraction(float(upper)) / truth - 1
            yield np.inf if above > Fraction(1, 50) else max(0.0, -float(above))


@states("grads.forms.OuterSum", "N3")
def norms_of_sums_that_cancel(bench):
    """Of gradients so wide that their slack tells n; and where all positions cancel."""
    for left, width in ((0.0365, 20_000), (0.0, 6)):
        a, d = (bench.rng.uniform(-1, 1, (2, 3, n)) for n in (width, 5))
        a[:, 1], d[:, 1], d[:, 2] = a[:, 0], (left - 1) * d[:, 0], left / 30 * d[:, 2]
        grad = OuterSum(bench.asarray(a), bench.asarray(d))
        sq, upper = to_host(grad.sq_norms()), to_host(grad.sq_norms_upper())
        given = {"sq": sq, "upper": upper, "eps": 2.0**-52, "a": a, "d": d}
        if left:
            most = (np.linalg.norm(a, axis=2) * np.linalg.norm(d, axis=2)).sum(axis=1)
            given["n"] = np.rint(((upper - sq) / most**2).max() * 2.0**52)
        yield Case({**given, "I": width, "O": 5, "T": 3})


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
