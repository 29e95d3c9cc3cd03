"""Checks of the three representations of per-example gradients."""

import math
from fractions import Fraction

import numpy as np

from ...backend import row_norms, to_host
from ...exact.whole import WholeOuter, WholeRows, contributions, cut_squares
from ...grads.forms import Explicit, Outer, OuterSum
from ...host.memory import RUN
from ...mechanism import clip_weights
from . import by_definition, measures, worst

EXACT = 1e-12


def _forms(bench, of, spoilt=False):
    """(gradient object, its gradients by einsum) of the class `of`: wide, tall, of one number,
    none.

    spoilt: the object holds NaN in its second example.
    """
    for i, o, positions in (
        (4, 3, 4),
        (2, 5, 4),
        (1, 1, 200),
    ):  # in all, more positions than one product takes
        for cls, count in ((Outer, 1), (OuterSum, positions)):
            a, d = (bench.rng.uniform(-1, 1, (3, count, n)) for n in (i, o))
            g = np.einsum("bti,bto->bio", a, d)
            if cls is Outer:
                a, d = a[:, 0], d[:, 0]
            if spoilt:
                a[1] = np.nan
            grad = cls(bench.asarray(a), bench.asarray(d))
            if of is cls:
                yield grad, g
                yield cls(bench.asarray(a[:0]), bench.asarray(d[:0])), g[:0]
            elif of is Explicit:
                yield grad.form("explicit"), g
    if of is Explicit:
        long = bench.rng.uniform(-1, 1, (3, 1300))  # longer than a run of the blocked sum
        held = long.copy()
        if spoilt:
            held[1, 0] = np.inf
        yield Explicit(bench.asarray(held)), long


def _squares(g):
    """sum v^2 of each example, in the arithmetic of its numbers."""
    return [sum(v * v for v in one.ravel().tolist()) for one in g]


def _register(cls):
    card = f"grads.forms.{cls.__name__}"

    if cls is not Explicit:

        @measures(card, "F1", method="loop over numbers", tolerance=EXACT)
        def materialised(bench):
            return max(worst(grad.materialise(), g) for grad, g in _forms(bench, cls))

    @measures(card, "N1", method="loop over numbers", tolerance=EXACT)
    def squared_norms(bench):
        return max(worst(grad.sq_norms(), _squares(g)) for grad, g in _forms(bench, cls))

    @measures(
        card,
        "P1",
        method="loop over examples, of which one weighs 0 and is not finite",
        tolerance=EXACT,
    )
    def weighted_sums(bench):
        w = bench.rng.uniform(0, 1, 3) * [1, 0, 1]
        return max(
            worst(
                grad.weighted_sum(bench.asarray(w[: len(g)])),
                sum((w[b] * g[b] for b in range(len(g))), np.zeros(g.shape[1:])),
            )
            for grad, g in _forms(bench, cls, spoilt=True)
        )

    @measures(card, "V1", method="loop over an example's rows", tolerance=EXACT)
    def views_are_summed(bench):
        for grad, g in _forms(bench, cls):
            for views in (3, 1):
                got, merged = (
                    grad.sum_over_views(views),
                    sum(g[view::views] for view in range(views)),
                )
                yield from (
                    worst(got.materialise(), merged),
                    worst(got.sq_norms(), _squares(merged)),
                )


for _cls in (Explicit, Outer, OuterSum):
    _register(_cls)


def fractions(g):
    """An array of the same numbers as fractions."""
    return np.vectorize(lambda v: Fraction(float(v)), otypes=[object])(g)


@measures(
    "grads.forms.Explicit",
    "N2",
    method="exact fractions, float32, also factored; shortfall",
    tolerance=0.0,
)
def norms_round_up(bench):
    """Infinity if one is far above the truth."""
    # beside one large term: a plain float32 sum may lose them all
    vanishing = np.full((1, 4096), 2.0**-13)
    vanishing[0, 0] = 1
    found = []
    for g in (vanishing, *(bench.rng.uniform(-1, 1, (30, size)) for size in (3, 40, 600))):
        g = g.astype("float32")
        found.append((Explicit(bench.asarray(g)), _squares(fractions(g))))
    a, d = (bench.rng.uniform(-1, 1, (40, n)).astype("float32") for n in (17, 9))
    exact = [p * q for p, q in zip(_squares(fractions(a)), _squares(fractions(d)))]
    found.append((Outer(bench.asarray(a), bench.asarray(d)), exact))
    for grad, exact in found:
        for upper, truth in zip(to_host(grad.sq_norms_upper()), exact):
            above = Fraction(float(upper)) / truth - 1
            yield np.inf if above > Fraction(1, 50) else max(0.0, -float(above))


