"""Schedules: a learning rate, clip norm C or noise multiplier sigma that depends on the step.

A schedule is a frozen dataclass called with the step (0 is the first). It is fixed before training
and does not look at the data (Abadi et al. 2016, Section 3.1, "time-dependent parameters").
"""

import math
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, is_dataclass
from itertools import accumulate, groupby
from typing import Any

from ..errors import DataError
from ..util.files import jsonable
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


@dataclass(frozen=True)
class Tabulated:
    """The numbers of a schedule that only its author can make again.

    description   {"schedule": its name, and its fields if it is a dataclass}
    runs          [number, steps] of each run of equal numbers; the last number has no end

    >>> Tabulated({"schedule": "mine"}, [[2.0, 3], [1.0, 1]])(4)
    1.0
    """

    description: dict[str, Any]
    runs: list[list[Any]]

    def __call__(self, step: int) -> float:
        ends = list(accumulate(steps for _, steps in self.runs))
        return self.runs[min(bisect_right(ends, step), len(ends) - 1)][0]


SCHEDULES = {each.__name__: each for each in (LinearDecay, Stages)}


def to_json(setting: Setting, steps: int, asked: Setting | None = None) -> Any:
    """A number as it is; a schedule as {"schedule": its class, its fields}, and "runs", its numbers
    at the steps 0 to steps - 1 as `Tabulated` has them, where it is none of SCHEDULES.

    asked: the function to call for these numbers, by default the schedule.
    """
    if not callable(setting):
        return setting
    if isinstance(setting, Tabulated):
        return {**setting.description, "runs": jsonable(setting.runs)}
    name = getattr(setting, "__qualname__", type(setting).__name__)
    found = {"schedule": name, **(jsonable(setting) if is_dataclass(setting) else {})}
    if type(setting) in SCHEDULES.values():
        return found
    numbers = (float(value_at(asked or setting, step)) for step in range(steps))
    runs = [[number, len(list(run))] for number, run in groupby(numbers)]
    return {**found, "runs": jsonable(runs)}


def from_json(value: Any) -> Any:
    """The number or schedule that `to_json` wrote; "inf" is infinity.

    Raises DataError for a schedule whose numbers are neither known nor given.
    """
    if not isinstance(value, dict):
        return math.inf if value == "inf" else value
    fields = dict(value)
    if runs := fields.pop("runs", None):
        return Tabulated(fields, [[from_json(number), steps] for number, steps in runs])
    name = fields.pop("schedule")
    if name not in SCHEDULES:
        raise DataError(f"the schedule {name} is not one of {', '.join(SCHEDULES)}")
    return SCHEDULES[name](**fields)


def text(value: Any) -> Any:
    """The value of `to_json` as text: LinearDecay(initial=0.1, final=0.05, steps=100)."""
    if not isinstance(value, dict):
        return value
    shown = {name: each for name, each in value.items() if name not in ("schedule", "runs")}
    if runs := value.get("runs"):
        numbers = [float(number) for number, _ in runs]
        shown["from"], shown["to"] = min(numbers), max(numbers)
    fields = ", ".join(f"{name}={field}" for name, field in shown.items())
    return f"{value['schedule']}({fields})"
