"""Releases of which only (epsilon, delta) is known."""

from dataclasses import dataclass, field
from numbers import Integral

from ...util.validate import non_negative_finite, probability
from .base import Event, number


def _plain(epsilon):
    """A number of Python's own; a whole number stays whole, as ledgers on disk hold it."""
    return int(epsilon) if isinstance(epsilon, Integral) else float(epsilon)


@dataclass(frozen=True)
class PureDP(Event):
    """Any release that is epsilon-DP with delta 0, such as the exponential mechanism; unsampled."""

    epsilon: float = field(metadata=number(non_negative_finite, _plain))

    @property
    def pure_epsilon(self):
        return self.epsilon


@dataclass(frozen=True)
class ApproximateDP(Event):
    """Any release that is (epsilon, delta)-DP, such as another library's; unsampled.

    It costs at most as much as a release that gives everything away with probability delta, and is
    epsilon-DP otherwise (Kairouz, Oh, Viswanath 2015, Theorem 2): PureDP(epsilon) beside
    ApproximateDP(0, delta).
    """

    epsilon: float = field(metadata=number(non_negative_finite, _plain))
    delta: float = field(metadata=number(probability))

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
