"""Masses of lots of fixed size: an upper bound only."""

import math

import numpy as np

from ..events import FixedSizeSampled
from .kernels import knots_between, log_tail, spread_gaussian_masses
from .masses import Masses, noise_masses
from .samples import mixture_losses, noise_samples


@noise_masses.register
def fixed_size_masses(event: FixedSizeSampled, direction, upper, step, gaps, deviations):
    r"""`masses_of` a Gaussian over lots of fixed size, under REPLACE_ONE.

    Bound
        [C1]  delta(epsilon) = g delta_G(ln(1 + (e^epsilon - 1) / g)) where epsilon >= 0, g =
              lot/size    losses above 0 are those of Poisson sampling with probability g
        [C2]  p(-l) = p(l) e^-l where l > 0, p_0 = (1 - g) (2 Phi(1/(2 sigma)) - 1)    the masses of
              losses l and 0

    Source
        [C1]  Balle, Barthe, Gaboardi 2018 (arXiv:1807.01647), Theorem 9; as a pair: Zhu, Dong, Wang
              2022, Theorem 10
        [C2]  own derivation: REPLACE_ONE is symmetric, so delta(-e) = 1 - e^-e + e^-e delta(e)
    """
    share, m = event.share, 1 / event.noise.noise_multiplier
    last = math.log(share) + deviations * m + 0.5 * m * m
    largest = float(np.logaddexp(math.log1p(-share), last))
    knots = knots_between(0, max(math.ceil(largest / step), 1), step, 0.0, *gaps)
    above = spread_gaussian_masses(share, m, step, -math.log1p(-share), knots)  # [C1]
    beyond = log_tail(deviations)
    at_0 = np.logaddexp(above[0] + math.log(2), _log_atom(share, m))
    below = above[:0:-1] - step * knots[:0:-1]  # [C2]
    below[0] = np.logaddexp(below[0], beyond - step * knots[-1])
    log_mass = np.concatenate([below, [at_0], above[1:]])
    return Masses(log_mass, np.concatenate([-knots[:0:-1], knots]), 0.0, beyond)


@noise_samples.register
def _fixed_size_samples(event: FixedSizeSampled, direction, deviations):
    losses, logs = mixture_losses(event, deviations)
    losses, logs = losses[losses > 0], logs[losses > 0]
    at_0 = _log_atom(event.share, 1 / event.noise.noise_multiplier)
    return (
        np.concatenate([-losses[::-1], [0.0], losses]),
        np.concatenate([(logs - losses)[::-1], [at_0], logs]),
    )


def _log_atom(share, m):
    return math.log1p(-share) + math.log(math.erf(0.5 * m / math.sqrt(2)))  # [C2]
