"""The part of the known noise that remains in averaged weights."""

import math
from typing import Any

import numpy as np


def noise_of_average(settings: Any) -> float:
    r"""The standard deviation of the noise on the released average of a weight, if each gradient
    has noise 1 and no gradient pulls the weight back. The warm-up of the average is left out, so
    the result is some percent too small below 100 steps.

    settings: with learning_rate eta, momentum m, average d and steps T, all constant

    Forward
        [F1]  s^2 = eta^2 sum_(j < T) (sum_(i <= j) (1 - d) d^i (1 - m^(j - i + 1)) / (1 - m))^2
              j steps after a noise, i steps before the end

    Source
        [F1]  own derivation: a weight has moved by eta (1 - m^j) / (1 - m) after j steps
    """
    steps, m, d = np.arange(settings.steps), settings.momentum, settings.average
    moved = (1 - m ** (steps + 1)) / (1 - m)
    averaged = np.convolve(moved, (1 - d) * d**steps)[: settings.steps]
    return settings.learning_rate * math.sqrt((averaged**2).sum())  # [F1]
