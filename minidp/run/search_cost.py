"""The privacy cost of a hyper-parameter search: Theorem D.1 of the paper."""

import math
from dataclasses import dataclass

from ..util.validate import in_range, non_negative_finite, open_probability


@dataclass(frozen=True)
class SelectionCost:
    """All quantities of Theorem D.1 for one search."""

    calls: float  # most runs of M
    # correct validation examples fewer than the best has, at most, with probability 1 - delta
    accuracy_loss: float
    epsilon: float  # eps + 8 eps', if M runs on the same data that choose among the runs
    epsilon_validation: float  # max(eps, 8 eps'), if training and validation data are disjoint


def theorem_d1(
    epsilon: float, epsilon_prime: float, delta: float, good_share: float
) -> SelectionCost:
    r"""The cost of choosing among runs of a pure epsilon-DP mechanism by noisy accuracy.

    Bound
        With p = good_share, the share of settings that are good enough:
        [C1]  calls = (1/(epsilon' delta p))^2 ln(1/(epsilon' delta p))
        [C2]  loss = (4/epsilon') ln(1/(epsilon' delta p))    in correct validation examples, with
              probability 1 - delta
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
