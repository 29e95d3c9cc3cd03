"""The distribution of an event's privacy loss, as masses on a grid of losses.

A direction is REMOVE (loss of the data set with the example against the data set without it) or ADD
(the reverse). The masses of the second are those of the first at the negative losses, times
e^-loss. An upper end comes from masses that dominate an event's loss, a lower end from masses that
the loss dominates.
"""

import math
from dataclasses import dataclass

import numpy as np

from ..privacy.events.sampled import amplified
from .loss_kernels import (
    knots_between,
    log_ratio_at,
    log_tail,
    merged_gaussian_masses,
    spread_gaussian_masses,
)

REMOVE, ADD = "remove", "add"


@dataclass(frozen=True)
class Masses:
    """log P-masses (K,) at the losses offset + knots * step. infinite: mass above all of these
    losses.
    """

    log_mass: np.ndarray
    knots: np.ndarray
    offset: float
    infinite: float

    def losses(self, step):
        return self.offset + step * self.knots

    def mirrored(self, step, infinite):
        """The masses of (Q, P); its losses are the negatives."""
        log_mass = (self.log_mass - self.losses(step))[::-1].copy()
        return Masses(log_mass, -self.knots[::-1], -self.offset, infinite)


def masses_of(event, direction, upper, step, gaps, deviations):
    """Masses on the grid that dominate the event's loss (upper), or that the loss dominates. Masses
    of pure DP always dominate.

    They reach `deviations` standard deviations into the noise's tails. An upper bound counts the
    rest on the safe side, a lower bound leaves it out. Knots are sparser away from loss 0; gaps:
    (relative, absolute) limit on their distance.
    """
    if event.pure_epsilon is not None:
        return randomised_response(event.pure_epsilon, step)
    q, m = event.share, 1 / event.noise.noise_multiplier
    base = 0.0 if q == 1 else math.log1p(-q)
    lowest, highest = (
        log_ratio if q == 1 else amplified(log_ratio, q)
        for log_ratio in (-deviations * m - 0.5 * m * m, deviations * m + 0.5 * m * m)
    )
    low, high = math.floor((lowest - base) / step), math.ceil((highest - base) / step)
    low = low if q == 1 else max(low, 0)
    knots = knots_between(low, max(high, low + 1), step, base, *gaps)
    if not upper:
        return dominated(q, m, direction, step, base, low, knots, deviations)
    tail = log_tail(deviations)
    below = -math.inf if q < 1 and low == 0 else tail  # bounds both P and Q there
    masses = Masses(spread_gaussian_masses(q, m, step, 0.0, knots), knots, base, tail)
    if direction == ADD:
        masses, below = masses.mirrored(step, below), tail
    # mass below the lowest loss counts at the lowest loss
    masses.log_mass[0] = np.logaddexp(masses.log_mass[0], below)
    return masses


def randomised_response(epsilon, step):
    """The pair that dominates every epsilon-DP release: its losses are epsilon, on a knot, and
    -epsilon, between two knots.
    """
    count = max(1, math.ceil(2 * epsilon / step))
    # distance of the lower loss from the lowest knot
    above = min(max(count * step - 2 * epsilon, 0.0), step)
    to_upper = math.expm1(-above) / math.expm1(-step)
    log_p = -float(np.logaddexp(0.0, epsilon))
    stays = math.log1p(-to_upper) if to_upper < 1 else -math.inf
    moves = math.log(to_upper) if to_upper > 0 else -math.inf
    log_mass = log_p + np.array([stays, moves, epsilon])
    return Masses(log_mass, np.array([-count, 1 - count, 0]), epsilon, -math.inf)


def dominated(q, m, direction, step, base, low, knots, z):
    """Masses that are dominated by the loss of a Gaussian, Poisson-sampled or not."""
    if q < 1 and low == 0:
        # Most of the mass may lie within a fraction of a step above ln(1-q): the lowest atom takes
        # all up to some fraction of a step, and the grid starts at its loss. Where the losses thin
        # out fast, half a step leaves too little above it for an atom at the next knot, and a
        # larger fraction is tried.
        reach = -math.inf
        for fraction in (0.5, 0.7, 0.85, 0.95):
            begin, lift, log_q_mass = _lowest_atom(q, m, fraction * step)
            log_mass, end = merged_gaussian_masses(q, m, step, lift, knots, begin)
            log_mass[0] = log_q_mass + base + lift
            if end > reach:
                reach, best = end, (log_mass, lift)
            if reach > 0.7 * z:
                break
        log_mass, lift = best
    else:
        lift, begin = 0.0, (log_ratio_at(q, m, (low - 0.5) * step) + 0.5 * m * m) / m
        log_mass, reach = merged_gaussian_masses(q, m, step, lift, knots, begin)
    filled = np.flatnonzero(log_mass > -math.inf)
    if not len(filled):
        # the steps are so wide that no knot is reached: all outcomes merged have the loss 0
        return Masses(np.zeros(1), np.zeros(1, np.int64), 0.0, -math.inf)
    masses = Masses(log_mass, knots, base + lift, -math.inf)
    if direction == ADD:
        return masses.mirrored(step, -math.inf)
    # mass without an atom of its own counts at the loss of the last atom
    beyond = np.logaddexp(
        math.log1p(-q) + _log_normal_cdf(-reach) if q < 1 else -math.inf,
        math.log(q) + _log_normal_cdf(m - reach),
    )
    log_mass[filled[-1]] = np.logaddexp(log_mass[filled[-1]], beyond)
    return masses


def _lowest_atom(q, m, height):
    """(x, lift, ln Q) of the atom of all outcomes below x. Its loss is ln(1-q) + lift, which is
    `height` below the loss of x.
    """

    def atom(above):
        x = (log_ratio_at(q, m, above) + 0.5 * m * m) / m
        log_q_mass = _log_normal_cdf(x)
        lift = math.log1p(q / (1 - q) * math.exp(_log_normal_cdf(x - m) - log_q_mass))
        return x, lift, log_q_mass

    low, high = height, 2 * height
    while high - atom(high)[1] < height:
        low, high = high, 2 * high
    for _ in range(30):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if middle - atom(middle)[1] < height else (low, middle)
    return atom(high)


def _log_normal_cdf(x):
    """ln P(N(0,1) < x)."""
    from scipy.special import log_ndtr

    return float(log_ndtr(x))


def largest_loss(parts, direction):
    """The largest possible loss."""
    total = 0.0
    for event, count in parts:
        loss = event.pure_epsilon
        if loss is None:
            absent = direction == ADD and event.share < 1
            loss = -math.log1p(-event.share) if absent else math.inf
        total += count * loss
    return total
