"""Schedules: a learning rate, clip norm C or noise multiplier sigma that depends on the step.

A schedule is a frozen dataclass called with the step (0 is the first). It is fixed before training
and does not look at the data (Abadi et al. 2016, Section 3.1, "time-dependent parameters").
"""

from collections.abc import Callable
from dataclasses import dataclass

from ..util.validate import count, non_negative_finite

# a number, or a function of the step (0 is the first)
Setting = float | Callable[[int], float]


def value_at(setting: Setting, step: int) -> float:
    """The value of a setting at a step; a plain number is constant."""
    return setting(step) if callable(setting) else setting


@dataclass(frozen=True)
class LinearDecay:
    r"""From `initial` linearly to `final` over `steps` steps, then constant.

    Forward
        [F1]  f(step) = initial + (final - initial) step / steps where step < steps, else final

    Source
        [F1]  Abadi et al. 2016, Section 5.2: the learning rate falls from 0.1 to 0.052 over 10
              epochs and stays

    >>> rate = LinearDecay(0.1, 0.05, steps=100)
    >>> rate(0), rate(50), rate(1000)
    (0.1, 0.07500000000000001, 0.05)
    """

    initial: float
    final: float
    steps: int

    def __post_init__(self):
        non_negative_finite(initial=self.initial, final=self.final)
        count(steps=self.steps)

    def __call__(self, step: int) -> float:
        if step >= self.steps:
            return self.final  # [F1]
        return self.initial + (self.final - self.initial) * step / self.steps  # [F1]


@dataclass(frozen=True)
class Stages:
    r"""Stages from `first` to `last` by equal amounts, each `length` steps long but the last, which
    does not end.

    Forward
        [F1]  f(step) = first + (last - first) min(floor(step / length), stages - 1) / (stages - 1)

    Source
        [F1]  Abadi et al. 2016, Section 3.1, "Per-layer and time-dependent parameters"
    """

    first: float
    last: float
    stages: int
    length: int

    def __post_init__(self):
        non_negative_finite(first=self.first, last=self.last)
        count(2, stages=self.stages)
        count(1, length=self.length)

    def __call__(self, step: int) -> float:
        stage = min(step // self.length, self.stages - 1)
        return self.first + (self.last - self.first) * stage / (self.stages - 1)  # [F1]
