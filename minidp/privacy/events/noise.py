"""Noise on a query's value.

A *noise multiplier* is the noise's standard deviation (Gaussian) or scale (Laplace) divided by the
sensitivity of the released quantity under the ledger's one neighbouring relation. 0 means no noise,
so epsilon is infinite; infinity means that nothing was released.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from ...errors import ParameterError
from ...util.validate import non_negative
from .base import Event, NonPrivate, number

LEAST_NOISE = 1e-160  # for less noise, epsilon leaves the range of float64


@dataclass(frozen=True)
class Noise(Event):
    """Base of the events that add noise to a query's value."""

    noise_multiplier: float = field(metadata=number(non_negative))

    def primitives(self, count=1):
        if self.noise_multiplier < LEAST_NOISE:
            yield NonPrivate(), count
        elif self.noise_multiplier < math.inf:
            yield self, count

    def for_group(self, k):
        return type(self)(self.noise_multiplier / k)


class Gaussian(Noise):
    """A query's value plus N(0, (noise_multiplier * L2 sensitivity)^2) on each coordinate."""


class Laplace(Noise):
    """A query's value plus Laplace noise of scale noise_multiplier * L1 sensitivity:
    (1/multiplier)-DP.
    """

    @property
    def pure_epsilon(self):
        return 1 / self.noise_multiplier


@dataclass(frozen=True)
class JointGaussian(Event):
    """Several Gaussians over the *same* examples: block l with its own sensitivity and multiplier
    s_l.

    Scaling each block by its noise shows that the whole costs at most as much as one Gaussian with
    `effective_noise_multiplier`. Put sampling around the joint event: charging each block as if it
    had its own sample would understate epsilon.
    """

    noise_multipliers: Sequence[float]

    def __post_init__(self):
        values = tuple(self.noise_multipliers)
        if not values:
            raise ParameterError("JointGaussian: expected at least one noise multiplier, got none")
        for value in values:
            non_negative(noise_multiplier=value)
        object.__setattr__(self, "noise_multipliers", tuple(map(float, values)))

    @property
    def effective_noise_multiplier(self) -> float:
        """(sum_l s_l^-2)^(-1/2); 0 if any s_l is 0, infinity if all are."""
        return combined_noise_multiplier([(s, 1) for s in self.noise_multipliers])

    def primitives(self, count=1):
        return Gaussian(self.effective_noise_multiplier).primitives(count)


def combined_noise_multiplier(parts: Iterable[tuple[float, int]]) -> float:
    """The noise multiplier of Gaussians over the same examples: (sum n s^-2)^(-1/2) over pairs (s,
    n).

    Their adaptive composition is dominated by that Gaussian (Dong, Roth, Su 2022, Corollary 2), and
    sampling preserves domination (Zhu, Dong, Wang 2022, Theorem 11).
    """
    parts = [(s, n) for s, n in parts if n > 0 and s < math.inf]
    smallest = min((s for s, _ in parts), default=math.inf)
    if smallest in (0, math.inf) or len(parts) == 1 and parts[0][1] == 1:
        return float(smallest)
    return smallest / math.sqrt(math.fsum(n * (smallest / s) ** 2 for s, n in parts))
