"""Tests of the noise of all calls together. Each yields (p, text), as in `step_tests`."""

import math

import numpy as np
from scipy import stats

from .step_lots import MOST_KEPT, releases
from .step_noise import pairs
from .step_trials import FEWEST, Undecided

WINDOWS = (2, 3, 4, 5, 8, 16, 32, 64)  # calls in a row whose noise is added
NUMBERS = 500_000  # whose law is compared with the normal one
ALMOST = 0.98  # of the variance of a call, where the fit has hardly changed it
SHARES = (1e-2, 1e-3, 1e-4)  # of right calls with as little noise
DECIDES = 7  # singular values' distance that shows a missing direction
COMPARED = 256  # coordinates in which calls are compared


def calls(trials):
    """The noise of all calls is Gaussian, has the same size and is new in each call."""
    found = trials.once(releases)
    # where rows are random, or their rounding counts, noise is not alone
    plain = found.spread**2 < 1 + 1e-3
    numbers, fitted = found.noise[plain], found.fitted[plain]
    n, k = numbers.shape
    if n < FEWEST:
        raise Undecided("the noise is not seen alone: see noise")
    own = 1 - (fitted**2).sum(axis=1)  # the variance that the fit left of each call
    for part in trials.parts:
        inside = np.isin(found.kept, np.arange(trials.size)[part.where])
        squares = (numbers[:, : len(inside)][:, inside] ** 2).sum(axis=1)
        yield from _sizes(part, squares, own, inside.sum(), found.sizes[plain] == 0)
    yield from _spectrum(numbers, own.sum())
    # the fit makes calls alike that it leaves little of
    yield pairs("calls", numbers[own > ALMOST, :COMPARED])
    for width in WINDOWS:
        if n < 8 * width:
            break
        sums, out = (_in_windows(each, width) for each in (numbers, fitted))
        freedom = k * (len(sums) - (out**2).sum() / width)
        total = (sums**2).sum() / width
        p = 2 * min(tail(total, freedom) for tail in (stats.chi2.cdf, stats.chi2.sf))
        share = math.sqrt(total / freedom)
        yield p, f"{width} calls in a row have {share:.3g} times the noise of independent ones"
    numbers = (numbers / np.sqrt(own)[:, None])[own > ALMOST]
    yield from _law(np.random.default_rng(0).permutation(numbers.ravel())[:NUMBERS])


def directions(trials):
    """Every direction among all coordinates has noise."""
    found = trials.once(releases)
    n, k = len(found.noise), len(found.kept)
    if k < trials.size or math.sqrt(n) - math.sqrt(k) < DECIDES:
        raise Undecided(
            f"noise that spares one direction of {trials.size} coordinates is looked for among "
            f"{k} of them and sums of the others, in {n} calls; it is decided for up to {MOST_KEPT}"
        )
    yield 1.0, ""


def _spectrum(numbers, freedom):
    """Test independent normal numbers (n, k) for a direction with other noise, by the theorem of
    Davidson and Szarek on singular values.
    """
    n, k = numbers.shape
    squares = np.linalg.eigvalsh(numbers.T @ numbers)
    least, most = math.sqrt(max(squares[0], 0)), math.sqrt(squares[-1])
    for far, size, what in (
        (most - math.sqrt(n) - math.sqrt(k), most, "more"),
        (math.sqrt(freedom) - math.sqrt(k) - least, least, "less"),
    ):
        text = f"one direction has {what} noise than others, {size / math.sqrt(n):.3g} times the"
        yield math.exp(-(max(far, 0) ** 2) / 2), f"{text} stated one"


def _in_windows(numbers, width):
    """Sums over runs of this many rows."""
    n, k = numbers.shape
    return numbers[: n // width * width].reshape(-1, width, k).sum(axis=1)


def _sizes(part, squares, own, k, alone):
    """Test whether each call by itself, and all together, have noise of the stated size.

    squares, own: of each call, of k numbers; and the variance of one number; alone: whether it had
    no rows, which may add to the noise
    """
    law = stats.chi2(k)
    p = stats.kstest(squares / own, law.cdf).pvalue
    yield p, f"the size of the noise in {part.name} changes from call to call, or never does"
    for share in SHARES:
        few = int((law.cdf(squares / own) < share).sum())
        text = f"{few} of {len(own)} calls have too little noise in {part.name}"
        yield stats.binom.sf(few - 1, len(own), share), text
    for every, tail in ((squares > -1, "cdf"), (alone, "sf")):
        if not every.any():
            continue
        total, n, each = squares[every].sum(), own[every].sum(), (squares / own)[every]
        far = each.min() if tail == "cdf" else each.max()
        what = "" if tail == "cdf" else "does not do what it states: "
        text = f"all calls together have {math.sqrt(total / n / k):.4g} times the stated noise"
        yield getattr(stats.chi2(k * n), tail)(total), f"{what}{text} in {part.name}"
        text = f"one call has {math.sqrt(far / k):.3g} times the stated noise in {part.name}"
        yield getattr(law, tail)(far) * len(each), f"{what}{text}, of {len(each)} calls"


def _law(numbers):
    """Test numbers for normality: their law, the largest, and their fourth power."""
    yield stats.kstest(numbers, "norm").pvalue, "the noise of all calls is not Gaussian"
    size, largest = len(numbers), np.abs(numbers).max()
    low = np.exp(size * np.log1p(-2 * stats.norm.sf(largest)))
    yield low, f"no number exceeds {largest:.3g} times the stated noise: it is cut off"
    # the fourth Hermite polynomial, on which another variance has no bearing
    far = np.mean(numbers**4 - 6 * numbers**2 + 3) / math.sqrt(24 / size)
    yield 2 * stats.norm.sf(abs(far)), "the noise has other tails than Gaussian noise"
