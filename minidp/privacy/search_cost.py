"""The privacy cost of a hyper-parameter search: Appendix D of the paper, and later theorems."""

import math
from dataclasses import dataclass

import numpy as np

from ..errors import ParameterError
from ..util.validate import in_range, non_negative_finite, open_probability, positive_finite
from .conversion import sharper_epsilon
from .ledger import Ledger
from .renyi import RenyiAccountant


@dataclass(frozen=True)
class SelectionCost:
    """All quantities of Theorem D.1 for one search."""

    calls: float  # runs of M, at most
    accuracy_loss: float  # correct validation examples lost, at most, with probability 1 - delta
    epsilon: float  # eps + 8 eps', for M run on the data that select it
    epsilon_validation: float  # max(eps, 8 eps'), where training and validation data are disjoint


def theorem_d1(
    epsilon: float, epsilon_prime: float, delta: float, good_share: float
) -> SelectionCost:
    r"""The cost of choosing among runs of a pure epsilon-DP mechanism by noisy accuracy.

    Bound
        With p = good_share, the share of settings that are good enough:
        [C1]  calls = (1/(epsilon' delta p))^2 ln(1/(epsilon' delta p))
        [C2]  loss = (4/epsilon') ln(1/(epsilon' delta p))    of accuracy
        [C3]  epsilon_shared = epsilon + 8 epsilon', epsilon_apart = max(epsilon, 8
              epsilon')    apart where training and validation data are disjoint

    Valid for
        pure epsilon-DP only, epsilon' in (0, 1/2], delta in (0, 1), p in (0, 1]

    Source
        [C1] [C2]  Abadi et al. 2016, Theorem D.1 (after Gupta, Ligett, McSherry, Roth, Talwar 2010)
        [C3]  the same, and the remark after it
    """
    non_negative_finite(epsilon=epsilon)
    in_range(0, 0.5, open_low=True, epsilon_prime=epsilon_prime)
    open_probability(delta=delta)
    in_range(0, 1, open_low=True, good_share=good_share)
    inverse = 1 / (epsilon_prime * delta * good_share)
    calls = inverse**2 * math.log(inverse)  # [C1]
    loss = 4 / epsilon_prime * math.log(inverse)  # [C2]
    return SelectionCost(
        calls, loss, epsilon + 8 * epsilon_prime, max(epsilon, 8 * epsilon_prime)
    )  # [C3]


def liu_talwar(epsilon: float) -> float:
    r"""The best of K runs, K geometric and independent of everything, each run pure epsilon-DP.

    Bound
        [C1]  epsilon' = 3 epsilon    whatever the mean of K

    Source
        [C1]  Liu, Talwar 2019 (arXiv:1811.07971), Theorem 3.2
    """
    non_negative_finite(epsilon=epsilon)
    return 3 * epsilon  # [C1]


def poisson_stopped_epsilon(
    accountant: RenyiAccountant, ledger: Ledger, delta: float, expected_runs: float
) -> float:
    r"""Epsilon of the best of K runs, K Poisson with mean `expected_runs`, each run recorded in
    `ledger`, by Renyi.

    Bound
        [M1]  epsilon = min_a (D'_a + ln((a-1)/a) - (ln delta + ln a) / (a-1)), D'_a = D_a + m
              d(ln(1 + 1/(a-1))) + max(0, ln m) / (a-1)    one run is (x, d(x))-DP, K has the mean
              m; with the sharper conversion. With K = 0 nothing is released.

    Source
        [M1]  Papernot, Steinke 2022 (arXiv:2110.03620), Theorem 6
    """
    positive_finite(expected_runs=expected_runs)
    if accountant.name != "renyi":
        raise ParameterError(f"expected a RenyiAccountant, got {accountant.name}")
    orders = np.array(accountant.orders)
    total = accountant.total_curve(ledger)
    single = np.array([accountant.delta(ledger, math.log1p(1 / (a - 1))).upper for a in orders])
    stopped = (
        total + (orders - 1) * expected_runs * single + max(math.log(expected_runs), 0.0)
    )  # [M1]
    return sharper_epsilon(stopped, orders - 1.0, delta)
