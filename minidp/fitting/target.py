"""The target of a regression: a private look at where it lies, and the units in which it is
learned.
"""

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
    """The targets of a regression, clipped to bounds, in units where the bounds are -1 and 1.

    bounds  (low, high): the public ones, and after `release` those within FARTHEST spreads of the
            noisy centre
    centre  centre of the targets, in those units
    look    a `Look` at the targets, or None if there are too few rows

    Raises ParameterError if there are no public bounds, and too few rows for a look.
    """

    def __init__(self, data: Any, mu: float) -> None:
        self.data, self.bounds, self.centre = data, data.target_bounds, 0.0
        # public limits, which may be far too wide, do not help to find where targets lie
        look = Look([(0, None)], data.size, mu, False, AIM, alone=True)
        self.look = look if look.affordable else None
        if self.look is None and self._open:
            raise ParameterError(
                f"target_bounds={self.bounds}: {data.size} {data.units.name}s are too few for a "
                "private look at the target: give finite bounds (low, high) from public knowledge"
            )

    @property
    def _open(self):
        """True if there are no limits yet."""
        return math.isinf(self.bounds[1] - self.bounds[0])

    @property
    def events(self) -> list[Event]:
        """The charges of the look."""
        return self.look.events() if self.look else []

    def scaled(self, y: NDArray) -> NDArray:
        """(N, 1) float32 of targets y (N, 1). Before the release of missing bounds, these count as
        -1 and 1.
        """
        found = bounded_targets(to_host(y), (-1.0, 1.0) if self._open else self.bounds)
        return namespace_of(self.data.targets).asarray(found)

    def release(self, run: Run) -> None:
        """Look, and set the bounds and the centre from the result."""
        if self.look is None:
            return
        low, high = self.bounds
        numbers = np.clip(to_host(self.data.targets), low, high)
        (centre,), (spread,), _ = self.look.release(run, numbers, self.data.units, 0, of="target_")
        centre = float(np.clip(centre, low, high))
        low = max(low, centre - FARTHEST * float(spread))
        high = min(high, centre + FARTHEST * float(spread))
        self.bounds, self.centre = (low, high), 2 * (centre - low) / (high - low) - 1
