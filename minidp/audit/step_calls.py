"""Tests of the noise of all calls together. Each yields (p, text), as in `step_tests`."""

import math

import numpy as np
from scipy import stats

from .step_noise import pairs
from .step_trials import Undecided

WINDOWS = (2, 3, 4, 5, 8, 16, 32, 64)  # calls in a row whose noise is added
NUMBERS = 300_000  # whose law is compared with the normal one
COMPARED = 8192  # calls


def calls(trials):
    """The noise of all calls is Gaussian, of one size and new in each."""
    numbers = np.array(trials.every)
    if not numbers.size:
        raise Undecided("no lot was released twice: see sensitivity")
    n, k = numbers.shape
    for part in trials.parts:
        law = stats.chi2(part.size).cdf
        p = stats.kstest(trials.alone[part.name], law).pvalue
        yield p, f"the size of the noise in {part.name} changes from call to call, or never does"
    yield pairs("calls", numbers[:COMPARED])
    for width in WINDOWS:
        if n < 8 * width:
            break
        sums = numbers[: n // width * width].astype(float).reshape(-1, width, k).sum(axis=1)
        total = (sums**2).sum() / width
        p = 2 * min(tail(total, sums.size) for tail in (stats.chi2.cdf, stats.chi2.sf))
        share = math.sqrt(total / sums.size)
        yield p, f"{width} calls in a row have {share:.3g} times the noise of independent ones"
    yield from _law(numbers.ravel()[:NUMBERS].astype(float))


def _law(numbers):
    """Whether normal numbers are: their law, their fourth power and the largest."""
    yield stats.kstest(numbers, "norm").pvalue, "the noise of all calls is not Gaussian"
    size, largest = len(numbers), np.abs(numbers).max()
    high = 2 * size * stats.norm.sf(largest)
    yield high, f"a number is {largest:.3g} times the stated noise: its tails are too heavy"
    low = math.exp(size * math.log1p(-2 * stats.norm.sf(largest))) if largest > 1 else 0.0
    yield low, f"no number exceeds {largest:.3g} times the stated noise: it is cut off"
    far = (np.mean(numbers**4) - 3) / math.sqrt(96 / size)
    yield 2 * stats.norm.sf(0.9 * abs(far)), "the noise has other tails than Gaussian noise"
