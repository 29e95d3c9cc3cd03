"""Tests that the part that a row adds depends on this row alone. Each yields (p, text), as in
`step_tests`.
"""

import math

import numpy as np
from scipy import stats

from .step_lots import releases
from .step_sums import middle_scale
from .step_trials import FAR, LOUD, Lot, Undecided

BATCHES = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 20, 24, 25, 32, 48, 50, 64, 96, 100, 128)
FAINT = 1e-3  # scale of rows before a call
MUCH = 3  # times C: a fault in every lot
OTHERS = (
    "what rows add depends on the other rows: batch statistics, a mean over the lot, sums of "
    "several rows that are clipped as one, a sum that is clipped as a whole, or a clip norm that "
    "follows the lot"
)
AT_HAND = (
    "the sum is divided by the number of rows at hand, not by the expected lot size; or the loss "
    "is a mean over the lot; or rows are dropped, or clipped together, in some lots"
)


def divisor(trials):
    """The sum is divided by the same number for every size of lot."""
    found = trials.once(releases)
    inverse = 1 / found.sizes[found.lot]
    z, _ = found.along(found.added(inverse))
    yield 2 * stats.norm.sf(abs(z)), f"rows add less in larger lots: {AT_HAND}"


def independence(trials):
    """The parts that rows add do not change with the other rows, their number, order and place, or
    with earlier calls.
    """
    found = trials.once(releases)
    n, q = found.left.shape
    squares = (found.left**2).sum(axis=1)
    p = stats.chi2.sf(squares.sum(), (n - found.fitted.shape[1]) * q)
    yield p, f"sums of random lots differ from what their rows add: {OTHERS}"
    for size in np.unique(found.sizes):
        here = squares[found.sizes == size]
        text = f"lots of {size} rows move it by other amounts than others: {OTHERS}"
        yield stats.chi2.sf(here.sum(), q * len(here)), text
        yield stats.chi2.sf(here.max(), q) * len(here), text
    for what, known in _known(found):
        z, share = found.along(known)
        yield 2 * stats.norm.sf(abs(z)), f"rows add {share:+.3g} times as much {what}: {OTHERS}"
    for share in (1, 1 / 3):
        lot = Lot(0, trials.copies, middle_scale(trials) * share)
        after = (1, lot._replace(after=LOUD)), (-1, lot._replace(after=FAINT))
        for p, text, *_ in trials.moved(0, *after):
            yield p, f"rows add other amounts after other calls: {text}"
    least = FAR * max(part.sigma for part in trials.parts) / math.sqrt(n)
    if least > MUCH:
        raise Undecided(
            f"{n} lots show a fault of {least:.2g} C in every lot; to show one of {MUCH} C, raise "
            "most_releases or give smaller rows"
        )


def _known(found):
    """Yield (text, (N, q) numbers known before each call): the movement of releases by a possible
    fault.
    """
    sizes, place, large, added = found.sizes, found.place, found.large, found.added
    rest = sizes[found.lot]
    share = np.bincount(found.lot, large, len(sizes)) / np.maximum(sizes, 1)
    for size in np.unique(sizes[sizes > 0]):
        yield f"in lots of {size} rows", added(rest == size)
    for batch in BATCHES:
        yield f"after the first {batch} of a lot", added(place >= batch)
        yield f"after batches of {batch}", added(place >= rest - rest % batch)
    yield "at the end of a lot", added(place == rest - 1)
    for what, factor in (
        ("the larger the lot is", rest),
        ("the smaller the lot is", 1 / rest),
        ("the more rows are large", share[found.lot]),
        ("the later a call is", found.lot),
        ("the later they stand in a lot", place),
        ("towards the end of a lot", place / rest),
    ):
        yield what, added(factor - np.mean(factor))
        yield what, added(large * factor)
    yield "if they are there twice", (found.counts() > 1) @ found.adds
    yield "behind a large one", added(np.roll(large, 1) & (place > 0))
