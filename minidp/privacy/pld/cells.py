"""Masses on a grid for the loss of an event: those of Gaussian noise, Poisson-sampled or not, cell
by cell of the outcomes.
"""

import math

import numpy as np

from ..events.sampled import amplified
from .kernels import knots_between, log_tail, spread_gaussian_masses
from .lower import dominated
from .masses import ADD, Masses, randomised_response


def masses_of(event, direction, upper, step, gaps, deviations):
    """Masses on the grid that dominate the event's loss (upper), or that it dominates; those of
    pure DP dominate.

    They reach `deviations` standard deviations into the noise's tails; an upper bound counts the
    rest on its safe side, a lower bound leaves it out. Knots grow sparse away from loss 0: gaps =
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
    # what lies below the lowest loss counts as if it had it
    masses.log_mass[0] = np.logaddexp(masses.log_mass[0], below)
    return masses
