"""The target of a regression: a private look at where it lies, and the units it is learned in."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..backend import namespace_of, to_host
from ..data.labels import bounded_targets
from ..errors import ParameterError
from ..privacy.events import Event
from ..run import Run
from .columns import Look

FARTHEST = 5.0  # spreads from its centre that a target is limited to
AIM = 0.02, 0.2, 0.1  # of the look, as `columns.AIM`


class Target:
    """The targets of a regression, clipped to bounds and in units where these are -1 and 1.

    bounds  (low, high): the public ones, and after `release` those within FARTHEST spreads of the
            noisy centre
    centre  where the targets lie, in those units
    look    a `Look` at them, or None where there are too few rows

    Raises ParameterError if there are no public bounds, and too few rows for a look.
    """

    def __init__(self, data: Any, mu: float) -> None:
        self.data, self.bounds, self.centre = data, data.target_bounds, 0.0
        self.open = math.isinf(self.bounds[1] - self.bounds[0])
        look = Look([(0, None)], data.size, mu, not self.open, AIM, alone=True)
        self.look = look if look.affordable else None
        if self.open and self.look is None:
            raise ParameterError(
                f"target_bounds={self.bounds}: {data.size} {data.units.name}s are too few for a "
                "private look at the target: give finite bounds (low, high) from public knowledge"
            )

    @property
    def events(self) -> list[Event]:
        """The charges of the look."""
        return self.look.events() if self.look else []

    def scaled(self, y: NDArray) -> NDArray:
        """(N, 1) float32 of targets y (N, 1); without bounds, before a release, between -1 and 1 in
        no unit.
        """
        if math.isinf(self.bounds[1] - self.bounds[0]):
            y, bounds = np.tanh(to_host(y)), (-1.0, 1.0)
        else:
            bounds = self.bounds
        return namespace_of(self.data.targets).asarray(bounded_targets(to_host(y), bounds))

    def release(self, run: Run) -> None:
        """Look, and note the bounds and the centre that follow."""
        if self.look is None:
            return
        low, high = (-1.0, 1.0) if self.open else self.bounds
        middle, half = (low + high) / 2, (high - low) / 2
        numbers = (to_host(self.data.targets) - middle) / half
        if not self.open:
            numbers = np.clip(numbers, -1, 1)
        found = self.look.release(run, numbers, self.data.units, 0, of="target_")
        centre, spread = (middle + half * float(found[0][0]), half * float(found[1][0]))
        low = max(self.bounds[0], centre - FARTHEST * spread)
        high = min(self.bounds[1], centre + FARTHEST * spread)
        self.bounds = low, high
        self.centre = 2 * (centre - low) / (high - low) - 1
