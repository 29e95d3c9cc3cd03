"""Releases of which (epsilon, delta) is all that is known, and what costs delta alone."""

from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial

from ...util.validate import in_range, non_negative_finite, probability
from .base import Event, number, releases


@dataclass(frozen=True)
class PureDP(Event):
    """Any release that is epsilon-DP with delta 0, such as the exponential mechanism; unsampled."""

    epsilon: float = field(metadata=number(non_negative_finite, None))

    @property
    def pure_epsilon(self):
        return self.epsilon


@dataclass(frozen=True)
class ApproximateDP(Event):
    """Any release that is (epsilon, delta)-DP, such as another library's; unsampled.

    It is dominated by what gives itself away with probability delta and is epsilon-DP otherwise
    (Kairouz, Oh, Viswanath 2015, Theorem 2): PureDP(epsilon) beside ApproximateDP(0, delta).
    """

    epsilon: float = field(metadata=number(non_negative_finite, None))
    delta: float = field(metadata=number(probability))

    delta_alone = True  # of the primitive, whose epsilon is 0

    @property
    def share(self):
        return self.delta if self.epsilon == 0 else 1.0

    def primitives(self, count=1):
        if self.epsilon:
            yield PureDP(self.epsilon), count
        if self.delta:
            yield ApproximateDP(0.0, self.delta), count

    def for_group(self, k):
        if self.epsilon:
            return super().for_group(k)
        return ApproximateDP(0.0, min(1.0, k * self.delta * (1 + 1e-15)))


@dataclass(frozen=True)
class TotalVariation(Event):
    """`count` released numbers, the law of each of which, given all before, is within total
    variation distance tau of the law that the events beside this one describe.

    It stands beside them, never inside a sampled lot or a search: Composed((PoissonSampled(q,
    Gaussian(s)), this)). It spends no epsilon by itself: accountants add (1 + e^epsilon) tau count
    to delta.
    """

    tau: float = field(metadata=number(partial(in_range, 0, 1, open_high=True)))
    count: int = field(metadata=number(releases, int))

    delta_alone = True

    @property
    def variation(self):
        return Fraction(self.tau) * self.count

    def for_group(self, k):
        return self  # no neighbours are in it
