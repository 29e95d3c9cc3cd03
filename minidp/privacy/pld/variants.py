"""Masses of lots of fixed size, and of groups whose members are sampled: upper bounds only."""

import math

import numpy as np

from ...host.jit import njit
from ..events import share_and_noise
from .kernels import CUT_OFF, NODES, WEIGHTS, knots_between, spread_gaussian_masses


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
    share, sigma = share_and_noise(event)
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
    share, sigma = share_and_noise(event)
    losses, logs = mixture_losses(*components(event), deviations)
    losses, logs = losses[losses > 0], logs[losses > 0]
    return (
        np.concatenate([-losses[::-1], [0.0], losses]),
        np.concatenate([(logs - losses)[::-1], [_log_atom(share, 1 / sigma)], logs]),
    )


def _log_atom(share, m):
    return math.log1p(-share) + math.log(math.erf(0.5 * m / math.sqrt(2)))  # [C2]


def group_masses(event, step, gaps, z):
    r"""(log P-masses, knots, ln P-mass of infinite loss) of a PoissonGroup, losses k ln(1-q) +
    knots * step.

    Bound
        [C1]  P = sum_j C(k, j) q^j (1-q)^(k-j) N(j, sigma^2) against Q = N(0, sigma^2)

    Source
        [C1]  Ganesh 2024 (arXiv:2401.10294): tight where all k members are present, or all are
              absent
    """
    log_weights, m = components(event)
    shifts = np.arange(event.size + 1) * m
    top = (
        np.logaddexp.reduce(log_weights + shifts * (z + shifts[-1]) - 0.5 * shifts**2)
        - log_weights[0]
    )
    knots = knots_between(0, max(math.ceil(top / step), 1), step, log_weights[0], *gaps)
    growth = step * knots[1:]
    with np.errstate(over="ignore"):
        growth = log_weights[0] + np.where(
            growth > 30, growth + np.log1p(-np.exp(-growth)), np.log(np.expm1(growth))
        )
    x = (
        growth - log_weights[1] + 0.5 * m * m
    ) / m  # right of the x at which P - w_0 Q is that multiple of Q
    for _ in range(60):  # Newton's method on a convex function
        terms = (
            log_weights[1:, None] + np.multiply.outer(shifts[1:], x) - 0.5 * shifts[1:, None] ** 2
        )
        value = np.logaddexp.reduce(terms)
        change = (value - growth) / (shifts[1:] @ np.exp(terms - value))
        x = x - change
        if np.all(np.abs(change) <= 1e-15 * (1 + np.abs(x))):
            break
    masses = _spread_mixture_masses(log_weights, m, step, knots, np.append(-math.inf, x))  # [C1]
    return masses, knots, -0.5 * z * z - math.log(z) - 0.5 * math.log(2 * math.pi)


def mixture_losses(log_weights, m, z):
    """(losses, log P-masses) of `components` on a grid of x within z standard deviations: good
    enough to choose a grid by.
    """
    shifts = np.arange(len(log_weights)) * m
    x = np.arange(-z, z + shifts[-1] + 0.1, 0.1)
    log_ratios = np.multiply.outer(shifts, x) - 0.5 * shifts[:, None] ** 2
    growth = np.exp(log_weights) @ np.expm1(
        np.minimum(log_ratios, 1.0)
    )  # keeps the digits of losses near 0
    losses = np.where(
        (growth > -0.5) & (log_ratios.max(axis=0) < 1),
        np.log1p(np.maximum(growth, -0.5)),
        np.logaddexp.reduce(log_weights[:, None] + log_ratios),
    )
    return losses, losses - 0.5 * x * x + math.log(0.1 / math.sqrt(2 * math.pi))


def components(event):
    """(ln of the weights (k+1,) of N(j m, 1), j = 0 .. k, m = 1 / sigma) of a Gaussian over a lot;
    k = 1 but for groups.
    """
    from scipy.special import gammaln, xlog1py, xlogy

    k, (q, sigma) = getattr(event, "size", 1), share_and_noise(event)
    j = np.arange(k + 1.0)
    return gammaln(k + 1.0) - gammaln(j + 1) - gammaln(k - j + 1) + xlogy(j, q) + xlog1py(
        k - j, -q
    ), 1 / sigma


@njit(cache=True)
def _spread_mixture_masses(log_weights, m, h, knots, ends):
    """`kernels.spread_gaussian_masses` for a mixture of N(j m, 1), whose ratio R to N(0, 1) is
    e^loss at the `ends`.

    With p_j(x) the share of component j in R(x), R(x) - R(a) = R(a) sum_j p_j(a) (e^(j m (x - a)) -
    1): positive terms.
    """
    masses, most = np.full(len(knots), -math.inf), len(log_weights) - 1
    for k in range(len(knots) - 1):
        a, b, gap = ends[k], ends[k + 1], (knots[k + 1] - knots[k]) * h
        low, high = log_weights[0] + knots[k] * h, log_weights[0] + knots[k + 1] * h
        peak = min(max(0.0, a), b)
        slope = max(0.0, -peak)
        start = max(a, peak - math.sqrt(slope * slope + CUT_OFF) + slope)
        slope = max(0.0, peak) - most * m
        stop = min(b, peak + math.sqrt(slope * slope + CUT_OFF) - slope)
        below_b = above_a = 0.0
        while start < stop:
            length = min(stop - start, 1.25, 2.5 / (abs(start) + most * m + 1.0))
            for i in range(8):
                x = start + length * NODES[i]
                weight = length * WEIGHTS[i] * math.exp(0.5 * (peak - x) * (peak + x))
                for j in range(1, most + 1):
                    shift, log_weight = j * m, log_weights[j] - 0.5 * (j * m) ** 2
                    below_b -= (
                        weight
                        * math.exp(log_weight + shift * b - high)
                        * math.expm1(shift * (x - b))
                    )
                    if a == -math.inf:
                        above_a += weight * math.exp(log_weight + shift * x - low)
                    else:
                        above_a += (
                            weight
                            * math.exp(log_weight + shift * a - low)
                            * math.expm1(shift * (x - a))
                        )
            start = start + length if stop - start > length else stop
        scale = -0.5 * peak * peak - 0.5 * math.log(2.0 * math.pi)
        to_lower = scale + high + math.log(below_b) - math.log(math.expm1(gap))
        largest = max(masses[k], to_lower)
        masses[k] = largest + math.log(math.exp(masses[k] - largest) + math.exp(to_lower - largest))
        masses[k + 1] = scale + low + math.log(above_a) - math.log(-math.expm1(-gap))
    return masses
