"""Trade-off curves (f-DP): type II error against type I error of telling two neighbours apart.

A curve on a grid is a pair of arrays: alphas rise from 0 to 1, and betas fall and are convex. The
curve is linear between the grid's points.
"""

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from ..privacy.accountant import Accountant
from ..privacy.group_privacy import GroupAccountant
from ..privacy.ledger import Ledger


def epsilon_delta_curve(alphas: NDArray, epsilon: float, delta: float) -> NDArray:
    r"""The curve of (epsilon, delta)-DP.

    Bound
        [C1]  f(a) = max(0, 1 - delta - e^epsilon a, e^-epsilon (1 - delta - a))

    Source
        [C1]  Wasserman, Zhou 2010; Dong, Roth, Su 2022, Proposition 2
    """
    alphas = np.asarray(alphas, dtype=np.float64)
    steep = 1 - delta - math.exp(min(epsilon, 700.0)) * alphas
    return np.maximum(0.0, np.maximum(steep, math.exp(-epsilon) * (1 - delta - alphas)))  # [C1]


def gaussian_curve(alphas: NDArray, mu: float) -> NDArray:
    r"""The curve of telling N(0, 1) from N(mu, 1).

    Bound
        [C1]  G_mu(a) = Phi(Phi^-1(1 - a) - mu)

    Source
        [C1]  Dong, Roth, Su 2022 (arXiv:1905.02383), Definition 5
    """
    from scipy.special import ndtr, ndtri

    return ndtr(-ndtri(np.asarray(alphas, dtype=np.float64)) - mu)  # [C1]


def tangents(
    accountant: Accountant | GroupAccountant, ledger: Ledger, epsilons: Iterable[float]
) -> list[tuple[float, float]]:
    """(epsilon, delta) with a certified delta: the true positive rate of any attack is at most
    e^epsilon times its false positive rate, plus delta.
    """
    return [
        (float(epsilon), accountant.delta(ledger, float(epsilon)).upper) for epsilon in epsilons
    ]
