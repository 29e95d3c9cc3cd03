"""Masses of Gaussian noise, Poisson-sampled or not, cell by cell of the outcomes."""

import math

import numpy as np

from ..events import Event, Gaussian, PoissonSampled
from .kernels import (
    knots_between,
    log_ratio_at,
    log_tail,
    merged_gaussian_masses,
    spread_gaussian_masses,
)
from .masses import ADD, REMOVE, Masses, masses_of, sampled


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
        return _dominated(q, m, direction, step, base, low, knots, deviations)
    tail = log_tail(deviations)
    below = -math.inf if q < 1 and low == 0 else tail  # bounds both P and Q there
    masses = Masses(spread_gaussian_masses(q, m, step, 0.0, knots), knots, base, tail)
    if direction == ADD:
        masses, below = masses.mirrored(step, below), tail
    # what lies below the lowest loss counts as if it had it
    masses.log_mass[0] = np.logaddexp(masses.log_mass[0], below)
    return masses


def _dominated(q, m, direction, step, base, low, knots, z):
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
    # what reached no atom of its own counts as having the loss of the last one
    beyond = np.logaddexp(
        math.log1p(-q) + _log_normal_cdf(-reach) if q < 1 else -math.inf,
        math.log(q) + _log_normal_cdf(m - reach),
    )
    log_mass[filled[-1]] = np.logaddexp(log_mass[filled[-1]], beyond)
    return masses


def _lowest_atom(q, m, height):
    """(x, lift, ln Q) of the atom of all outcomes below x: its loss is ln(1-q) + lift, `height`
    below that of x.
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


def _loss(q, log_ratio):
    """ln(1 - q + q e^log_ratio)."""
    if q == 1:
        return log_ratio
    if log_ratio > 30:
        return float(np.logaddexp(math.log1p(-q), math.log(q) + log_ratio))
    return math.log1p(q * math.expm1(log_ratio))


def _log_normal_cdf(x):
    """ln P(N(0,1) < x)."""
    from scipy.special import log_ndtr

    return float(log_ndtr(x))


@sampled.register(Gaussian)
@sampled.register(PoissonSampled)
def _gaussian_samples(event, direction, deviations):
    if event.pure_epsilon is not None:
        return sampled.dispatch(Event)(event, direction, deviations)
    losses, logs = mixture_losses(event, deviations)
    return (losses, logs) if direction == REMOVE else (-losses, logs - losses)


def mixture_losses(event, z):
    """(losses, log P-masses) of a sampled Gaussian on a grid of x within z standard deviations, to
    choose a grid by.
    """
    from scipy.special import xlog1py, xlogy

    q, m = event.share, 1 / event.noise.noise_multiplier
    log_q = xlogy(1, q)
    x = np.arange(-z, z + m + 0.1, 0.1)
    log_ratio = m * x - 0.5 * m * m
    # keeps the digits of losses near 0
    growth = np.exp(log_q) * np.expm1(np.minimum(log_ratio, 1.0))
    losses = np.where(
        (growth > -0.5) & (log_ratio < 1),
        np.log1p(np.maximum(growth, -0.5)),
        np.logaddexp(xlog1py(1, -q), log_q + log_ratio),
    )
    return losses, losses - 0.5 * x * x + math.log(0.1 / math.sqrt(2 * math.pi))
