"""Masses of lots of fixed size: an upper bound only."""

import math

import numpy as np

from .kernels import knots_between, spread_gaussian_masses


def fixed_size_masses(event, step, gaps, z):
    r"""(log P-masses, knots, ln P-mass of infinite loss) of a FixedSizeSampled Gaussian under
    REPLACE_ONE; losses knots * step.

    Bound
        [C1]  delta(e) = g delta_G(ln(1 + (e^e - 1) / g)) for e >= 0, g = lot/size: losses above 0
              are those of Poisson sampling with probability g
        [C2]  masses at losses below 0 are those above times e^-loss; (1 - g) (2 Phi(1/(2 sigma)) -
              1) has the loss 0

    Source
        [C1]  Balle, Barthe, Gaboardi 2018 (arXiv:1807.01647), Theorem 9; as a pair: Zhu, Dong, Wang
              2022, Theorem 10
        [C2]  own derivation: REPLACE_ONE is symmetric, so delta(-e) = 1 - e^-e + e^-e delta(e)
    """
    share, sigma = event.share, event.noise.noise_multiplier
    m = 1 / sigma
    largest = float(np.logaddexp(math.log1p(-share), math.log(share) + z * m + 0.5 * m * m))
    knots = knots_between(0, max(math.ceil(largest / step), 1), step, 0.0, *gaps)
    above = spread_gaussian_masses(share, m, step, -math.log1p(-share), knots)  # [C1]
    beyond = -0.5 * z * z - math.log(z) - 0.5 * math.log(2 * math.pi)  # above ln P(N(0,1) > z)
    at_0 = np.logaddexp(above[0] + math.log(2), _log_atom(share, m))
    below = above[:0:-1] - step * knots[:0:-1]  # [C2]
    below[0] = np.logaddexp(below[0], beyond - step * knots[-1])
    return (
        np.concatenate([below, [at_0], above[1:]]),
        np.concatenate([-knots[:0:-1], knots]),
        beyond,
    )


def fixed_size_losses(event, deviations):
    """`mixture_losses` of the pair of `fixed_size_masses`."""
    share, sigma = event.share, event.noise.noise_multiplier
    losses, logs = mixture_losses(event, deviations)
    losses, logs = losses[losses > 0], logs[losses > 0]
    return (
        np.concatenate([-losses[::-1], [0.0], losses]),
        np.concatenate([(logs - losses)[::-1], [_log_atom(share, 1 / sigma)], logs]),
    )


def _log_atom(share, m):
    return math.log1p(-share) + math.log(math.erf(0.5 * m / math.sqrt(2)))  # [C2]


def mixture_losses(event, z):
    """(losses, log P-masses) of a sampled Gaussian on a grid of x within z standard deviations, to
    choose a grid by.
    """
    from scipy.special import xlog1py, xlogy

    q, sigma = event.share, event.noise.noise_multiplier
    log_weights = np.array([xlog1py(1, -q), xlogy(1, q)])
    shifts = np.array([0.0, 1 / sigma])
    x = np.arange(-z, z + shifts[-1] + 0.1, 0.1)
    log_ratios = np.multiply.outer(shifts, x) - 0.5 * shifts[:, None] ** 2
    # keeps the digits of losses near 0
    growth = np.exp(log_weights) @ np.expm1(np.minimum(log_ratios, 1.0))
    losses = np.where(
        (growth > -0.5) & (log_ratios.max(axis=0) < 1),
        np.log1p(np.maximum(growth, -0.5)),
        np.logaddexp.reduce(log_weights[:, None] + log_ratios),
    )
    return losses, losses - 0.5 * x * x + math.log(0.1 / math.sqrt(2 * math.pi))