@measures(
    "grads.forms.OuterSum",
    "N3",
    method="by loops: the slack, and the least value where positions cancel",
    tolerance=1e-3,
)
def slack_of_sums_of_outer_products(bench):
    a, d = (bench.rng.uniform(-1, 1, (3, 4, n)) for n in (6, 5))
    grad = OuterSum(bench.asarray(a), bench.asarray(d))

    def sizes():
        return np.array(
            [
                sum(np.linalg.norm(p[t]) * np.linalg.norm(q[t]) for t in range(4))
                for p, q in zip(a, d)
            ]
        )

    slack = to_host(grad.sq_norms_upper() - grad.sq_norms()) / (
        sizes() ** 2 * (6 + 5 + 4 + 32) * 2.0**-52
    )
    d[:, 1::2], a[:, 1::2] = -d[:, ::2], a[:, ::2]
    return max(
        float(np.abs(slack - 1).max()) - 0.1,  # which a rounding of the difference may take
        worst(OuterSum(bench.asarray(a), bench.asarray(d)).sq_norms_upper(), (sizes() / 64) ** 2),
    )


def _single(bench):
    """(a, d) in float32 of many shapes: short and longer than a run, tall and wide, no example,
    axes not in order.
    """
    for b, i, o in (
        (0, 3, 2),
        (4, 1, 1),
        (3, 5, RUN - 1),
        (2, 3, 3 * RUN + 5),
        (3, RUN + 1, 2),
        (1, 7, RUN),
    ):
        yield tuple(bench.rng.standard_normal((n, b)).astype("float32").T for n in (i, o))


@measures(
    "grads.forms.Outer",
    "F1",
    "N1",
    tolerance=0.0,
    method="compiled: numbers exactly, norms as in double precision",
)
def compiled_outer_products(bench):
    for a, d in _single(bench):
        grad = Outer(a, d).form("explicit")
        yield worst(grad.materialise(), Outer(a, d).materialise())
        yield max(
            0.0, worst(grad.sq_norms(), Outer(a.astype(float), d.astype(float)).sq_norms()) - 1e-5
        )


@measures(
    "grads.forms.Explicit",
    "P1",
    method="compiled, against float64 of the same numbers",
    tolerance=1e-12,
)
def compiled_weighted_sums(bench):
    for a, d in _single(bench):
        w = np.where(bench.rng.random(len(a)) < 0.3, 0, bench.rng.random(len(a)))
        total = bench.rng.standard_normal((a.shape[1], d.shape[1]))
        expected = total + Explicit(Outer(a, d).materialise().astype(float)).weighted_sum(w)
        a[w == 0] = np.nan
        Outer(a, d).form("explicit").add_weighted_sum(total, w)
        yield worst(total, expected)


@measures(
    "grads.forms.Outer",
    "P1",
    method="compiled blocks, of integers that float32 adds exactly",
    tolerance=0.0,
)
def compiled_blocks_of_products(bench):
    for b, i, o, rows in ((150, 70, 9, 32), (64, 65, 3, 40), (5, 2, 2, 2)):
        a, d = (bench.rng.integers(-9, 10, (b, n)).astype("float32") for n in (i, o))
        start = bench.rng.integers(-9, 10, (i, o)).astype(float)
        total, ones = bench.asarray(start.copy()), bench.asarray(np.ones(b))
        grad, expected = Outer(bench.asarray(a), bench.asarray(d)), a.astype(float).T @ d
        grad.add_weighted_sum(total, ones, rows)
        yield from (worst(total, start + expected), worst(grad.weighted_sum(ones, rows), expected))


