"""Tests of what rows add to a release: no row more than the clip norm, whatever its size. Each
yields (p, text), as in `step_tests`.
"""

import math
from itertools import product

import numpy as np
from scipy import stats

from .step_noise import fresh
from .step_trials import FEWEST, LOUD, SCALES, Lot, Undecided

NEARLY = 0.9  # of C, which rows whose gradients are clipped to it move
EXTREME = (1e-30, 1e-6, 1e-4, 1e5, 1e8, 1e12, 1e25)  # of row 0, besides SCALES
# scales in all; where row 0 adds so much of C, scales are tried close to each other, from below
COARSE, NEAR, BELOW, CLOSE, SEVERAL = 21, 0.5, 0.7, 1.15, 15
SIDES = 4  # rows of which those are tried
COSTLY = 10_000_000  # numbers of a lot's releases, above which scales that are close are left out


def scaled_norm(trials, scale):
    """What row 0 times a number adds, over C."""
    m = trials.copies
    return max(norm for *_, norm in trials.moved(m, (1, Lot(0, m, scale)))) / m


def sensitivity(trials):
    """One row moves the sum by at most C: m copies by m C."""
    m = trials.copies
    for scale in (*reversed(SCALES), 0, *EXTREME):
        yield from _unclipped(trials, m, (1, Lot(0, m, scale)))
    if m * trials.rows[0].size * trials.for_sum < COSTLY:
        scales = np.geomspace(SCALES[0], LOUD, COARSE)
        begin = next((s for s in scales if scaled_norm(trials, s) > NEAR), 1) * BELOW
        for row, scale in product(range(min(SIDES, m)), begin * CLOSE ** np.arange(SEVERAL)):
            yield from _unclipped(trials, m, (1, Lot(0, m, scale, row)))
    if trials.varies:
        yield from _unclipped(trials, 8 * m, (1, Lot(0, 8 * m, LOUD)))
    if min(trials.reached.values()) < 0.5:
        raise Undecided("no rows come near the clip norm in each part: see trained")
    if trials.integers:
        yield from _integers(trials)


def _integers(trials):
    """Raise Undecided where integer rows are too small for what is to be seen."""
    m = trials.copies
    for part in trials.parts:
        found = (trials.moved(m, (1, Lot(0, m, scale))) for scale in SCALES)
        most = max(norm for each in found for *_, name, norm in each if name == part.name)
        if most < NEARLY * m:
            raise Undecided(
                f"integer rows in the range of make_rows move {part.name} by {most / m:.2g} C "
                "each at most, so whether larger ones are clipped is not known: give make_rows "
                "whose gradients are larger than the clip norm"
            )
    yield 1.0, ""


def _unclipped(trials, rows, *lots):
    for p, text, _, norm in trials.moved(rows, *lots):
        cause = "rows are not clipped" if norm > 4 * rows else "clipped in pieces, or to more"
        yield p, f"{text}: {cause}"


def trained(trials):
    """Rows move every part by half the clip norm each, at some scale."""
    for part, p in trials.reached.items():
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
    for value in (math.nan, math.inf, largest):
        noise = fresh(trials.releases(Lot(m, 1, value), FEWEST))
        text = f"a row of {value:.3g} takes away the noise"
        if np.isfinite(noise).all():
            yield stats.chi2.cdf((noise**2).sum(), noise.size), text
        for many in (m, 1):
            lots = (1, Lot(m, many, value)), (-1, Lot(m))
            for p, _, part, norm in trials.moved(many, *lots):
                moved = f"move {part} by {norm:.3g} C" if norm < math.inf else "make it not finite"
                yield (
                    p,
                    f"{many} rows of {value:.3g} are not left out: they {moved}; claim finite "
                    "only if such rows may come",
                )
