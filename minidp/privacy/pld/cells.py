"""Masses that dominate Gaussian noise, Poisson-sampled or not, cell by cell of the outcomes."""

import math

import numpy as np

from ... import given
from ..events import Gaussian, PoissonSampled
from ..events.sampled import amplified
from .kernels import knots_between, log_tail, spread_gaussian_masses
from .masses import ADD, Masses, noise_masses


@noise_masses.register(Gaussian)
@noise_masses.register(PoissonSampled)
def _gaussian_masses(event, direction, upper, step, gaps, deviations):
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
        return given.dominated(q, m, direction, step, base, low, knots, deviations)
    tail = log_tail(deviations)
    below = -math.inf if q < 1 and low == 0 else tail  # bounds both P and Q there
    masses = Masses(spread_gaussian_masses(q, m, step, 0.0, knots), knots, base, tail)
    if direction == ADD:
        masses, below = masses.mirrored(step, below), tail
    # what lies below the lowest loss counts as if it had it
    masses.log_mass[0] = np.logaddexp(masses.log_mass[0], below)
    return masses
