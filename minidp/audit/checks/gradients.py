"""Checks of the three representations of per-example gradients."""

from fractions import Fraction
from functools import partial

import numpy as np

from ...arrays import to_host
from ...grads.forms import Explicit, Outer, OuterSum
from ...host.memory import RUN
from ..equation import Case
from . import measures, states

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
