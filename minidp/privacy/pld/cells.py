"""Masses that dominate Gaussian noise, Poisson-sampled or not, cell by cell of the outcomes."""

import math

import numpy as np

from ... import given
from ..events import Event, Gaussian, PoissonSampled
from .kernels import knots_between, log_tail, spread_gaussian_masses
from .masses import ADD, Masses, masses_of


@masses_of.register(Gaussian)
@masses_of.register(PoissonSampled)
def _gaussian_masses(event, direction, upper, step, gaps, deviations):
    if event.pure_epsilon is not None:
        return masses_of.dispatch(Event)(event, direction, upper, step, gaps, deviations)
    q, m = event.share, 1 / event.noise.noise_multiplier
    base = 0.0 if q == 1 else math.log1p(-q)
    low = math.floor((_loss(q, -deviations * m - 0.5 * m * m) - base) / step)
    high = math.ceil((_loss(q, deviations * m + 0.5 * m * m) - base) / step)
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


def _loss(q, log_ratio):
    """ln(1 - q + q e^log_ratio)."""
    if q == 1:
        return log_ratio
    if log_ratio > 30:
        return float(np.logaddexp(math.log1p(-q), math.log(q) + log_ratio))
    return math.log1p(q * math.expm1(log_ratio))