@measures(
    "grads.forms.OuterSum",
    "N3",
    method="compiled norms, against float64 of the same numbers",
    tolerance=1e-15,
)
def compiled_row_norms(bench):
    x = (
        bench.rng.standard_normal((40, 3, 17)) * 10.0 ** bench.rng.uniform(-44, 37, (40, 3, 1))
    ).astype("float32")
    return worst(row_norms(x) / row_norms(x.astype(float)), np.ones((40, 3)))


def _integers(bench):
    """(a, d, g): factors of every size, rows of zeros and not finite among them; their outer
    products.
    """
    a, d = (
        bench.rng.standard_normal((9, n)) * 10.0 ** bench.rng.uniform(-9, 9, (9, 1)) for n in (7, 5)
    )
    a[3], d[4], a[5, 2] = 0, 0, np.inf
    return a, d, a[:, :, None] * d[:, None]


@measures(
    "exact.whole.WholeRows", "F1", "N1", method="Python's integers and fractions", tolerance=1e-15
)
def rows_in_whole_numbers(bench):
    """Longer than a block of squares, too; relative."""
    _, _, g = _integers(bench)
    for rows in (g.reshape((9, 35)), bench.rng.standard_normal((2, 9000))):
        grad = WholeRows(bench.asarray(rows))
        for row, G, e, sq in zip(rows, to_host(grad.G), to_host(grad.e), to_host(grad.sq_norms())):
            if not np.isfinite(row).all():
                yield 0.0 if np.isnan(sq) else np.inf
                continue
            power = max(math.frexp(v)[1] for v in row) if row.any() else 0
            whole = [round(Fraction(v) * Fraction(2) ** (20 - power)) for v in row]
            true = Fraction(2) ** (2 * power - 40) * sum(v * v for v in whole)
            yield from (
                worst(G, whole),
                abs(e + 20 - power),
                abs(Fraction(sq) / true - 1) if true else sq,
            )


@measures(
    "exact.whole.WholeRows", "P1", method="Python's integers, in another order", tolerance=0.0
)
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
    "exact.whole.WholeOuter",
    "F1",
    "N1",
    method="explicit gradients of the same numbers: relative",
    tolerance=1e-5,
)
def squared_norms_in_whole_numbers(bench):
    a, d, g = _integers(bench)
    kept = [b for b in range(9) if b not in (3, 4, 5)]
    outer, rows = (
        to_host(each.sq_norms())[kept]
        for each in (WholeOuter(bench.asarray(a), bench.asarray(d)), WholeRows(bench.asarray(g)))
    )
    return worst(outer / rows, np.ones(6))


@measures(
    "exact.whole.WholeOuter",
    "P1",
    method="whole numbers within 1e-3 of the weighted product, never longer; in another order",
    tolerance=1e-3,
)
def sums_of_factors_in_whole_numbers(bench):
    a, d, g = _integers(bench)
    w = clip_weights(WholeOuter(a, d).sq_norms(), 0.5) * (2.0**32 / 0.5)
    got = to_host(WholeOuter(bench.asarray(a), bench.asarray(d)).weighted_sum(bench.asarray(w)))
    alone = [WholeOuter(a[b : b + 1], d[b : b + 1]).weighted_sum(w[b : b + 1]) for b in range(9)]
    longest = max(float(np.linalg.norm(each)) for each in alone)
    if longest > 2.0**32 or (got != np.rint(got)).any() or (got != sum(alone[::-1])).any():
        return np.inf
    return max(
        float(np.abs(each - w[b] * g[b]).max()) / 2.0**32 for b, each in enumerate(alone) if b != 5
    )


@measures(
    "exact.whole.WholeOuter",
    "P1",
    method="compiled: integers, their squares and their truncation",
    tolerance=0.0,
)
def compiled_truncation(bench):
    for rows in (_integers(bench)[0], bench.rng.standard_normal((2, 9000))):
        for x in (rows, rows.astype("float32")):
            e, squares = cut_squares(x)
            scale = np.where(np.isfinite(squares), bench.rng.uniform(0, 1, len(x)), 0)
            defined = by_definition(x)
            expected_e, expected_squares = cut_squares(defined)
            yield from (
                worst(e, expected_e),
                worst(np.nan_to_num(squares), np.nan_to_num(expected_squares)),
            )
            yield worst(contributions(x, e, scale), contributions(defined, e, scale))
