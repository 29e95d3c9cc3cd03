"""Schedules in files: stored by their fields if minidp has the class, otherwise by their
numbers.
"""

import base64
import bz2
import math
from bisect import bisect_right
from dataclasses import dataclass, is_dataclass
from functools import cached_property
from itertools import accumulate, groupby
from typing import Any

import numpy as np

from ..errors import DataError, ParameterError
from ..mechanism.schedule import LinearDecay, Setting, Stages, value_at
from ..util.files import jsonable

READABLE = 1000  # most runs of equal numbers that a file holds as numbers; more are packed
MOST = 2**20  # most characters of packed numbers
LARGEST = 2**28  # most bytes of numbers after they are unpacked


@dataclass(frozen=True)
class Tabulated:
    """The numbers of a schedule whose function only its author has.

    description   {"schedule": its name, and its fields if it is a dataclass}
    runs          [number, steps] of each run of equal numbers; the last number has no end

    >>> Tabulated({"schedule": "mine"}, [[2.0, 3], [1.0, 1]])(4)
    1.0
    """

    description: dict[str, Any]
    runs: list[list[Any]]

    def __call__(self, step: int) -> float:
        return self.runs[min(bisect_right(self._ends, step), len(self._ends) - 1)][0]

    @cached_property
    def _ends(self):
        return list(accumulate(steps for _, steps in self.runs))


SCHEDULES = {each.__name__: each for each in (LinearDecay, Stages)}


def to_json(setting: Setting, steps: int, asked: Setting | None = None) -> Any:
    """A number unchanged; a schedule as {"schedule": its class, its fields}. A schedule that is not
    in SCHEDULES also gets "runs", its numbers at the steps 0 to steps - 1 as in `Tabulated`. More
    than READABLE runs are packed into a text.

    asked: the function to call for these numbers, by default the schedule. Raises ParameterError
    for NaN, and for numbers that change so often that their text has more than MOST characters.
    """
    if not callable(setting):
        return setting
    if isinstance(setting, Tabulated):
        return {**setting.description, "runs": _written(setting.runs, "schedule")}
    name = getattr(setting, "__qualname__", type(setting).__name__)
    found = {"schedule": name, **(jsonable(setting) if is_dataclass(setting) else {})}
    if type(setting) in SCHEDULES.values():
        return found
    numbers = (float(value_at(asked or setting, step)) for step in range(steps))
    runs = [[number, len(list(run))] for number, run in groupby(numbers)]
    return {**found, "runs": _written(runs, name)}


def _written(runs, name):
    """The runs as JSON: a list, or a text of the float64 numbers and steps."""
    if any(math.isnan(number) for number, _ in runs):
        raise ParameterError(f"{name}: expected numbers at all steps, got NaN")
    if len(runs) <= READABLE:
        return jsonable(runs)
    packed = bz2.compress(np.array(runs, "<f8").T.tobytes())
    text = base64.b64encode(packed).decode()
    if len(text) > MOST:
        raise ParameterError(
            f"{name}: expected a schedule whose numbers fit into {MOST:,} characters of each "
            f"config.json and checkpoint; it changes {len(runs):,} times, which takes "
            f"{len(text):,}: let it change less often, such as lambda step: f(step // 100 * 100)"
        )
    return text


def _read(runs):
    """The runs that `_written` wrote. Raises DataError for other text."""
    if isinstance(runs, list):
        return [[from_json(number), steps] for number, steps in runs]
    try:
        unpacker = bz2.BZ2Decompressor()
        raw = unpacker.decompress(base64.b64decode(runs, validate=True), LARGEST)
        numbers, steps = np.frombuffer(raw, "<f8").reshape(2, -1).tolist()
        if not unpacker.eof or not numbers or np.isnan(numbers).any():
            raise ValueError("not whole")
        return [[number, int(times)] for number, times in zip(numbers, steps, strict=True)]
    except (ValueError, TypeError, OSError, OverflowError) as error:
        raise DataError(f"damaged: the numbers of a schedule ({error})") from error


def from_json(value: Any) -> Any:
    """The number or schedule that `to_json` wrote; "inf" is infinity.

    Raises DataError for an unknown schedule without numbers.
    """
    if not isinstance(value, dict):
        return math.inf if value == "inf" else value
    fields = dict(value)
    if runs := fields.pop("runs", None):
        return Tabulated(fields, _read(runs))
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
        numbers = [float(number) for number, _ in _read(runs)]
        shown["from"], shown["to"] = min(numbers), max(numbers)
    fields = ", ".join(f"{name}={field}" for name, field in shown.items())
    return f"{value['schedule']}({fields})"
