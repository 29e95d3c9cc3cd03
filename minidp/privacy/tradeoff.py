"""Trade-off curves (f-DP): type II error against type I error of telling two neighbours apart.

A curve on a grid is a pair of arrays: alphas rising from 0 to 1, and betas, convex and falling, linear between
the grid's points. f_(eps,delta), G_mu, sampling and symmetrising keep a curve convex.
"""
import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from ..errors import NumericalBoundError, ParameterError
from ..validate import in_range, non_negative, probability
from .accountant import Accountant
from .ledger import Ledger


def epsilon_delta_curve(alphas: NDArray, epsilon: float, delta: float) -> NDArray:
    r"""The curve of (epsilon, delta)-DP.

    Bound
        [C1]  f_(eps,delta)(a) = max(0, 1 - delta - e^eps a, e^-eps (1 - delta - a))

    Source
        [C1]  Wasserman, Zhou 2010; Dong, Roth, Su 2022, Proposition 2
    """
    non_negative(epsilon=epsilon)
    probability(delta=delta)
    alphas = np.asarray(alphas, dtype=np.float64)
    if epsilon == math.inf:
        return np.zeros_like(alphas)
    steep = 1 - delta - math.exp(min(epsilon, 700.0)) * alphas
    return np.maximum(0.0, np.maximum(steep, math.exp(-epsilon) * (1 - delta - alphas)))     # [C1]


def gaussian_curve(alphas: NDArray, mu: float) -> NDArray:
    r"""The curve of telling N(0, 1) from N(mu, 1).

    Bound
        [C1]  G_mu(a) = Phi(Phi^-1(1 - a) - mu)

    Source
        [C1]  Dong, Roth, Su 2022 (arXiv:1905.02383), Definition 5
    """
    non_negative(mu=mu)
    from scipy.special import ndtr, ndtri

    return ndtr(-ndtri(np.asarray(alphas, dtype=np.float64)) - mu)                           # [C1]


def sampled_curve(alphas: NDArray, betas: NDArray, sampling_probability: float) -> NDArray:
    r"""p f + (1-p) Id: one direction of the Poisson-sampled mechanism.

    Bound
        [C1]  f_p(a) = p f(a) + (1-p)(1-a). Compose first, then `symmetrised`: doing it at each step is looser.

    Source
        [C1]  Bu, Dong, Long, Su 2020 (arXiv:1911.11607), Section 3
    """
    probability(sampling_probability=sampling_probability)
    return sampling_probability * np.asarray(betas) + (1 - sampling_probability) * (1 - np.asarray(alphas))     # [C1]


def inverse_curve(alphas: NDArray, betas: NDArray) -> NDArray:
    """f^-1 on the same grid: the smallest a at which f is at most the given level."""
    betas = np.asarray(betas, dtype=np.float64)
    return np.interp(alphas, betas[::-1], np.asarray(alphas)[::-1], left=1.0 if betas[-1] > 0 else None)


def double_conjugate(alphas: NDArray, betas: NDArray) -> NDArray:
    """The largest convex curve below the points, f**: the lower convex hull, on the same grid."""
    kept: list[tuple[float, float]] = []
    for point in zip(alphas, betas):
        while len(kept) > 1 and _turns_up(kept[-2], kept[-1], point) <= 0:
            kept.pop()
        kept.append(point)
    return np.interp(alphas, *np.array(kept).T)


def symmetrised(alphas: NDArray, betas: NDArray) -> NDArray:
    """min(f, f^-1)**: both directions of the neighbouring relation at once."""
    return double_conjugate(alphas, np.minimum(betas, inverse_curve(alphas, betas)))


def composed(alphas: NDArray, first: NDArray, second: NDArray) -> NDArray:
    r"""The composition of two curves on one grid: both tests at once.

    Bound
        [C1]  a linear piece of f is an outcome with masses -(change of f) and change of a; the product's outcomes,
              sorted by their ratio, give the composed curve, read at the grid by the convex hull's chords

    Source
        [C1]  Dong, Roth, Su 2022 (arXiv:1905.02383), Definition 7; own derivation: Neyman and Pearson
    """
    q = np.multiply.outer(*(np.append(1 - curve[0], -np.diff(curve)) for curve in (first, second))).ravel()
    step = np.append(0.0, np.diff(alphas))
    p = np.multiply.outer(step, step).ravel()
    with np.errstate(divide="ignore", invalid="ignore"):
        order = np.argsort(-np.where(p > 0, q / p, np.where(q > 0, np.inf, -1.0)), kind="stable")
    errors = np.append(0.0, np.cumsum(p[order]))
    missed = 1 - np.append(0.0, np.cumsum(q[order]))
    return np.clip(np.interp(alphas, errors, missed), 0.0, 1.0)                              # [C1]


def accountant_curve(accountant: Accountant, ledger: Ledger, alphas: NDArray,
                     epsilons: Iterable[float] | None = None) -> NDArray:
    """A lower bound on the trade-off curve: the maximum of the lines that an accountant's certified deltas give."""
    if epsilons is None:
        epsilons = np.linspace(0.0, max(1.0, min(accountant.epsilon(ledger, 1e-6).upper, 100.0)), 40)
    curves = [epsilon_delta_curve(alphas, float(e), accountant.delta(ledger, float(e)).upper) for e in epsilons]
    return np.max(curves, axis=0)


def true_positive_rate(alphas: NDArray, betas: NDArray, false_positive_rate: float) -> float:
    r"""The largest power of a test at the given false positive rate.

    Bound
        [C1]  1 - f(a), a the smallest of `alphas` (rising, up to 1) at or above the rate: f falls, so that this is never too
              low, where a line between two points of a convex f would be

    Source
        [C1]  own derivation: f, and every lower bound of it at its points, holds for each smaller rate
    """
    in_range(0, 1, false_positive_rate=false_positive_rate)
    if len(alphas) != len(betas):
        raise ParameterError(f"expected as many betas as alphas, got {len(betas)} and {len(alphas)}")
    power = 1 - float(betas[np.searchsorted(alphas, false_positive_rate)])  # [C1]
    if math.isnan(power):
        raise NumericalBoundError("the trade-off curve is NaN at this rate")
    return power


def _turns_up(a, b, c):
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])
