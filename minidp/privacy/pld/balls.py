"""Balls in bins: the privacy loss of an epoch that puts each example into one random lot of `bins`,
as masses on a grid.

With one example more the lots' sums have the law (1/B) sum_t N(e_t, s^2 I), and N(0, s^2 I) without
it. The ratio of their densities is L, under the second law the mean of B independent lognormals
exp(x/s - 1/(2 s^2)), x ~ N(0, 1).
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ...host.jit import njit
from ..events import BallsInBins
from .kernels import _integrals, knots_between
from .masses import REMOVE, Masses, noise_masses
from .samples import noise_samples

# of a sum of lognormals: its grid's step, in steps of the loss as they add up to the whole sum
FINENESS = 0.3
# times the root of the loss's share: limit on a gap, as a share of its distance from the mean ...
SHARE = 0.08
LOW_SHARE = 0.05  # ... and as a share of the sum itself
LOSS_ERROR = 2e-11  # more than the roundings of sums may move a loss
# a lower law leaves out cells with less: their means lose digits below float64's normal range
LEAST_MASS = 1e-300
# of the mean of a sum, far above its rounding: points further apart than that are distinct
LEAST_STEP = 2.0**-40
MOST_PAIRS = 2**27  # of atoms that the sums of one law combine, about: half a second
# of one grid, so that a sum is computed in a fraction of a second, and an interrupt is seen
MOST_POINTS = 2**13
WIDENING = 2**0.5  # of all gaps of a grid that has too many points, as often as needed


def in_range(bins, sigma):
    """Whether the loss is computed; elsewhere an upper bound is that of the unsampled Gaussian, and
    a lower one unknown.
    """
    return 0.1 <= sigma <= 1e4 and bins <= 10**6


@noise_masses.register
def masses(event: BallsInBins, direction, upper, step, gaps, deviations):
    r"""`masses_of` one epoch; they are `widened` where a grid of the sums had too many points.

    Bound
        removal: delta(e) = E (L - exp(e))_+, addition: delta(e) = E (1 - exp(e) L)_+, convex in
        every lognormal and in L
        [C1]  upper: lognormals, sums of them and L each moved to the two points of a grid around
              them, their means kept
        [C2]  lower: each replaced by its mean over a cell
        Sums double. All terms are positive, so that rounding is relative, and counted; tails cut
        off are infinite loss (upper) or left out (lower).

    Source
        [C1] [C2]  own derivation: convex order, a mean-preserving spread raises, and a mean lowers,
                   what is convex; both
              orders hold for sums of independent terms
        pair: Chua et al. 2024 (arXiv:2412.16802); Feldman, Shenfeld 2025 (arXiv:2502.08202)
    """
    steps, negligible, rough = _rough_law(event, deviations)
    if not rough[-1]:  # otherwise finer sums are at their limits too, and gain little
        steps = _rung(FINENESS * step), _rung(SHARE * math.sqrt(gaps[0]))
    ratios, mass, lost, error, widened = _law(
        event.bins, event.noise.noise_multiplier, upper, steps, negligible
    )
    losses, mass = np.log(ratios), mass * (1 + error if upper else max(0.0, 1 - error))
    if direction == REMOVE:
        mass = mass * ratios
    else:
        losses, mass = -losses[::-1], mass[::-1].copy()
    low = math.floor(losses[0] / step)
    knots = knots_between(low, max(math.ceil(losses[-1] / step), low + 1), step, 0.0, *gaps)
    found = (spread_losses if upper else merged_losses)(losses, mass, knots * step)
    offset, beyond = (LOSS_ERROR, math.log(lost)) if upper else (-LOSS_ERROR, -math.inf)
    with np.errstate(divide="ignore"):
        return Masses(np.log(found), knots, offset, beyond, widened)


def _rung(value):
    """The value rounded down to a ladder, so that both directions and the grids that follow share
    their sums.
    """
    return 2 ** (0.5 * math.floor(2 * math.log2(value)))


@noise_samples.register
def _samples(event: BallsInBins, direction, deviations):
    ratios, mass, *_ = _rough_law(event, deviations)[-1]
    losses, logs = np.log(ratios[mass > 0]), np.log(mass[mass > 0])
    return (losses, logs + losses) if direction == REMOVE else (-losses[::-1], logs[::-1])


def _rough_law(event, deviations):
    """(steps, negligible mass, `_law` in these steps): rough, and from above."""
    bins, sigma = event.bins, event.noise.noise_multiplier
    spread = math.sqrt(math.expm1(min(1 / sigma**2, 300.0)) / bins)
    steps = min(0.1 * spread, 0.1), 0.02
    # in few steps, for the same reason as in _rung
    negligible = math.exp(-2 * math.ceil(0.25 * deviations**2))
    return steps, negligible, _law(bins, sigma, True, steps, negligible)


def most_points(bins):
    """The limit on the points of each grid that keeps the sums for `bins` lognormals within
    MOST_PAIRS.
    """
    sums = 0.5 * bins.bit_length() + bins.bit_count() - 1.5  # a sum of equal laws is half the work
    return min(MOST_POINTS, int(math.sqrt(MOST_PAIRS / sums)))


@lru_cache(16)
def _law(bins, sigma, upper, steps, negligible):
    """Compute the law of L.

    Returns (values rising (K,), their masses, mass lost under either law at most, relative error of
    masses, widened).
    """
    sums = _Sums(bins, sigma, upper, steps, negligible, lost=negligible)
    n, done, square, law = 1, 0, sums.lognormal(), None
    while True:
        if bins & n:
            law = square if law is None else sums.add(law, square, done + n)
            done += n
        if done == bins:
            values, mass, error = law
            return values / bins, mass, sums.lost, 2 * error, sums.widened
        n *= 2
        square = sums.add(square, square, n)


@dataclass
class _Sums:
    """Laws of sums of lognormals, each (values rising (K,), masses, relative error of masses)."""

    bins: int
    sigma: float
    upper: bool
    steps: tuple
    negligible: float
    lost: float  # mass cut off so far, under either law at most
    widened: bool = False  # whether a grid had too many points

    def grid(self, n, low, high):
        points, wider = grid_of(n, self.bins, low, high, *self.steps, most_points(self.bins))
        self.widened |= wider
        return points

    def lognormal(self):
        """The law of one."""
        m = 1 / self.sigma
        z = math.sqrt(2 * (math.log(4 * self.bins) - math.log(self.negligible)))
        grid = self.grid(1, math.exp(-m * z - 0.5 * m * m), math.exp(m * z + 0.5 * m * m))
        return *_atoms(grid, lognormal_shares(m, grid), self.upper), 1e-12

    def add(self, one, other, n):
        """The law of the sum of two, which holds n lognormals."""
        (x, p, error), (y, q, other_error) = one, other
        grid = self.grid(n, x[0] + y[0], x[-1] + y[-1])
        shares = np.zeros((2, len(grid) - 1))
        sum_shares(x, p, y, q, grid, one is other, shares)
        values, mass = _atoms(grid, shares, self.upper)
        kept = mass > 0
        values, mass = values[kept], mass[kept]
        # of all sums of n, and of the one that holds the example's own lot, whose mass is weighted
        # by its value / n
        first = self.bins / n * np.cumsum(mass)
        last = np.cumsum((mass * (self.bins / n + values / n))[::-1])[::-1]
        cut = self.negligible / (2 * self.bins.bit_length())
        end = max(len(mass) - np.searchsorted(last[::-1], cut), 1)
        begin = min(np.searchsorted(first, cut), end - 1)
        self.lost += (first[begin - 1] if begin else 0.0) + (last[end] if end < len(mass) else 0.0)
        error = error + other_error + 2.0**-51 * (len(x) + len(y))
        return values[begin:end], mass[begin:end], error


@njit(cache=True)
def grid_of(n, bins, low, high, step, share, most):
    """(points, widened): points from below `low` to above `high` for the sum of n, at most `most`.

    They are close near the mean, further out ever less so. Where they would be more, all gaps are
    widened.
    """
    mean, low_share = float(n), LOW_SHARE
    step = max(step * math.sqrt(float(n) * bins), LEAST_STEP * mean)
    while True:
        down, y = [mean], mean
        while y > low and len(down) <= most:
            y -= min(max(step, share * (mean - y)), low_share * y)
            down.append(y)
        up, y = [mean], mean
        while y < high and len(down) + len(up) <= most:
            y += max(step, share * (y - mean))
            up.append(y)
        if len(down) + len(up) <= most:
            break
        step, share, low_share = WIDENING * step, WIDENING * share, min(WIDENING * low_share, 0.5)
    points = np.array(down[:0:-1] + up)
    begin, end = 0, len(points)
    while begin < end - 2 and points[begin + 1] <= low:
        begin += 1
    while end > begin + 2 and points[end - 2] >= high:
        end -= 1
    return points[begin:end], low_share > LOW_SHARE


@njit(cache=True)
def lognormal_shares(m, grid):
    """(below, above), a cell of the grid each: what exp(m x - m^2/2), x ~ N(0, 1), in it hands to
    its ends, its mean kept.
    """
    below, above = np.zeros(len(grid) - 1), np.zeros(len(grid) - 1)
    b = (math.log(grid[0]) + 0.5 * m * m) / m
    for k in range(len(grid) - 1):
        a, b = b, (math.log(grid[k + 1]) + 0.5 * m * m) / m
        peak = min(max(0.0, a), b)
        scale = math.exp(-0.5 * peak * peak) / math.sqrt(2.0 * math.pi) / (grid[k + 1] - grid[k])
        below[k] = -scale * grid[k + 1] * _integrals(a, b, b, m, peak)[0]  # [C1] [C2]
        above[k] = scale * grid[k] * _integrals(a, b, a, m, peak)[0]  # [C1] [C2]
    return below, above


@njit(cache=True)
def sum_shares(x, p, y, q, grid, same, shares):
    """Add to shares[0] and [1], for each cell of the grid, what the sums in it hand to its lower
    and upper end.

    The sums x_i + y_j have the masses p_i q_j; their mean is kept. Nothing is returned: an
    interrupt that comes while Numba makes arrays to return would be a SystemError.
    """
    below, above = shares
    begin = 0
    for i in range(len(x)):
        first = i if same else 0  # of equal laws, each pair of unequal sums counts twice
        while begin < len(grid) - 2 and grid[begin + 1] < x[i] + y[first]:
            begin += 1
        k, p_i = begin, 2.0 * p[i] if same else p[i]
        up = down = 0.0
        for j in range(first, len(y)):
            total, q_j = x[i] + y[j], 0.5 * q[j] if same and j == i else q[j]
            if grid[k + 1] < total and k < len(grid) - 2:
                scale = p_i / (grid[k + 1] - grid[k])
                below[k] += scale * down
                above[k] += scale * up
                up = down = 0.0
                while grid[k + 1] < total and k < len(grid) - 2:
                    k += 1
            up += q_j * max(total - grid[k], 0.0)  # [C1] [C2]
            down += q_j * max(grid[k + 1] - total, 0.0)  # [C1] [C2]
        scale = p_i / (grid[k + 1] - grid[k])
        below[k] += scale * down
        above[k] += scale * up


def _atoms(grid, shares, upper):
    """(values, masses) of what the cells of the grid hold: at both ends of each (upper), or at its
    mean.
    """
    below, above = shares
    if upper:
        return grid, np.append(below, 0.0) + np.append(0.0, above)  # [C1]
    masses = below + above  # [C2]
    kept = masses * np.minimum(grid[:-1], 1.0) >= LEAST_MASS
    weighted = grid[:-1][kept] * below[kept] + grid[1:][kept] * above[kept]  # [C2]
    return weighted / masses[kept], masses[kept]


@njit(cache=True)
def spread_losses(losses, masses, knots):
    """Masses at the knots: each handed to both neighbours so that the sums of mass and of mass *
    e^-loss stay.
    """
    found = np.zeros(len(knots))
    k = 0
    for i in range(len(losses)):
        while k < len(knots) - 2 and knots[k + 1] <= losses[i]:
            k += 1
        above = math.expm1(-max(losses[i] - knots[k], 0.0)) / math.expm1(
            knots[k] - knots[k + 1]
        )  # [C1]
        above = min(above, 1.0)
        found[k] += masses[i] * (1.0 - above)
        found[k + 1] += masses[i] * above
    return found


@njit(cache=True)
def merged_losses(losses, masses, knots):
    """Masses at the knots of a coarser view: atoms merged, the last of them split, until ln(P/Q) is
    the knot's loss exactly.
    """
    found = np.zeros(len(knots))
    i, left, last = 0, masses[0], -1
    for k in range(len(knots)):
        if i == len(losses) or losses[i] > knots[k]:
            continue
        total = missing = 0.0
        j, rest = i, left
        while j < len(losses):
            gain = -rest * math.expm1(knots[k] - losses[j])  # P - e^knot Q
            if missing + gain >= 0.0 and gain > 0.0:
                part = rest * min(1.0, -missing / gain)  # [C2]
                total, rest = total + part, rest - part
                break
            missing, total, j = missing + gain, total + rest, j + 1
            if j < len(losses):
                rest = masses[j]
        if j == len(losses):
            break
        found[k], last, i, left = total, k, j, rest
    if last >= 0:  # what reaches no knot counts as having the last one's loss
        found[last] += left + np.sum(masses[i + 1 :])
    return found
