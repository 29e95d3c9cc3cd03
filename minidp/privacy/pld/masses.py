"""What an event's privacy loss looks like: masses on a grid of losses.

A direction is REMOVE (loss of the data set with the example against that without) or ADD (the
reverse). The masses of the second are those of the first at the negative losses, times e^-loss.
"""

import math
from dataclasses import dataclass

import numpy as np

REMOVE, ADD = "remove", "add"


@dataclass(frozen=True)
class Masses:
    """log P-masses (K,) at the losses offset + knots * step; `infinite`: of what lies above them
    all.
    """

    log_mass: np.ndarray
    knots: np.ndarray
    offset: float
    infinite: float

    def losses(self, step):
        return self.offset + step * self.knots

    def mirrored(self, step, infinite):
        """The masses of (Q, P), whose losses are the negatives."""
        log_mass = (self.log_mass - self.losses(step))[::-1].copy()
        return Masses(log_mass, -self.knots[::-1], -self.offset, infinite)


def randomised_response(epsilon, step):
    """The pair that dominates every epsilon-DP release: losses epsilon, on a knot, and -epsilon,
    between two.
    """
    count = max(1, math.ceil(2 * epsilon / step))
    # of the lower loss over the lowest knot
    above = min(max(count * step - 2 * epsilon, 0.0), step)
    to_upper = math.expm1(-above) / math.expm1(-step)
    log_p = -float(np.logaddexp(0.0, epsilon))
    stays = math.log1p(-to_upper) if to_upper < 1 else -math.inf
    moves = math.log(to_upper) if to_upper > 0 else -math.inf
    log_mass = log_p + np.array([stays, moves, epsilon])
    return Masses(log_mass, np.array([-count, 1 - count, 0]), epsilon, -math.inf)


def largest_loss(parts, direction):
    """The largest loss that can occur at all."""
    total = 0.0
    for event, count in parts:
        loss = event.pure_epsilon
        if loss is None:
            absent = direction == ADD and event.share < 1
            loss = -math.log1p(-event.share) if absent else math.inf
        total += count * loss
    return total
