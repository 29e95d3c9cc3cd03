"""Tests of the parts that rows add to a release: no row adds more than the clip norm, whatever its
size. Each test yields (p, text), as in `step_tests`.
"""

import math
from itertools import product

import numpy as np
from scipy import stats

from .step_noise import fresh
from .step_trials import FEWEST, LOUD, SCALES, Lot, Undecided

NEARLY, ALMOST, HALF = 0.9, 0.75, 0.5  # of C, which rows move
EXTREME = (1e-30, 1e-6, 1e-4, 1e5, 1e8, 1e12, 1e25)  # of row 0, besides SCALES
# times the middle scale: where scales begin that are close to each other; rows of which they are
BELOW, CLOSE, SEVERAL, SIDES = 0.15, 1.15, 26, 3
COSTLY = 10_000_000  # numbers of a lot's releases, above which scales that are close are left out


def scaled_norm(trials, scale):
    """The part that row 0 times a number adds, divided by C."""
    m = trials.copies
    return max(norm for *_, norm in trials.moved(m, (1, Lot(0, m, scale)))) / m


def middle_scale(trials):
    """The smallest scale that moves the sum by much, so that some rows are clipped and others are
    not.
    """
    return next((scale for scale in SCALES if scaled_norm(trials, scale) > 0.4), 1)


def sensitivity(trials):
    """One row moves the sum by at most C: m copies by m C."""
    m = trials.copies
    for scale in (*reversed(SCALES), 0, *EXTREME):
        yield from _unclipped(trials, Lot(0, m, scale))
    for kind in ("all positive", "all negative", "all equal"):
        yield from _unclipped(trials, Lot(0, m, LOUD, 0, kind))
    for at in trials.places:
        yield from _unclipped(trials, Lot(0, m, LOUD, 0, "0 but at", at))
        yield from _unclipped(trials, Lot(0, m, 1, 0, "1000 times larger at", at))
    if m * trials.rows[0].size * trials.for_sum < COSTLY:
        scales = middle_scale(trials) * BELOW * CLOSE ** np.arange(SEVERAL)
        for row, scale in product(range(min(SIDES, m)), scales):
            yield from _unclipped(trials, Lot(0, m, scale, row))
    if trials.varies:
        yield from _unclipped(trials, Lot(0, 8 * m, LOUD))
    # integers stay in the range of make_rows, so that no larger rows show whether they are clipped
    if min(trials.reached(ALMOST if trials.integers else HALF).values()) < 0.5:
        raise Undecided(
            "no rows come near the clip norm in each part, see trained: give make_rows whose "
            "gradients are larger than it"
        )


def _unclipped(trials, lot):
    for p, text, _, norm in trials.moved(lot.rows, (1, lot)):
        # rows so large that the step's own numbers overflow are those of `finite`
        if norm < math.inf or lot.scale not in EXTREME:
            cause = (
                "rows are not clipped" if norm > 4 * lot.rows else "clipped in pieces, or to more"
            )
            yield p, f"{text}: {cause}"


def trained(trials):
    """Rows move every part by half the clip norm each, at some scale."""
    for part, p in trials.reached(HALF).items():
        yield (
            p,
            f"no rows move {part} by much: frozen weights, which are charged, a sum that is "
            "clipped as a whole, or a clip norm far above their gradients: give make_rows with "
            "larger ones",
        )


def finite(trials):
    """Rows that are not finite, or as large as any, move the sum by at most C each."""
    m, row = trials.copies, trials.rows[0]
    largest = (
        float(np.finfo(row.dtype).max / (np.abs(row).max() or 1)) if row.dtype.kind == "f" else 1
    )
    for value in (math.nan, math.inf, largest) if trials.varies else ():
        noise = fresh(trials.releases(Lot(m, 1, value), FEWEST))
        text = f"a row of {value:.3g} takes away the noise"
        if np.isfinite(noise).all():
            yield stats.chi2.cdf((noise**2).sum(), noise.size), text
        for many in (m, 1):
            yield from _left_in(trials, many, (1, Lot(m, many, value)), (-1, Lot(m)))
    for kind, at in product(
        ("NaN at", "infinite at"), trials.places if row.dtype.kind == "f" else ()
    ):
        yield from _left_in(trials, m, (1, Lot(0, m, LOUD, 0, kind, at)))


def _left_in(trials, many, *lots):
    for p, text, part, norm in trials.moved(many, *lots):
        moved = f"move {part} by {norm:.3g} C" if norm < math.inf else "make it not finite"
        what = f"{lots[0][1]} are not left out: they {moved}"
        yield p, f"{what}; claim finite only if such rows may come"
