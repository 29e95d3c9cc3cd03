"""Settings for a person without tuning: a rule in public numbers, chosen on drawn data."""
from __future__ import annotations

import math
from dataclasses import dataclass

from .privacy.gaussian import gaussian_delta
from .validate import count, in_range, one_of, positive_finite

TASKS = ("classification", "regression")
ROW_NORM = 3.0  # of rows that a bias goes with: at 1 the bias takes half of each clipped gradient, and of what noise it costs
MEAN_SHARE = 0.1  # of mu^2, for a noisy mean that is subtracted from the rows of a classification
LARGEST_LOT = 2**16  # rows: with more, noise is no longer what limits, and a step costs time
STEPS = 100
AVERAGE = 0.9
FARTHEST = 20_000.0  # travel of the weights times the row norm; beyond it budgets no longer limit


@dataclass(frozen=True)
class Choice:
    """Settings of a run; `choose` makes them.

    lot_size       L, expected examples per lot; at most the dataset's public size
    steps          T
    clip_norm      C, of all parameters together
    learning_rate  eta, constant
    average        decay of a moving average of the weights (`train.Averaged`)
    momentum       0: plain descent
    """

    lot_size: int
    steps: int
    clip_norm: float
    learning_rate: float
    average: float
    momentum: float = 0.0


def choose(dataset_size: int, epsilon: float, delta: float, parameters: int, *, task: str = "classification",
           hidden: bool = False, row_norm: float = 1.0) -> Choice:
    """Settings that need no tuning, from public numbers alone.

    dataset_size, epsilon, delta, parameters   N, the budget, and how many numbers are trained
    task       "classification" (softmax cross-entropy) or "regression" (squared error, targets in [-1, 1])
    hidden     whether there is a layer between inputs and outputs
    row_norm   G, about the norm of the rows that reach the first layer

    The rule: with full lots, T steps at rate eta leave noise of standard deviation eta C T / (mu N) on every weight, however
    many steps that are; mu is the Gaussian mechanism's for (epsilon, delta). The rate is what makes it s,

        eta = s mu N / (T C)

    with s = 2 / G and C = G / 10 for a classification without hidden layers, s = 0.2 / G and C = G / 10 for a regression,
    s = 14 / sqrt(parameters) and C = 1/2 with hidden layers. So the weights travel in proportion to epsilon, as in the linear
    scaling rule of Panda et al. 2022 (arXiv:2212.04486). The smallest data's logistic regression wants the same s as the
    largest's. T is 100, lots are all rows up to 65,536, and a moving average of the weights is what is released.

    Raises ParameterError for numbers out of range.

    >>> choose(1000, epsilon=1.0, delta=1e-5, parameters=650, row_norm=3.0).steps
    100
    """
    count(1, dataset_size=dataset_size, parameters=parameters)
    one_of(TASKS, task=task)
    positive_finite(epsilon=epsilon, row_norm=row_norm)
    in_range(0, 1, open_low=True, open_high=True, delta=delta)
    clip_norm, spread = row_norm / 10, (2.0 if task == "classification" else 0.2) / row_norm
    if hidden:
        clip_norm, spread = 0.5, 14 / math.sqrt(parameters)
    travel = min(spread * mu_of(epsilon, delta) * dataset_size, FARTHEST / row_norm)
    rate = travel / (STEPS * clip_norm)
    if task == "regression":
        rate = min(rate, 1 / (1 + row_norm**2))  # the loss curves by up to |x|^2 + 1, and does not flatten far out
    return Choice(min(dataset_size, LARGEST_LOT), STEPS, clip_norm, rate, AVERAGE)


def mu_of(epsilon: float, delta: float) -> float:
    """mu of the Gaussian mechanism that is exactly (epsilon, delta)-DP."""
    low, high = math.log(1e-9), math.log(1e6)
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if gaussian_delta(epsilon, math.exp(middle)) > delta else (middle, high)
    return math.exp(low)
