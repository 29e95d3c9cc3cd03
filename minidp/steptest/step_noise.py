"""Tests of a step's noise: its size in each call and coordinate, its law, and whether numbers
depend on others. Each yields (p, text), as in `step_tests`.
"""

import math

import numpy as np
from scipy import stats

from .step_trials import FEWEST, LOUD, SPREAD, Lot, Undecided

FINE = 4e-6  # of the noise: numbers this close are taken for the same one
POOLED = 200_000  # numbers among which equal ones are looked for
APART = 30_000  # numbers that tell the noise from what rows add at random
SEEN = 1e-4  # chance of noise that varies as much as with rows that are random
AT_ONCE = 1024  # rows compared with all others at once


def noises(trials):
    """{rows: (lot, releases)} of lots whose noise is looked at; sets `trials.random`."""
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
    """The noise has the stated size in every coordinate and every call, whatever the rows are, is
    new each time, and is Gaussian.
    """
    found = trials.once(noises)
    for rows, (lot, released) in found.items():
        yield from _sizes(trials, rows, lot.rows, fresh(released))
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
    yield from _sums(trials, fresh(released))
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
    """(n - 1, d) independent normal numbers: each release less the mean of those before it."""
    releases = np.array(list(releases))
    n = np.arange(1, len(releases))[:, None]
    return (releases[1:] - np.cumsum(releases[:-1], axis=0) / n) * np.sqrt(n / (n + 1))


def _sizes(trials, rows, count, found):
    """Whether normal numbers (n, d) have variance 1 in each part, and in each coordinate; more
    where `count` rows that are random add to it.
    """
    sums, n = (found**2).sum(axis=0), len(found)
    for part in trials.parts:
        total, freedom = sums[part.where].sum(), n * part.size
        share = math.sqrt(total / freedom)
        text = f"{part.name}: the noise is {share:.3g} times the stated one on {rows} rows"
        cause = "too little"
        if rows == "many":
            cause = "averaged over batches, or divided by the rows at hand"
        if share < 1e-3:
            cause = "none, or the same noise every time"
        yield stats.chi2.cdf(total, freedom), f"{text}: {cause}"
        size, clip = trials.stated.expected_lot_size, trials.stated.clip_norm
        more = (
            f"too much (1.41 if added twice, {size:g} if not divided, or by the rows at hand, "
            f"{1 / clip:.3g} if not times the clip norm)"
        )
        # rows that are random add so much in each call at most, in one direction at worst
        most = count / part.sigma**2
        mean, variance = freedom + n * most, 2 * (freedom + 2 * n * most + n * most**2)
        p = stats.gamma.sf(total, mean**2 / variance, scale=variance / mean)
        yield p, f"does not do what it states: {text}: {more}"
    least = f"{math.sqrt(sums.min() / n):.3g} times the stated noise on {rows} rows"
    frozen = "" if sums.min() else ": frozen weights, which are charged and not trained"
    p = stats.chi2.cdf(sums.min(), n) * trials.size
    yield p, f"coordinate {sums.argmin()} has {least}{frozen}"


def pairs(what, numbers):
    """Whether two rows of independent normal numbers (k, n) are multiples of each other."""
    k, n = numbers.shape
    if k < 2 or n < 2:  # any two numbers are multiples of each other
        return 1.0, ""
    lengths = np.linalg.norm(numbers, axis=1, keepdims=True)
    # of few numbers, many cosines are nearly 1
    rows = (numbers / np.where(lengths > 0, lengths, 1)).astype(np.float32 if n > 32 else float)
    best, where = 0.0, (0, 0)
    for start in range(0, k, AT_ONCE):
        size = np.abs(rows[start : start + AT_ONCE] @ rows[start:].T)
        size[np.tril_indices(len(size))] = 0
        i, j = np.unravel_index(size.argmax(), size.shape)
        if size[i, j] > best:
            best, where = float(size[i, j]), (start + i, start + j)
    # the square of a cosine of independent directions
    p = stats.beta.sf(min(best, 1) ** 2, 0.5, (n - 1) / 2) * k * (k - 1) / 2
    return p, f"{what} {where[0]} and {where[1]} have the same noise, but for sign and factor"


def _copies(released, spacing):
    """Whether numbers come again, in any order, at any place and with either sign."""
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


def _sums(trials, found):
    """Whether sums over each part, along each axis, and with alternating signs have noise."""
    n, shape = len(found), trials.shape
    along = found.reshape((n, *shape))
    sums = {f"of {part.name}": found[:, part.where].sum(axis=1) for part in trials.parts}
    sums["with alternating signs"] = found @ np.resize([1, -1], trials.size)
    sizes = [*(part.size for part in trials.parts), trials.size, *shape]
    sums |= {f"along axis {a}": along.sum(axis=1 + a) for a in range(len(shape))}
    for (what, each), size in zip(sums.items(), sizes):
        squares = (each.reshape(n, -1) ** 2).sum(axis=0) / size
        for total, freedom, times in (
            (squares.sum(), n * len(squares), 1),
            (squares.min(), n, len(squares)),
        ):
            p = 2 * times * min(stats.chi2.cdf(total, freedom), stats.chi2.sf(total, freedom))
            share = math.sqrt(total / freedom)
            yield p, f"the sum {what} has {share:.3g} times the noise of independent numbers"
