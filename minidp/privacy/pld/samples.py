"""A rough sample of an event's privacy loss, to choose a grid by: nothing here is a bound."""

import math

import numpy as np

from ...host.jit import njit
from .masses import REMOVE


def sampled(event, direction, deviations):
    """(losses, log P-masses) of the event on an even grid of outcomes within so many standard
    deviations: enough to choose tilt and window.
    """
    pure = event.pure_epsilon
    if pure is not None:
        log_p = -float(np.logaddexp(0.0, pure))
        return np.array([-pure, pure]), np.array([log_p, log_p + pure])
    from scipy.special import xlog1py, xlogy

    q, m = event.share, 1 / event.noise.noise_multiplier
    log_q = xlogy(1, q)
    x = np.arange(-deviations, deviations + m + 0.1, 0.1)
    log_ratio = m * x - 0.5 * m * m
    # keeps the digits of losses near 0
    growth = np.exp(log_q) * np.expm1(np.minimum(log_ratio, 1.0))
    losses = np.where(
        (growth > -0.5) & (log_ratio < 1),
        np.log1p(np.maximum(growth, -0.5)),
        np.logaddexp(xlog1py(1, -q), log_q + log_ratio),
    )
    logs = losses - 0.5 * x * x + math.log(0.1 / math.sqrt(2 * math.pi))
    return (losses, logs) if direction == REMOVE else (-losses, logs - losses)


@njit(cache=True)
def tilted_statistics(losses, logs, tilt):
    """(ln E e^(tilt L), mean and variance of L under the tilt) for log masses at the losses."""
    largest = np.max(logs + tilt * losses)
    total = first = 0.0
    for i in range(len(losses)):
        weight = math.exp(logs[i] + tilt * losses[i] - largest)
        total += weight
        first += weight * losses[i]
    mean = first / total
    second = 0.0
    for i in range(len(losses)):
        second += math.exp(logs[i] + tilt * losses[i] - largest) * (losses[i] - mean) ** 2
    return largest + math.log(total), mean, second / total
