"""Checks of the three representations of per-example gradients."""

from fractions import Fraction

import numpy as np

from ...arrays import to_host
from ...grads.forms import Explicit, Outer, OuterSum
from ...layers.embedding import RowsGrad
from ..equation import Case
from . import measures, states
from .exact_values import sq_norms

EXACT = 1e-12


def _factors(rng, kind, rows, i, o, positions):
    """{name in the card: factor} of the gradients of some rows of examples or views."""
    inside = (positions,) if kind is OuterSum else ()
    factors = [rng.uniform(-1, 1, (*rows, *inside, n)) for n in (i, o)]
    return {"g": factors[0]} if kind is Explicit else dict(zip("ad", factors))


def _norms_and_sums(bench, kind, *sizes):
    given = _factors(bench.rng, kind, (3,), *sizes)
    grad = kind(*map(bench.asarray, given.values()))
    w = bench.rng.uniform(0, 1, 3) * [1, 0, 1]
    spoilt = kind(*(bench.asarray(np.where(w, each.T, np.nan).T) for each in given.values()))
    total, sq = to_host(spoilt.weighted_sum(bench.asarray(w))), to_host(grad.sq_norms())
    return Case({"g": to_host(grad.materialise()), **given, "sq": sq, "w": w, "total": total})


@states("grads.forms.Explicit", "N1 P1", EXACT, case=Explicit)
@states("grads.forms.Outer", "F1 N1 P1", EXACT, case=Outer)
@states("grads.forms.OuterSum", "F1 N1 P1", EXACT, case=OuterSum)
def gradients_of_three_examples(bench, case):
    """The last are wide and long enough for several runs of a blocked sum."""
    for sizes in ((4, 3, 5), (2, 5, 4), (1300, 1, 1)):
        yield _norms_and_sums(bench, case, *sizes)


@states("grads.forms.OuterSum", "P1", EXACT)
def more_positions_than_one_product_takes(bench):
    yield _norms_and_sums(bench, OuterSum, 1, 1, 200)


@states("grads.forms.Explicit", "V1", EXACT, case=Explicit)
@states("grads.forms.Outer", "V1", EXACT, case=Outer)
@states("grads.forms.OuterSum", "V1", EXACT, case=OuterSum)
def two_views_of_three_examples(bench, case):
    for sizes in ((4, 3, 5), (2, 5, 4)):
        given = _factors(bench.rng, case, (3, 2), *sizes)
        flat = (each.reshape((6, *each.shape[2:])) for each in given.values())
        grad = case(*map(bench.asarray, flat))
        merged = to_host(grad.sum_over_views(2).materialise())
        yield Case({"g": to_host(grad.materialise()), **given, "merged": merged})


def _of_a_table(bench, width, left, bound=False):
    x, w = np.array([[2, 0, 2, -1], [1, 1, 1, 3]]), bench.rng.uniform(0, 1, 2)
    d = bench.rng.uniform(-1, 1, (2, 4, width))
    d[0, 1], d[0, 2] = left * d[0, 1], (left - 1) * d[0, 0]
    if bound:
        x, d = x[:1], d[:1]
    grad = RowsGrad(bench.asarray(x), bench.asarray(d), 4)
    d[0, 3] = 0  # of an id that has no row
    given = {"id": x, "d": d, "w": w, "sq": to_host(grad.sq_norms())}
    if bound:
        upper = to_host(grad.sq_norms_upper())
        if left:
            most = np.linalg.norm(d[0], axis=1).sum()
            given["n"] = np.rint((upper - given["sq"])[0] / most**2 * 2.0**52)
        return Case({**given, "upper": upper, "J": width, "T": 4, "eps": 2.0**-52})
    total = to_host(grad.weighted_sum(bench.asarray(w)))
    return Case({**given, "total": total}, ranges={"v": range(4)})


@states("nn.embedding.RowsGrad", "N1 P1")
def rows_that_meet(bench):
    return [_of_a_table(bench, 3, 1.0)]


@states("nn.embedding.RowsGrad", "N3", tolerance=1e-13)
def rows_that_cancel(bench):
    """Gradients so wide that the slack shows n, and gradients whose positions all cancel."""
    return [_of_a_table(bench, 20_000, left, bound=True) for left in (0.0, 0.03)]


@states("grads.forms.Explicit", "N2", tolerance=1e-14)
def norms_that_are_rounded_up(bench):
    """So many numbers that the slack shows."""
    grad = Explicit(bench.asarray(np.ones((1, 2**23), "float32")))
    given = {"sq": to_host(grad.sq_norms()), "upper": to_host(grad.sq_norms_upper())}
    yield Case({**given, "n": 2**23 + 32, "eps": 2.0**-52})


@measures("grads.forms.Explicit", "N2", "exact fractions, float32, also factored; shortfall", 0.0)
def norms_round_up(bench):
    """Infinity if a bound is far above the truth."""
    # beside one large term: a plain float32 sum may lose them all
    vanishing = np.full((1, 4096), 2.0**-13)
    vanishing[0, 0] = 1
    rows = [vanishing, *(bench.rng.uniform(-1, 1, (30, size)) for size in (3, 40, 600))]
    found = [(Explicit, [g.astype("float32")]) for g in rows]
    found.append((Outer, [bench.rng.uniform(-1, 1, (40, n)).astype("float32") for n in (17, 9)]))
    for cls, factors in found:
        truths = np.prod([sq_norms(factor) for factor in factors], axis=0)
        uppers = to_host(cls(*map(bench.asarray, factors)).sq_norms_upper())
        for upper, truth in zip(uppers, truths):
            above = Fraction(float(upper)) / truth - 1
            yield np.inf if above > Fraction(1, 50) else max(0.0, -float(above))


@states("grads.forms.OuterSum", "N3")
def norms_of_sums_that_cancel(bench):
    """For gradients so wide that the slack shows n, and for gradients whose positions all
    cancel.
    """
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
