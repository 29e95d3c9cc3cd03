"""Tests of a step's noise: its size in each call and coordinate, its law, and dependence between
numbers. Each yields (p, text), as in `step_tests`.
"""

import math

import numpy as np
from scipy import stats

from .step_trials import FEWEST, LOUD, SPREAD, Lot, Undecided

FINE = 4e-6  # of the noise: numbers this close are taken for the same one
POOLED = 200_000  # numbers among which equal ones are looked for
APART = 30_000  # numbers that tell the noise from what rows add at random
SEEN = 1e-4  # chance of noise that varies as much as with rows that are random


def noises(trials):
    """{rows: (lot, releases)} of the lots for the tests of noise; sets `trials.random`."""
    lots = {"few": trials.quiet}
    if trials.varies:
        lots["many"] = Lot(0, 2 * trials.copies)
        lots["loud"] = Lot(0, 1, LOUD)
        lots["zero"] = Lot(0, trials.copies, 0)
    found = {}
    for rows, lot in lots.items():
        # more where rows that are random have to be told from noise
        told = rows == "many" or (rows == "few" and lot.rows)
        n = max(trials.for_law, min(SPREAD, APART // trials.size)) if told else trials.for_law
        found[rows] = lot, np.array(list(trials.releases(lot, n)))
    numbers = [fresh(each) for _, each in found.values()]
    few, *excess = (stats.chi2.sf((each**2).sum(), each.size) for each in numbers)
    # noise that is larger in an empty lot too is no random row's
    trials.random = min([few, *excess]) < SEEN and (few > SEEN or trials.quiet.rows > 0)
    return found


def noise(trials):
    """The noise has the stated size in every coordinate and every call, for all rows; it is new
    each time, and Gaussian.
    """
    found = trials.once(noises)
    for rows, (lot, released) in found.items():
        yield from _sizes(trials, rows, lot.rows, released)
    if trials.random:
        trials.remarks["noise"] = (
            "what rows add is random, as by dropout or augmentation: it varies by less than the "
            "clip norm of each row, which is no fault"
        )
        if trials.quiet.rows:
            raise Undecided(
                "what rows add is random and the step takes no empty lot, so the noise is not "
                "seen alone: check it without dropout and augmentation"
            )
    released = found["few"][1]
    # where rows are there too, what they add is no noise
    around = released.mean(axis=0) if trials.quiet.rows else 0
    yield _copies(released - around, trials.spacing)
    mean, variances = trials.mean(Lot(trials.copies), max(trials.for_sum, 2 * FEWEST))
    for part, variance in zip(trials.parts, variances):
        apart = (trials.first - mean)[part.where] / math.sqrt(1 + variance)
        p = stats.chi2.cdf(apart @ apart, part.size)
        share = math.sqrt(apart @ apart / part.size)
        yield p, f"the very first call has {share:.3g} times the stated noise in {part.name}"


def fresh(releases):
    """(n - 1, d) independent normal numbers: each release minus the mean of the releases before
    it.
    """
    releases = np.array(list(releases))
    n = np.arange(1, len(releases))[:, None]
    return (releases[1:] - np.cumsum(releases[:-1], axis=0) / n) * np.sqrt(n / (n + 1))


def _sizes(trials, rows, count, released):
    """Test whether the noise of releases has variance 1 in each part and in each coordinate, or
    more if `count` random rows add to it.
    """
    found, center = fresh(released), released.mean(axis=0)
    sums, n = (found**2).sum(axis=0), len(found)
    for part in trials.parts:
        total, freedom = sums[part.where].sum(), n * part.size
        share = math.sqrt(total / freedom)
        text = f"{part.name}: the noise is {share:.3g} times the stated one on {rows} rows"
        cause = (
            "too little, averaged over batches, divided by the rows at hand, or the same every time"
        )
        yield stats.chi2.cdf(total, freedom), f"{text}: {cause}"
        size, clip = trials.stated.expected_lot_size, trials.stated.clip_norm
        more = (
            f"too much (1.41 if added twice, {size:g} if not divided, or by the rows at hand, "
            f"{1 / clip:.3g} if not times the clip norm)"
        )
        # rows that are random add so much in each call at most, in one direction at worst: each
        # row's mean and what varies are together within the clip norm
        length = math.sqrt(max(0.0, (center[part.where] ** 2).sum() - part.size / (n + 1)))
        certain = max(0.0, length - 6 * math.sqrt((1 + count / part.sigma**2) / n))
        most = count / part.sigma**2 - certain**2 / max(1, count)
        most = max(0.0, most) + (trials.rounding * length) ** 2
        mean, variance = freedom + n * most, 2 * (freedom + 2 * n * most + n * most**2)
        p = stats.gamma.sf(total, mean**2 / variance, scale=variance / mean)
        yield p, f"does not do what it states: {text}: {more}"
    least = f"{math.sqrt(sums.min() / n):.3g} times the stated noise on {rows} rows"
    frozen = "" if sums.min() else ": frozen weights, which are charged and not trained"
    p = stats.chi2.cdf(sums.min(), n) * trials.size
    yield p, f"coordinate {sums.argmin()} has {least}{frozen}"


def pairs(what, numbers):
    """Test whether two rows of independent normal numbers (k, n) are multiples of each other."""
    k, n = numbers.shape
    if k < 2 or n < 2:  # any two numbers are multiples of each other
        return 1.0, ""
    lengths = np.linalg.norm(numbers, axis=1, keepdims=True)
    # of few numbers, many cosines are nearly 1
    rows = (numbers / np.where(lengths > 0, lengths, 1)).astype(np.float32 if n > 32 else float)
    size = np.triu(np.abs(rows @ rows.T), 1)
    i, j = np.unravel_index(size.argmax(), size.shape)
    # the square of a cosine of independent directions
    p = stats.beta.sf(min(float(size[i, j]), 1) ** 2, 0.5, (n - 1) / 2) * k * (k - 1) / 2
    return p, f"{what} {i} and {j} have the same noise, but for sign and factor"


def _copies(released, spacing):
    """Test whether numbers repeat, in any order, at any place and with either sign."""
    sizes = np.sort(np.abs(released.ravel()[:POOLED]))
    sizes = sizes[sizes > 0]
    sizes = sizes / math.sqrt(np.mean(sizes**2) or 1.0)
    n, apart = len(sizes), np.diff(sizes)
    # numbers on a grid, which may be public, are as close as that allows
    cell = max(FINE, 64 * spacing, 16 * apart[apart > 0].min(initial=math.inf))
    held = np.unique(np.floor(sizes / cell), return_counts=True)[1].astype(float)
    equal = (held * (held - 1)).sum() / 2
    # pairs in a cell, by the integrals of the density's square (.5642) and cube (.3676)
    expected = 0.5642 * n**2 / 2 * cell
    slow = math.sqrt(n**3 * cell**2 * (0.3676 - 0.5642**2))
    p = stats.poisson.sf(equal - 1, expected + 6 * slow)
    return (
        p,
        f"{equal:.0f} pairs of equal numbers ({expected:.0f} are usual): noise used again",
    )
