"""From log moments and Renyi divergences to (epsilon, delta), each conversion with its theorem.

Everywhere `log_moments` is alpha(lambda) = lambda * D_(lambda+1), one value for each of `orders` =
lambda, (K,). Valid for lambda > 0, delta in (0, 1), finite epsilon >= 0. An order whose moment is
infinite or NaN bounds nothing and is left out; if no order remains, epsilon is infinite and delta
1.
"""

import math

import numpy as np
from numpy.typing import NDArray


def _usable(log_moments):
    log_moments = np.asarray(log_moments, dtype=np.float64)
    return np.where(np.isnan(log_moments), np.inf, log_moments)


def tail_bound_epsilon(log_moments: NDArray, orders: NDArray, delta: float) -> float:
    r"""The epsilon of the tail bound: the smallest over the given orders.

    Bound
        [C1]  epsilon = min_lambda (alpha(lambda) + ln(1/delta)) / lambda

    Source
        [C1]  Abadi et al. 2016, Theorem 2.2 (tail bound), solved for epsilon
    """
    candidates = (_usable(log_moments) - math.log(delta)) / orders  # [C1]
    return max(0.0, float(np.min(candidates)))


def tail_bound_delta(log_moments: NDArray, orders: NDArray, epsilon: float) -> float:
    r"""The delta of the tail bound: the smallest over the given orders, at most 1.

    Bound
        [C1]  delta = min(1, min_lambda exp(alpha(lambda) - lambda epsilon))

    Source
        [C1]  Abadi et al. 2016, Theorem 2.2 (tail bound)
    """
    return _smallest_exp(_usable(log_moments) - orders * epsilon)  # [C1]


def sharper_epsilon(log_moments: NDArray, orders: NDArray, delta: float) -> float:
    r"""The epsilon of the sharper conversion, with a = lambda + 1 and D_a = alpha(lambda) / lambda.

    Bound
        [C1]  epsilon = 0 where delta >= T, else min_a (D_a + ln((a-1)/a) - (ln delta + ln a) /
              (a-1))    T the `total_variation_bound`

    Source
        [C1]  Canonne, Kamath, Steinke 2020 (arXiv:2004.00010), Proposition 12
    """
    a = orders + 1.0
    divergence = _usable(log_moments) / orders
    if total_variation_bound(log_moments, orders) <= delta:
        return 0.0
    candidates = divergence + np.log1p(-1.0 / a) - (math.log(delta) + np.log(a)) / orders  # [C1]
    return max(0.0, float(np.min(candidates)))


def sharper_delta(log_moments: NDArray, orders: NDArray, epsilon: float) -> float:
    r"""The delta of the sharper conversion, at most `total_variation_bound`.

    Bound
        [C1]  ln delta = min(ln T, min_a ((a-1) (D_a - epsilon + ln((a-1)/a)) - ln a))    T the
              `total_variation_bound`

    Source
        [C1]  Canonne, Kamath, Steinke 2020 (arXiv:2004.00010), Proposition 12
    """
    a = orders + 1.0
    sharper = _smallest_exp(
        _usable(log_moments) + orders * (np.log1p(-1.0 / a) - epsilon) - np.log(a)
    )  # [C1]
    return min(sharper, total_variation_bound(log_moments, orders))


def total_variation_bound(log_moments: NDArray, orders: NDArray) -> float:
    r"""A bound on the total variation distance, which is delta at epsilon 0, and so on every delta.

    Bound
        [C1]  T = sqrt(1 - exp(-min_a D_a))

    Source
        [C1]  Bretagnolle, Huber 1979; D_a grows with a, so any order bounds the Kullback-Leibler
              divergence
    """
    divergence = float(np.min(_usable(log_moments) / orders))
    distance = math.sqrt(-math.expm1(-max(0.0, divergence)))  # [C1]
    return min(1.0, distance * (1 + 1e-12) + 5e-324)


def _smallest_exp(exponents):
    # rounded up, and never to 0, because a smaller number would understate delta
    exponent = float(np.min(exponents))
    return 1.0 if exponent >= 0 else min(1.0, max(math.exp(exponent) * (1 + 1e-15), 5e-324))
